//! Volumes in stores, read through the cache: what an archive that is mounted reads from.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use stook_archive::{ReadAt, VolumeBytes, VolumeStore, VolumeVersion};
use stook_store::Store;
use stook_sys::{SysError, lock};

use super::counters::{CacheStats, Counters};
use super::disk::DiskCache;
use super::error::{CacheError, ReadError};
use super::key::{BLOCK_BYTES, VolumeIdentity, VolumeKey};
use super::loader::Loader;
use super::mirrors::{Copies, Mirrors};
use super::options::CacheOptions;
use super::queue::{Queue, begin_fetching};
use super::read_ahead::ReadAhead;
use super::table::BlockTable;
use super::volume::CachedFile;

/// The volumes of one archive, in one store or in several that have the same bytes.
///
/// Dropping it ends read-ahead and every pause between attempts; it does not wait for requests that a store has begun.
pub struct CachedVolumes {
    shared: Arc<Shared>,
}

/// A layer of the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layer {
    /// Blocks in memory.
    Memory,
    /// Blocks on disk, those of other archives and processes included.
    Disk,
}

/// What is shared with the volumes that are open.
pub(super) struct Shared {
    pub(super) loader: Arc<Loader>,
    read_ahead: ReadAhead,
    queue: Arc<Queue>,
    /// Whether the threads have begun that fetch ahead: with the first block to be fetched so.
    has_fetchers: Once,
    /// What the index says, in the order of the volumes.
    records: Vec<VolumeIdentity>,
    opened: Mutex<HashMap<String, Arc<CachedFile>>>,
    pub(super) fetchers: usize,
}

impl fmt::Debug for CachedVolumes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CachedVolumes")
            .field("loader", &self.shared.loader)
            .finish_non_exhaustive()
    }
}

impl CachedVolumes {
    /// Returns the volumes in these stores, which have the same bytes, read through a cache. `records` is what the index says
    /// of them, in their order: [`VolumeIdentity::of_archive`]. Nothing is asked of the stores yet.
    ///
    /// # Errors
    /// If the directory of the cache cannot be used.
    pub fn new(
        stores: Vec<Arc<dyn Store>>,
        records: Vec<VolumeIdentity>,
        options: &CacheOptions,
    ) -> Result<Self, CacheError> {
        let counters = Arc::<Counters>::default();
        let open_disk = |directory: &Path| {
            DiskCache::open(directory, options.disk_bytes, Arc::clone(&counters))
        };
        let request_blocks = options.request_bytes / BLOCK_BYTES;
        let loader = Arc::new(Loader {
            disk: options.directory.as_deref().map(open_disk).transpose()?,
            table: BlockTable::new(options.memory_bytes, Arc::clone(&counters)),
            mirrors: Mirrors::new(
                stores,
                options.deadline,
                options.is_offline,
                Arc::clone(&counters),
            ),
            counters,
            loading: AtomicUsize::new(0),
            request_blocks: usize::try_from(request_blocks).unwrap_or(usize::MAX).max(1),
        });
        Ok(Self {
            shared: Arc::new(Shared {
                loader,
                read_ahead: ReadAhead::new(options.read_ahead_bytes),
                queue: Arc::default(),
                has_fetchers: Once::new(),
                records,
                opened: Mutex::default(),
                fetchers: options.fetchers,
            }),
        })
    }

    /// Returns what the cache has done so far.
    pub fn stats(&self) -> CacheStats {
        let loader = &self.shared.loader;
        loader.counters.look(loader.table.held_bytes())
    }

    /// Drops all blocks of a layer that nobody is reading.
    pub fn clear(&self, layer: Layer) {
        match (layer, &self.shared.loader.disk) {
            (Layer::Memory, _) => self.shared.loader.table.clear(),
            (Layer::Disk, Some(disk)) => disk.clear(),
            (Layer::Disk, None) => {}
        }
    }

    /// Returns whether blocks are kept on disk.
    pub fn has_disk(&self) -> bool {
        self.shared.loader.disk.is_some()
    }

    /// Returns how many bytes of blocks can be kept that nobody has read yet.
    pub fn room(&self) -> u64 {
        let loader = &self.shared.loader;
        let disk = loader.disk.as_ref().map(DiskCache::room);
        disk.unwrap_or_else(|| loader.table.room_ahead())
    }

