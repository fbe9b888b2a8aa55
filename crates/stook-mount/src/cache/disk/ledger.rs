//! What the files of a shard take on the disk, kept in its lock file, so that not every write has to look at all of them.
//!
//! ```text
//!   0   "stookshd"              8 bytes; anything else: nobody knows
//!   8   bytes, little-endian    8
//! ```
//! It is cleared before files change and written when they have changed: after a process was killed in between nobody
//! knows, and the next one looks at the files.

use std::fs::File;
use std::io;

use stook_sys::{read_up_to_at, write_all_at};

const MAGIC: &[u8; 8] = b"stookshd";

/// Returns the bytes on record; None if nobody knows.
pub(super) fn read(file: &File) -> io::Result<Option<u64>> {
    let mut record = [0; 16];
    let len = read_up_to_at(file, &mut record, 0)?;
    let (magic, bytes) = record.split_at(8);
    let bytes = bytes.try_into().map(u64::from_le_bytes);
    Ok(bytes.ok().filter(|_| len == record.len() && magic == MAGIC))
}

/// Has nobody know.
pub(super) fn clear(file: &File) -> io::Result<()> {
    write_all_at(file, &[0; 16], 0)
}

pub(super) fn write(file: &File, bytes: u64) -> io::Result<()> {
    let mut record = [0; 16];
    record[..8].copy_from_slice(MAGIC);
    record[8..].copy_from_slice(&bytes.to_le_bytes());
    write_all_at(file, &record, 0)
}
