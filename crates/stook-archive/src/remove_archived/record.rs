//! The record of what a removal takes: releases in the archive, so that an update does not find these names deleted.
//!
//! ```text
//!   lock the archive ──> record every candidate, durably ──> remove ──> withdraw what is still there ──> unlock
//! ```
//! More is recorded than goes in the end, since a file is proved only when its turn comes. A kill in between does no harm:
//! a name that an update meets in the tree loses its release. The lock is held to the end, because an update that saw a
//! file just before it goes would take away its release.
//!
//! Only the tree that updates read is recorded: the directory that the archive was created from, known by its device and
//! inode, or a part of it. A copy of it is none: its removal says nothing of the tree, whose own deletions an update must
//! still see. Where the tree was moved, nobody but the user can tell the two apart, and [`Recording::Always`] says so.

use std::sync::Mutex;

use stook_index::{Index, Interrupt, RowId};
use stook_sys::{WriterLock, display_bytes};
use stook_tree::{Listing, Tree, TreeError, Visitor, WalkOptions, join, walk};

use super::evidence::Place;
use crate::ArchiveError;
use crate::folder::Folder;
use crate::mutex::{into_inner, lock};
use crate::observer::{Note, Observer};
use crate::plan::refuse_planned;

/// Whether the archive records what is removed from a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Recording {
    /// If it is the tree that the archive was created from, or a part of it, and stook has written to the archive before.
    #[default]
    OwnTree,
    /// Also if the tree has been moved.
    Always,
    /// Never: the archive is not changed, and an update finds the names deleted.
    Never,
}

/// The archive of a removal, locked and open for writing.
pub(super) struct Recorder {
    index: Index,
    /// Ascending.
    recorded: Vec<RowId>,
    _lock: WriterLock,
}

impl Recorder {
    /// Takes the writer's lock if the removal is to be recorded; a note says why if it is not.
    ///
    /// # Errors
    /// `CannotRecord` if another process writes, or the archive cannot be written.
    pub(super) fn begin(
        folder: &Folder,
        index: &Index,
        recording: Recording,
        is_own_tree: bool,
        observer: &dyn Observer,
    ) -> Result<Option<Self>, ArchiveError> {
        let why_not = match recording {
            Recording::Never => return Ok(None),
            Recording::Always => None,
            Recording::OwnTree if !is_own_tree => Some(Note::NotRecordedOfOtherTree),
            Recording::OwnTree if !index.is_stooks()? => Some(Note::NotRecordedInForeignArchive),
            Recording::OwnTree => None,
        };
        if let Some(note) = why_not {
            observer.note(&note);
            return Ok(None);
        }
        let open = || {
            let lock = folder.lock()?;
            let index = folder.open_index_to_write()?;
            refuse_planned(folder.path(), &index)?;
            Ok((lock, index))
        };
        match open() {
            Ok((lock, index)) => Ok(Some(Self {
                index,
                recorded: Vec::new(),
                _lock: lock,
            })),
            Err(ArchiveError::Interrupted) => Err(ArchiveError::Interrupted),
            Err(error) => Err(cannot_record(folder, error)),
        }
    }

    /// Records rows as released, durably.
    ///
    /// # Errors
    /// `CannotRecord`, `Interrupted`. Nothing is recorded then.
    pub(super) fn record(
        &mut self,
        folder: &Folder,
        mut rows: Vec<RowId>,
    ) -> Result<(), ArchiveError> {
        rows.sort_unstable();
        rows.dedup();
        let recorded = self.index.record_releases(&rows);
        match recorded.map_err(ArchiveError::from) {
            Ok(_) => {}
            Err(ArchiveError::Interrupted) => return Err(ArchiveError::Interrupted),
            Err(error) => return Err(cannot_record(folder, error)),
        }
        self.recorded = rows;
        Ok(())
    }

    /// Withdraws the releases of what is still in the tree. If that fails the next update does it, so it is only noted.
    ///
    /// # Cost
    /// A walk of what is left.
    pub(super) fn withdraw(
        mut self,
        tree: &Tree,
        place: &Place<'_>,
        options: &WalkOptions,
        observer: &dyn Observer,
    ) {
        let Ok(root) = tree.open() else { return };
        let remaining = Remaining {
            place,
            recorded: &self.recorded,
            rows: Mutex::default(),
        };
        walk(&root, options, &remaining);
        let mut rows = into_inner(remaining.rows);
        rows.sort_unstable();
        let withdrawn = self
            .index
            .set_interrupt(&Interrupt::never())
            .and_then(|()| self.index.withdraw_releases(&rows));
        if let Err(error) = withdrawn {
            observer.noted(&format!(
                "what stays in `{}` is recorded as removed until the next update: {error}",
                display_bytes(&tree.path())
            ));
        }
    }
}

fn cannot_record(folder: &Folder, error: ArchiveError) -> ArchiveError {
    ArchiveError::CannotRecord {
        path: folder.path().to_owned(),
        source: Box::new(error),
    }
}

/// The walk of what is left: which recorded rows are still in the tree.
struct Remaining<'a> {
    place: &'a Place<'a>,
    recorded: &'a [RowId],
    rows: Mutex<Vec<RowId>>,
}

impl Remaining<'_> {
    fn row_of(&self, path: &[u8]) -> Option<RowId> {
        let row = self
            .place
            .name_table
            .lookup(&self.place.name_of(path))?
            .id?;
        self.recorded.binary_search(&row).is_ok().then_some(row)
    }
}

impl stook_pool::Observer for Remaining<'_> {
    type Failure = TreeError;

    /// What cannot be looked at keeps its releases until an update can.
    fn failed(&self, _error: &TreeError) {}
}

impl Visitor for Remaining<'_> {
    fn directory(&self, listing: Listing) {
        let paths = listing
            .entries
            .iter()
            .map(|entry| join(&listing.path, listing.name(entry)));
        let mut rows: Vec<RowId> = paths.filter_map(|path| self.row_of(&path)).collect();
        rows.extend(self.row_of(&listing.path));
        lock(&self.rows).append(&mut rows);
    }
}
