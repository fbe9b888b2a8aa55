//! Archives that lie in a store: the index is fetched once, volumes are read where they are.
//!
//! ```text
//!   store ── index.db ──> cache folder (index.rs)      again only when its version changed
//!     └───── ranges of volumes ──> a VolumeStore that the caller gives ──> what reads them
//! ```
//! Nothing is written to the store, and what a check finds out is not recorded: the index is a copy.

mod index;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use stook_store::{Advice, Store, StoreCause, StoreError, TransferObserver};

use crate::ArchiveError;
use crate::archive::{Archive, OpenOptions};
use index::{FetchedIndex, fetch_index, newest_copy};

/// An archive that lies elsewhere.
#[derive(Debug, Clone, Copy)]
pub struct StoredPlace<'a> {
    /// Stores that have it, all with the same bytes; the first one that has an index gives it.
    pub stores: &'a [Arc<dyn Store>],
    /// A folder of the user for copies of indices; it is made if it is missing.
    pub cache: &'a Path,
    /// Whether stores are not asked: the copy is taken that was fetched last.
    pub is_offline: bool,
}

impl Archive {
    /// Opens an archive that lies elsewhere, by a copy of its index. Returns it with the bytes that were fetched. Its volumes
    /// are read from [`OpenOptions::store`], or from what [`Archive::read_volumes_from`] is given: until then none can be.
    ///
    /// # Errors
    /// `Store` if a store has no ranges, or no index can be fetched; `NotAnArchive` if there is none; `BeingWritten` if it has a journal; `NotFetched`;
    /// those of [`Archive::open`].
    ///
    /// # Cost
    /// The index is fetched unless its copy has the same version; a store that has no versions fetches it each time. What
    /// was fetched is checked by SQLite, one pass.
    pub fn open_fetched(
        place: &StoredPlace<'_>,
        options: &OpenOptions,
        observer: &dyn TransferObserver,
    ) -> Result<(Self, u64), ArchiveError> {
        place.stores.iter().try_for_each(require_ranges)?;
        let fetched = fetch_from_any(place, options, observer)?;
        let archive = Self::open_copy(&fetched.folder, fetched.name, options)?;
        Ok((archive, fetched.bytes))
    }
}

fn require_ranges(store: &Arc<dyn Store>) -> Result<(), ArchiveError> {
    if store.abilities().has_ranges {
        return Ok(());
    }
    Err(ArchiveError::Store(StoreError {
        operation: "read",
        file: String::new(),
        store: store.name().to_owned(),
        cause: StoreCause::NoRanges,
    }))
}

/// The pause after all stores have failed, one of them for a reason that may pass; it doubles until the last one is over. Who has
/// mistyped a name should not wait for long.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LAST_PAUSE: Duration = Duration::from_millis(1600);

/// Fetches the index from the first store that gives it, and tries again what may pass.
fn fetch_from_any(
    place: &StoredPlace<'_>,
    options: &OpenOptions,
    observer: &dyn TransferObserver,
) -> Result<FetchedIndex, ArchiveError> {
    let mut pause = FIRST_PAUSE;
    loop {
        let fetched = fetch_once(place, options, observer);
        let is_worth_it = fetched.as_ref().is_err_and(may_pass);
        if !is_worth_it || pause > LAST_PAUSE || options.interrupt.is_raised() {
            return fetched;
        }
        std::thread::sleep(pause);
        pause *= 2;
    }
}

/// Asks each store once. If none gives the index, the error is that of the first one that may come back, or of the first one.
fn fetch_once(
    place: &StoredPlace<'_>,
    options: &OpenOptions,
    observer: &dyn TransferObserver,
) -> Result<FetchedIndex, ArchiveError> {
    let mut first = None;
    for store in place.stores {
        let fetched = if place.is_offline {
            newest_copy(&**store, place.cache)
        } else {
            fetch_index(&**store, place.cache, &options.interrupt, observer)
        };
        match fetched {
            Ok(fetched) => return Ok(fetched),
            Err(error)
                if first
                    .as_ref()
                    .is_none_or(|first| !may_pass(first) && may_pass(&error)) =>
            {
                first = Some(error);
            }
            Err(_) => {}
        }
    }
    Err(first.unwrap_or_else(|| ArchiveError::NotAnArchive {
        path: PathBuf::new(),
    }))
}

/// A server that gives something else than an index will do so again.
fn may_pass(error: &ArchiveError) -> bool {
    let ArchiveError::Store(error) = error else {
        return false;
    };
    error.advice() == Advice::Retry && !matches!(error.cause, StoreCause::Answer { .. })
}