    /// Waits until nothing is being fetched or written; false if it was asked to end before.
    pub fn sync(&self, is_interrupted: &dyn Fn() -> bool) -> bool {
        const POLL_EVERY: Duration = Duration::from_millis(5);
        while self.shared.queue.blocks() > 0 || self.shared.loader.is_loading() {
            if is_interrupted() {
                return false;
            }
            std::thread::sleep(POLL_EVERY);
        }
        true
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

impl Drop for CachedVolumes {
    fn drop(&mut self) {
        self.shared.queue.close();
        self.shared.loader.mirrors.close();
    }
}

impl VolumeStore for CachedVolumes {
    fn open(&self, name: &str) -> Result<Arc<dyn VolumeBytes>, SysError> {
        let shared = &self.shared;
        let file = shared.open(name).map_err(|error| SysError {
            operation: "open",
            path: Path::new(shared.loader.mirrors.name()).join(name),
            source: error.into_io(),
        })?;
        Ok(Arc::new(CachedVolume {
            file,
            shared: Arc::clone(shared),
        }))
    }
}

impl Shared {
    /// Returns a volume. Stores are asked only if the index does not say what it is.
    pub(super) fn open(&self, name: &str) -> Result<Arc<CachedFile>, ReadError> {
        if let Some(file) = lock(&self.opened).get(name) {
            return Ok(Arc::clone(file));
        }
        let place = self.records.iter().position(|record| record.name == name);
        let identity = match place {
            Some(place) => self.records[place].clone(),
            None => VolumeIdentity {
                name: name.to_owned(),
                size: None,
                md5: None,
            },
        };
        let file = Arc::new(self.identify(identity, place)?);
        let mut opened = lock(&self.opened);
        // Of two that opened it at once the first one counts.
        let file = opened.entry(name.to_owned()).or_insert(file);
        Ok(Arc::clone(file))
    }

    fn identify(
        &self,
        identity: VolumeIdentity,
        place: Option<usize>,
    ) -> Result<CachedFile, ReadError> {
        let mirrors = &self.loader.mirrors;
        let copies = Copies::new(identity, mirrors);
        let name = &copies.identity.name;
        if let (Some(size), Some(md5)) = (copies.identity.size, &copies.identity.md5) {
            return Ok(CachedFile {
                key: VolumeKey::of_content(name, size, md5),
                size,
                copies,
                place,
                is_lasting: true,
            });
        }
        let (number, file) = mirrors.bind(&copies)?;
        let is_lasting = file.version.is_some();
        // Without a validator nobody knows whether it is the same file tomorrow: the key is this cache's own.
        let own = || format!("{:x}", RandomState::new().hash_one(name));
        let validator = file.version.map_or_else(own, |version| version.0);
        let store = mirrors.store_name(number);
        Ok(CachedFile {
            key: VolumeKey::of_file(store, name, file.size, &validator),
            size: file.size,
            copies,
            place,
            is_lasting,
        })
    }

    /// Has blocks fetched ahead; those behind the end of the volume are the first ones of the next.
    fn fetch_ahead(&self, file: &Arc<CachedFile>, ahead: Range<u64>) {
        let count = file.block_count();
        let here = ahead.start..ahead.end.min(count);
        if !here.is_empty() {
            self.queue(file, here);
        }
        let beyond = ahead.end.saturating_sub(count);
        let next = file.place.and_then(|place| self.records.get(place + 1));
        let Some(next) = next.filter(|next| beyond > 0 && next.md5.is_some()) else {
            return;
        };
        // Stores are not asked for it, since its MD5 is on record.
        if let Ok(next) = self.open(&next.name) {
            self.queue(&next, 0..beyond.min(next.block_count()));
            self.read_ahead.go_on(next.key, beyond);
        }
    }

    fn queue(&self, file: &Arc<CachedFile>, numbers: Range<u64>) {
        if self.fetchers == 0 {
            return;
        }
        self.has_fetchers.call_once(|| {
            begin_fetching(&self.queue, &self.loader, self.fetchers);
        });
        self.queue.add(file, numbers, self.loader.request_blocks);
    }

    /// Returns how many blocks may be asked for ahead now.
    fn room_ahead(&self) -> u64 {
        let room = self.loader.table.room_ahead() / BLOCK_BYTES;
        room.saturating_sub(self.queue.blocks())
    }

    /// Has those of the blocks fetched that are not in memory, as far as there is room.
    fn queue_missing(&self, file: &Arc<CachedFile>, numbers: Range<u64>) {
        if numbers.is_empty() {
            return;
        }
        let numbers = numbers.start..numbers.end.min(numbers.start + self.room_ahead());
        let is_missing = |number: &u64| !self.loader.table.is_known(&file.block(*number));
        let (first, last) = (
            numbers.clone().find(is_missing),
            numbers.clone().rev().find(is_missing),
        );
        if let (Some(first), Some(last)) = (first, last) {
            self.queue(file, first..last + 1);
        }
    }

    fn read(
        &self,
        file: &Arc<CachedFile>,
        buffer: &mut [u8],
        offset: u64,
    ) -> Result<(), ReadError> {
        let numbers = file.blocks_of(&(offset..offset + buffer.len() as u64));
        let request_blocks = self.loader.request_blocks as u64;
        let first_end = numbers.end.min(numbers.start + request_blocks);
        // Of a large read the first request is this thread's, and others are sent meanwhile.
        self.queue_missing(file, first_end..numbers.end);
        self.visit(file, &numbers);
        let mut copied = 0;
        for first in numbers.clone().step_by(self.loader.request_blocks) {
            let part = first..numbers.end.min(first + request_blocks);
            for (number, block) in part.clone().zip(self.loader.blocks(file, part)?) {
                copied += copy_block((number, &block), offset, &mut buffer[copied..]);
            }
        }
        self.loader.counters.given_bytes.add(copied as u64);
        Ok(())
    }

    /// As [`Shared::read`], of blocks in memory; false if others are needed.
    fn read_cached(&self, file: &Arc<CachedFile>, buffer: &mut [u8], offset: u64) -> bool {
        let numbers = file.blocks_of(&(offset..offset + buffer.len() as u64));
        let mut copied = 0;
        for number in numbers.clone() {
            let Some(block) = self.loader.table.get(&file.block(number)) else {
                return false;
            };
            copied += copy_block((number, &block), offset, &mut buffer[copied..]);
        }
        self.visit(file, &numbers);
        let counters = &self.loader.counters;
        counters.memory_hits.add(numbers.end - numbers.start);
        counters.given_bytes.add(copied as u64);
        true
    }

    /// Fetches ahead what a reader of these blocks will probably read next.
    fn visit(&self, file: &Arc<CachedFile>, numbers: &Range<u64>) {
        let room = || self.room_ahead();
        if let Some(ahead) = self.read_ahead.visit(file.key, numbers, room) {
            self.fetch_ahead(file, ahead);
        }
    }
}

/// Copies what a block has from `offset` of the volume on, as far as there is room; returns how many bytes.
fn copy_block((number, block): (u64, &[u8]), offset: u64, buffer: &mut [u8]) -> usize {
    let start = number * BLOCK_BYTES;
    let skip = usize::try_from(offset.saturating_sub(start)).unwrap_or(usize::MAX);
    let rest = block.get(skip..).unwrap_or_default();
    let len = rest.len().min(buffer.len());
    buffer[..len].copy_from_slice(&rest[..len]);
    len
}

/// A volume that is open.
struct CachedVolume {
    file: Arc<CachedFile>,
    shared: Arc<Shared>,
}

impl fmt::Debug for CachedVolume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CachedVolume").field(&self.file).finish()
    }
}

