//! Volumes held open while an operation reads them.

use std::collections::{BTreeSet, HashMap};
use std::num::NonZeroUsize;
use std::ops::{ControlFlow, Range};
use std::sync::{Arc, Mutex};

use stook_index::{Frame, Index, IndexError, Selection, VolumeId};
use stook_sys::{SysError, most_open_files};

use super::frame_cache::FrameCache;
use super::framed_volume::open_volume;
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
    frames: Arc<FrameCache>,
}

impl Volumes {
    pub(crate) fn new(store: Arc<dyn VolumeStore>) -> Self {
        Self::with_frames(store, FrameCache::default())
    }

    /// As [`Self::new`], for readers that come one request after another: frames of compressed volumes are decoded by so many
    /// threads at a time, ahead of readers that go forward.
    pub(crate) fn with_decoders(store: Arc<dyn VolumeStore>, threads: NonZeroUsize) -> Self {
        Self::with_frames(store, FrameCache::with_decoders(threads))
    }

    fn with_frames(store: Arc<dyn VolumeStore>, frames: FrameCache) -> Self {
        Self {
            store,
            open: Mutex::default(),
            buffers: Arc::default(),
            frames: Arc::new(frames),
        }
    }

    /// Returns how many frames of compressed volumes were decoded.
    pub(crate) fn decoded_frames(&self) -> u64 {
        self.frames.decoded()
    }

    /// Says that the volumes of these rows will be read, where that helps.
    pub(crate) fn expect_rows(
        &self,
        index: &Index,
        selection: &Selection,
    ) -> Result<(), IndexError> {
        if !self.store.wants_order() {
            return Ok(());
        }
        let mut volumes = BTreeSet::new();
        index.selected(selection, |row| {
            volumes.insert(row.volume);
            ControlFlow::Continue(())
        })?;
        self.expect(volumes);
        Ok(())
    }

    /// Says that these volumes will be read, in this order.
    pub(crate) fn expect(&self, volumes: impl IntoIterator<Item = VolumeId>) {
        self.store.expect(&Vec::from_iter(volumes));
    }

    pub(crate) fn get(&self, id: VolumeId) -> Result<Arc<dyn VolumeBytes>, SysError> {
        self.get_or_open(id, || None)
    }

    /// As [`Self::get`]; where the frames of a compressed volume lie is in the index, which saves reading that at its end.
    pub(crate) fn get_indexed(
        &self,
        id: VolumeId,
        index: &Index,
    ) -> Result<Arc<dyn VolumeBytes>, SysError> {
        // Frames that cannot be read are looked for in the volume.
        self.get_or_open(id, || index.frames_of_volume(id).ok().flatten())
    }

    fn get_or_open(
        &self,
        id: VolumeId,
        frames: impl FnOnce() -> Option<Vec<Frame>>,
    ) -> Result<Arc<dyn VolumeBytes>, SysError> {
        if let Some(volume) = lock(&self.open).get(&id) {
            return Ok(Arc::clone(volume));
        }
        // Not under the lock: a store far away takes its time, and two that open the same volume do no harm.
        let frames = if id.is_compressed() { frames() } else { None };
        let volume = open_volume(&*self.store, id, frames, &self.frames)?;
        let mut open = lock(&self.open);
        let most = MOST_OPEN
            .min(most_open_files() / 8)
            .min(self.store.most_open());
        if open.len() >= most {
            open.clear();
        }
        open.insert(id, Arc::clone(&volume));
        Ok(volume)
    }

    /// Returns where a range of the uncompressed volume lies in its file: the frames that have it.
    pub(crate) fn stored_range(
        &self,
        id: VolumeId,
        range: Range<u64>,
    ) -> Result<Range<u64>, SysError> {
        if !id.is_compressed() {
            return Ok(range);
        }
        let volume = self.get(id)?;
        let framed = volume.as_framed();
        Ok(framed.map_or(range.clone(), |framed| framed.stored_range(&range)))
    }

    /// Forgets the frames that are decoded.
    pub(crate) fn forget_frames(&self) {
        self.frames.clear();
    }

    /// Returns a volume that is open already.
    pub(crate) fn get_open(&self, id: VolumeId) -> Option<Arc<dyn VolumeBytes>> {
        lock(&self.open).get(&id).map(Arc::clone)
    }

    /// Has the bytes fetched before a worker asks for them. A volume that cannot be opened is the worker's to report.
    pub(super) fn prefetch(&self, id: VolumeId, offset: u64, len: u64) {
        if let Ok(volume) = self.get(id) {
            volume.prefetch(offset, len);
        }
    }
}
