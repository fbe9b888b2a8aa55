//! One pass over the source: what is there, and how it differs from the archive.

use std::cmp::Ordering;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use stook_index::{Index, Mtime, NameTable, NewestRow};
use stook_pool::Jobs;
use stook_sys::{Directory, FileId, FileKind, Links, Metadata};
use stook_timers::scope;
use stook_tree::{Filter, Listing, TreeError, Visitor, WalkOptions, split, walk};

use crate::buffers::Buffers;
use crate::cause::Cause;
use crate::guard::is_copy;
use crate::metadata_change::{ArchivedMetadata, MetadataChange, MetadataChanges};
use crate::mutex::{into_inner, lock};
use crate::observer::{Failure, Observer, SkipReason};
use crate::plan::{Group, LinkNames, Plan, Sorter, held_bytes};
use crate::read::file_md5;
use crate::sort::sort_until;

/// The longest path of a member, in bytes.
pub(crate) const LONGEST_PATH: usize = 65_535;

/// What to look at, and how.
pub(crate) struct SurveyOptions<'a> {
    pub(crate) filter: &'a Filter,
    pub(crate) links: Links,
    pub(crate) jobs: Jobs,
    /// Archive every directory, not only empty ones.
    pub(crate) directories: bool,
    /// By how many microseconds the time of an unchanged entry may differ from the archived one.
    pub(crate) time_tolerance: u64,
    /// Compare the content of files that look unchanged.
    pub(crate) compare_content: bool,
    /// What becomes of entries of which only mode or owner changed.
    pub(crate) metadata: MetadataChanges,
    /// The folder of the archive, and of its store, which are never archived.
    pub(crate) leave_out: &'a [FileId],
    /// Takes groups when they are too many for memory.
    pub(crate) sorter: Option<&'a Sorter>,
}

/// What the archive holds of the source, if there is an archive.
pub(crate) struct Held<'a> {
    pub(crate) name_table: &'a NameTable,
    pub(crate) index: &'a Mutex<Index>,
    metadata: ArchivedMetadata<'a>,
    is_copy: bool,
}

impl<'a> Held<'a> {
    pub(crate) fn new(
        name_table: &'a NameTable,
        index: &'a Mutex<Index>,
        source: &Directory,
    ) -> Self {
        Self {
            name_table,
            index,
            metadata: ArchivedMetadata::new(name_table),
            is_copy: is_copy(&lock(index), source),
        }
    }

    /// What is not a directory ends releases below it, unless it is that in a copy of the tree.
    fn end_releases_below(&self, path: &[u8]) {
        if !self.is_copy {
            self.name_table.end_releases_below(path);
        }
    }
}

/// An entry against the archive.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Comparison {
    New,
    Same,
    Changed(NewestRow),
    /// Only mode or owner changed.
    MetadataChanged(MetadataChange),
}

/// Receives every entry that passes the filter and is new or changed, be it only in mode or owner.
pub(crate) trait Sink: Sync {
    fn differs(&self, path: &[u8], metadata: &Metadata, comparison: Comparison);
}

/// The result of a survey.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    /// New and changed entries, in archive order.
    pub(crate) groups: Vec<Group>,
    /// About how many bytes they take, where that counts.
    group_bytes: usize,
    /// First name, in archive order, of every file with several names.
    pub(crate) link_names: LinkNames,
    /// Files with several names that the archive holds as they are.
    pub(crate) held_links: Vec<(Vec<u8>, FileId)>,
    /// Paths that could not be looked at: nothing is known about them and what is below.
    pub(crate) unread: Vec<Vec<u8>>,
    pub(crate) entries: u64,
    pub(crate) unchanged: u64,
    /// Entries of which only mode or owner changed, and that are not archived again.
    pub(crate) metadata_changed: u64,
    /// Something has changed since an interrupted run staged it: the newer row must come later.
    pub(crate) supersedes_staged: bool,
}

impl From<Survey> for Plan {
    fn from(found: Survey) -> Self {
        Self::new(found.groups, found.link_names, found.supersedes_staged)
    }
}

/// Of one listing.
#[derive(Debug, Default)]
struct Counts {
    entries: u64,
    unchanged: u64,
    metadata_changed: u64,
}

struct Surveyor<'a> {
    source: &'a Directory,
    options: &'a SurveyOptions<'a>,
    held: Option<&'a Held<'a>>,
    observer: &'a dyn Observer,
    sink: Option<&'a dyn Sink>,
    found: Mutex<Survey>,
    entries: AtomicU64,
    unchanged: AtomicU64,
    metadata_changed: AtomicU64,
    supersedes_staged: AtomicBool,
    /// What contents are read into.
    buffers: Buffers,
}

