//! Where the bytes of a volume come from: a trait for reading at an offset, and the window that
//! the decoder sees them through.

use std::io;

use crate::error::VolumeError;

/// Bytes that can be read at any offset.
pub trait ReadAt {
    /// Reads up to `buffer.len()` bytes at `offset` and returns how many; 0 only at the end.
    ///
    /// # Errors
    /// Whatever the source fails with.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
}

impl ReadAt for std::fs::File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        // No file goes further; the system would call such a read invalid instead of empty.
        let most = (i64::MAX as u64).saturating_sub(offset);
        let len = usize::try_from(most).map_or(buffer.len(), |most| most.min(buffer.len()));
        if len == 0 {
            return Ok(0);
        }
        std::os::unix::fs::FileExt::read_at(self, &mut buffer[..len], offset)
    }
}

impl ReadAt for [u8] {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let rest = usize::try_from(offset)
            .ok()
            .and_then(|start| self.get(start..))
            .unwrap_or_default();
        let len = rest.len().min(buffer.len());
        buffer[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }
}

impl ReadAt for Vec<u8> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.as_slice().read_at(buffer, offset)
    }
}

impl<T: ReadAt + ?Sized> ReadAt for &T {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        (**self).read_at(buffer, offset)
    }
}

/// The part of a volume held in memory at the moment.
pub(crate) struct Window<'a, S: ReadAt + ?Sized> {
    source: &'a S,
    bytes: Vec<u8>,
    start: u64,
    /// Least number of bytes to read at a time.
    chunk: usize,
}

impl<'a, S: ReadAt + ?Sized> Window<'a, S> {
    pub(crate) fn new(source: &'a S, chunk: usize) -> Self {
        Self {
            source,
            bytes: Vec::new(),
            start: 0,
            chunk,
        }
    }

    /// Returns `len` bytes at `offset`, fewer only if the source ends before.
    ///
    /// # Cost
    /// No system call if the window holds them. The buffer grows with what is really read, not
    /// with what is asked for.
    pub(crate) fn bytes(&mut self, offset: u64, len: usize) -> Result<&[u8], VolumeError> {
        if self.held(offset, len).is_none() {
            self.load(offset, len, len.max(self.chunk))
                .map_err(|source| VolumeError::Io { offset, source })?;
        }
        let held = self.held(offset, 0).unwrap_or_default();
        Ok(&held[..held.len().min(len)])
    }

    /// Returns the bytes from `offset` to the end of the window if they are at least `len`.
    fn held(&self, offset: u64, len: usize) -> Option<&[u8]> {
        let skipped = usize::try_from(offset.checked_sub(self.start)?).ok()?;
        self.bytes.get(skipped..).filter(|held| held.len() >= len)
    }

    /// Reads `len` bytes, or as many as the source gives at once, if those are the ones that are needed: what follows may cost
    /// more, such as another frame of a compressed volume.
    fn load(&mut self, offset: u64, needed: usize, len: usize) -> io::Result<()> {
        let kept = self.held(offset, 1).map_or(0, <[u8]>::len);
        self.bytes.drain(..self.bytes.len() - kept);
        self.start = offset;
        while self.bytes.len() < len {
            let filled = self.bytes.len();
            let step = (len - filled).min(filled.max(self.chunk));
            self.bytes.resize(filled + step, 0);
            let result = match offset.checked_add(filled as u64) {
                Some(at) => self.source.read_at(&mut self.bytes[filled..], at),
                None => Ok(0),
            };
            let count = match &result {
                Ok(count) => (*count).min(step),
                Err(_) => 0,
            };
            self.bytes.truncate(filled + count);
            match result {
                Ok(0) => break,
                Ok(count) if count < step && self.bytes.len() >= needed => break,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte at a time, and fails when interrupted every third call.
    struct Drip(Vec<u8>, std::cell::Cell<u32>);

    impl ReadAt for Drip {
        fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
            self.1.set(self.1.get() + 1);
            if self.1.get().is_multiple_of(3) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            self.0.read_at(&mut buffer[..1], offset)
        }
    }

    #[test]
    fn short_reads_and_interruptions_do_not_show() {
        let source = Drip((0..200).collect(), std::cell::Cell::new(0));
        let mut window = Window::new(&source, 16);
        assert_eq!(window.bytes(10, 20).unwrap(), (10..30).collect::<Vec<u8>>());
        assert_eq!(window.bytes(12, 4).unwrap(), [12, 13, 14, 15]);
        assert_eq!(window.bytes(25, 10).unwrap(), (25..35).collect::<Vec<u8>>());
        assert_eq!(window.bytes(0, 3).unwrap(), [0, 1, 2]);
        assert_eq!(window.bytes(198, 10).unwrap(), [198, 199]);
        assert_eq!(window.bytes(u64::MAX, 10).unwrap(), [0_u8; 0]);
    }

    #[test]
    fn a_huge_wish_allocates_only_what_is_there() {
        let source = vec![7_u8; 1000];
        let mut window = Window::new(&source, 64);
        assert_eq!(window.bytes(0, 1 << 40).unwrap().len(), 1000);
        assert!(window.bytes.capacity() < 10_000);
    }
}
