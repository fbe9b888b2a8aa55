//! `list`: what an archive holds, straight from the index.

use std::fmt;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use stook_index::{AsOf, Mtime, RowRef, Run, RunCounts, RunId, Selection};
use stook_timers::scope;
use stook_tree::Pattern;

use crate::ArchiveError;
use crate::deleted::require_not_missing;
use crate::extract::{fail_unreadable, is_match, require_matches, select};
use crate::folder::Folder;
use crate::observer::{Failure, Observer, Tally};

/// What to list.
#[derive(Debug, Clone)]
pub struct ListOptions {
    /// Which members; nothing means all.
    pub patterns: Vec<Pattern>,
    /// The state to list.
    pub as_of: AsOf,
    /// List superseded versions and deleted names, too.
    pub all_versions: bool,
}

/// What a `list` found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ListReport {
    /// Members selected.
    pub members: u64,
    /// Rows of the index that cannot be read, each told to the observer.
    pub failed: u64,
}

/// Shows the selected rows to `visit`, in the order they were archived, until it breaks off.
///
/// # Errors
/// `NotInState` if a pattern matches only names of other states, `NoMatch` if it matches nothing, `Index` if the archive
/// cannot be read. A row that cannot be read is no error: the observer is shown it, and it is counted.
///
/// # Cost
/// Two passes over the index; no volume is opened.
pub fn list(
    archive: &Path,
    options: &ListOptions,
    observer: &dyn Observer,
    visit: impl FnMut(RowRef<'_>) -> ControlFlow<()>,
) -> Result<ListReport, ArchiveError> {
    let _scope = scope!("list");
    let observer = Tally::new(observer);
    let folder = Folder::new(archive);
    let index = folder.open_index()?;
    let selection = if options.all_versions {
        let matched: Vec<AtomicBool> = options
            .patterns
            .iter()
            .map(|_| AtomicBool::new(false))
            .collect();
        let matches = |row: &RowRef<'_>| is_match(&options.patterns, &matched, row.name);
        let selection = Selection::all_versions(&index, options.as_of, &matches)?;
        fail_unreadable(&index, &selection, &observer)?;
        require_not_missing(
            &folder,
            &index,
            options.as_of,
            &options.patterns,
            &selection,
        )?;
        require_matches(&folder, &options.patterns, &matched, &selection)?;
        selection
    } else {
        select(&folder, &index, options.as_of, &options.patterns, &observer)?
    };
    index.selected(&selection, visit)?;
    Ok(ListReport {
        members: selection.len(),
        failed: observer.failures(),
    })
}

/// Returns the runs of stook that the archive remembers, oldest first.
///
/// # Errors
/// `Index` if the archive cannot be read, or one of them makes no sense.
pub fn runs(archive: &Path) -> Result<Vec<Run>, ArchiveError> {
    Ok(Folder::new(archive).open_index()?.runs()?)
}

/// Returns what each run added and deleted, oldest first, and between them the rows that no run added; then the number
/// of runs that cannot be read, each of which the observer is shown as a failure.
///
/// # Errors
/// `Index` if the archive cannot be read.
pub fn run_counts(
    archive: &Path,
    observer: &dyn Observer,
) -> Result<(Vec<RunCounts>, u64), ArchiveError> {
    let observer = Tally::new(observer);
    let index = Folder::new(archive).open_index()?;
    let counts = index.run_counts(|damage| observer.failed(&Failure::row(&damage)))?;
    Ok((counts, observer.failures()))
}

/// A moment that the user names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// The end of a run.
    Run(RunId),
    /// A time: the end of the last run finished by then.
    Time(Mtime),
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(run) => write!(f, "run {run}"),
            Self::Time(time) => write!(f, "{time}"),
        }
    }
}

impl When {
    /// Returns why an archive may not have this state.
    pub(crate) fn absence(&self) -> &'static str {
        match self {
            Self::Run(_) => "it has no such run",
            Self::Time(_) => "no run had finished by then",
        }
    }
}

/// Finds the state that an archive had.
///
/// # Errors
/// `NoSuchRun` if the archive has no such run, or none was finished by then.
pub fn state_at(archive: &Path, when: When) -> Result<AsOf, ArchiveError> {
    let index = Folder::new(archive).open_index()?;
    let run = match when {
        When::Run(id) => {
            let mut runs = index.readable_runs(|_| {})?.into_iter();
            runs.find(|run| run.id == id).map(|run| run.id)
        }
        When::Time(time) => index.run_at(time)?,
    };
    run.map(AsOf::Run).ok_or_else(|| ArchiveError::NoSuchRun {
        wanted: when,
        archive: archive.to_owned(),
    })
}
