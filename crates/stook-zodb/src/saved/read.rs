//! Reads a saved index, and believes nothing.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use stook_sys::{Context, open_file};

use crate::error::{SavedIndexError, ZodbError};
use crate::format::FIRST_TRANSACTION;
use crate::id::Oid;
use crate::index::{GREATEST_POSITION, Index};

/// Most bytes of the objects of one prefix.
const LARGEST_BUCKET: usize = 65_536 * 8;

/// An index as it was saved.
#[derive(Debug, Clone)]
pub struct SavedIndex {
    /// The objects.
    pub index: Index,
    /// End of the last transaction that it has.
    pub position: u64,
}

/// Reads the file of an index.
///
/// # Errors
/// [`ZodbError::Sys`] with "open" or "read"; [`ZodbError::SavedIndex`] for anything that is not as ZODB 5 and 6 write it.
///
/// # Cost
/// 8 bytes an object, and 512 KiB.
pub fn read_index(path: &Path) -> Result<SavedIndex, ZodbError> {
    decode_buckets(BucketReader::open(path)?)
}

/// Decodes the bytes of a saved index; the path is for errors.
///
/// # Errors
/// As [`read_index`].
pub fn decode_index(bytes: &[u8], path: &Path) -> Result<SavedIndex, ZodbError> {
    decode_buckets(BucketReader::new(bytes, path)?)
}

fn decode_buckets(mut buckets: BucketReader<impl Read>) -> Result<SavedIndex, ZodbError> {
    let mut index = Index::new();
    while let Some(objects) = buckets.next()? {
        for (oid, position) in objects {
            index.insert(oid, position);
        }
    }
    let position = buckets.position();
    Ok(SavedIndex { index, position })
}

/// Goes through a saved index, one prefix after the other.
pub(crate) struct BucketReader<R> {
    input: R,
    path: PathBuf,
    /// Bytes read so far.
    offset: u64,
    position: u64,
    last_prefix: Option<u64>,
}

impl BucketReader<BufReader<File>> {
    pub(crate) fn open(path: &Path) -> Result<Self, ZodbError> {
        Self::new(BufReader::with_capacity(64 << 10, open_file(path)?), path)
    }
}

impl<R: Read> BucketReader<R> {
    fn new(input: R, path: &Path) -> Result<Self, ZodbError> {
        let mut reader = Self {
            input,
            path: path.to_owned(),
            offset: 0,
            position: 0,
            last_prefix: None,
        };
        reader.position = reader.read_position()?;
        Ok(reader)
    }

    /// Returns the end of the last transaction that the index has.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Returns the objects of the next prefix, in order; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Vec<(Oid, u64)>>, ZodbError> {
        let start = self.offset;
        self.expect_protocol()?;
        match self.byte()? {
            b'N' => {
                self.expect(b'.')?;
                return Ok(None);
            }
            b'C' | b'U' => self.expect(6)?,
            _ => return Err(self.unexpected()),
        }
        let mut bytes = [0; 8];
        self.read(&mut bytes[2..])?;
        let prefix = u64::from_be_bytes(bytes);
        if self
            .last_prefix
            .replace(prefix)
            .is_some_and(|last| last >= prefix)
        {
            return Err(self.wrong(SavedIndexError::Order { offset: start }));
        }
        let bucket = self.read_bucket()?;
        self.expect(0x86)?;
        self.expect(b'.')?;
        self.objects(prefix, &bucket, start).map(Some)
    }

    fn read_bucket(&mut self) -> Result<Vec<u8>, ZodbError> {
        let len = match self.byte()? {
            b'C' | b'U' => usize::from(self.byte()?),
            b'B' | b'T' => {
                let mut bytes = [0; 4];
                self.read(&mut bytes)?;
                u32::from_le_bytes(bytes) as usize
            }
            _ => return Err(self.unexpected()),
        };
        if len > LARGEST_BUCKET || len % 8 != 0 {
            return Err(self.unexpected());
        }
        let mut bucket = vec![0; len];
        self.read(&mut bucket)?;
        Ok(bucket)
    }

    fn objects(
        &self,
        prefix: u64,
        bucket: &[u8],
        offset: u64,
    ) -> Result<Vec<(Oid, u64)>, ZodbError> {
        let (suffixes, positions) = bucket.split_at(bucket.len() / 4);
        let mut last = None;
        let mut objects = Vec::with_capacity(bucket.len() / 8);
        for (suffix, position) in suffixes.chunks_exact(2).zip(positions.chunks_exact(6)) {
            let suffix = u16::from_be_bytes([suffix[0], suffix[1]]);
            if last.replace(suffix).is_some_and(|last| last >= suffix) {
                return Err(self.wrong(SavedIndexError::Order { offset }));
            }
            let position = position
                .iter()
                .fold(0, |number, byte| number << 8 | u64::from(*byte));
            if !(FIRST_TRANSACTION..self.position).contains(&position) {
                return Err(self.wrong(SavedIndexError::Position { position }));
            }
            objects.push((Oid(prefix << 16 | u64::from(suffix)), position));
        }
        Ok(objects)
    }

    fn read_position(&mut self) -> Result<u64, ZodbError> {
        self.expect_protocol()?;
        let len = match self.byte()? {
            b'K' => 1,
            b'M' => 2,
            b'J' => 4,
            0x8a => usize::from(self.byte()?),
            b'}' | b'(' => return Err(self.wrong(SavedIndexError::OldFormat)),
            _ => return Err(self.unexpected()),
        };
        let mut bytes = [0; 8];
        if len > bytes.len() {
            return Err(self.unexpected());
        }
        self.read(&mut bytes[..len])?;
        let position = u64::from_le_bytes(bytes);
        self.expect(b'.')?;
        match position <= GREATEST_POSITION {
            true => Ok(position),
            false => Err(self.wrong(SavedIndexError::Position { position })),
        }
    }

    fn expect_protocol(&mut self) -> Result<(), ZodbError> {
        match self.byte()? {
            0x80 => {}
            // Protocols 0 and 1 do not begin with their number.
            b'}' | b'(' if self.offset == 1 => return Err(self.wrong(SavedIndexError::OldFormat)),
            _ => return Err(self.unexpected()),
        }
        match self.byte()? {
            2 | 3 => Ok(()),
            _ => Err(self.unexpected()),
        }
    }

    fn expect(&mut self, wanted: u8) -> Result<(), ZodbError> {
        match self.byte()? == wanted {
            true => Ok(()),
            false => Err(self.unexpected()),
        }
    }

    fn byte(&mut self) -> Result<u8, ZodbError> {
        let mut byte = [0];
        self.read(&mut byte)?;
        Ok(byte[0])
    }

    fn read(&mut self, bytes: &mut [u8]) -> Result<(), ZodbError> {
        match self.input.read_exact(bytes) {
            Ok(()) => {
                self.offset += bytes.len() as u64;
                Ok(())
            }
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                let offset = self.offset;
                Err(self.wrong(SavedIndexError::CutOff { offset }))
            }
            Err(error) => Ok(Err(error).context("read", &self.path)?),
        }
    }

    /// The byte that was read last is none that may be there.
    fn unexpected(&self) -> ZodbError {
        let offset = self.offset.saturating_sub(1);
        self.wrong(SavedIndexError::Format { offset })
    }

    fn wrong(&self, cause: SavedIndexError) -> ZodbError {
        let path = self.path.clone();
        ZodbError::SavedIndex { path, cause }
    }
}
