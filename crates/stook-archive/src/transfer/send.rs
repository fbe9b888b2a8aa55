//! One file to the store: compared with what is there, sent if need be, tried again for a while.
//!
//! ```text
//!   stat ──same length──> verify ──proved──> done, without a byte sent
//!     └──missing────────> put ──> done
//!   a failure that may pass: wait 1, 2, 4 .. 60 seconds, and begin again
//! ```
//! What a killed run had sent is found by `verify`. A file of another length or hash is never overwritten: it is not known
//! to be ours.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use stook_index::VolumeId;
use stook_store::{Advice, Condition, Store, StoreCause, Stored, TransferObserver, Upload};

use super::error::TransferError;
use super::options::StoreOptions;
use super::pull::file_md5;
use crate::observer::{Note, Observer};

/// The first pause before a transfer is tried again; each is twice the one before.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest one.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// How often a pause asks whether to end.
const TICK: Duration = Duration::from_millis(100);

/// A volume on its way.
#[derive(Debug, Clone, Copy)]
pub(super) struct LocalVolume<'a> {
    pub(super) id: VolumeId,
    pub(super) path: &'a Path,
    pub(super) size: u64,
    pub(super) md5: Option<[u8; 16]>,
}

impl LocalVolume<'_> {
    /// Returns the MD5 on record, else that of the bytes here.
    fn expected_md5(&self) -> Result<[u8; 16], TransferError> {
        match self.md5 {
            Some(md5) => Ok(md5),
            None => file_md5(self.path).map_err(|source| TransferError::Unreadable {
                volume: self.id,
                source,
            }),
        }
    }

    /// Returns true if the bytes here are not those on record.
    fn is_damaged(&self) -> bool {
        let found = || file_md5(self.path).ok();
        self.md5.is_some_and(|md5| found() != Some(md5))
    }
}

/// Sends files of one archive to its store.
pub(super) struct Sender<'a> {
    pub(super) options: &'a StoreOptions,
    pub(super) observer: &'a dyn Observer,
    /// Whether bytes sent are the progress that is shown.
    pub(super) shows_progress: AtomicBool,
    /// Raised when no transfer is of use any more.
    pub(super) is_ending: AtomicBool,
}

impl TransferObserver for Sender<'_> {
    fn transferred(&self, bytes: u64) {
        if self.shows_progress.load(Ordering::Relaxed) {
            self.observer.advanced(0, bytes);
        }
    }

    fn is_interrupted(&self) -> bool {
        self.is_ending.load(Ordering::Relaxed) || self.observer.is_interrupted()
    }
}

impl<'a> Sender<'a> {
    pub(super) fn new(options: &'a StoreOptions, observer: &'a dyn Observer) -> Self {
        Self {
            options,
            observer,
            shows_progress: AtomicBool::new(false),
            is_ending: AtomicBool::new(false),
        }
    }

    pub(super) fn store(&self) -> &'a dyn Store {
        &*self.options.store
    }

    /// Has the store hold a volume, and returns how that is known.
    pub(super) fn send_volume(&self, volume: LocalVolume<'_>) -> Result<Stored, TransferError> {
        let name = volume.id.to_string();
        let store = self.store();
        let upload = Upload {
            name: &name,
            path: volume.path,
            size: volume.size,
            md5: volume.md5,
            condition: &Condition::New.where_possible(store),
            proof: self.options.wanted_proof(),
        };
        self.with_retries(|| {
            let stored = match store.stat(&name)? {
                Some(_) => store.verify(
                    &Upload {
                        // A file of this length may be anybody's.
                        md5: Some(volume.expected_md5()?),
                        ..upload
                    },
                    self,
                ),
                None => store.put(&upload, self),
            };
            stored.map_err(|error| match error.cause {
                // Not what was put and arrived otherwise: that has no file under the name.
                StoreCause::Different(_) | StoreCause::Exists if is_there(store, &name) => {
                    TransferError::HoldsOther {
                        volume: volume.id,
                        store: store.name().to_owned(),
                    }
                }
                StoreCause::Different(_) if volume.is_damaged() => {
                    TransferError::LocalDamage { volume: volume.id }
                }
                _ => error.into(),
            })
        })
    }

    /// Repeats an operation of the store while it fails in a way that may pass, for as long as the options allow.
    pub(super) fn with_retries<T>(
        &self,
        mut attempt: impl FnMut() -> Result<T, TransferError>,
    ) -> Result<T, TransferError> {
        let (begun, mut pause) = (Instant::now(), FIRST_PAUSE);
        loop {
            let error = match attempt() {
                Err(TransferError::Store(error)) if error.advice() == Advice::Retry => error,
                other => return other,
            };
            if begun.elapsed() + pause > self.options.retry_for {
                return Err(TransferError::Store(error));
            }
            let seconds = pause.as_secs();
            let note = Note::TransferFailed {
                error: error.to_string(),
                seconds,
            };
            self.observer.note(&note);
            if !self.wait(pause) {
                return Err(error.interrupted().into());
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Returns false if it was asked to end meanwhile.
    fn wait(&self, pause: Duration) -> bool {
        let end = Instant::now() + pause;
        while Instant::now() < end {
            if self.is_interrupted() {
                return false;
            }
            std::thread::sleep(TICK);
        }
        true
    }
}

fn is_there(store: &dyn Store, name: &str) -> bool {
    matches!(store.stat(name), Ok(Some(_)))
}
