//! Reports members as zstash does: volume by volume, in the order of the places, whoever comes to an end first.
//!
//! ```text
//!   workers ──members, in any order──> early ──in order──> lines
//! ```

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use stook_archive::{
    BaseObserver, Cause, Failure, Interrupt, MemberDone, MemberEnd, Note, Observer, Row, RowId,
    VolumeId,
};
use stook_md5::Md5;
use stook_sys::FileKind;

use super::context::Context;
use super::error::{FrontError, traceback_of};
use super::extract::Verb;
use super::log::{Level, Line, Log};
use super::messages;
use super::phases::Phase;
use super::settings::Cache;
use super::update::open;
use crate::mutex::lock;
use crate::output::hex;

/// Where a member lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) volume: VolumeId,
    pub(crate) offset: u64,
    pub(crate) id: RowId,
}

/// A member that failed.
#[derive(Debug)]
pub(crate) struct Failed {
    name: Vec<u8>,
    pub(crate) volume: VolumeId,
}

pub(crate) struct Report<'a> {
    context: &'a Context,
    /// Of the workers.
    log: Log,
    verb: Verb,
    cache: &'a Cache,
    /// All members that were chosen, in order.
    order: Vec<Place>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The place whose member is printed next.
    next: usize,
    /// What is to be printed of members behind it.
    early: HashMap<RowId, Done>,
    /// What is printed when a volume is opened.
    openings: BTreeMap<VolumeId, Vec<Line>>,
    failed: Vec<Failed>,
    /// Failures that no member has come with yet.
    unexplained: Vec<Failure>,
    has_wrong_hard_link: bool,
}

#[derive(Default)]
struct Done {
    lines: Vec<Line>,
    failed: Option<Failed>,
}

impl<'a> Report<'a> {
    pub(crate) fn new(
        context: &'a Context,
        log: Log,
        verb: Verb,
        cache: &'a Cache,
        order: Vec<Place>,
    ) -> Self {
        Self {
            context,
            log,
            verb,
            cache,
            order,
            state: Mutex::default(),
        }
    }

    /// Returns the volumes of the members, in order.
    pub(crate) fn volumes(&self) -> Vec<VolumeId> {
        let mut volumes: Vec<VolumeId> = self.order.iter().map(|place| place.volume).collect();
        volumes.dedup();
        volumes
    }

    /// Takes what is said of a volume before its first member: printed at once if its turn has come.
    pub(crate) fn open(&self, volume: VolumeId, mut lines: Vec<Line>) {
        let opening = messages::opening(&self.cache.path_of(volume));
        lines.push((Level::Info, opening));
        self.say_of(volume, lines);
    }

    fn say_of(&self, volume: VolumeId, lines: Vec<Line>) {
        let mut state = lock(&self.state);
        let next = self.order.get(state.next);
        if next.is_some_and(|place| place.volume == volume) {
            self.log.lines(&lines);
            self.log.flush();
        } else {
            state.openings.insert(volume, lines);
        }
    }

    /// Takes that a volume cannot be used: all its members fail.
    pub(crate) fn fail_volume(
        &self,
        volume: VolumeId,
        mut lines: Vec<Line>,
        error: &FrontError,
        members: Vec<(RowId, Vec<u8>)>,
    ) {
        lines.push((Level::Plain, error.traceback()));
        self.say_of(volume, lines);
        let mut state = lock(&self.state);
        for (id, name) in members {
            let done = Done {
                failed: Some(Failed { name, volume }),
                ..Done::default()
            };
            state.early.insert(id, done);
        }
        self.print_in_order(&mut state);
    }

    fn done(&self, id: RowId, done: Done) {
        let mut state = lock(&self.state);
        state.early.insert(id, done);
        self.print_in_order(&mut state);
    }

    fn print_in_order(&self, state: &mut State) {
        while let Some(place) = self.order.get(state.next) {
            let Some(done) = state.early.remove(&place.id) else {
                return;
            };
            if let Some(lines) = state.openings.remove(&place.volume) {
                self.log.lines(&lines);
            }
            self.log.lines(&done.lines);
            if let Some(failed) = done.failed {
                self.context.note_failure();
                state.failed.push(failed);
            }
            state.next += 1;
            let behind = self.order.get(state.next);
            if behind.is_none_or(|behind| behind.volume != place.volume) {
                let closing = messages::closing(&self.cache.path_of(place.volume));
                self.log.often(Level::Debug, &closing);
            }
        }
    }

    /// Prints what waits.
    pub(crate) fn flush(&self) {
        self.log.flush();
    }

    /// Says how it ended.
    pub(crate) fn finish(&self) {
        self.log.flush();
        let log = &self.context.log;
        let mut state = lock(&self.state);
        let unexplained = std::mem::take(&mut state.unexplained);
        for failure in &unexplained {
            self.context.note_failure();
            log.line(Level::Plain, &traceback_of(failure));
            log.error(&messages::retrieving(&failure.path));
        }
        if !state.failed.is_empty() {
            log.error(messages::FILES_FAILED);
            for failed in &state.failed {
                log.error(&messages::failed_in(&failed.name, failed.volume));
            }
            let mut volumes: Vec<VolumeId> = state.failed.iter().map(|it| it.volume).collect();
            volumes.sort_unstable();
            volumes.dedup();
            log.error(messages::TARS_FAILED);
            for volume in volumes {
                log.error(&volume.to_string());
            }
        } else if unexplained.is_empty() && !state.has_wrong_hard_link {
            log.info(&messages::no_failures(self.verb.doing()));
        }
    }

