//! `diff`: how a tree differs from the state of an archive.

use std::path::Path;
use std::sync::Mutex;

use stook_index::Mtime;
use stook_pool::Jobs;
use stook_sys::{FileId, Links, Metadata, Timestamp};
use stook_tree::Filter;

use crate::ArchiveError;
use crate::archive::Archive;
use crate::deletions::Deletions;
use crate::folder::folder_id;
use crate::guard::Guard;
use crate::metadata_change::{MetadataChange, MetadataChanges};
use crate::mutex::{into_inner, lock};
use crate::not_visited::NotVisited;
use crate::observer::{CountingObserver, Failure, Note, Observer};
use crate::plan::content_len;
use crate::survey::{Comparison, Held, Sink, SurveyOptions, open_source, survey};
use crate::transfer::{recorded_store, store_folder};

/// How to compare.
#[derive(Debug, Clone)]
pub struct DiffOptions {
    /// What to compare.
    pub filter: Filter,
    /// Whether symbolic links are followed, as they were when the archive was made.
    pub links: Links,
    /// By how many microseconds the time of an unchanged entry may differ from the archived one.
    pub time_tolerance: u64,
    /// Compare the content of files that look unchanged.
    pub compare_content: bool,
    /// Compare mode and owner of what is otherwise the same.
    pub compare_metadata: bool,
    /// Worker threads.
    pub jobs: Jobs,
    /// Whether directories with contents are archived.
    pub directories: bool,
}

impl Default for DiffOptions {
    fn default() -> Self {
        Self {
            filter: Filter::default(),
            links: Links::Refuse,
            time_tolerance: 0,
            compare_content: false,
            compare_metadata: true,
            jobs: Jobs::Adaptive,
            directories: true,
        }
    }
}

/// What happened to a path since it was archived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It is not in the archive.
    New,
    /// Size, time, kind or content differ.
    Changed {
        /// Bytes when it was archived; None if the index does not say.
        size: Option<u64>,
        /// Its time when it was archived; None if the index does not say.
        mtime: Option<Mtime>,
    },
    /// Only mode or owner differ.
    Metadata(MetadataChange),
    /// It is no longer in the source.
    Deleted,
}

/// One path that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Path in the tree.
    pub path: Vec<u8>,
    /// What happened.
    pub change: Change,
    /// Bytes now; None if it was deleted.
    pub size: Option<u64>,
    /// Its time now, exactly; None if it was deleted.
    pub mtime: Option<Timestamp>,
}

/// What a `diff` found.
#[derive(Debug, Clone, Default)]
pub struct DiffReport {
    /// All differences, sorted by path.
    pub differences: Vec<Difference>,
    /// Entries compared.
    pub entries: u64,
    /// Entries that are the same.
    pub unchanged: u64,
    /// Entries that could not be looked at, each reported to the observer.
    pub failed: u64,
}

#[derive(Default)]
struct Collector {
    differences: Mutex<Vec<Difference>>,
}

impl Sink for Collector {
    fn differs(&self, path: &[u8], metadata: &Metadata, comparison: Comparison) {
        let change = match comparison {
            Comparison::Changed(row) => Change::Changed {
                size: row.is_readable.then_some(row.size),
                mtime: row.is_readable.then_some(row.mtime),
            },
            Comparison::MetadataChanged(change) => Change::Metadata(change),
            Comparison::New | Comparison::Same => Change::New,
        };
        lock(&self.differences).push(Difference {
            path: path.to_vec(),
            change,
            size: Some(content_len(metadata)),
            mtime: Some(metadata.mtime),
        });
    }
}

/// Compares the tree `source` with the current state of the archive. Nothing is written.
///
/// # Errors
/// `Sys` if the source cannot be opened, `Index` if the archive cannot be read, `Interrupted`. What has a row
/// that cannot be read is changed; a row without a name that can be read is a failure.
///
/// # Cost
/// One walk, and 40 bytes a row of the index; content is read only if asked for. Mode and owner come from the index and
/// from what the walk has read anyway.
pub fn diff(
    source: &Path,
    archive: &mut Archive,
    options: &DiffOptions,
    observer: &dyn Observer,
) -> Result<DiffReport, ArchiveError> {
    let observer = CountingObserver::new(observer);
    let source_path = source;
    let source = open_source(source_path)?;
    let metadata = if options.compare_metadata {
        MetadataChanges::Count
    } else {
        MetadataChanges::Ignore
    };
    let name_table = metadata.load_names(archive.parts(&observer)?.index, None, options.jobs)?;
    for damage in name_table.damages() {
        observer.failed(&Failure::row(damage));
    }
    observer.phase("compare", None, None);
    let place = recorded_store(&lock(archive.shared_index()))?;
    let leave_out = [folder_id(archive.path())?, store_folder(place.as_deref())?];
    let leave_out: Vec<FileId> = leave_out.into_iter().flatten().collect();
    let survey_options = SurveyOptions {
        filter: &options.filter,
        links: options.links,
        jobs: options.jobs,
        directories: options.directories,
        time_tolerance: options.time_tolerance,
        compare_content: options.compare_content,
        metadata,
        leave_out: &leave_out,
        sorter: None,
    };
    let collector = Collector::default();
    let held = Held::new(&name_table, archive.shared_index(), &source);
    let found = survey(
        &source,
        &survey_options,
        Some(&held),
        Some(&collector),
        &observer,
    );
    if observer.is_interrupted() {
        return Err(ArchiveError::Interrupted);
    }
    let mut differences = into_inner(collector.differences);
    let not_visited = NotVisited::new(&found, &options.filter);
    let index = archive.index();
    let guard = Guard {
        index,
        name_table: &name_table,
        not_visited: &not_visited,
        source: &source,
        tree: source_path,
    };
    if let Some(unlikely) = guard.unlikely_deletions(Deletions::Guarded, None, &observer)? {
        observer.note(&Note::WouldStop(unlikely));
    }
    if name_table.not_visited() > 0 {
        index.not_visited_names(&name_table, |name| {
            if not_visited.is_deleted(name) {
                let path = name.to_vec();
                differences.push(Difference {
                    path,
                    change: Change::Deleted,
                    size: None,
                    mtime: None,
                });
            }
        })?;
    }
    index.require_unchanged()?;
    differences.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(DiffReport {
        differences,
        entries: found.entries,
        unchanged: found.unchanged,
        failed: observer.failures(),
    })
}
