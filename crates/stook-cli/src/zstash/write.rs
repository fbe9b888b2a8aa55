//! What `create` and `update` share: the options of a run, and its report in zstash's order.
//!
//! Up to eight volumes are written at a time. Names of members of all but the first of them wait here, so that every volume
//! is reported as a whole, in the order of the numbers.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use stook_archive::{
    BaseObserver, Deletions, Dialect, Failure, Interrupt, MetadataChanges, Note, Observer,
    SkipReason, StoreOptions, Volume, VolumeId, WriteOptions,
};
use stook_sys::Links;
use stook_tree::{Filter, Pattern, split};

use super::argparse::Values;
use super::context::Context;
use super::error::{FrontError, skipped, traceback_of};
use super::log::Level;
use super::messages;
use super::phases::Phase;
use super::settings::Cache;
use crate::mutex::lock;
use crate::output::hex;

/// zstash takes what differs by so many microseconds for unchanged.
pub(crate) const TIME_TOLERANCE: u64 = 1_000_000;

/// Returns the options that `create` and `update` have in common.
pub(crate) fn write_options(
    values: &Values,
    store: Option<StoreOptions>,
) -> Result<WriteOptions, FrontError> {
    Ok(WriteOptions {
        filter: Filter {
            include: patterns(values.text("include"))?,
            exclude: patterns(values.text("exclude"))?,
        },
        links: if values.switch("follow_symlinks") {
            Links::Follow
        } else {
            Links::Refuse
        },
        dialect: Dialect::Zstash,
        directories: false,
        xattrs: false,
        metadata: MetadataChanges::Ignore,
        deletions: Deletions::Keep,
        read_only_volumes: store.is_none(),
        allows_other_files: true,
        time_tolerance: TIME_TOLERANCE,
        store,
        ..WriteOptions::default()
    })
}

/// An empty pattern ends zstash with an exception.
fn patterns(text: Option<&[u8]>) -> Result<Vec<Pattern>, FrontError> {
    let parts = text.map(|text| text.split(|&byte| byte == b','));
    let pattern = |part: &[u8]| {
        if part.is_empty() {
            Err(FrontError::raised(
                "IndexError",
                "string index out of range",
            ))
        } else {
            Ok(Pattern::zstash(part))
        }
    };
    parts.into_iter().flatten().map(pattern).collect()
}

/// What the option for developers does to the records of volumes, and what becomes of duplicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Records {
    Right,
    /// A record is there already, by so many bytes too large.
    Existing(u64),
    /// Two records, none of which is right.
    NoneRight,
    /// Two records, the newer of which is wrong.
    NewestWrong,
}

/// What becomes of a volume that is on record already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnDuplicate {
    Fail,
    Overwrite,
    Add,
}

impl Records {
    pub(crate) fn of(values: &Values) -> Self {
        match values.text("for_developers_force_database_corruption") {
            Some(b"simulate_row_existing") => Self::Existing(0),
            Some(b"simulate_row_existing_bad_size") => Self::Existing(1000),
            Some(b"simulate_no_correct_size") => Self::NoneRight,
            Some(b"simulate_bad_size_for_most_recent") => Self::NewestWrong,
            _ => Self::Right,
        }
    }

    /// Returns by how much the lengths on record are too large.
    pub(crate) fn errors(self, on_duplicate: OnDuplicate) -> Vec<u64> {
        match (self, on_duplicate) {
            (Self::Right, _) | (Self::Existing(_), OnDuplicate::Overwrite) => vec![0],
            (Self::Existing(error), _) => vec![error, 0],
            (Self::NoneRight, _) => vec![1000, 2000],
            (Self::NewestWrong, _) => vec![0, 2000],
        }
    }
}

impl OnDuplicate {
    pub(crate) fn of(values: &Values) -> Self {
        if values.switch("error_on_duplicate_tar") {
            Self::Fail
        } else if values.switch("overwrite_duplicate_tars") {
            Self::Overwrite
        } else {
            Self::Add
        }
    }
}

