//! How volumes travel to a store.

use std::sync::Arc;
use std::time::Duration;

use stook_store::{Proof, Store};

/// A store for an archive that is written, and how its volumes get there.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// The store.
    pub store: Arc<dyn Store>,
    /// What the archive remembers it by: the location as the user wrote it.
    pub place: String,
    /// Transfers at a time.
    pub transfers: usize,
    /// Most bytes of finished volumes that wait for their transfer, or are on their way; None: as many as there are.
    pub spool_bytes: Option<u64>,
    /// Whether local volumes stay once the store has confirmed them.
    pub keeps_volumes: bool,
    /// The least proof; None: what the store gives by itself, and no less than it needs for a local file to be deleted.
    pub proof: Option<Proof>,
    /// How long a transfer that fails is tried again.
    pub retry_for: Duration,
    /// Whether an archive that has another store moves to this one.
    pub changes_store: bool,
}

impl StoreOptions {
    /// Returns the options for a store, everything else as usual.
    pub fn new(store: Arc<dyn Store>, place: impl Into<String>) -> Self {
        Self {
            store,
            place: place.into(),
            transfers: 2,
            spool_bytes: None,
            keeps_volumes: false,
            proof: None,
            retry_for: Duration::from_secs(600),
            changes_store: false,
        }
    }

    /// Returns the store as zstash names it in `config`; `none` if zstash does not know such stores.
    pub(crate) fn zstash_name(&self) -> &str {
        match self.place.strip_prefix("hpss:") {
            Some(path) => path,
            None if self.place.starts_with("globus://") => &self.place,
            None => "none",
        }
    }

    /// Returns the proof to ask the store for.
    pub(super) fn wanted_proof(&self) -> Proof {
        let abilities = self.store.abilities();
        let usual = abilities.gives.max(abilities.minimum);
        self.proof.map_or(usual, |proof| proof.max(abilities.gives))
    }
}
