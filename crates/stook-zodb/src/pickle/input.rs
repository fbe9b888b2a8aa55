//! Bytes of a pickle, one after the other: from memory, or through a window where they are many.

use crate::data_file::Reader;
use crate::error::ZodbError;

use super::PickleError;

/// Why a pickle was not gone through to its end.
#[derive(Debug)]
pub(crate) enum Fault {
    Pickle(PickleError),
    /// Boxed, so that the result of every step is small.
    Error(Box<ZodbError>),
}

impl From<PickleError> for Fault {
    fn from(error: PickleError) -> Self {
        Self::Pickle(error)
    }
}

impl From<ZodbError> for Fault {
    fn from(error: ZodbError) -> Self {
        Self::Error(Box::new(error))
    }
}

/// Where the bytes come from. Offsets count from the first byte of the record's data.
pub(crate) trait Input {
    /// Returns the offset of the next byte.
    fn offset(&self) -> u64;

    /// Returns the next bytes, and goes on behind them.
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Fault>;

    /// Goes on behind so many bytes, without looking at them.
    fn skip(&mut self, len: u64) -> Result<(), Fault>;

    /// Goes on behind the next line feed; returns the bytes before it.
    fn skip_line(&mut self) -> Result<u64, Fault>;

    /// Adds bytes that were passed already to a buffer.
    fn copy(&mut self, offset: u64, len: u64, into: &mut Vec<u8>) -> Result<(), Fault>;
}

/// A record in memory.
pub(crate) struct Slice<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Slice<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }
}

impl Input for Slice<'_> {
    #[inline]
    fn offset(&self) -> u64 {
        self.at as u64
    }

    #[inline]
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let (bytes, _) = self.bytes[self.at..]
            .split_first_chunk()
            .ok_or(PickleError::CutOff)?;
        self.at += N;
        Ok(*bytes)
    }

    #[inline]
    fn skip(&mut self, len: u64) -> Result<(), Fault> {
        let left = self.bytes.len() - self.at;
        let len = usize::try_from(len).ok().filter(|len| *len <= left);
        self.at += len.ok_or(PickleError::CutOff)?;
        Ok(())
    }

    #[inline]
    fn skip_line(&mut self) -> Result<u64, Fault> {
        let len = memchr::memchr(b'\n', &self.bytes[self.at..]).ok_or(PickleError::CutOff)?;
        self.at += len + 1;
        Ok(len as u64)
    }

    fn copy(&mut self, offset: u64, len: u64, into: &mut Vec<u8>) -> Result<(), Fault> {
        let range = usize::try_from(offset).ok().zip(usize::try_from(len).ok());
        let found = range.and_then(|(at, len)| self.bytes.get(at..)?.get(..len));
        into.extend_from_slice(found.ok_or(PickleError::CutOff)?);
        Ok(())
    }
}

/// Bytes looked through for the end of a line at a time.
const LINE_STEP: u64 = 4096;

/// A record too long for a window: long strings in it are passed without reading them.
pub(crate) struct Windowed<'r, 'd> {
    reader: &'r mut Reader<'d>,
    start: u64,
    at: u64,
    end: u64,
}

impl<'r, 'd> Windowed<'r, 'd> {
    pub(crate) fn new(reader: &'r mut Reader<'d>, start: u64, len: u64) -> Self {
        let end = start.saturating_add(len);
        Self {
            reader,
            start,
            at: start,
            end,
        }
    }

    fn require(&self, len: u64) -> Result<(), Fault> {
        match len <= self.end - self.at {
            true => Ok(()),
            false => Err(PickleError::CutOff.into()),
        }
    }
}

impl Input for Windowed<'_, '_> {
    fn offset(&self) -> u64 {
        self.at - self.start
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        self.require(N as u64)?;
        let bytes = self.reader.array(self.at)?.ok_or(PickleError::CutOff)?;
        self.at += N as u64;
        Ok(bytes)
    }

    fn skip(&mut self, len: u64) -> Result<(), Fault> {
        self.require(len)?;
        self.at += len;
        Ok(())
    }

    fn skip_line(&mut self) -> Result<u64, Fault> {
        let begin = self.at;
        while self.at < self.end {
            let step = LINE_STEP.min(self.end - self.at);
            let bytes = self
                .reader
                .bytes(self.at, step)?
                .ok_or(PickleError::CutOff)?;
            if let Some(len) = memchr::memchr(b'\n', bytes) {
                let line_feed = self.at + len as u64;
                self.at = line_feed + 1;
                return Ok(line_feed - begin);
            }
            self.at += step;
        }
        Err(PickleError::CutOff.into())
    }

    fn copy(&mut self, offset: u64, len: u64, into: &mut Vec<u8>) -> Result<(), Fault> {
        let at = self.start.saturating_add(offset);
        let bytes = self.reader.bytes(at, len)?.ok_or(PickleError::CutOff)?;
        into.extend_from_slice(bytes);
        Ok(())
    }
}
