//! `extract`: members back into a tree.
//!
//! ```text
//!   rows ──> batches ──> workers: one read, then for each member: create, write, MD5, metadata, close
//!                              then: hard links; then: modes and times of directories, deepest first
//! ```
//! Nothing is ever written outside the target, see [`target`], nor into the archive, see [`own_folder`]. A file gets its modification time last,
//! so one that an interrupted run left half done never looks finished, and is replaced by the next run.

mod content;
mod metadata;
mod own_folder;
mod target;

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use stook_index::{AsOf, Index, Row, RowId, Selection};
use stook_pool::Jobs;
use stook_sys::create_directory;
use stook_timers::scope;
use stook_tree::Pattern;
use stook_volume::{Header, Kind, Member};

use crate::ArchiveError;
use crate::archive::{Archive, Parts};
use crate::memory::worker_pool;
use crate::mutex::lock;
use crate::observer::{CountingObserver, Failure, MemberDone, MemberEnd, Observer, sys_failure};
use crate::read::{LoadedRange, RowBatch, VolumeStore, Volumes, for_each_batch};
use crate::select::select_visiting;
pub(crate) use content::read_member;
use content::{ContentError, write_content, write_small};
use metadata::TargetOptions;
use own_folder::{INDEX, OwnFolder, SizeAndTime};
use target::{LastParent, NamesWithoutContent, Outcome, Target};

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
    /// By how many microseconds the time of what is there already may differ.
    pub time_tolerance: u64,
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
            time_tolerance: 0,
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
        ..
    } = archive.parts(&observer)?;
    let without_content = NamesWithoutContent::default();
    let selection = {
        let _scope = scope!("select");
        observer.phase("select", None, None);
        select_visiting(
            folder,
            index,
            options.as_of,
            &options.patterns,
            &observer,
            &|row| without_content.add(row),
        )?
    };
    without_content.keep_selected(&selection);
    let parts = (folder.path(), index, store);
    extract_rows(parts, into, &selection, without_content, options, observer)
}

/// Extracts chosen members into the folder `into`, which is made; patterns and state of the options do not count.
///
/// # Errors
/// As [`extract`], but that nothing is searched for.
pub fn extract_selected(
    archive: &mut Archive,
    into: &Path,
    selection: &Selection,
    options: &ExtractOptions,
    observer: &dyn Observer,
) -> Result<ExtractReport, ArchiveError> {
    let observer = CountingObserver::new(observer);
    let Parts {
        folder,
        index,
        store,
        ..
    } = archive.parts(&observer)?;
    let without_content = NamesWithoutContent::default();
    index.selected(selection, |row| {
        without_content.add(&row);
        ControlFlow::Continue(())
    })?;
    let parts = (folder.path(), index, store);
    extract_rows(parts, into, selection, without_content, options, observer)
}

