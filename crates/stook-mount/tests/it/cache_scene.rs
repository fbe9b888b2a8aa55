//! Volumes with known bytes, behind servers of all kinds, and caches in front of them.

use std::io::Write;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use stook_archive::{VolumeBytes, VolumeStore};
use stook_md5::md5_many;
use stook_mount::{CacheOptions, CachedVolumes, VolumeIdentity};
use stook_store::{DirectoryStore, HttpStore, Settings, Store};
use stook_testkit::Random;
use stook_testkit::servers::{Canned, Nginx, Request};

/// Bytes of a block.
pub(crate) const BLOCK: usize = 256 << 10;
pub(crate) const NAME: &str = "000000.tar";

/// One volume, and what the index says of it.
#[derive(Clone)]
pub(crate) struct Sample {
    pub(crate) bytes: Arc<Vec<u8>>,
    pub(crate) record: VolumeIdentity,
}

impl Sample {
    pub(crate) fn new(len: usize) -> Self {
        Self::named(NAME, len)
    }

    pub(crate) fn named(name: &str, len: usize) -> Self {
        let bytes = Random::new(len as u64).bytes(len);
        let record = VolumeIdentity {
            name: name.to_owned(),
            size: Some(len as u64),
            md5: Some(md5_many(&[&bytes])[0]),
        };
        let bytes = Arc::new(bytes);
        Self { bytes, record }
    }

    pub(crate) fn unidentified(&self) -> Vec<VolumeIdentity> {
        let md5 = None;
        vec![VolumeIdentity {
            md5,
            ..self.record.clone()
        }]
    }

    pub(crate) fn write_to(&self, folder: &Path) {
        std::fs::write(folder.join(&self.record.name), &*self.bytes).unwrap();
    }

    /// A folder that has the volume, and nothing else.
    pub(crate) fn folder(&self) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        self.write_to(folder.path());
        folder
    }

    pub(crate) fn open(
        &self,
        stores: Vec<Arc<dyn Store>>,
        options: &CacheOptions,
    ) -> (CachedVolumes, Arc<dyn VolumeBytes>) {
        let cache = CachedVolumes::new(stores, vec![self.record.clone()], options).unwrap();
        let volume = cache.open(&self.record.name).unwrap();
        (cache, volume)
    }
}

/// Options with nothing on disk, nothing fetched by other threads than the reader's, and little patience.
pub(crate) fn options() -> CacheOptions {
    CacheOptions {
        read_ahead_bytes: 0,
        fetchers: 0,
        deadline: Duration::from_secs(20),
        ..CacheOptions::default()
    }
}

pub(crate) fn with_disk(folder: &Path) -> CacheOptions {
    CacheOptions {
        directory: Some(folder.join("cache")),
        disk_bytes: 256 << 20,
        ..options()
    }
}

pub(crate) fn read(volume: &dyn VolumeBytes, offset: usize, len: usize) -> Vec<u8> {
    try_read(volume, offset, len).unwrap()
}

pub(crate) fn try_read(
    volume: &dyn VolumeBytes,
    offset: usize,
    len: usize,
) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    volume.append_at(&mut bytes, len, offset as u64)?;
    Ok(bytes)
}

pub(crate) fn directory(path: impl Into<PathBuf>) -> Arc<dyn Store> {
    Arc::new(DirectoryStore::new(path.into()))
}

/// A store at a URL that gives up on silence after a second.
pub(crate) fn http(url: &str) -> Arc<dyn Store> {
    let mut settings = Settings::default();
    settings.network.idle_timeout = Duration::from_secs(1);
    Arc::new(HttpStore::new(url, &settings).unwrap())
}

pub(crate) fn nginx(samples: &[&Sample]) -> Option<Nginx> {
    let Some(nginx) = Nginx::start("").unwrap() else {
        stook_testkit::skip!("nginx is not installed");
        return None;
    };
    for sample in samples {
        sample.write_to(&nginx.root());
    }
    Some(nginx)
}

/// Answers as a web server would that has one file.
pub(crate) fn serve(request: &Request, stream: &mut TcpStream, bytes: &[u8], tag: &str) {
    let total = bytes.len();
    let (status, extra, range) = match request.header("range").and_then(parse_range) {
        Some((first, last)) => {
            let range = first..(last + 1).min(total);
            let text = format!("Content-Range: bytes {first}-{}/{total}\r\n", range.end - 1);
            ("206 Partial Content", text, range)
        }
        None => ("200 OK", String::new(), 0..total),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\n{extra}ETag: {tag}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        range.len()
    );
    // The client may be gone.
    let _ = stream.write_all(head.as_bytes());
    if request.method != "HEAD" {
        let _ = stream.write_all(&bytes[range]);
    }
}

pub(crate) fn parse_range(text: &str) -> Option<(usize, usize)> {
    let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    Some((first.parse().ok()?, last.parse().ok()?))
}

/// A server that keeps a list of the ranges that it was asked for.
pub(crate) struct Recorded {
    pub(crate) server: Canned,
    asked: Arc<Mutex<Vec<(usize, usize)>>>,
}

impl Recorded {
    /// Starts one that serves after a while.
    pub(crate) fn start(sample: &Sample, pause: Duration) -> Self {
        let asked = Arc::<Mutex<Vec<_>>>::default();
        let (record, bytes) = (Arc::clone(&asked), Arc::clone(&sample.bytes));
        let server = Canned::start(move |request, stream| {
            if let Some(range) = request.header("range").and_then(parse_range) {
                record.lock().unwrap().push(range);
                std::thread::sleep(pause);
            }
            serve(request, stream, &bytes, "\"one\"");
        });
        Self { server, asked }
    }

    pub(crate) fn store(&self) -> Arc<dyn Store> {
        http(&self.server.url())
    }

    /// Returns the ranges so far: the first block of each, and the block behind the last.
    pub(crate) fn asked(&self) -> Vec<(usize, usize)> {
        let asked = self.asked.lock().unwrap();
        let blocks = asked
            .iter()
            .map(|(first, last)| (first / BLOCK, (last + 1).div_ceil(BLOCK)));
        blocks.collect()
    }
}
