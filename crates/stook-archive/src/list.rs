//! `list`: what an archive holds, straight from the index.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use stook_index::{AsOf, Attributes, Index, Mtime, RowRef, RunId, Selection};
use stook_timers::scope;
use stook_tree::Pattern;

use crate::ArchiveError;
use crate::archive::{Archive, Parts};
use crate::deleted::require_not_missing;
use crate::extract::{fail_unreadable, is_match, require_matches, select};
use crate::folder::Folder;
use crate::member_attributes::MemberAttributes;
use crate::observer::{CountingObserver, Observer};
use crate::read::Volumes;

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
    archive: &mut Archive,
    options: &ListOptions,
    observer: &dyn Observer,
    visit: impl FnMut(RowRef<'_>) -> ControlFlow<()>,
) -> Result<ListReport, ArchiveError> {
    let _scope = scope!("list");
    let observer = CountingObserver::new(observer);
    let Parts { folder, index, .. } = archive.parts(&observer)?;
    let selection = select_rows(folder, index, options, &observer)?;
    index.selected(&selection, visit)?;
    index.require_unchanged()?;
    Ok(ListReport {
        members: selection.len(),
        failed: observer.failures(),
    })
}

/// As [`list`], and shows with each row what else is known of its member: nothing where the index does not tell and the
/// volume is not here, or has another member there.
///
/// # Errors
/// As [`list`].
///
/// # Cost
/// As [`list`], and a block of the index for every 4,096 rows. Rows that zstash wrote cost a lookup and a read of their header
/// each, until `fill_attributes` or an update has added them.
pub fn list_with_attributes(
    archive: &mut Archive,
    options: &ListOptions,
    observer: &dyn Observer,
    mut visit: impl FnMut(RowRef<'_>, Option<&Attributes<'_>>) -> ControlFlow<()>,
) -> Result<ListReport, ArchiveError> {
    let _scope = scope!("list");
    let observer = CountingObserver::new(observer);
    let Parts {
        folder,
        index,
        store,
    } = archive.parts(&observer)?;
    let selection = select_rows(folder, index, options, &observer)?;
    let mut attributes = MemberAttributes::new(index, Volumes::new(Arc::clone(store)));
    let mut outcome = Ok(());
    index.selected(&selection, |row| {
        if observer.is_interrupted() {
            outcome = Err(ArchiveError::Interrupted);
            return ControlFlow::Break(());
        }
        match attributes.of(&row) {
            Ok(found) => visit(row, found.as_ref()),
            Err(error) => {
                outcome = Err(error);
                ControlFlow::Break(())
            }
        }
    })?;
    outcome?;
    index.require_unchanged()?;
    Ok(ListReport {
        members: selection.len(),
        failed: observer.failures(),
    })
}

/// Chooses what the options say. Rows that cannot be read are failures.
pub(crate) fn select_rows(
    folder: &Folder,
    index: &Index,
    options: &ListOptions,
    observer: &dyn Observer,
) -> Result<Selection, ArchiveError> {
    let (patterns, as_of) = (&options.patterns, options.as_of);
    if !options.all_versions {
        return select(folder, index, as_of, patterns, observer);
    }
    let matched: Vec<AtomicBool> = patterns.iter().map(|_| AtomicBool::new(false)).collect();
    let matches = |row: &RowRef<'_>| is_match(patterns, &matched, row.name);
    let selection = Selection::all_versions(index, as_of, &matches)?;
    fail_unreadable(index, &selection, observer)?;
    require_not_missing(folder, index, as_of, patterns, &selection)?;
    require_matches(folder, patterns, &matched, &selection)?;
    Ok(selection)
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
pub(crate) fn state_at(folder: &Folder, index: &Index, when: When) -> Result<AsOf, ArchiveError> {
    let run = match when {
        When::Run(id) => {
            let mut runs = index.readable_runs(|_| {})?.into_iter();
            runs.find(|run| run.id == id).map(|run| run.id)
        }
        When::Time(time) => index.run_at(time)?,
    };
    run.map(AsOf::Run).ok_or_else(|| ArchiveError::NoSuchRun {
        wanted: when,
        archive: folder.path().to_owned(),
    })
}
