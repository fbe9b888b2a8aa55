//! Volumes in a store, as the readers of an archive see them.
//!
//! Each read is a request with a round trip, so small ones fetch a little more, which is kept, and what will be read soon
//! is fetched by a few threads meanwhile. What may be repeated is, for a minute since the store has answered last: a network
//! comes back.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use stook_store::{Advice, Store, StoreError, StoredFile};
use stook_sys::SysError;
use stook_volume::ReadAt;

use super::pieces::{Found, Pieces, Wanted};
use crate::mutex::lock;
use crate::read::{VolumeBytes, VolumeStore, VolumeVersion};

/// Bytes that are fetched at least: a header, and most files as a whole.
const LEAST_BYTES: u64 = 64 << 10;

/// Threads that fetch what will be read soon.
const FETCHERS: usize = 4;

/// How long a request is repeated that fails and may succeed.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long to wait before that; the last one again and again. None is longer than an interruption may take.
const PAUSES: [Duration; 3] = [
    Duration::from_millis(100),
    Duration::from_millis(400),
    Duration::from_millis(900),
];

/// Bytes that were fetched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FetchedBytes {
    /// For the index.
    pub index: u64,
    /// Of volumes.
    pub volumes: u64,
    /// Requests for bytes of volumes.
    pub requests: u64,
}

/// The volumes in a store.
pub struct StoredVolumes {
    shared: Arc<Shared>,
    index_bytes: u64,
    fetchers: OnceLock<Mutex<Vec<JoinHandle<()>>>>,
}

struct Shared {
    store: Arc<dyn Store>,
    pieces: Pieces,
    /// The volumes that were opened; their places are their numbers.
    opened: Mutex<Vec<StoredFile>>,
    bytes: AtomicU64,
    requests: AtomicU64,
    /// When the store was last out of reach for the first time; None since it has answered.
    failing_since: Mutex<Option<Instant>>,
}

impl fmt::Debug for StoredVolumes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredVolumes")
            .field("store", &self.shared.store)
            .finish_non_exhaustive()
    }
}

impl StoredVolumes {
    /// Returns the volumes of a store that has ranges.
    pub fn new(store: Arc<dyn Store>, index_bytes: u64) -> Self {
        Self {
            shared: Arc::new(Shared {
                store,
                pieces: Pieces::default(),
                opened: Mutex::default(),
                bytes: AtomicU64::new(0),
                requests: AtomicU64::new(0),
                failing_since: Mutex::default(),
            }),
            index_bytes,
            fetchers: OnceLock::new(),
        }
    }

    /// Returns what was fetched so far.
    pub fn fetched(&self) -> FetchedBytes {
        FetchedBytes {
            index: self.index_bytes,
            volumes: self.shared.bytes.load(Ordering::Relaxed),
            requests: self.shared.requests.load(Ordering::Relaxed),
        }
    }

    /// Begins the threads that fetch, when the first volume is opened.
    fn begin_fetching(&self) {
        self.fetchers.get_or_init(|| {
            let begin = |_| {
                let shared = Arc::clone(&self.shared);
                let fetcher = thread::Builder::new().name("stook-fetch".to_owned());
                // Without threads nothing is fetched ahead.
                fetcher.spawn(move || shared.fetch_what_is_wanted()).ok()
            };
            Mutex::new((0..FETCHERS).filter_map(begin).collect())
        });
    }
}

impl Drop for StoredVolumes {
    fn drop(&mut self) {
        self.shared.pieces.close();
        if let Some(fetchers) = self.fetchers.take() {
            for fetcher in stook_sys::into_inner(fetchers) {
                // One that panicked has said so.
                let _ = fetcher.join();
            }
        }
    }
}

impl VolumeStore for StoredVolumes {
    fn open(&self, name: &str) -> Result<Arc<dyn VolumeBytes>, SysError> {
        let shared = &self.shared;
        let found = shared.again(|| shared.store.stat(name));
        let failed = |source: io::Error| SysError {
            operation: "open",
            path: Path::new(shared.store.name()).join(name),
            source,
        };
        let found = found.map_err(|error| failed(io::Error::other(error)))?;
        let file = found.ok_or_else(|| failed(stook_sys::not_found()))?;
        self.begin_fetching();
        let mut opened = lock(&shared.opened);
        let number = opened.iter().position(|known| *known == file);
        let number = number.unwrap_or_else(|| {
            opened.push(file.clone());
            opened.len() - 1
        });
        Ok(Arc::new(StoredVolume {
            number: number as u64,
            file,
            shared: Arc::clone(shared),
        }))
    }
}