fn extract_rows(
    (folder, index, store): (&Path, &mut Index, &Arc<dyn VolumeStore>),
    into: &Path,
    selection: &Selection,
    without_content: NamesWithoutContent,
    options: &ExtractOptions,
    observer: CountingObserver<'_>,
) -> Result<ExtractReport, ArchiveError> {
    let own_folder = OwnFolder::beside(folder, into, || index_member(index, selection))?;
    create_directory(into)?;
    observer.phase("extract", Some(selection.len()), Some(selection.bytes()));
    let target_options = TargetOptions {
        no_overwrite: options.no_overwrite,
        same_permissions: options.same_permissions,
        xattrs: options.xattrs,
        time_tolerance: options.time_tolerance,
    };
    let extractor = Extractor {
        target: Target::open(into, own_folder, target_options, without_content)?,
        jobs: options.jobs,
        volumes: Volumes::new(Arc::clone(store)),
        observer,
        linked: Mutex::default(),
        written: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
        unchanged: AtomicU64::new(0),
    };
    extractor.volumes.expect_rows(index, selection)?;
    let _scope = scope!("extract");
    // If it is interrupted, directories keep modes that let the next run go on.
    for_each_batch(
        ("extract", options.jobs),
        index,
        selection,
        &extractor.volumes,
        &extractor.observer,
        |batch| extractor.extract(&batch),
    )?;
    extractor.finish(index, selection)?;
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

/// zstash writes hard links as tar's; stook as files that name the first one.
pub(crate) fn is_hard_link(member: &Member) -> bool {
    member.header.kind == Kind::HardLink || member.header.link.is_some()
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
        let mut last = self.target.last_parent();
        let members = batch.rows.iter().map(|row| read_member(row, &loaded));
        let members: Vec<Result<Member, Failure>> = members.collect();
        let md5s = loaded.md5s(members.iter().map(|member| member.as_ref().ok()));
        for ((row, member), md5) in batch.rows.iter().zip(members).zip(md5s) {
            let is_hard_link = member.as_ref().is_ok_and(is_hard_link);
            let result =
                member.and_then(|member| self.extract_row(row, member, md5, &loaded, &mut last));
            if self.observer.is_interrupted() {
                return;
            }
            self.tell(row, is_hard_link, &result);
            self.observer.advanced(1, row.size);
            stook_pool::advance(1);
        }
    }

    fn fail_all(&self, batch: &RowBatch, failure: impl Fn(&Row) -> Failure) {
        if self.observer.is_interrupted() {
            // The interruption is why.
            return;
        }
        for row in &batch.rows {
            self.tell(row, false, &Err(failure(row)));
        }
    }

    /// Tells how it ended with a member, unless that is not over yet.
    fn tell(&self, row: &Row, is_hard_link: bool, result: &Result<Option<Outcome>, Failure>) {
        let end = match result {
            Ok(None) => return,
            Ok(Some(Outcome::Written)) => MemberEnd::Extracted,
            Ok(Some(Outcome::Unchanged)) => MemberEnd::Unchanged,
            Err(failure) => {
                self.observer.failed(failure);
                MemberEnd::Failed(failure)
            }
        };
        self.observer.member(&MemberDone {
            row,
            is_hard_link,
            end,
        });
    }

    /// None if the member comes last.
    fn extract_row(
        &self,
        row: &Row,
        member: Member,
        md5: Option<[u8; 16]>,
        loaded: &LoadedRange<'_>,
        last: &mut LastParent<'_>,
    ) -> Result<Option<Outcome>, Failure> {
        if member.header.link.is_some() {
            lock(&self.linked).push((row.clone(), member.header));
            return Ok(None);
        }
        self.place(row, &member, md5, loaded, last).map(Some)
    }

    fn place(
        &self,
        row: &Row,
        member: &Member,
        md5: Option<[u8; 16]>,
        loaded: &LoadedRange<'_>,
        last: &mut LastParent<'_>,
    ) -> Result<Outcome, Failure> {
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
        let outcome = outcome?;
        self.count(row, outcome);
        Ok(outcome)
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
            self.tell(&row, true, &linked.map(Some));
        }
        let is_interrupted = || self.observer.is_interrupted();
        let pool = worker_pool("finish directories", self.jobs).until(&is_interrupted);
        self.target.finish_directories(&pool, &self.observer);
        if is_interrupted() {
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
    ) -> Result<Outcome, Failure> {
        // A version that is newer than this member is another file, though it may look the same.
        let has_same_content = |name: &[u8]| {
            let first = contents.get(name);
            first.is_some_and(|(id, md5)| *id < row.id && *md5 == row.md5)
        };
        let placed = self
            .target
            .place_link(header, row.mtime, has_same_content)?;
        if let Some(outcome) = placed {
            self.count(row, outcome);
            return Ok(outcome);
        }
        let volume = self
            .volumes
            .get(row.volume)
            .map_err(|error| sys_failure(&row.name, &error))?;
        let batch = RowBatch::new(row.volume, vec![row.clone()]);
        let loaded = LoadedRange::of(&batch, &*volume, &self.volumes.buffers)
            .map_err(|error| Failure::io("read", &row.name, &error))?;
        let member = read_member(row, &loaded)?;
        let outcome = self.place(row, &member, None, &loaded, &mut self.target.last_parent())?;
        self.target.remember_first(header);
        contents.insert(row.name.clone(), (row.id, row.md5));
        Ok(outcome)
    }
}

/// Rows and MD5s by name, of the names that others may be linked to.
type Contents = HashMap<Vec<u8>, (RowId, Option<[u8; 16]>)>;

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
            contents.insert(row.name.to_vec(), (row.id, row.md5));
        }
        ControlFlow::Continue(())
    })?;
    Ok(contents)
}
