//! Which members an operation is about: by patterns, and by the state that is asked for.

use std::sync::atomic::{AtomicBool, Ordering};

use stook_index::{AsOf, Deleted, Index, NameLookup, RowRef, Selection};
use stook_tree::Pattern;

use crate::ArchiveError;
use crate::deleted::require_not_missing;
use crate::folder::Folder;
use crate::observer::{Failure, Observer, note_scan};
use crate::when::When;

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

/// Selects the newest live members that match any of the patterns; each pattern must match something. Those
/// whose rows cannot be read fail.
pub(crate) fn select(
    folder: &Folder,
    index: &Index,
    as_of: AsOf,
    patterns: &[Pattern],
    observer: &dyn Observer,
) -> Result<Selection, ArchiveError> {
    select_visiting(folder, index, as_of, patterns, observer, &|_| {})
}

/// As [`select`], and shows all rows that match to `visit`, also those that are not the newest; but none if only regular
/// files are selected by their names.
pub(crate) fn select_visiting(
    folder: &Folder,
    index: &Index,
    as_of: AsOf,
    patterns: &[Pattern],
    observer: &dyn Observer,
    visit: &(dyn Fn(&RowRef<'_>) + Sync),
) -> Result<Selection, ArchiveError> {
    if let Some(selection) = select_by_name(index, as_of, patterns, observer)? {
        return Ok(selection);
    }
    let matched: Vec<AtomicBool> = patterns.iter().map(|_| AtomicBool::new(false)).collect();
    let matches = |row: &RowRef<'_>| {
        let is_wanted = is_match(patterns, &matched, row.name);
        if is_wanted {
            visit(row);
        }
        is_wanted
    };
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
    observer: &dyn Observer,
) -> Result<Option<Selection>, ArchiveError> {
    let plain: Option<Vec<&[u8]>> = patterns.iter().map(Pattern::plain_path).collect();
    let Some(names) = plain.filter(|names| (1..=MOST_LOOKUPS).contains(&names.len())) else {
        return Ok(None);
    };
    if !index.has_name_segments()? {
        note_scan(
            index.last_readable_row()?.unwrap_or(0).unsigned_abs(),
            observer,
        );
        return Ok(None);
    }
    let mut rows = Vec::with_capacity(names.len());
    let mut scanned = 0;
    for name in names {
        let found = index.find(name, as_of)?;
        scanned += found.scanned;
        match found {
            NameLookup {
                row: Some(row),
                damage: None,
                ..
            } if row.md5.is_some() => rows.push(row),
            _ => return Ok(None),
        }
    }
    note_scan(scanned, observer);
    Ok(Some(Selection::of_rows(&rows)))
}

/// Reports what of a selection the index does not say.
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
            archive: folder.name().to_owned(),
        }),
        None => Ok(()),
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
        archive: folder.name().to_owned(),
    })
}
