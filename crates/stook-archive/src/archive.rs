//! An open archive: its index is opened once, and every operation on it takes the same value.
//!
//! ```text
//!   Archive ── index (one connection) ──> find, select, runs
//!      └───── store ──> volumes ──────> reader, and what extract, check and cat read
//! ```
//! Whole operations borrow it mutably: they read the index from a thread of their own. Single look-ups and readers need no
//! more than a shared borrow.
//!
//! No other file opens an index. A writer gets one of its own from here once it holds the writer's lock: what was read
//! before may be another state. `reindex` looks at an old index that may be unusable, and writes a new one.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use stook_index::{
    AsOf, Config, Deleted, Index, IndexDamage, IndexError, Interrupt, NameLookup, NameVersions,
    ReadOptions, Row, RowRef, Run, RunCounts, RunId, Selection, Structure, Volume, VolumeId,
};

use stook_volume::ZstdLevel;

use crate::ArchiveError;
use crate::folder::Folder;
use crate::mutex::lock;
use crate::observer::{CountingObserver, Failure, Observer};
use crate::read::{LocalFirst, LocalFolder, MemberReader, VolumeStore, Volumes, open_member};
use crate::select::{ListOptions, fail_unreadable, select_rows, state_at};
use crate::transfer::recorded_store;
use crate::when::When;

/// How to open an archive.
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    /// Ends what is done with the index while it is opened.
    pub interrupt: Interrupt,
    /// Where the volumes lie; None: in the folder of the index.
    pub store: Option<Arc<dyn VolumeStore>>,
    /// A folder for a private copy of the index. It is needed where a crashed writer left a journal beside the index and
    /// nothing can be written there: on read-only media, or in a folder of another user. None: such an archive is
    /// refused.
    pub scratch: Option<PathBuf>,
}

/// An archive that is open for reading.
pub struct Archive {
    folder: Folder,
    index: Mutex<Index>,
    store: Arc<dyn VolumeStore>,
    /// What readers keep open.
    volumes: Volumes,
    /// Volumes that were read back in a store.
    read_back: BTreeSet<VolumeId>,
}

impl fmt::Debug for Archive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Archive")
            .field("folder", &self.folder)
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

/// What the index says of a name.
#[derive(Debug, Clone)]
pub struct Found {
    /// Its newest row; None if it has none, or was deleted.
    pub row: Option<Row>,
    /// What of the index cannot be read and may be newer than the row.
    pub damage: Option<IndexDamage>,
    /// Rows that had to be read one after the other, because no hashes of names cover them.
    pub scanned: u64,
}

/// The parts of an archive that an operation works with.
pub(crate) struct Parts<'a> {
    pub(crate) folder: &'a Folder,
    pub(crate) index: &'a mut Index,
    pub(crate) store: &'a Arc<dyn VolumeStore>,
    /// Volumes that are not in the folder, and were proved to be in a store.
    pub(crate) read_back: &'a BTreeSet<VolumeId>,
}

impl Archive {
    /// Opens the archive in a folder.
    ///
    /// # Errors
    /// `NotAnArchive`, `NoIndex`; `Index` if the index cannot be read; `Sys` if the folder cannot be; `Interrupted`.
    pub fn open(path: &Path, options: &OpenOptions) -> Result<Self, ArchiveError> {
        Self::open_in(Folder::until(path, options.interrupt.clone()), options)
    }

    /// Opens the archive of which a folder holds a copy of the index.
    pub(crate) fn open_copy(
        path: &Path,
        name: PathBuf,
        options: &OpenOptions,
    ) -> Result<Self, ArchiveError> {
        let interrupt = options.interrupt.clone();
        Self::open_in(Folder::of_copy(path, name, interrupt), options)
    }

