//! The super block and the slots of the volumes, as the kernel has them.

use std::collections::BTreeMap;

use stook_archive::VolumeId;

use crate::ExportError;

/// Bytes of a block: the alignment of tar.
pub(super) const BLOCK: u64 = BLOCK_LEN as u64;
pub(super) const BLOCK_LEN: usize = 512;
pub(super) const BLOCK_BITS: u32 = 9;

/// Inodes begin at multiples of it.
pub(super) const SLOT: u64 = SLOT_LEN as u64;
pub(super) const SLOT_LEN: usize = 32;

/// Bytes of an inode with times and large numbers.
pub(super) const INODE: u64 = 64;

/// Chunks are at most so long: all of most files.
pub(super) const CHUNK_BITS: u32 = 31 + BLOCK_BITS;

/// More chunks of one file are refused: their list would take 8 MiB.
pub(super) const MOST_CHUNKS: u64 = 1 << 20;

/// Longer names the kernel takes for damage.
pub(super) const LONGEST_NAME: usize = 255;

/// Where the super block is.
pub(super) const SUPER: usize = 1024;
/// Where the slots of the volumes are: behind it.
pub(super) const SLOTS: usize = SUPER + 128;
pub(super) const SLOT_OF_VOLUME: usize = 128;

pub(super) const MAGIC: u32 = 0xe0f5_e1e2;

/// Files have a time of change.
const COMPATIBLE_MTIME: u32 = 2;
/// Files are made of chunks; there are devices besides the image.
const INCOMPATIBLE: u32 = 4 | 8;

/// Requires volumes that 32 bits of blocks reach.
pub(super) fn require_addressable(volumes: &BTreeMap<VolumeId, u64>) -> Result<(), ExportError> {
    if volumes.len() > usize::from(u16::MAX) {
        return Err(ExportError::TooManyVolumes {
            volumes: volumes.len(),
        });
    }
    for (&volume, &bytes) in volumes {
        if bytes / BLOCK >= u64::from(u32::MAX) {
            return Err(ExportError::VolumeTooLong { volume, bytes });
        }
        if bytes % BLOCK != 0 {
            return Err(ExportError::VolumeSize {
                volume,
                found: bytes,
                recorded: None,
            });
        }
    }
    Ok(())
}

/// Returns the bytes before the first directory: whole blocks.
pub(super) fn head_bytes(volumes: usize) -> u64 {
    ((SLOTS + SLOT_OF_VOLUME * volumes) as u64).next_multiple_of(BLOCK)
}

/// What the super block says.
#[derive(Debug)]
pub(super) struct SuperBlock {
    pub(super) inodes: u64,
    /// Blocks of the image.
    pub(super) blocks: u32,
    /// Where inodes begin.
    pub(super) first_inode: u32,
    /// The root's place among them.
    pub(super) root: u16,
}

/// Returns the head of an image without the record before it.
pub(super) fn head(block: &SuperBlock, volumes: &BTreeMap<VolumeId, u64>) -> Vec<u8> {
    let len = usize::try_from(head_bytes(volumes.len())).expect("65,535 slots are 8 MiB");
    let mut head = vec![0; len];
    let mut put = |at: usize, bytes: &[u8]| head[at..at + bytes.len()].copy_from_slice(bytes);
    put(SUPER, &MAGIC.to_le_bytes());
    put(SUPER + 8, &COMPATIBLE_MTIME.to_le_bytes());
    put(SUPER + 12, &BLOCK_BITS.to_le_bytes()[..1]);
    put(SUPER + 14, &block.root.to_le_bytes());
    put(SUPER + 16, &block.inodes.to_le_bytes());
    put(SUPER + 36, &block.blocks.to_le_bytes());
    put(SUPER + 40, &block.first_inode.to_le_bytes());
    put(SUPER + 64, b"stook");
    put(SUPER + 80, &INCOMPATIBLE.to_le_bytes());
    let count = u16::try_from(volumes.len()).expect("they were counted");
    put(SUPER + 86, &count.to_le_bytes());
    let first_slot = u16::try_from(SLOTS / SLOT_OF_VOLUME).expect("it is 9");
    put(SUPER + 88, &first_slot.to_le_bytes());
    for (place, (volume, bytes)) in volumes.iter().enumerate() {
        let slot = SLOTS + SLOT_OF_VOLUME * place;
        put(slot, volume.to_string().as_bytes());
        let blocks = u32::try_from(bytes / BLOCK).expect("its length was looked at");
        put(slot + 64, &blocks.to_le_bytes());
    }
    head
}
