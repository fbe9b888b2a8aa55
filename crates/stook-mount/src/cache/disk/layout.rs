//! How many shards a budget is divided into, and which budget the files of a directory were laid out for.

use std::path::Path;

use stook_sys::{Context, Directory, Links, read_up_to_at, write_all_at};

use super::shard::bytes_on_disk;
use crate::cache::block::HEADER_BYTES;
use crate::cache::error::CacheError;
use crate::cache::key::BLOCK_BYTES;

/// Shards of a cache of 1.1 GiB or more.
pub(super) const MOST_SHARDS: usize = 256;

/// Blocks of a shard at least, where there are several.
const SHARD_BLOCKS: u64 = 16;

/// What a shard takes beside its blocks: its directory, and the lock file.
const SHARD_OVERHEAD: u64 = 20 << 10;

/// What the directories above take, with their files.
const OVERHEAD: u64 = 64 << 10;

const FILE: &[u8] = b"layout";
const FORM: &str = "stook blocks 1";

/// How a budget is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    budget: u64,
    pub(super) shards: usize,
    /// What the blocks of a shard may take.
    pub(super) shard_bytes: u64,
}

impl Layout {
    /// # Errors
    /// `TooSmall` unless there is room for a few blocks.
    pub(super) fn for_budget(budget: u64) -> Result<Self, CacheError> {
        let block = bytes_on_disk(HEADER_BYTES as u64 + BLOCK_BYTES);
        let least = OVERHEAD + SHARD_OVERHEAD + 2 * block;
        if budget < least {
            return Err(CacheError::TooSmall {
                bytes: budget,
                least,
            });
        }
        let mut shards = MOST_SHARDS;
        while shards > 1
            && (budget - OVERHEAD) / (shards as u64) < SHARD_BLOCKS * block + SHARD_OVERHEAD
        {
            shards /= 2;
        }
        Ok(Self {
            budget,
            shards,
            shard_bytes: (budget - OVERHEAD) / shards as u64 - SHARD_OVERHEAD,
        })
    }

    fn text(&self) -> String {
        format!("{FORM}\nbytes {}\nshards {}\n", self.budget, self.shards)
    }
}

/// Returns the layout on record; None if there is none, or it makes no sense.
///
/// # Errors
/// `Form` if another version wrote it; `Sys` if it cannot be read.
pub(super) fn read(root: &Directory, path: &Path) -> Result<Option<Layout>, CacheError> {
    let Ok(file) = root.open_file(FILE, Links::Refuse) else {
        return Ok(None);
    };
    let mut bytes = [0; 256];
    let len = read_up_to_at(&file, &mut bytes, 0).context("read", path.join("blocks/layout"))?;
    let text = String::from_utf8_lossy(&bytes[..len]);
    let mut lines = text.lines();
    match lines.next() {
        Some(FORM) => {}
        Some(line) if line.starts_with("stook blocks ") => {
            return Err(CacheError::Form {
                path: path.to_owned(),
            });
        }
        _ => return Ok(None),
    }
    let budget = lines.next().and_then(|line| line.strip_prefix("bytes "));
    let layout = budget.and_then(|budget| Layout::for_budget(budget.parse().ok()?).ok());
    Ok(layout.filter(|layout| layout.text() == text))
}

pub(super) fn write(root: &Directory, layout: &Layout) -> std::io::Result<()> {
    let file = root.open_or_create_file(FILE, 0o600)?;
    let text = layout.text();
    stook_sys::set_len(&file, 0)?;
    write_all_at(&file, text.as_bytes(), 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_divided_and_never_exceeded() {
        for (budget, shards) in [
            (700_000, 1),
            (8 << 20, 1),
            (16 << 20, 2),
            (64 << 20, 8),
            (10 << 30, 256),
        ] {
            let layout = Layout::for_budget(budget).unwrap();
            assert_eq!(layout.shards, shards, "{budget}");
            let used = (layout.shard_bytes + SHARD_OVERHEAD) * shards as u64 + OVERHEAD;
            assert!(used <= budget && used > budget - 512);
        }
        let error = Layout::for_budget(500_000).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a cache needs 618752 bytes at least, not 500000"
        );
    }
}