/// Reports a run as zstash does.
pub(crate) struct WriteReporter<'a> {
    pub(crate) context: &'a Context,
    pub(crate) cache: &'a Cache,
    pub(crate) has_store: bool,
    pub(crate) records_volumes: bool,
    pub(crate) records: Records,
    pub(crate) on_duplicate: OnDuplicate,
    pub(crate) follows_links: bool,
    /// The mode of new files.
    pub(crate) mode: u32,
    state: Mutex<State>,
    /// A followed link leads nowhere.
    has_broken_link: AtomicBool,
    /// The run must end before the next volume.
    must_end: AtomicBool,
}

#[derive(Default)]
struct State {
    /// The first volume that is not in the index yet, and whether it was announced.
    current: Option<VolumeId>,
    is_announced: bool,
    /// Members of volumes behind it.
    waiting: BTreeMap<VolumeId, Vec<Vec<u8>>>,
    failed: Vec<Vec<u8>>,
    refusal: Option<FrontError>,
}

impl<'a> WriteReporter<'a> {
    pub(crate) fn new(context: &'a Context, cache: &'a Cache, values: &Values) -> Self {
        Self {
            context,
            cache,
            has_store: false,
            records_volumes: !values.switch("no_tars_md5"),
            records: Records::of(values),
            on_duplicate: OnDuplicate::of(values),
            follows_links: values.switch("follow_symlinks"),
            mode: 0o666 & !umask(),
            state: Mutex::default(),
            has_broken_link: AtomicBool::new(false),
            must_end: AtomicBool::new(false),
        }
    }

    /// Returns the paths that failed, in the order of the archive.
    pub(crate) fn failed_paths(&self) -> Vec<Vec<u8>> {
        let mut failed = std::mem::take(&mut lock(&self.state).failed);
        failed.sort_by(|a, b| split(a).cmp(&split(b)));
        failed.dedup();
        failed
    }

    /// Returns why the run was ended from here, if it was.
    pub(crate) fn refusal(&self, broken_link: &'static str) -> Option<FrontError> {
        if self.has_broken_link.load(Ordering::Relaxed) {
            return Some(FrontError::raised("Exception", broken_link));
        }
        lock(&self.state).refusal.take()
    }

    fn announce(&self, state: &mut State) {
        if let Some(volume) = state.current.filter(|_| !state.is_announced) {
            self.context.log.info(&messages::creating(volume));
            state.is_announced = true;
        }
    }

    fn print_waiting(&self, state: &mut State) {
        let Some(waiting) = state
            .current
            .and_then(|volume| state.waiting.remove(&volume))
        else {
            return;
        };
        self.announce(state);
        for path in waiting {
            let text = messages::archiving(&path);
            self.context.log.often(Level::Info, &text);
        }
    }

    /// What zstash says between the end of a volume and its record.
    fn print_stored(&self, volume: &Volume) {
        let log = &self.context.log;
        let path = self.cache.path_of(volume.id);
        log.debug(&messages::closing(&volume.id.to_string()));
        if self.has_store {
            log.info(&messages::sending(&path));
        } else {
            log.info(messages::PUT_UNAVAILABLE);
            log.info(messages::KEEPING);
            log.info(&messages::mode_of(&path, "original", self.mode));
            log.info(&messages::mode_of(&path, "new", self.mode & !0o222));
        }
        if self.records_volumes {
            let md5 = volume
                .md5
                .map_or_else(|| "None".to_owned(), |md5| hex(&md5));
            log.info(&messages::complete(volume.id, volume.size, &md5));
        }
    }

