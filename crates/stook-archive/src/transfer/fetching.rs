//! Reading volumes that are not here: whole ones are fetched from the store while they are needed.
//!
//! ```text
//!   expected   000002 000005 000006 | 000007 ...      in the order in which they will be read
//!              └─ one request, as many as fit ─┘
//!   opened     000005: the group is here; what lies before it and was fetched by this run is removed
//! ```
//! One request for several volumes lets a tape library mount each tape once. A volume that was here before is read where
//! it is, and stays.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex};

use stook_index::{Interrupt, Volume, VolumeId};
use stook_sys::{SysError, remove_file};

use super::options::StoreOptions;
use super::pull::fetch_volumes;
use super::push::require_spool;
use super::send::Sender;
use crate::ArchiveError;
use crate::archive::Archive;
use crate::cause::Cause;
use crate::folder::Folder;
use crate::mutex::lock;
use crate::observer::{Failure, Observer};
use crate::read::{LocalFolder, VolumeBytes, VolumeStore};

/// Ends transfers once it is raised, and reports nothing: what fails is an error of the read that needs it.
struct Until(Interrupt);

impl stook_pool::Observer for Until {
    type Failure = Failure;

    fn is_interrupted(&self) -> bool {
        self.0.is_raised()
    }
}

impl Observer for Until {}

/// Volumes in the folder of the archive, fetched from its store where they are missing.
pub struct FetchedVolumes {
    folder: Folder,
    local: LocalFolder,
    options: StoreOptions,
    until: Until,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Records of the index, for lengths and MD5s.
    records: BTreeMap<VolumeId, Volume>,
    /// Volumes that will be read, in this order.
    expected: Vec<VolumeId>,
    /// Those that this run fetched and has not removed, with their lengths.
    fetched: BTreeMap<VolumeId, u64>,
}

impl fmt::Debug for FetchedVolumes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FetchedVolumes")
            .field("folder", &self.folder)
            .field("store", &self.options.store)
            .finish_non_exhaustive()
    }
}

impl FetchedVolumes {
    /// Returns the volumes of an archive.
    ///
    /// # Errors
    /// `Index` if the index cannot be read; `SmallSpool` if a volume that is not in the folder would not fit.
    pub fn new(
        archive: &Archive,
        options: StoreOptions,
        until: Interrupt,
    ) -> Result<Self, ArchiveError> {
        let records = lock(archive.shared_index()).volumes()?;
        let here: BTreeSet<VolumeId> = archive.folder().volumes()?.into_iter().collect();
        let away = records.iter().filter(|volume| !here.contains(&volume.id));
        require_spool(&options, away.map(|volume| volume.size).max().unwrap_or(0))?;
        let records = records.into_iter().map(|volume| (volume.id, volume));
        Ok(Self {
            folder: Folder::new(archive.path()),
            local: LocalFolder::new(archive.path()),
            options,
            until: Until(until),
            state: Mutex::new(State {
                records: records.collect(),
                ..State::default()
            }),
        })
    }

    /// Fetches a volume, and those that will be read after it as far as the spool takes them.
    fn fetch(&self, state: &mut State, id: VolumeId) -> Result<(), SysError> {
        self.remove_before(state, id);
        let group = self.group(state, id);
        let sender = Sender::new(&self.options, &self.until);
        let mut failure = None;
        let fetched = fetch_volumes(
            &sender,
            &self.folder,
            &group,
            |volume, fetched| match fetched {
                Ok(()) => {
                    state.fetched.insert(volume.id, volume.size);
                }
                Err(error) if volume.id == id => failure = Some(error),
                // It is asked for again when it is opened.
                Err(_) => {}
            },
        );
        let cause = match (fetched, failure) {
            (Ok(()), None) => return Ok(()),
            _ if self.until.0.is_raised() => io::Error::from(Cause::Interrupted),
            (_, Some(failure)) => io::Error::from(failure.cause),
            (Err(error), None) => io::Error::other(error),
        };
        Err(SysError {
            operation: "fetch",
            path: self.folder.volume(id),
            source: cause,
        })
    }

    /// Returns the volume and those behind it that are not here, up to the length of the spool.
    fn group(&self, state: &State, id: VolumeId) -> Vec<Volume> {
        let behind = state
            .expected
            .iter()
            .skip_while(|other| **other != id)
            .skip(1);
        let mut group = Vec::new();
        let mut bytes = 0;
        for id in std::iter::once(&id).chain(behind) {
            let Some(volume) = state.records.get(id) else {
                continue;
            };
            bytes += volume.size;
            let fits = self.options.spool_bytes.is_none_or(|spool| bytes <= spool);
            if !fits && !group.is_empty() {
                break;
            }
            if matches!(stook_sys::exists(&self.folder.volume(*id)), Ok(None)) {
                group.push(*volume);
            }
        }
        group
    }

    /// Removes what was fetched and is behind us, to make room.
    fn remove_before(&self, state: &mut State, id: VolumeId) {
        let place = |id: &VolumeId| state.expected.iter().position(|other| other == id);
        let here = place(&id);
        let done: Vec<VolumeId> = state
            .fetched
            .keys()
            .copied()
            .filter(|fetched| place(fetched) < here)
            .collect();
        for id in done {
            self.remove(id);
            state.fetched.remove(&id);
        }
    }

    /// A volume that stays takes room, and harms nothing.
    fn remove(&self, id: VolumeId) {
        let _ = remove_file(&self.folder.volume(id));
    }
}

impl VolumeStore for FetchedVolumes {
    fn open(&self, name: &str) -> Result<Arc<dyn VolumeBytes>, SysError> {
        match self.local.open(name) {
            Err(error) if error.is_not_found() => {}
            opened => return opened,
        }
        // Others wait for the same request.
        let mut state = lock(&self.state);
        match (self.local.open(name), name.parse()) {
            (Err(error), Ok(id)) if error.is_not_found() => self.fetch(&mut state, id)?,
            (opened, _) => return opened,
        }
        self.local.open(name)
    }

    fn expect(&self, volumes: &[VolumeId]) {
        lock(&self.state).expected = volumes.to_vec();
    }

    fn wants_order(&self) -> bool {
        true
    }

    fn most_open(&self) -> usize {
        MOST_OPEN
    }
}

/// A volume that was removed takes room until it is closed.
const MOST_OPEN: usize = 2;

impl Drop for FetchedVolumes {
    fn drop(&mut self) {
        if self.options.keeps_volumes {
            return;
        }
        for id in std::mem::take(&mut lock(&self.state).fetched).into_keys() {
            self.remove(id);
        }
    }
}