    fn done_of(&self, member: &MemberDone<'_>) -> Done {
        let row = member.row;
        let mut lines = vec![(Level::Info, messages::doing(self.verb.word(), &row.name))];
        let mut failed = false;
        match member.end {
            MemberEnd::Unchanged => {
                if row.md5.is_some() || is_fifo(&row.name) {
                    lines.push((Level::Info, messages::not_extracting(&row.name)));
                }
            }
            MemberEnd::Extracted | MemberEnd::Verified => {
                if let Some(md5) = row.md5.filter(|_| !member.is_hard_link) {
                    let text = messages::valid_md5(&hex(&md5), &row.name);
                    lines.push((Level::Debug, text));
                }
            }
            MemberEnd::Failed(failure) => {
                failed = self.push_failure(row, member.is_hard_link, failure, &mut lines);
            }
        }
        let failed = failed.then(|| Failed {
            name: row.name.clone(),
            volume: row.volume,
        });
        Done { lines, failed }
    }

    /// Adds what is said of a failure; returns whether it counts against the volume.
    fn push_failure(
        &self,
        row: &Row,
        is_hard_link: bool,
        failure: &Failure,
        lines: &mut Vec<Line>,
    ) -> bool {
        let cause = match &failure.cause {
            Cause::At { cause, .. } => cause,
            cause => cause,
        };
        match cause {
            Cause::WrongMd5 if is_hard_link => {
                self.context.note_failure();
                lock(&self.state).has_wrong_hard_link = true;
                let text = messages::hard_link_mismatch(&row.name, row.volume);
                lines.push((Level::Warning, text));
                false
            }
            // zstash looks at the MD5 of files only.
            Cause::OtherKind if row.md5.is_some() && self.verb == Verb::Check => false,
            Cause::WrongMd5 => {
                let expected = row.md5.map_or_else(|| "None".to_owned(), |md5| hex(&md5));
                let found = self.found_md5(row).unwrap_or_else(|| "None".to_owned());
                lines.push((Level::Error, messages::md5_mismatch(&row.name)));
                let found = messages::md5_of("extracted file: ", &found);
                lines.push((Level::Error, found));
                let expected = messages::md5_of("original file:  ", &expected);
                lines.push((Level::Error, expected));
                true
            }
            _ => {
                lines.push((Level::Plain, traceback_of(failure)));
                lines.push((Level::Error, messages::retrieving(&row.name)));
                true
            }
        }
    }

    /// Takes the MD5 of what the volume has now: seldom enough to read it again.
    fn found_md5(&self, row: &Row) -> Option<String> {
        let archive = open(self.cache).ok()?;
        let reader = archive.reader(row).ok()?;
        let mut md5 = Md5::new();
        let mut buffer = vec![0; 1 << 20];
        let mut position = 0;
        while position < reader.size() {
            let count = reader.read_at(position, &mut buffer).ok()?;
            md5.update(buffer.get(..count)?);
            position += count as u64;
        }
        Some(hex(&md5.finish()))
    }
}

/// zstash takes links and directories for changed, whatever they are like: it asks for the size of what they lead to.
fn is_fifo(path: &[u8]) -> bool {
    let found = stook_sys::exists(Path::new(OsStr::from_bytes(path)));
    found.is_ok_and(|found| found.is_some_and(|found| found.kind == FileKind::Fifo))
}

impl BaseObserver for Report<'_> {
    type Failure = Failure;

    fn advanced(&self, entries: u64, bytes: u64) {
        self.context.phases.advance(entries, bytes);
    }

    fn failed(&self, failure: &Failure) {
        lock(&self.state).unexplained.push(failure.clone());
    }

    fn is_interrupted(&self) -> bool {
        self.context.is_interrupted()
    }
}

impl Observer for Report<'_> {
    fn phase(&self, _name: &'static str, _entries: Option<u64>, _bytes: Option<u64>) {
        self.context.phases.begin(Phase::AddFiles);
    }

    fn member(&self, member: &MemberDone<'_>) {
        if let MemberEnd::Failed(failure) = member.end {
            let mut state = lock(&self.state);
            let is_it = |it: &Failure| it.path == failure.path;
            if let Some(at) = state.unexplained.iter().position(is_it) {
                state.unexplained.swap_remove(at);
            }
            if matches!(failure.cause, Cause::Interrupted) {
                return;
            }
        }
        let done = self.done_of(member);
        self.done(member.row.id, done);
    }

    fn noted(&self, text: &str) {
        self.context.log.debug(text);
    }

    fn note(&self, note: &Note) {
        self.context.log.debug(&note.to_string());
    }

    fn interrupt(&self) -> Interrupt {
        Arc::clone(&self.context.interrupted).into()
    }
}