/// Walks the source once. Files that the archive holds as they are drop out at once.
pub(crate) fn survey(
    source: &Directory,
    options: &SurveyOptions<'_>,
    held: Option<&Held<'_>>,
    sink: Option<&dyn Sink>,
    observer: &dyn Observer,
) -> Survey {
    let _scope = scope!("survey");
    let surveyor = Surveyor {
        source,
        options,
        held,
        observer,
        sink,
        found: Mutex::default(),
        entries: AtomicU64::new(0),
        unchanged: AtomicU64::new(0),
        metadata_changed: AtomicU64::new(0),
        supersedes_staged: AtomicBool::new(false),
        buffers: Buffers::default(),
    };
    let walk_options = WalkOptions {
        jobs: options.jobs,
        links: options.links,
        leave_out: options.leave_out.to_vec(),
        ..WalkOptions::default()
    };
    walk(source, &walk_options, &surveyor);
    let mut found = into_inner(surveyor.found);
    found.entries = surveyor.entries.into_inner();
    found.unchanged = surveyor.unchanged.into_inner();
    found.metadata_changed = surveyor.metadata_changed.into_inner();
    found.supersedes_staged = surveyor.supersedes_staged.into_inner();
    let _scope = scope!("sort");
    let compare = |a: &Group, b: &Group| a.path.cmp(&b.path);
    // Who has interrupted it uses nothing of what was found.
    sort_until(&mut found.groups, &compare, &|| observer.is_interrupted());
    found
}

impl stook_pool::Observer for Surveyor<'_> {
    type Failure = TreeError;

    fn failed(&self, error: &TreeError) {
        self.observer
            .failed(&Failure::io(error.operation, &error.path, &error.source));
        self.options.filter.note_unread(&error.path);
        self.lock().unread.push(error.path.clone());
    }

    fn is_interrupted(&self) -> bool {
        let has_failed = self.options.sorter.is_some_and(Sorter::has_failed);
        has_failed || self.observer.is_interrupted()
    }
}

impl Visitor for Surveyor<'_> {
    fn prunes(&self, path: &[u8]) -> bool {
        self.options.filter.prunes(path)
    }

    fn directory(&self, mut listing: Listing) {
        let _scope = scope!("compare");
        let path = std::mem::take(&mut listing.path);
        let mut groups = Vec::new();
        let mut counts = Counts::default();
        let own = self
            .is_wanted_directory(&path, &listing, &mut counts)
            .then_some(listing.metadata);
        let mut full_path = path.clone();
        listing.retain(|name, entry| {
            set_name(&mut full_path, &path, name);
            let metadata = entry.metadata();
            let is_kept = self.is_wanted(&full_path, &metadata, &mut counts);
            if is_kept && entry.leads_to_directory() {
                groups.push(Group {
                    path: full_path.clone(),
                    own: Some(metadata),
                    listing: None,
                });
                return false;
            }
            is_kept
        });
        self.add(&counts);
        if own.is_some() || !listing.entries.is_empty() {
            let listing = (!listing.entries.is_empty()).then_some(listing);
            groups.push(Group { path, own, listing });
        }
        if !groups.is_empty() {
            self.keep(groups);
        }
    }

    fn left_out(&self, path: &[u8]) {
        self.options.filter.note_unread(path);
    }
}

