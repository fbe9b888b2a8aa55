//! A block in memory, and its form as a file of the cache.
//!
//! ```text
//!   0   "stookblk"            8 bytes
//!   8   1, little-endian      4   form
//!   12  length of the content 4
//!   16  key of the volume    16
//!   32  number of the block   8
//!   40  store, validator     16   where the content came from, as hashes
//!   56  CRC of the content    4
//!   60  CRC of bytes 0..60    4
//!   64  content
//! ```
//! A file that has another key than its name, or another length or CRC than its content, is not used: it is damaged, of
//! another format, or somebody put it there.

use std::ops::Deref;
use std::sync::Arc;

use stook_md5::md5_many;
use stook_store::StoredFile;
use stook_volume::crc32;

use super::key::BlockKey;

pub(super) const HEADER_BYTES: usize = 64;

const MAGIC: &[u8; 8] = b"stookblk";
const FORM: u32 = 1;

/// The file in a store that a block came from: two files with one store and different validators are two states of a volume,
/// and are never mixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) store: u64,
    pub(super) validator: u64,
}

impl Origin {
    /// Returns the hash of a text, which is the same in every version of stook.
    pub(super) fn hash(text: &str) -> u64 {
        let [md5] = md5_many(&[text.as_bytes()])[..] else {
            return 0;
        };
        md5.iter()
            .take(8)
            .fold(0, |hash, &byte| hash << 8 | u64::from(byte))
    }

    /// Returns the hash of the validator of a file.
    pub(super) fn validator_of(file: &StoredFile) -> u64 {
        Self::hash(file.version.as_ref().map_or("", |version| &version.0))
    }
}

/// The content of a block, shared by those who read it.
#[derive(Debug, Clone)]
pub(super) struct Block {
    bytes: Arc<Vec<u8>>,
    start: usize,
    origin: Origin,
}

impl Block {
    pub(super) fn new(bytes: Vec<u8>, origin: Origin) -> Self {
        Self {
            bytes: Arc::new(bytes),
            start: 0,
            origin,
        }
    }

    pub(super) fn origin(&self) -> Origin {
        self.origin
    }

    /// Returns the block that a file holds; None unless it is this one, of this length.
    pub(super) fn from_file(file: Vec<u8>, key: &BlockKey, len: usize) -> Option<Self> {
        let (header, content) = file.split_at_checked(HEADER_BYTES)?;
        let number = |at: usize| {
            let bytes = header[at..at + 8].try_into();
            bytes.map_or(0, u64::from_le_bytes)
        };
        let origin = Origin {
            store: number(40),
            validator: number(48),
        };
        let is_it = content.len() == len && *header == header_of(key, origin, content);
        is_it.then(|| Self {
            bytes: Arc::new(file),
            start: HEADER_BYTES,
            origin,
        })
    }

    /// Returns what stands in front of the content in a file.
    pub(super) fn header(&self, key: &BlockKey) -> [u8; HEADER_BYTES] {
        header_of(key, self.origin, self)
    }
}

fn header_of(key: &BlockKey, origin: Origin, content: &[u8]) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    let len = u32::try_from(content.len()).unwrap_or(u32::MAX);
    header[..8].copy_from_slice(MAGIC);
    header[8..12].copy_from_slice(&FORM.to_le_bytes());
    header[12..16].copy_from_slice(&len.to_le_bytes());
    header[16..32].copy_from_slice(&key.volume.0);
    header[32..40].copy_from_slice(&key.number.to_le_bytes());
    header[40..48].copy_from_slice(&origin.store.to_le_bytes());
    header[48..56].copy_from_slice(&origin.validator.to_le_bytes());
    header[56..60].copy_from_slice(&crc32(&[content]).to_le_bytes());
    let crc = crc32(&[&header[..60]]);
    header[60..].copy_from_slice(&crc.to_le_bytes());
    header
}

impl Deref for Block {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::key::VolumeKey;

    #[test]
    fn a_file_is_a_block_only_under_its_key_and_unchanged() {
        let volume = VolumeKey([7; 16]);
        let key = BlockKey { volume, number: 3 };
        let content = b"some bytes".to_vec();
        let origin = Origin {
            store: Origin::hash("http://host/path"),
            validator: Origin::hash("\"tag\""),
        };
        let mut file = Block::new(content.clone(), origin).header(&key).to_vec();
        file.extend_from_slice(&content);
        let block = Block::from_file(file.clone(), &key, content.len()).unwrap();
        assert_eq!((&*block, block.origin()), (&*content, origin));
        let other = BlockKey { volume, number: 4 };
        assert!(Block::from_file(file.clone(), &other, content.len()).is_none());
        assert!(Block::from_file(file.clone(), &key, content.len() - 1).is_none());
        for at in 0..file.len() {
            let mut flipped = file.clone();
            flipped[at] ^= 0x10;
            assert!(
                Block::from_file(flipped, &key, content.len()).is_none(),
                "{at}"
            );
            assert!(Block::from_file(file[..at].to_vec(), &key, content.len()).is_none());
        }
    }
}
