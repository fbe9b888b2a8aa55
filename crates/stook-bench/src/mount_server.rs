//! The server of a mount: what it does, and how it is made to forget what it keeps.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::error::BenchError;

/// The server of a mount, over its control socket.
pub trait MountServer: fmt::Debug + Send + Sync {
    /// Returns the number of its process.
    fn process(&self) -> u32;

    /// Returns whether it keeps blocks of a store on disk.
    fn has_disk(&self) -> bool;

    /// Returns the files on this machine that it reads.
    fn files(&self) -> Vec<PathBuf>;

    /// Drops what the server keeps of volumes, once it has written what it is at.
    ///
    /// # Errors
    /// If it cannot be asked.
    fn evict(&self, kept: Kept) -> Result<(), BenchError>;

    /// Returns what it has done since it was started.
    ///
    /// # Errors
    /// If it cannot be asked.
    fn figures(&self) -> Result<ServerFigures, BenchError>;
}

/// What a server keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// What is in its memory.
    InMemory,
    /// What is on disk, too.
    Everywhere,
}

/// What a server has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ServerFigures {
    /// From the arrival of each request to its answer, all together.
    pub in_callbacks: Duration,
    /// What of it was spent waiting for bytes from a store.
    pub waiting_for_fetch: Duration,
    /// Bytes that came from a store.
    pub store_bytes: u64,
    /// Bytes that came from its disk.
    pub disk_bytes: u64,
    /// Bytes of blocks in its memory now.
    pub memory_bytes: u64,
}