impl Surveyor<'_> {
    fn keep(&self, mut groups: Vec<Group>) {
        let mut found = self.lock();
        let Some(sorter) = self.options.sorter else {
            return found.groups.append(&mut groups);
        };
        found.group_bytes += groups.iter().map(held_bytes).sum::<usize>();
        found.groups.append(&mut groups);
        if sorter.is_too_much(found.group_bytes) {
            found.group_bytes = 0;
            let groups = std::mem::take(&mut found.groups);
            drop(found);
            sorter.write(groups);
        }
    }

    /// Looked up even when it is not to be archived, so that it does not count as deleted.
    fn is_wanted_directory(&self, path: &[u8], listing: &Listing, counts: &mut Counts) -> bool {
        if path.is_empty() || !self.options.filter.selects(path) || self.is_too_long(path) {
            return false;
        }
        let comparison = self.compare(path, &listing.metadata);
        // What the archive holds under this name may be a file or a link: then it must be superseded.
        let is_outdated = match comparison {
            Comparison::Changed(_) | Comparison::MetadataChanged(_) => true,
            Comparison::New | Comparison::Same => false,
        };
        if !self.options.directories && !listing.is_empty && !is_outdated {
            return false;
        }
        self.note(path, &listing.metadata, comparison, counts)
    }

    fn is_wanted(&self, path: &[u8], metadata: &Metadata, counts: &mut Counts) -> bool {
        if !self.options.filter.selects(path) || self.is_too_long(path) {
            return false;
        }
        if metadata.kind == FileKind::Socket {
            if let Some(held) = self.held {
                held.end_releases_below(path);
            }
            self.observer.skipped(path, SkipReason::Socket);
            return false;
        }
        let comparison = self.compare(path, metadata);
        if metadata.kind == FileKind::File
            && metadata.links > 1
            && self.options.links == Links::Refuse
        {
            self.note_link(path, metadata, comparison);
        }
        self.note(path, metadata, comparison, counts)
    }

    /// Returns true if no member may have this path, and reports it.
    fn is_too_long(&self, path: &[u8]) -> bool {
        let is_too_long = path.len() > LONGEST_PATH;
        if is_too_long {
            self.observer
                .failed(&Failure::new("archive", path, Cause::PathTooLong));
            // Looked up so that it does not count as deleted.
            let _ = self.held.map(|held| held.name_table.lookup(path));
        }
        is_too_long
    }

    /// Returns whether the entry is to be archived.
    fn note(
        &self,
        path: &[u8],
        metadata: &Metadata,
        comparison: Comparison,
        counts: &mut Counts,
    ) -> bool {
        counts.entries += 1;
        if matches!(comparison, Comparison::Same) {
            counts.unchanged += 1;
            return false;
        }
        if let Some(sink) = self.sink {
            sink.differs(path, metadata, comparison);
        }
        let is_held = self.is_held(comparison);
        counts.metadata_changed += u64::from(is_held);
        !is_held
    }

    /// Returns whether the archive holds an entry as it is, as far as that is to be archived.
    fn is_held(&self, comparison: Comparison) -> bool {
        match comparison {
            Comparison::Same => true,
            Comparison::MetadataChanged(_) => self.options.metadata != MetadataChanges::Archive,
            Comparison::New | Comparison::Changed(_) => false,
        }
    }

    /// Once a listing: counters that every worker adds to for every entry cost more than the comparison.
    fn add(&self, counts: &Counts) {
        self.entries.fetch_add(counts.entries, Relaxed);
        self.unchanged.fetch_add(counts.unchanged, Relaxed);
        if counts.metadata_changed > 0 {
            self.metadata_changed
                .fetch_add(counts.metadata_changed, Relaxed);
        }
        self.observer.advanced(counts.entries, 0);
    }

    fn compare(&self, path: &[u8], metadata: &Metadata) -> Comparison {
        let Some(held) = self.held else {
            return Comparison::New;
        };
        if metadata.kind != FileKind::Directory {
            held.end_releases_below(path);
        }
        let Some(row) = held.name_table.lookup(path) else {
            return Comparison::New;
        };
        let comparison = self.compare_with(held, path, &row, metadata);
        if row.id.is_none() && !self.is_held(comparison) {
            self.supersedes_staged.store(true, Relaxed);
        }
        comparison
    }

    fn compare_with(
        &self,
        held: &Held<'_>,
        path: &[u8],
        row: &NewestRow,
        metadata: &Metadata,
    ) -> Comparison {
        if !is_same(row, metadata, self.options.time_tolerance)
            || held.metadata.is_other_kind(row, metadata.kind)
            || (self.options.compare_content && self.content_differs(held, path, row, metadata))
        {
            return Comparison::Changed(*row);
        }
        let change = held.metadata.change(row, metadata);
        change.map_or(Comparison::Same, Comparison::MetadataChanged)
    }

    fn content_differs(
        &self,
        held: &Held<'_>,
        path: &[u8],
        row: &NewestRow,
        metadata: &Metadata,
    ) -> bool {
        let Some(id) = row.id.filter(|_| metadata.kind == FileKind::File) else {
            return false;
        };
        let index = lock(held.index);
        let archived = index.row(id).ok().flatten().and_then(|row| row.md5);
        drop(index);
        // A file that cannot be read counts as changed: archiving it will name the failure.
        archived.is_none() || self.content_md5(path, row.size).ok() != archived
    }

    fn content_md5(&self, path: &[u8], size: u64) -> std::io::Result<[u8; 16]> {
        let (parent, name) = split(path);
        let directory = match self.options.links {
            Links::Follow => self.source.open_following(parent)?,
            Links::Refuse => self.source.open_beneath(parent)?,
        };
        let file = directory.open_file(name, self.options.links)?;
        let md5 = file_md5(&file, size, &self.buffers, || {
            self.observer.is_interrupted()
        })?;
        md5.ok_or(std::io::ErrorKind::Interrupted.into())
    }

    fn note_link(&self, path: &[u8], metadata: &Metadata, comparison: Comparison) {
        let mut found = self.lock();
        if self.is_held(comparison) {
            found.held_links.push((path.to_vec(), metadata.identity()));
        }
        let first = found
            .link_names
            .entry(metadata.identity())
            .or_insert_with(|| path.to_vec());
        if archive_order(path, first) == Ordering::Less {
            *first = path.to_vec();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Survey> {
        lock(&self.found)
    }
}

pub(crate) fn is_same(row: &NewestRow, metadata: &Metadata, time_tolerance: u64) -> bool {
    let size = if metadata.kind == FileKind::File {
        metadata.size
    } else {
        0
    };
    row.is_readable
        && row.size == size
        && row.mtime.0.abs_diff(Mtime::from(metadata.mtime).0) <= time_tolerance
        && row.is_file == (metadata.kind == FileKind::File)
}

fn set_name(path: &mut Vec<u8>, directory: &[u8], name: &[u8]) {
    path.truncate(directory.len());
    if !directory.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
}

pub(crate) fn archive_order(a: &[u8], b: &[u8]) -> Ordering {
    split(a).cmp(&split(b))
}

/// Opens a source directory, and says so if it is none.
pub(crate) fn open_source(path: &Path) -> Result<Directory, crate::ArchiveError> {
    Ok(Directory::open(path)?)
}
