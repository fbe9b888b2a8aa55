//! `extract`: members back into a tree.
//!
//! ```text
//!   rows ──> batches ──> workers: one read, then for each member: create, write, MD5, metadata, close
//!                              then: hard links; then: modes and times of directories, deepest first
//! ```
//! Nothing is ever written outside the target, see [`target`], nor into the archive, see [`own_folder`]. A file gets its modification time last,
//! so one that an interrupted run left half done never looks finished, and is replaced by the next run.

mod metadata;
mod own_folder;
mod target;

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use stook_index::{AsOf, Deleted, Index, Mtime, NameLookup, Row, RowRef, Selection};
use stook_pool::Jobs;
use stook_sys::{Timestamp, create_directory};
use stook_timers::scope;
use stook_tree::Pattern;
use stook_volume::{Header, Member};

use crate::ArchiveError;
use crate::archive::{Archive, Parts};
use crate::cause::Cause;
use crate::deleted::require_not_missing;
use crate::folder::Folder;
use crate::memory::worker_pool;
use crate::mutex::lock;
use crate::observer::{CountingObserver, Failure, Observer, sys_failure};
use crate::read::{
    ContentMd5, Interrupted, LoadedRange, RowBatch, Volumes, check_row, for_each_batch,
};
use own_folder::{INDEX, OwnFolder, SizeAndTime};
pub(crate) use target::safe_path;
use target::{LastParent, Outcome, Target, TargetOptions};

/// How to extract.
#[derive(Debug, Clone)]
pub struct ExtractOptions {
    /// What to extract; nothing means everything.
    pub patterns: Vec<Pattern>,
    /// The state to go back to.
    pub as_of: AsOf,
    /// How many workers.
    pub jobs: Jobs,
    /// Leave files alone that are there and differ.
    pub no_overwrite: bool,
    /// As the superuser, bring back set-id bits, capabilities and devices.
    pub same_permissions: bool,
    /// Bring back extended attributes.
    pub xattrs: bool,
}

impl Default for ExtractOptions {
    fn default() -> Self {
        Self {
            patterns: Vec::new(),
            as_of: AsOf::Now,
            jobs: Jobs::Adaptive,
            no_overwrite: false,
            same_permissions: false,
            xattrs: true,
        }
    }
}

/// What an `extract` did.
#[derive(Debug, Clone, Default)]
pub struct ExtractReport {
    /// Members selected.
    pub members: u64,
    /// Entries written.
    pub written: u64,
    /// Bytes of content written.
    pub bytes: u64,
    /// Files that were there already, with the same size and time.
    pub unchanged: u64,
    /// Members that failed, each told to the observer.
    pub failed: u64,
}

/// Extracts the newest version of each selected member into the folder `into`, which is made.
///
/// # Errors
/// `NotInState` if a pattern matches only names of other states; `NoMatch` if it matches nothing; `IntoArchive` if the
/// folder is the archive, or lies in it; `IntoOtherArchive` if it is another one, or lies in one; `Sys` if the folder
/// cannot be made; `Index` if the archive cannot be read; `Interrupted`.
pub fn extract(
    archive: &mut Archive,
    into: &Path,
    options: &ExtractOptions,
    observer: &dyn Observer,
) -> Result<ExtractReport, ArchiveError> {
    let observer = CountingObserver::new(observer);
    let Parts {
        folder,
        index,
        store,
    } = archive.parts(&observer)?;
    let selection = {
        let _scope = scope!("select");
        observer.phase("select", None, None);
        select(folder, index, options.as_of, &options.patterns, &observer)?
    };
    let own_folder = OwnFolder::beside(folder.path(), into, || index_member(index, &selection))?;
    create_directory(into)?;
    observer.phase("extract", Some(selection.len()), Some(selection.bytes()));
    let target_options = TargetOptions {
        no_overwrite: options.no_overwrite,
        same_permissions: options.same_permissions,
        xattrs: options.xattrs,
    };
    let extractor = Extractor {
        target: Target::open(into, own_folder, target_options)?,
        jobs: options.jobs,
        volumes: Volumes::new(Arc::clone(store)),
        observer,
        linked: Mutex::default(),
        written: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
        unchanged: AtomicU64::new(0),
    };
    let _scope = scope!("extract");
    for_each_batch(
        "extract",
        index,
        &selection,
        &extractor.volumes,
        options.jobs,
        |batch| {
            extractor.extract(&batch);
        },
    )?;
    if extractor.observer.is_interrupted() {
        // Directories keep modes that let the next run go on.
        return Err(ArchiveError::Interrupted);
    }
    extractor.finish(index, &selection)?;
    index.require_unchanged()?;
    Ok(ExtractReport {
        members: selection.len(),
        written: extractor.written.into_inner(),
        bytes: extractor.bytes.into_inner(),
        unchanged: extractor.unchanged.into_inner(),
        failed: extractor.observer.failures(),
    })
}