    fn open_in(folder: Folder, options: &OpenOptions) -> Result<Self, ArchiveError> {
        folder.require_index()?;
        let read_options = ReadOptions {
            interrupt: options.interrupt.clone(),
            scratch: options.scratch.clone(),
        };
        let index = Index::open_read_with(folder.index(), &read_options)?;
        let store = match &options.store {
            Some(store) => Arc::clone(store),
            None => Arc::new(LocalFolder::new(folder.path())),
        };
        Ok(Self {
            folder,
            index: Mutex::new(index),
            volumes: Volumes::new(Arc::clone(&store)),
            store,
            read_back: BTreeSet::new(),
        })
    }

    /// Returns true if a volume of the index is not in the folder.
    ///
    /// # Errors
    /// `Index` if the index cannot be read, `Sys` if the folder cannot be.
    pub fn lacks_volumes(&self) -> Result<bool, ArchiveError> {
        let here: BTreeSet<VolumeId> = self.folder.volumes()?.into_iter().collect();
        let volumes = lock(&self.index).volumes()?;
        Ok(volumes.iter().any(|volume| !here.contains(&volume.id)))
    }

    /// Has volumes that are not in the folder read from this store from now on.
    pub fn read_missing_from(&mut self, store: Arc<dyn VolumeStore>) {
        self.read_volumes_from(Arc::new(LocalFirst::new(self.path(), store)));
    }

    /// Has all volumes read from this store from now on.
    pub fn read_volumes_from(&mut self, store: Arc<dyn VolumeStore>) {
        self.volumes = Volumes::new(Arc::clone(&store));
        self.store = store;
    }

    /// Says which volumes that are not in the folder a store is proved to hold: [`remove_archived`](crate::remove_archived)
    /// relies on them as on volumes that passed a check. [`VolumeStatus::is_read_back`](crate::VolumeStatus) tells.
    pub fn rely_on(&mut self, read_back: BTreeSet<VolumeId>) {
        self.read_back = read_back;
    }

    /// Returns the place of its volumes that was recorded, in the form of a location; None if they never left the folder.
    ///
    /// # Errors
    /// `Index` if the index cannot be read.
    pub fn store_place(&self) -> Result<Option<String>, ArchiveError> {
        recorded_store(&lock(&self.index))
    }

    /// Returns the folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Finds the newest row of a name in a state.
    ///
    /// # Errors
    /// `Index` if the index cannot be read.
    pub fn find(&self, name: &[u8], as_of: AsOf) -> Result<Found, ArchiveError> {
        let index = lock(&self.index);
        let NameLookup {
            row,
            damage,
            scanned,
        } = index.find(name, as_of)?;
        index.require_unchanged()?;
        Ok(Found {
            row,
            damage,
            scanned,
        })
    }

    /// Returns all versions of a name, the newest first, those before it was deleted included, each with the run that added it.
    ///
    /// # Errors
    /// `Index` if the index cannot be read. Rows that cannot be read are no error: they are among the damages.
    ///
    /// # Cost
    /// As [`Archive::find`], and a page of the index for each version.
    pub fn versions(&self, name: &[u8]) -> Result<NameVersions, ArchiveError> {
        let index = lock(&self.index);
        let found = index.versions(name)?;
        index.require_unchanged()?;
        Ok(found)
    }

    /// Chooses rows.
    ///
    /// # Errors
    /// As [`list`](crate::list).
    ///
    /// # Cost
    /// One pass over the index; a bit or two for each row, 32 bytes for each that matches while it runs.
    pub fn select(
        &self,
        options: &ListOptions,
        observer: &dyn Observer,
    ) -> Result<Selection, ArchiveError> {
        let index = lock(&self.index);
        let selection = select_rows(&self.folder, &index, options, observer)?;
        index.require_unchanged()?;
        Ok(selection)
    }

