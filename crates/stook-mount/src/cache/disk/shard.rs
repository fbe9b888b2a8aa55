//! One part of the cache on disk: who writes to it has its lock, and makes room before anything is written.
//!
//! ```text
//!   3f/lock                    locked by who writes; what the files take (ledger.rs)
//!   3f/partial                 the block that is being written; what a killed process left is removed by the next one
//!   3f/KEY-NUMBER              blocks
//! ```
//! Readers take no lock: a block appears by a rename, and one that is removed stays readable for those who have it open.
//! Only the writer makes a partial, under the lock, in room that it has made before: so the files never take more than
//! their part of the budget, wherever a process is killed.

use std::fs::File;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use stook_sys::{Directory, FileKind, Links, Metadata, NameBuffer, Timestamp, try_lock};

use super::ledger;
use crate::cache::block::Block;
use crate::cache::key::BlockKey;

const PARTIAL: &[u8] = b"partial";
const LOCK: &[u8] = b"lock";

/// How long a writer waits for another one: as long as some writes take on a busy machine. A process that is stopped keeps
/// its lock.
const PATIENCE: Duration = Duration::from_millis(500);

/// What a file takes at least is a multiple of this; and a name in a directory.
const UNIT: u64 = 4096;
const NAME_BYTES: u64 = 128;

/// What was done to write a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    /// It is there.
    Done,
    /// What is not ours takes all the room.
    NoRoom,
}

/// Returns what a file of this length takes on the disk.
pub(super) fn bytes_on_disk(len: u64) -> u64 {
    len.next_multiple_of(UNIT) + NAME_BYTES
}

/// A locked shard.
#[derive(Debug)]
pub(super) struct Shard<'a> {
    root: &'a Directory,
    name: String,
    lock: File,
    /// Bytes of all files.
    bytes: u64,
    evicted: u64,
}

/// A file found in a shard.
struct FoundFile {
    name: Vec<u8>,
    used: Timestamp,
    bytes: u64,
}

impl<'a> Shard<'a> {
    /// Locks a shard and finds out what it holds; None if somebody else keeps it locked.
    pub(super) fn lock(root: &'a Directory, name: String) -> io::Result<Option<Self>> {
        let path = path(&name, LOCK);
        let lock = match root.open_or_create_file(&path, 0o600) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make_directory(root, &name)?;
                root.open_or_create_file(&path, 0o600)?
            }
            opened => opened?,
        };
        let end = Instant::now() + PATIENCE;
        while !try_lock(&lock)? {
            if Instant::now() > end {
                return Ok(None);
            }
            thread::sleep(Duration::from_millis(1));
        }
        let mut shard = Self {
            root,
            name,
            bytes: 0,
            evicted: 0,
            lock,
        };
        let known = ledger::read(&shard.lock)?;
        ledger::clear(&shard.lock)?;
        shard.remove(PARTIAL)?;
        shard.bytes = match known {
            Some(bytes) => bytes,
            None => shard.files()?.iter().map(|file| file.bytes).sum(),
        };
        Ok(Some(shard))
    }

    /// Writes a block, after it has made room for it in `budget` bytes.
    pub(super) fn write(
        &mut self,
        key: &BlockKey,
        block: &Block,
        budget: u64,
    ) -> io::Result<Written> {
        let name = block_name(key);
        let header = block.header(key);
        let needed = bytes_on_disk((header.len() + block.len()) as u64);
        if let Ok(old) = self.root.metadata(&path(&self.name, &name), Links::Refuse) {
            self.remove(&name)?;
            self.bytes = self.bytes.saturating_sub(taken_by(&old));
        }
        if self.bytes + needed > budget {
            // A little more than is needed, so that not every write has to look at all files.
            self.evict_to((budget - budget / 16).saturating_sub(needed))?;
            if self.bytes + needed > budget {
                return Ok(Written::NoRoom);
            }
        }
        let partial = path(&self.name, PARTIAL);
        let written = self.root.create_file(&partial, 0o600).and_then(|file| {
            stook_sys::write_all_at(&file, &header, 0)?;
            stook_sys::write_all_at(&file, block, header.len() as u64)?;
            self.root.rename(&partial, &path(&self.name, &name))
        });
        if let Err(error) = written {
            self.remove(PARTIAL)?;
            return Err(error);
        }
        self.bytes += needed;
        Ok(Written::Done)
    }

    /// Removes the blocks that were used longest ago until all files take no more than this.
    pub(super) fn evict_to(&mut self, bytes: u64) -> io::Result<()> {
        let mut files = self.files()?;
        // What is on record may be wrong: somebody may have removed files.
        self.bytes = files.iter().map(|file| file.bytes).sum();
        files.retain(|file| is_block_name(&file.name));
        files.sort_by_key(|file| file.used);
        for file in files {
            if self.bytes <= bytes {
                break;
            }
            self.remove(&file.name)?;
            self.bytes = self.bytes.saturating_sub(file.bytes);
            self.evicted += 1;
        }
        Ok(())
    }

    /// Removes so large a part of the blocks: one of `parts`.
    pub(super) fn evict_share(&mut self, parts: u64) -> io::Result<()> {
        self.evict_to(self.bytes - self.bytes / parts)
    }

    /// Returns how many blocks were removed.
    pub(super) fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Records what the files take, and gives the lock back.
    pub(super) fn close(self) -> io::Result<()> {
        ledger::write(&self.lock, self.bytes)
    }

    fn remove(&self, name: &[u8]) -> io::Result<()> {
        match self.root.remove(&path(&self.name, name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    fn files(&self) -> io::Result<Vec<FoundFile>> {
        let directory = self.root.open_beneath(self.name.as_bytes())?;
        let mut names = Vec::new();
        directory.names(&mut NameBuffer::default(), |found| {
            names.push(found.name.to_vec());
        })?;
        let look = |name: Vec<u8>| {
            // It may be gone again.
            let found = directory.metadata(&name, Links::Refuse).ok()?;
            let (used, bytes) = (found.mtime, taken_by(&found));
            (found.kind != FileKind::Directory).then_some(FoundFile { name, used, bytes })
        };
        Ok(names.into_iter().filter_map(look).collect())
    }
}

/// Makes the directory of a shard; one that is there already is fine.
fn make_directory(root: &Directory, name: &str) -> io::Result<()> {
    match root.create_directory(name.as_bytes(), super::private::MODE) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

fn taken_by(found: &Metadata) -> u64 {
    bytes_on_disk(found.size).max(found.blocks.saturating_mul(512) + NAME_BYTES)
}

/// Returns the path of a name in a shard, from the root of the blocks on.
pub(super) fn path(shard: &str, name: &[u8]) -> Vec<u8> {
    [shard.as_bytes(), b"/", name].concat()
}

pub(super) fn block_name(key: &BlockKey) -> Vec<u8> {
    format!("{}-{:x}", key.volume, key.number).into_bytes()
}

fn is_block_name(name: &[u8]) -> bool {
    let is_hexadecimal = |bytes: &[u8]| {
        let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        !bytes.is_empty() && bytes.iter().all(is_digit)
    };
    let Some((volume, number)) = name.split_at_checked(32) else {
        return false;
    };
    let number = number.strip_prefix(b"-");
    is_hexadecimal(volume) && number.is_some_and(is_hexadecimal)
}