    /// Says how the volume comes on record; false if it must not.
    fn print_record(&self, id: VolumeId) -> bool {
        let log = &self.context.log;
        match self.records {
            Records::Right => log.info(&messages::adding(id)),
            Records::NoneRight => log.info(&messages::simulating("no correct size", id)),
            Records::NewestWrong => {
                log.info(&messages::simulating("bad size for most recent entry", id));
            }
            Records::Existing(error) => {
                let what = if error == 0 {
                    "row existing"
                } else {
                    "row existing with bad size"
                };
                log.info(&messages::simulating(what, id));
                let text = messages::already_there(id);
                match self.on_duplicate {
                    OnDuplicate::Fail => {
                        log.error(&text);
                        let refusal = FrontError::raised("RuntimeError", text);
                        lock(&self.state).refusal = Some(refusal);
                        return false;
                    }
                    OnDuplicate::Overwrite => {
                        log.warning(&text);
                        log.warning(&messages::updating_record(id));
                    }
                    OnDuplicate::Add => {
                        log.warning(&text);
                        log.warning(&messages::adding_record(id));
                    }
                }
            }
        }
        true
    }
}

/// Returns the bits that new files do not get.
fn umask() -> u32 {
    let status = stook_sys::read_text("/proc/self/status".as_ref()).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    line.and_then(|digits| u32::from_str_radix(digits.trim(), 8).ok())
        .unwrap_or(0o022)
}

impl BaseObserver for WriteReporter<'_> {
    type Failure = Failure;

    fn advanced(&self, entries: u64, bytes: u64) {
        self.context.phases.advance(entries, bytes);
    }

    fn failed(&self, failure: &Failure) {
        self.context.note_failure();
        let is_missing = failure.cause.errno() == Some(2);
        if self.follows_links && is_missing {
            self.has_broken_link.store(true, Ordering::Relaxed);
        }
        let log = &self.context.log;
        let text = messages::archiving(&failure.path);
        let mut state = lock(&self.state);
        log.info(&text);
        log.line(Level::Plain, &traceback_of(failure));
        log.error(&text);
        state.failed.push(failure.path.clone());
    }

    fn is_interrupted(&self) -> bool {
        self.must_end.load(Ordering::Relaxed) || self.context.is_interrupted()
    }
}

impl Observer for WriteReporter<'_> {
    fn phase(&self, name: &'static str, _entries: Option<u64>, _bytes: Option<u64>) {
        let phase = match name {
            "survey" => Phase::Gather,
            "archive" => {
                if self.has_broken_link.load(Ordering::Relaxed) {
                    self.must_end.store(true, Ordering::Relaxed);
                }
                Phase::AddFiles
            }
            _ => Phase::Commit,
        };
        self.context.phases.begin(phase);
    }

    fn step(&self, name: &'static str) {
        self.context.phases.begin(match name {
            "load index" => Phase::Compare,
            "plan" => Phase::Plan,
            _ => Phase::Commit,
        });
    }

    fn volume_is_next(&self, volume: VolumeId) {
        let mut state = lock(&self.state);
        state.current = Some(volume);
        state.is_announced = false;
        self.print_waiting(&mut state);
    }

    fn archived(&self, volume: VolumeId, path: &[u8]) {
        let mut state = lock(&self.state);
        if state.current != Some(volume) {
            state.waiting.entry(volume).or_default().push(path.to_vec());
            return;
        }
        self.announce(&mut state);
        let text = messages::archiving(path);
        self.context.log.often(Level::Info, &text);
    }

    fn volume_is_ready(&self, volume: &Volume) -> ControlFlow<()> {
        {
            let mut state = lock(&self.state);
            if state.current != Some(volume.id) {
                state.current = Some(volume.id);
                state.is_announced = false;
            }
            self.print_waiting(&mut state);
            self.announce(&mut state);
        }
        self.print_stored(volume);
        if self.records_volumes && !self.print_record(volume.id) {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    fn skipped(&self, path: &[u8], reason: SkipReason) {
        let text = skipped(path, &reason.to_string());
        self.context.log.warning(&text);
    }

    fn noted(&self, text: &str) {
        self.context.log.debug(text);
    }

    fn note(&self, note: &Note) {
        self.context.log.warning(&note.to_string());
    }

    fn interrupt(&self) -> Interrupt {
        std::sync::Arc::clone(&self.context.interrupted).into()
    }
}