    /// Chooses, of all rows that match, the last one archived of each name; deletions on record do not count.
    ///
    /// # Errors
    /// As [`list`](crate::list), but that nothing need match.
    ///
    /// # Cost
    /// As [`Archive::select`].
    pub fn select_newest(
        &self,
        matches: &dyn Fn(&RowRef<'_>) -> bool,
        observer: &dyn Observer,
    ) -> Result<Selection, ArchiveError> {
        let index = lock(&self.index);
        let selection = Selection::of(&index, AsOf::Now, Deleted::Show, matches)?;
        fail_unreadable(&index, &selection, observer)?;
        index.require_unchanged()?;
        Ok(selection)
    }

    /// Shows every row in the order of the volumes and of the places in them, until `visit` breaks off.
    ///
    /// # Errors
    /// `Index` if one of them cannot be read.
    ///
    /// # Cost
    /// Two passes over the index.
    pub fn rows_by_place(
        &self,
        visit: impl FnMut(RowRef<'_>) -> ControlFlow<()>,
    ) -> Result<(), ArchiveError> {
        let index = lock(&self.index);
        index.rows_by_place(visit)?;
        Ok(index.require_unchanged()?)
    }

    /// Returns the settings that the archive carries.
    ///
    /// # Errors
    /// `Index` if one of them is missing or invalid.
    pub fn config(&self) -> Result<Config, ArchiveError> {
        Ok(lock(&self.index).config()?)
    }

    /// Returns what is on record of volumes, oldest first, with the id of each record: several of one volume, where zstash has left
    /// them. None if the archive records no volumes.
    ///
    /// # Errors
    /// `Index` if the archive cannot be read.
    pub fn volume_records(&self) -> Result<Option<Vec<(i64, Volume)>>, ArchiveError> {
        Ok(lock(&self.index).numbered_volume_records()?)
    }

    /// Shows chosen rows in the order they were archived, until `visit` breaks off.
    ///
    /// # Errors
    /// `Index` if one of them cannot be read any more.
    pub fn rows(
        &mut self,
        selection: &Selection,
        visit: impl FnMut(RowRef<'_>) -> ControlFlow<()>,
    ) -> Result<(), ArchiveError> {
        let index = self.index();
        index.selected(selection, visit)?;
        Ok(index.require_unchanged()?)
    }

    /// Returns the runs of stook that the archive remembers, oldest first.
    ///
    /// # Errors
    /// `Index` if the archive cannot be read, or one of them makes no sense.
    pub fn runs(&self) -> Result<Vec<Run>, ArchiveError> {
        Ok(lock(&self.index).runs()?)
    }

    /// Returns the id of the last row; 0 if there is none, and `None` if it cannot be read.
    ///
    /// # Errors
    /// `Index` if the archive cannot be read.
    pub fn last_row(&self) -> Result<Option<i64>, ArchiveError> {
        Ok(lock(&self.index).last_readable_row()?)
    }

    /// Returns what each run added and deleted, oldest first, and between them the rows that no run added; then the number
    /// of runs that cannot be read, each of which the observer is shown as a failure.
    ///
    /// # Errors
    /// `Index` if the archive cannot be read.
    pub fn run_counts(
        &self,
        observer: &dyn Observer,
    ) -> Result<(Vec<RunCounts>, u64), ArchiveError> {
        let observer = CountingObserver::new(observer);
        let index = lock(&self.index);
        let counts = index.run_counts(|damage| observer.failed(&Failure::row(&damage)))?;
        index.require_unchanged()?;
        Ok((counts, observer.failures()))
    }

    /// Finds the state that the archive had.
    ///
    /// # Errors
    /// `NoSuchRun` if the archive has no such run, or none was finished by then.
    pub fn state_at(&self, when: When) -> Result<AsOf, ArchiveError> {
        state_at(&self.folder, &lock(&self.index), when)
    }

    /// Returns a reader of the member that a row stands for.
    ///
    /// # Errors
    /// `NotAFile` if it has no content, `Damaged` if the volume has another member there, or none; `Sys` if the volume
    /// cannot be opened.
    pub fn reader(&self, row: &Row) -> Result<MemberReader, ArchiveError> {
        let volume = || self.volumes.get_indexed(row.volume, &lock(&self.index));
        open_member(volume, row)
    }

    /// Returns at which level of zstd new volumes are compressed; None if they are plain tar files.
    ///
    /// # Errors
    /// `Index` if the index cannot be read.
    pub fn zstd_level(&self) -> Result<Option<ZstdLevel>, ArchiveError> {
        let level = lock(&self.index).zstd_level()?;
        Ok(level.and_then(ZstdLevel::new))
    }

    /// Returns how many frames of compressed volumes its readers have decoded: a few that were used last are kept.
    pub fn decoded_frames(&self) -> u64 {
        self.volumes.decoded_frames()
    }

    pub(crate) fn index(&mut self) -> &mut Index {
        self.index.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn shared_index(&self) -> &Mutex<Index> {
        &self.index
    }

    pub(crate) fn store(&self) -> &Arc<dyn VolumeStore> {
        &self.store
    }

    pub(crate) fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Has what is done with the index end once the observer is interrupted.
    pub(crate) fn set_interrupt(&mut self, observer: &dyn Observer) -> Result<(), ArchiveError> {
        let interrupt = observer.interrupt();
        self.index().set_interrupt(&interrupt)?;
        self.folder.interrupt = interrupt;
        Ok(())
    }

    /// Lends its parts to an operation, which the observer can interrupt.
    pub(crate) fn parts(&mut self, observer: &dyn Observer) -> Result<Parts<'_>, ArchiveError> {
        self.set_interrupt(observer)?;
        let Self {
            folder,
            index,
            store,
            read_back,
            ..
        } = self;
        Ok(Parts {
            read_back,
            folder,
            index: index.get_mut().unwrap_or_else(PoisonError::into_inner),
            store,
        })
    }
}

/// Returns whether the pages of a copy of an index fit together; one that cannot be opened has none.
pub(crate) fn structure_of_copy(path: &Path, interrupt: &Interrupt) -> Structure {
    let opened = Index::open_read_until(path, interrupt);
    let structure = opened.and_then(|index| index.structure());
    structure.unwrap_or(Structure::Damaged)
}

impl Folder {
    /// Opens the index for reading, or says that the folder is no archive.
    pub(crate) fn open_index(&self) -> Result<Index, ArchiveError> {
        self.require_index()?;
        Ok(Index::open_read_until(self.index(), &self.interrupt)?)
    }

    /// Opens the index for writing.
    pub(crate) fn open_index_to_write(&self) -> Result<Index, ArchiveError> {
        Ok(Index::open_write_until(self.index(), &self.interrupt)?)
    }

    /// Makes the index of a new archive, in which a run has begun.
    pub(crate) fn create_index(
        &self,
        config: &Config,
        command: &str,
        zstd: Option<ZstdLevel>,
    ) -> Result<(Index, RunId), ArchiveError> {
        let started = stook_sys::utc_now().into();
        let level = zstd.map(ZstdLevel::number);
        let begun = (command, started);
        let (mut index, run) = Index::create_for_run(self.index(), config, begun, level)?;
        index.set_interrupt(&self.interrupt)?;
        Ok((index, run))
    }

    /// Opens an index that was fetched into the folder, under a name of its own.
    pub(crate) fn open_fetched_index(&self, path: &Path) -> Result<Index, ArchiveError> {
        Ok(Index::open_read_until(path, &self.interrupt)?)
    }

    /// As [`Folder::open_fetched_index`], for writing.
    pub(crate) fn open_fetched_index_to_write(&self, path: &Path) -> Result<Index, ArchiveError> {
        Ok(Index::open_write_until(path, &self.interrupt)?)
    }

    /// Opens an index that is about to be replaced.
    pub(crate) fn open_old_index(&self) -> Result<Index, IndexError> {
        Index::open_read_until(self.index(), &self.interrupt)
    }
}
