//! What a volume is, and what its blocks are called: the same bytes have the same key, wherever they are fetched from.
//!
//! ```text
//!   name, size, MD5 of the index              one key for all mirrors, and for all who mount the archive
//!   URL, size, validator, where no MD5 is on record      another state of the file has another key
//! ```

use std::fmt;

use stook_archive::{Archive, ArchiveError, VolumeId};
use stook_md5::md5_many;

/// Bytes of a block; the last one of a volume is shorter.
pub const BLOCK_BYTES: u64 = 256 << 10;

/// What the index says of a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeIdentity {
    /// Its name in a store.
    pub name: String,
    /// Its length in bytes; None if it is not on record.
    pub size: Option<u64>,
    /// Its MD5; None if it is not on record.
    pub md5: Option<[u8; 16]>,
}

impl VolumeIdentity {
    /// Returns what an archive has on record of its volumes, in their order. Volumes that are not on record are found by name
    /// all the same.
    ///
    /// # Errors
    /// `Index` if the archive cannot be read.
    pub fn of_archive(archive: &Archive) -> Result<Vec<Self>, ArchiveError> {
        let mut records = archive.volume_records()?.unwrap_or_default();
        // Of several records of one volume the newest counts.
        records.sort_by_key(|(number, volume)| (volume.id, std::cmp::Reverse(*number)));
        records.dedup_by_key(|(_, volume)| volume.id);
        let identity = |id: VolumeId, size, md5| Self {
            name: id.to_string(),
            size: Some(size),
            md5,
        };
        let volumes = records.into_iter().map(|(_, volume)| volume);
        Ok(volumes
            .map(|volume| identity(volume.id, volume.size, volume.md5))
            .collect())
    }
}

/// The key of a volume: a hash of what it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct VolumeKey(pub(super) [u8; 16]);

impl VolumeKey {
    /// Returns the key of a volume whose MD5 is known.
    pub(super) fn of_content(name: &str, size: u64, md5: &[u8; 16]) -> Self {
        Self::hash(&[b"content", name.as_bytes(), &size.to_le_bytes(), md5])
    }

    /// Returns the key of a state of a file in one store.
    pub(super) fn of_file(store: &str, name: &str, size: u64, validator: &str) -> Self {
        let parts = [store, name, validator].map(str::as_bytes);
        Self::hash(&[b"file", parts[0], parts[1], &size.to_le_bytes(), parts[2]])
    }

    fn hash(parts: &[&[u8]]) -> Self {
        let mut text = Vec::new();
        for part in parts {
            text.extend((part.len() as u64).to_le_bytes());
            text.extend_from_slice(part);
        }
        Self(md5_many(&[&text])[0])
    }
}

impl fmt::Display for VolumeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for VolumeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The key of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct BlockKey {
    pub(super) volume: VolumeKey,
    pub(super) number: u64,
}

impl BlockKey {
    /// Returns a number that is spread evenly over all keys.
    pub(super) fn spread(&self) -> usize {
        let (low, _) = self.volume.0.split_at(8);
        let low = low
            .iter()
            .fold(0_u64, |value, &byte| value << 8 | u64::from(byte));
        // The mix of `splitmix64` (Vigna).
        let mut mixed = low ^ self.number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed >> 40) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_differs_gives_another_key() {
        let keys = [
            VolumeKey::of_content("000000.tar", 10, &[1; 16]),
            VolumeKey::of_content("000001.tar", 10, &[1; 16]),
            VolumeKey::of_content("000000.tar", 11, &[1; 16]),
            VolumeKey::of_content("000000.tar", 10, &[2; 16]),
            VolumeKey::of_file("http://a", "000000.tar", 10, "\"tag\""),
            VolumeKey::of_file("http://b", "000000.tar", 10, "\"tag\""),
            VolumeKey::of_file("http://a", "000000.tar", 10, "\"tah\""),
        ];
        for (place, key) in keys.iter().enumerate() {
            assert_eq!(keys.iter().position(|other| other == key), Some(place));
        }
        assert_eq!(keys[0].to_string().len(), 32);
    }

    #[test]
    fn blocks_are_spread_over_all_shards() {
        let volume = VolumeKey::of_content("000000.tar", 10, &[1; 16]);
        let mut shards = [0_u32; 256];
        for number in 0..25_600 {
            shards[BlockKey { volume, number }.spread() % 256] += 1;
        }
        assert!(
            shards.iter().all(|count| (50..160).contains(count)),
            "{shards:?}"
        );
    }
}
