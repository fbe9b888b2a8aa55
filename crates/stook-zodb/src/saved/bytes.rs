//! The bytes of a saved index.

use std::io::{self, Write};

use crate::id::Oid;
use crate::index::Index;

/// Writes an index that covers the file up to `position`.
///
/// # Errors
/// Those of the writer.
///
/// # Cost
/// Memory for the objects of one prefix: 512 KiB at most.
pub fn encode_index(index: &Index, position: u64, out: &mut impl Write) -> io::Result<()> {
    write_position(position, out)?;
    let mut bucket = Bucket::default();
    for (oid, position) in index.iter() {
        if bucket.prefix != Some(oid.0 >> 16) {
            bucket.write(out)?;
            bucket.prefix = Some(oid.0 >> 16);
        }
        bucket.add(oid, position);
    }
    bucket.write(out)?;
    out.write_all(&[0x80, 3, b'N', b'.'])
}

/// The objects whose numbers begin with the same 6 bytes.
#[derive(Default)]
struct Bucket {
    prefix: Option<u64>,
    suffixes: Vec<u8>,
    positions: Vec<u8>,
}

impl Bucket {
    fn add(&mut self, oid: Oid, position: u64) {
        self.suffixes.extend_from_slice(&oid.0.to_be_bytes()[6..]);
        self.positions
            .extend_from_slice(&position.to_be_bytes()[2..]);
    }

    fn write(&mut self, out: &mut impl Write) -> io::Result<()> {
        let Some(prefix) = self.prefix else {
            return Ok(());
        };
        out.write_all(&[0x80, 3, b'C', 6])?;
        out.write_all(&prefix.to_be_bytes()[2..])?;
        let len = self.suffixes.len() + self.positions.len();
        match u8::try_from(len) {
            Ok(len) => out.write_all(&[b'C', len])?,
            Err(_) => {
                let len = u32::try_from(len).expect("65,536 objects of 8 bytes at most");
                out.write_all(b"B")?;
                out.write_all(&len.to_le_bytes())?;
            }
        }
        out.write_all(&self.suffixes)?;
        out.write_all(&self.positions)?;
        self.suffixes.clear();
        self.positions.clear();
        out.write_all(&[0x86, b'.'])
    }
}

fn write_position(position: u64, out: &mut impl Write) -> io::Result<()> {
    out.write_all(&[0x80, 3])?;
    let bytes = position.to_le_bytes();
    match position {
        0..=0xff => out.write_all(&[b'K', bytes[0]])?,
        0x100..=0xffff => out.write_all(&[b'M', bytes[0], bytes[1]])?,
        0x1_0000..=0x7fff_ffff => {
            out.write_all(b"J")?;
            out.write_all(&bytes[..4])?;
        }
        _ => {
            // One byte more where the highest bit is set, which would be a sign.
            let bits = 64 - position.leading_zeros() as usize;
            let len = bits / 8 + 1;
            let mut long = [0; 9];
            long[..8].copy_from_slice(&bytes);
            out.write_all(&[0x8a, u8::try_from(len).expect("9 at most")])?;
            out.write_all(&long[..len])?;
        }
    }
    out.write_all(b".")
}