impl CachedVolume {
    /// Returns how many of so many bytes there are from an offset on.
    fn bytes_from(&self, offset: u64, wanted: usize) -> usize {
        let rest = self.file.size.saturating_sub(offset);
        usize::try_from(rest).map_or(wanted, |rest| rest.min(wanted))
    }
}

impl ReadAt for CachedVolume {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let len = self.bytes_from(offset, buffer.len());
        if len > 0 {
            let read = self.shared.read(&self.file, &mut buffer[..len], offset);
            read.map_err(ReadError::into_io)?;
        }
        Ok(len)
    }
}

impl VolumeBytes for CachedVolume {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.size)
    }

    fn read_cached_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
        let len = self.bytes_from(offset, buffer.len());
        let is_read = len == 0
            || self
                .shared
                .read_cached(&self.file, &mut buffer[..len], offset);
        Ok(is_read.then_some(len))
    }

    fn prefetch(&self, offset: u64, len: u64) {
        let blocks = self.file.blocks_of(&(offset..offset.saturating_add(len)));
        self.shared.queue_missing(&self.file, blocks);
    }

    fn is_far(&self) -> bool {
        true
    }

    fn version(&self) -> io::Result<Option<VolumeVersion>> {
        Ok(Some(VolumeVersion::new(self.file.key.to_string())))
    }
}