impl Shared {
    fn fetch_what_is_wanted(&self) {
        while let Some(wanted) = self.pieces.take() {
            let number = usize::try_from(wanted.volume).unwrap_or(usize::MAX);
            let file = lock(&self.opened).get(number).cloned();
            // The reader that needs it asks again, and gets the error.
            let bytes = file.and_then(|file| self.fetch(&file, wanted.range.clone()).ok());
            self.pieces.arrived(&wanted, bytes);
        }
    }

    fn fetch(&self, file: &StoredFile, range: Range<u64>) -> io::Result<Vec<u8>> {
        let len = usize::try_from(range.end - range.start).map_err(io::Error::other)?;
        let mut bytes = vec![0; len];
        let read = self.fetch_into(file, range.start, &mut bytes)?;
        bytes.truncate(read);
        Ok(bytes)
    }

    fn fetch_into(&self, file: &StoredFile, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.again(|| {
            self.requests.fetch_add(1, Ordering::Relaxed);
            self.store.read_range(file, offset, buffer)
        });
        let read = read.map_err(io::Error::other)?;
        self.bytes.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }

    /// Asks a store again as long as that may help: all requests together, from the first that fails.
    fn again<T>(&self, mut ask: impl FnMut() -> Result<T, StoreError>) -> Result<T, StoreError> {
        let mut pauses = PAUSES.into_iter();
        let mut pause = PAUSES[0];
        loop {
            match ask() {
                Err(error) if error.advice() == Advice::Retry && self.is_patient() => {
                    pause = pauses.next().unwrap_or(pause);
                    thread::sleep(pause);
                }
                Ok(answer) => {
                    *lock(&self.failing_since) = None;
                    return Ok(answer);
                }
                other => return other,
            }
        }
    }

    /// Returns false once the store has not answered for too long.
    fn is_patient(&self) -> bool {
        let since = *lock(&self.failing_since).get_or_insert_with(Instant::now);
        since.elapsed() < PATIENCE
    }
}

/// A volume in a store.
struct StoredVolume {
    number: u64,
    file: StoredFile,
    shared: Arc<Shared>,
}

impl fmt::Debug for StoredVolume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StoredVolume").field(&self.file).finish()
    }
}

impl ReadAt for StoredVolume {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let rest = self.file.size.saturating_sub(offset);
        let len = usize::try_from(rest).map_or(buffer.len(), |rest| rest.min(buffer.len()));
        let buffer = &mut buffer[..len];
        if buffer.is_empty() {
            return Ok(0);
        }
        let free = match self.shared.pieces.read(self.number, offset, buffer) {
            Found::Copied(count) => return Ok(count),
            Found::Nothing(free) => free,
        };
        // Not what is on its way already.
        let len = free.min(rest).min((len as u64).max(LEAST_BYTES));
        if len <= buffer.len() as u64 {
            let len = usize::try_from(len).map_err(io::Error::other)?;
            let fetched = self
                .shared
                .fetch_into(&self.file, offset, &mut buffer[..len]);
            return fetched;
        }
        let mut bytes = self.shared.fetch(&self.file, offset..offset + len)?;
        let count = bytes.len().min(buffer.len());
        buffer[..count].copy_from_slice(&bytes[..count]);
        let more = bytes.split_off(count);
        self.shared
            .pieces
            .keep(self.number, offset + count as u64, more);
        Ok(count)
    }
}

impl VolumeBytes for StoredVolume {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.size)
    }

    fn prefetch(&self, offset: u64, len: u64) {
        let end = offset.saturating_add(len).min(self.file.size);
        if offset < end {
            self.shared.pieces.want(Wanted {
                volume: self.number,
                range: offset..end,
            });
        }
    }

    fn is_far(&self) -> bool {
        true
    }

    fn version(&self) -> io::Result<Option<VolumeVersion>> {
        let version = self.file.version.as_ref();
        Ok(version.map(|version| VolumeVersion::new(version.0.as_str())))
    }
}
