//! What of a tree looks as it was archived, and where in the archive that is.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Mutex;

use stook_index::{Index, NameTable, RowId, VolumeId};
use stook_sys::{FileKind, Metadata};
use stook_tree::{Filter, Listing, RemoveObserver, TreeError, Visitor, join};

use super::Staying;
use crate::ArchiveError;
use crate::check::RowsMd5;
use crate::mutex::lock;
use crate::sort::sort_until;
use crate::survey::is_same;

/// The tree, and what the archive says of it.
pub(super) struct Place<'a> {
    /// Name in the archive of the tree itself.
    pub(super) prefix: Vec<u8>,
    pub(super) name_table: NameTable,
    pub(super) filter: &'a Filter,
}

impl Place<'_> {
    /// Returns the name that an entry of the tree has in the archive.
    pub(super) fn name_of(&self, path: &[u8]) -> Vec<u8> {
        if path.is_empty() {
            self.prefix.clone()
        } else {
            join(&self.prefix, path)
        }
    }

    /// Returns the row of an entry that looks as it was archived; of a directory that is empty now any time will do.
    pub(super) fn row_of(&self, path: &[u8], metadata: &Metadata) -> Result<RowId, Staying> {
        use FileKind::{Directory, File, Symlink};
        if !matches!(metadata.kind, File | Symlink | Directory) {
            return Err(Staying::Special);
        }
        let row = self.name_table.lookup(&self.name_of(path));
        // What is only staged by an interrupted run is not archived.
        let (row, id) = row
            .and_then(|row| Some((row, row.id?)))
            .ok_or(Staying::New)?;
        let is_same = match metadata.kind {
            // What was in it may have been removed by a run like this one, which changed its time.
            Directory => row.is_readable && !row.is_file,
            _ => is_same(&row, metadata, 0),
        };
        is_same.then_some(id).ok_or(Staying::Changed)
    }
}

/// What the archive says of a candidate.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    id: RowId,
    pub(super) volume: VolumeId,
    /// Where its member begins in there.
    pub(super) offset: u64,
    /// None for what has no content.
    pub(super) md5: Option<[u8; 16]>,
    has_passed: bool,
}

/// What the archive says of all candidates, ascending by row.
#[derive(Default)]
pub(super) struct Evidence {
    held: Vec<Held>,
    /// Directories in which something was: nothing of them need be proved, but they may go, too.
    directories: Vec<RowId>,
    /// What the index says of all members of each volume.
    rows: BTreeMap<VolumeId, RowsMd5>,
}

impl Evidence {
    /// Returns the volumes that matter, each with the MD5 of its rows.
    pub(super) fn volumes(&mut self) -> BTreeMap<VolumeId, String> {
        let wanted: BTreeSet<VolumeId> = self.held.iter().map(|held| held.volume).collect();
        let rows = std::mem::take(&mut self.rows);
        let wanted = rows.into_iter().filter(|(id, _)| wanted.contains(id));
        wanted.map(|(id, rows)| (id, rows.finish())).collect()
    }

    /// Only what is in these volumes counts from now on.
    pub(super) fn keep_only(&mut self, passed: &BTreeSet<VolumeId>) {
        for held in &mut self.held {
            held.has_passed = passed.contains(&held.volume);
        }
    }

    /// Returns the rows of all that may go.
    pub(super) fn releasable(&self) -> Vec<RowId> {
        let held = self.held.iter().filter(|held| held.has_passed);
        let held = held.map(|held| held.id);
        held.chain(self.directories.iter().copied()).collect()
    }

    pub(super) fn of(&self, id: RowId) -> Result<Held, Staying> {
        match self.held.binary_search_by_key(&id, |held| held.id) {
            Ok(at) if self.held[at].has_passed => Ok(self.held[at]),
            Ok(_) => Err(Staying::Unchecked),
            // It did not look as it was archived when the tree was walked.
            Err(_) => Err(Staying::Changing),
        }
    }
}

/// The walk: which rows look like entries of the tree.
pub(super) struct Candidates<'a, O> {
    place: &'a Place<'a>,
    observer: &'a O,
    rows: Mutex<Vec<RowId>>,
    directories: Mutex<Vec<RowId>>,
}

impl<O: RemoveObserver> stook_pool::Observer for Candidates<'_, O> {
    type Failure = TreeError;

    /// The removal reports it.
    fn failed(&self, _error: &TreeError) {}

    fn is_interrupted(&self) -> bool {
        self.observer.is_interrupted()
    }
}

impl<O: RemoveObserver> Visitor for Candidates<'_, O> {
    fn prunes(&self, path: &[u8]) -> bool {
        self.place.filter.prunes(path)
    }

    fn directory(&self, listing: Listing) {
        let mut rows = Vec::with_capacity(listing.entries.len());
        for entry in &listing.entries {
            let path = join(&listing.path, listing.name(entry));
            if self.place.filter.selects(&path) {
                rows.extend(self.place.row_of(&path, &entry.metadata()));
            }
        }
        let own = self.place.row_of(&listing.path, &listing.metadata);
        if listing.is_empty {
            rows.extend(own);
        } else if self.place.filter.selects(&listing.path) {
            lock(&self.directories).extend(own);
        }
        lock(&self.rows).append(&mut rows);
    }
}

impl<'a, O: RemoveObserver> Candidates<'a, O> {
    pub(super) fn new(place: &'a Place<'a>, observer: &'a O) -> Self {
        Self {
            place,
            observer,
            rows: Mutex::default(),
            directories: Mutex::default(),
        }
    }

    /// Returns what the index says of the rows.
    pub(super) fn evidence(self, index: &Index) -> Result<Evidence, ArchiveError> {
        let mut rows = std::mem::take(&mut *lock(&self.rows));
        let directories = std::mem::take(&mut *lock(&self.directories));
        sort_until(&mut rows, &RowId::cmp, &|| self.observer.is_interrupted());
        let mut held = Vec::with_capacity(rows.len());
        let mut rows_of: BTreeMap<VolumeId, RowsMd5> = BTreeMap::new();
        let mut wanted = rows.into_iter().peekable();
        index.readable_rows(|row| {
            rows_of.entry(row.volume).or_default().add(&row);
            while wanted.next_if(|id| *id < row.id).is_some() {}
            if wanted.peek() == Some(&row.id) {
                held.push(Held {
                    id: row.id,
                    volume: row.volume,
                    offset: row.offset,
                    md5: row.md5,
                    has_passed: false,
                });
            }
            ControlFlow::Continue(())
        })?;
        Ok(Evidence {
            held,
            directories,
            rows: rows_of,
        })
    }
}
