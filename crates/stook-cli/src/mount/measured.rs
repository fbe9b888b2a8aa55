//! The server of a mount as benches and profiles see it: through its control socket.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use stook_bench::{BenchError, Kept, MountServer, ServerFigures};
use stook_mount::{EvictedLayers, MountError, Request, talk as ask};

use super::talk::{directory_of, owner_of};

#[derive(Debug)]
struct Asked {
    process: u32,
    has_disk: bool,
    files: Vec<PathBuf>,
    mountpoint: PathBuf,
    directory: PathBuf,
}

/// Returns the server of the archive that is mounted at a path or above it; `None` if there is none that answers.
pub(crate) fn server_at(path: &Path) -> Option<Arc<dyn MountServer>> {
    let mut server = Asked {
        process: 0,
        has_disk: false,
        files: Vec::new(),
        mountpoint: stook_sys::absolute(path).ok()?,
        directory: directory_of(owner_of(path)),
    };
    let stats = server.ask(&Request::Stats).ok()?;
    server.process = stats["process"].as_u64()?.try_into().ok()?;
    server.has_disk = stats["has_disk_cache"] == true;
    if stats["cache"].is_null() {
        server
            .files
            .extend(stats["archive"].as_str().map(PathBuf::from));
    }
    Some(Arc::new(server))
}

impl Asked {
    fn ask(&self, request: &Request) -> Result<Value, BenchError> {
        ask(&self.directory, &self.mountpoint, request).map_err(|error| refused(&error))
    }
}

fn refused(error: &MountError) -> BenchError {
    BenchError::Refused {
        what: error.to_string(),
        remedy: None,
    }
}

impl MountServer for Asked {
    fn process(&self) -> u32 {
        self.process
    }

    fn has_disk(&self) -> bool {
        self.has_disk
    }

    fn files(&self) -> Vec<PathBuf> {
        self.files.clone()
    }

    fn evict(&self, kept: Kept) -> Result<(), BenchError> {
        let layers = match kept {
            Kept::InMemory => EvictedLayers::Memory,
            Kept::Everywhere => EvictedLayers::All,
        };
        self.ask(&Request::Sync)?;
        self.ask(&Request::Evict { layers })?;
        Ok(())
    }

    fn figures(&self) -> Result<ServerFigures, BenchError> {
        let stats = self.ask(&Request::Stats)?;
        let timers = self.ask(&Request::Timers)?;
        let operations = stats["operations"].as_array().into_iter().flatten();
        let latencies = operations.filter_map(|operation| operation["total_ns"].as_u64());
        let cache = |name: &str| stats["cache"][name].as_u64().unwrap_or(0);
        let waiting = timers["callbacks"]["waiting_for_fetch_ns"].as_u64();
        Ok(ServerFigures {
            in_callbacks: Duration::from_nanos(latencies.sum()),
            waiting_for_fetch: Duration::from_nanos(waiting.unwrap_or(0)),
            store_bytes: cache("store_bytes"),
            disk_bytes: cache("disk_bytes"),
            memory_bytes: cache("memory_held_bytes"),
        })
    }
}
