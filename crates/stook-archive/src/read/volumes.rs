//! Volumes held open while an operation reads them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use stook_index::VolumeId;
use stook_sys::{SysError, most_open_files};

use super::volume::{VolumeBytes, VolumeStore};
use crate::buffers::Buffers;
use crate::mutex::lock;

/// Volumes kept open at a time, where so many descriptors are to be had; reads move through them in order.
const MOST_OPEN: usize = 64;

/// Open volumes of one store, shared by the workers.
#[derive(Debug)]
pub(crate) struct Volumes {
    store: Arc<dyn VolumeStore>,
    open: Mutex<HashMap<VolumeId, Arc<dyn VolumeBytes>>>,
    /// What is read of them goes into these.
    pub(crate) buffers: Arc<Buffers>,
}

impl Volumes {
    pub(crate) fn new(store: Arc<dyn VolumeStore>) -> Self {
        Self {
            store,
            open: Mutex::default(),
            buffers: Arc::default(),
        }
    }

    pub(crate) fn get(&self, id: VolumeId) -> Result<Arc<dyn VolumeBytes>, SysError> {
        if let Some(volume) = lock(&self.open).get(&id) {
            return Ok(Arc::clone(volume));
        }
        // Not under the lock: a store far away takes its time, and two that open the same volume do no harm.
        let volume = self.store.open(&id.to_string())?;
        let mut open = lock(&self.open);
        if open.len() >= MOST_OPEN.min(most_open_files() / 8) {
            open.clear();
        }
        open.insert(id, Arc::clone(&volume));
        Ok(volume)
    }

    /// Has the bytes fetched before a worker asks for them. A volume that cannot be opened is the worker's to report.
    pub(super) fn prefetch(&self, id: VolumeId, offset: u64, len: u64) {
        if let Ok(volume) = self.get(id) {
            volume.prefetch(offset, len);
        }
    }
}