/// Returns size and time of the member that has the name of an index.
fn index_member(index: &Index, selection: &Selection) -> Result<Option<SizeAndTime>, ArchiveError> {
    let mut found = None;
    index.selected(selection, |row| {
        if row.name == INDEX {
            found = Some((row.size, row.mtime));
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

/// Selects the newest live members that match any of the patterns; each pattern must match something. Those
/// whose rows cannot be read fail.
pub(crate) fn select(
    folder: &Folder,
    index: &Index,
    as_of: AsOf,
    patterns: &[Pattern],
    observer: &dyn Observer,
) -> Result<Selection, ArchiveError> {
    if let Some(selection) = select_by_name(index, as_of, patterns)? {
        return Ok(selection);
    }
    let matched: Vec<AtomicBool> = patterns.iter().map(|_| AtomicBool::new(false)).collect();
    let matches = |row: &RowRef<'_>| is_match(patterns, &matched, row.name);
    let selection = Selection::of(index, as_of, Deleted::Hide, &matches)?;
    fail_unreadable(index, &selection, observer)?;
    require_not_missing(folder, index, as_of, patterns, &selection)?;
    require_matches(folder, patterns, &matched, &selection)?;
    Ok(selection)
}

/// More names than this are selected by a pass over all rows.
const MOST_LOOKUPS: usize = 64;

/// Selects members without a pass over all rows, if each pattern is the whole path of a regular file: nothing is below
/// one. `None` if that cannot be said of all.
fn select_by_name(
    index: &Index,
    as_of: AsOf,
    patterns: &[Pattern],
) -> Result<Option<Selection>, ArchiveError> {
    let plain: Option<Vec<&[u8]>> = patterns.iter().map(Pattern::plain_path).collect();
    let Some(names) = plain.filter(|names| (1..=MOST_LOOKUPS).contains(&names.len())) else {
        return Ok(None);
    };
    if !index.has_name_segments()? {
        return Ok(None);
    }
    let mut rows = Vec::with_capacity(names.len());
    for name in names {
        match index.find(name, as_of)? {
            NameLookup {
                row: Some(row),
                damage: None,
                ..
            } if row.md5.is_some() => rows.push(row),
            _ => return Ok(None),
        }
    }
    Ok(Some(Selection::of_rows(&rows)))
}

/// Tells the observer what of a selection the index does not tell.
pub(crate) fn fail_unreadable(
    index: &Index,
    selection: &Selection,
    observer: &dyn Observer,
) -> Result<(), ArchiveError> {
    Ok(index.selection_damages(selection, |damage| {
        observer.failed(&Failure::row(&damage));
    })?)
}

pub(crate) fn is_match(patterns: &[Pattern], matched: &[AtomicBool], name: &[u8]) -> bool {
    let mut is_any = patterns.is_empty();
    for (pattern, matched) in patterns.iter().zip(matched) {
        if pattern.matches(name) {
            matched.store(true, Ordering::Relaxed);
            is_any = true;
        }
    }
    is_any
}

/// A pattern must match something, unless that may be among the rows without a name.
pub(crate) fn require_matches(
    folder: &Folder,
    patterns: &[Pattern],
    matched: &[AtomicBool],
    selection: &Selection,
) -> Result<(), ArchiveError> {
    if selection.has_unknown_names() {
        return Ok(());
    }
    match patterns
        .iter()
        .zip(matched)
        .find(|(_, matched)| !matched.load(Ordering::Relaxed))
    {
        Some((pattern, _)) => Err(ArchiveError::NoMatch {
            pattern: pattern.text().to_vec(),
            archive: folder.path().to_owned(),
        }),
        None => Ok(()),
    }
}

struct Extractor<'a> {
    target: Target,
    jobs: Jobs,
    volumes: Volumes,
    observer: CountingObserver<'a>,
    /// Members that share their file with an earlier name; they come last.
    linked: Mutex<Vec<(Row, Header)>>,
    written: AtomicU64,
    bytes: AtomicU64,
    unchanged: AtomicU64,
}

impl Extractor<'_> {
    fn extract(&self, batch: &RowBatch) {
        if self.observer.is_interrupted() {
            return;
        }
        let _scope = scope!("batch");
        let volume = match self.volumes.get(batch.volume) {
            Ok(volume) => volume,
            Err(error) => return self.fail_all(batch, |row| sys_failure(&row.name, &error)),
        };
        let loaded = match LoadedRange::of(batch, &*volume, &self.volumes.buffers) {
            Ok(loaded) => loaded,
            Err(error) => {
                return self.fail_all(batch, |row| Failure::io("read", &row.name, &error));
            }
        };
        let mut last = LastParent::default();
        let members = batch.rows.iter().map(|row| read_member(row, &loaded));
        let members: Vec<Result<Member, Failure>> = members.collect();
        let md5s = loaded.md5s(members.iter().map(|member| member.as_ref().ok()));
        for ((row, member), md5) in batch.rows.iter().zip(members).zip(md5s) {
            let result =
                member.and_then(|member| self.extract_row(row, member, md5, &loaded, &mut last));
            if self.observer.is_interrupted() {
                return;
            }
            if let Err(failure) = result {
                self.observer.failed(&failure);
            }
            self.observer.advanced(1, row.size);
            stook_pool::advance(1);
        }
    }

    fn fail_all(&self, batch: &RowBatch, failure: impl Fn(&Row) -> Failure) {
        for row in &batch.rows {
            self.observer.failed(&failure(row));
        }
    }

    fn extract_row(
        &self,
        row: &Row,
        member: Member,
        md5: Option<[u8; 16]>,
        loaded: &LoadedRange<'_>,
        last: &mut LastParent,
    ) -> Result<(), Failure> {
        if member.header.link.is_some() {
            lock(&self.linked).push((row.clone(), member.header));
            return Ok(());
        }
        self.place(row, &member, md5, loaded, last)
    }

    fn place(
        &self,
        row: &Row,
        member: &Member,
        md5: Option<[u8; 16]>,
        loaded: &LoadedRange<'_>,
        last: &mut LastParent,
    ) -> Result<(), Failure> {
        let header = &member.header;
        let outcome = if header.kind.has_content() {
            self.target
                .place_file(header, row.mtime, last, |file| match md5.zip(row.md5) {
                    Some((found, expected)) if found != expected => Err(ContentError::WrongMd5),
                    Some(_) => write_small(file, member, loaded),
                    None => write_content(file, row, member, loaded, &self.observer),
                })
        } else {
            self.target.place_other(header, last)
        };
        self.count(row, outcome?);
        Ok(())
    }

    fn count(&self, row: &Row, outcome: Outcome) {
        match outcome {
            Outcome::Unchanged => {
                self.unchanged.fetch_add(1, Ordering::Relaxed);
            }
            Outcome::Written => {
                self.written.fetch_add(1, Ordering::Relaxed);
                self.bytes.fetch_add(row.size, Ordering::Relaxed);
                self.observer.done(&row.name);
            }
        }
    }

    /// Makes the hard links, then sets what a directory can only be given at the end.
    fn finish(&self, index: &Index, selection: &Selection) -> Result<(), ArchiveError> {
        let _scope = scope!("finish");
        let mut linked = std::mem::take(&mut *lock(&self.linked));
        linked.sort_by_key(|(row, _)| row.id);
        let mut contents = contents_of_first_names(index, selection, &linked)?;
        for (row, header) in linked {
            let linked = self.link_or_extract(&row, &header, &mut contents);
            if self.observer.is_interrupted() {
                return Err(ArchiveError::Interrupted);
            }
            if let Err(failure) = linked {
                self.observer.failed(&failure);
            }
        }
        let pool = worker_pool("finish directories", self.jobs);
        self.target.finish_directories(&pool, &self.observer);
        if self.observer.is_interrupted() {
            return Err(ArchiveError::Interrupted);
        }
        self.target.tell_notes(&self.observer);
        Ok(())
    }

    /// Links to the first name if that holds the same file now; else this name gets the content.
    fn link_or_extract(
        &self,
        row: &Row,
        header: &Header,
        contents: &mut Contents,
    ) -> Result<(), Failure> {
        let has_same_content = |name: &[u8]| contents.get(name) == Some(&row.md5);
        let placed = self
            .target
            .place_link(header, row.mtime, has_same_content)?;
        if let Some(outcome) = placed {
            self.count(row, outcome);
            return Ok(());
        }
        let volume = self
            .volumes
            .get(row.volume)
            .map_err(|error| sys_failure(&row.name, &error))?;
        let batch = RowBatch {
            volume: row.volume,
            rows: vec![row.clone()],
        };
        let loaded = LoadedRange::of(&batch, &*volume, &self.volumes.buffers)
            .map_err(|error| Failure::io("read", &row.name, &error))?;
        let member = read_member(row, &loaded)?;
        self.place(row, &member, None, &loaded, &mut LastParent::default())?;
        self.target.remember_first(header);
        contents.insert(row.name.clone(), row.md5);
        Ok(())
    }
}

/// MD5s by name, of the names that others may be linked to.
type Contents = HashMap<Vec<u8>, Option<[u8; 16]>>;

/// The first name may hold another file by now, even one of the same size and time.
fn contents_of_first_names(
    index: &Index,
    selection: &Selection,
    linked: &[(Row, Header)],
) -> Result<Contents, ArchiveError> {
    let names: HashSet<&[u8]> = linked
        .iter()
        .filter_map(|(_, header)| header.link.as_deref())
        .collect();
    let mut contents = Contents::new();
    if names.is_empty() {
        return Ok(contents);
    }
    index.selected(selection, |row| {
        if names.contains(row.name) {
            contents.insert(row.name.to_vec(), row.md5);
        }
        ControlFlow::Continue(())
    })?;
    Ok(contents)
}

/// Decodes the member of a row and makes sure that it is the one.
fn read_member(row: &Row, loaded: &LoadedRange<'_>) -> Result<Member, Failure> {
    let wrong = |cause: Cause| {
        let cause = Cause::At {
            cause: Box::new(cause),
            offset: row.offset,
            volume: row.volume,
        };
        Failure::new("read", &row.name, cause)
    };
    let mut member = loaded.member(row.offset).map_err(wrong)?;
    check_row(row, &member).map_err(wrong)?;
    // Headers of old writers have whole seconds only; the index has the time to the microsecond.
    if Mtime::from(member.header.mtime) != row.mtime {
        member.header.mtime = timestamp(row.mtime);
    }
    Ok(member)
}

fn timestamp(mtime: Mtime) -> Timestamp {
    let microseconds = mtime.0.rem_euclid(1_000_000);
    Timestamp {
        seconds: mtime.0.div_euclid(1_000_000),
        nanoseconds: u32::try_from(microseconds * 1000).expect("less than a second"),
    }
}

/// Writes the content of a member that is in memory, and whose MD5 is right.
fn write_small(file: &File, member: &Member, loaded: &LoadedRange<'_>) -> Result<(), ContentError> {
    let _scope = scope!("write");
    loaded.content(member, |offset, bytes| {
        stook_sys::write_all_at(file, bytes, offset).map_err(ContentError::Write)
    })
}

/// Writes the content of a member, holes left out; an error of its MD5 is an error of the file.
fn write_content(
    file: &File,
    row: &Row,
    member: &Member,
    loaded: &LoadedRange<'_>,
    observer: &dyn Observer,
) -> Result<(), ContentError> {
    let mut md5 = ContentMd5::new(&row.name, member.header.size, observer);
    loaded.content(member, |offset, bytes| {
        if observer.is_interrupted() {
            return Err(ContentError::Interrupted);
        }
        md5.update(offset, bytes)?;
        let _scope = scope!("write");
        stook_sys::write_all_at(file, bytes, offset).map_err(ContentError::Write)
    })?;
    if member.header.sparse.is_some() {
        file.set_len(member.header.size)
            .map_err(ContentError::Write)?;
    }
    match row.md5 {
        Some(expected) if md5.finish()? != expected => Err(ContentError::WrongMd5),
        _ => Ok(()),
    }
}

/// Why the content of a member did not get into its file.
#[derive(Debug)]
pub(crate) enum ContentError {
    Read(io::Error),
    Write(io::Error),
    Interrupted,
    WrongMd5,
}

impl From<Interrupted> for ContentError {
    fn from(_: Interrupted) -> Self {
        Self::Interrupted
    }
}

impl From<io::Error> for ContentError {
    fn from(error: io::Error) -> Self {
        Self::Read(error)
    }
}
