//! Archives that lie in a store: the index is fetched once, volumes are read where they are.
//!
//! ```text
//!   store ── index.db ──> cache folder (index.rs)      again only when its version changed
//!     └───── ranges of volumes ──> pieces in memory (volumes.rs) ──> what reads them
//! ```
//! Nothing is written to the store, and what a check finds out is not recorded: the index is a copy.

mod index;
mod pieces;
mod volumes;

pub use volumes::{FetchedBytes, StoredVolumes};

use std::path::{Path, PathBuf};
use std::sync::Arc;

use stook_store::{Store, StoreCause, StoreError, TransferObserver};

use crate::ArchiveError;
use crate::archive::{Archive, OpenOptions};
use index::fetch_index;

impl Archive {
    /// Opens the archive in a store for reading. `cache` is a folder of the user for copies of indices; it is made if it is
    /// missing. Returns the archive and what counts the bytes that were fetched for it.
    ///
    /// # Errors
    /// `Store` if the index cannot be fetched, or the store has no ranges; `NotAnArchive` if it has no index; those of
    /// [`Archive::open`].
    ///
    /// # Cost
    /// The index is fetched unless its copy has the same version; a store that has no versions fetches it each time.
    pub fn open_stored(
        store: &Arc<dyn Store>,
        cache: &Path,
        options: &OpenOptions,
        observer: &dyn TransferObserver,
    ) -> Result<(Self, Arc<StoredVolumes>), ArchiveError> {
        if !store.abilities().has_ranges {
            return Err(ArchiveError::Store(StoreError {
                operation: "read",
                file: String::new(),
                store: store.name().to_owned(),
                cause: StoreCause::NoRanges,
            }));
        }
        let fetched = fetch_index(&**store, cache, observer)?;
        let volumes = Arc::new(StoredVolumes::new(Arc::clone(store), fetched.bytes));
        let options = OpenOptions {
            store: Some(Arc::clone(&volumes) as _),
            ..options.clone()
        };
        let name = PathBuf::from(store.name());
        let archive = Self::open_copy(&fetched.folder, name, &options)?;
        Ok((archive, volumes))
    }
}
