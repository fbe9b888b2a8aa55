//! MD5s of contents: of a member, whose bytes come slice by slice with holes between them, and of a file of a tree.
//!
//! A hole reads as zeros, and MD5 has no short cut for them: a file of terabytes takes hours, whatever its data. So
//! hashing asks now and then whether the user wants it to end, and says what takes so long.

use std::fs::File;
use std::io;
use std::time::{Duration, Instant};

use stook_md5::Md5;
use stook_sys::append_at;
use stook_timers::scope;
use stook_volume::Member;

use super::BATCH_BYTES;
use crate::buffers::Buffers;
use crate::cause::Cause;
use crate::observer::Observer;

/// Zeros that are hashed before interruption is polled again: some 25 ms.
const POLL_BYTES: u64 = 16 << 20;

/// Holes that take longer are named.
const SLOW: Duration = Duration::from_secs(1);

/// What holes of one member `reindex` and `check` hash, unless the caller says otherwise: half an hour of work.
pub const DEFAULT_MAX_HOLE_BYTES: u64 = 1 << 40;

/// The user has ended the operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interrupted;

impl From<Interrupted> for io::Error {
    fn from(_: Interrupted) -> Self {
        Cause::Interrupted.into()
    }
}

/// The running MD5 of one content.
pub(crate) struct ContentMd5<'a> {
    md5: Md5,
    position: u64,
    path: &'a [u8],
    size: u64,
    observer: &'a dyn Observer,
    /// When the first large hole began.
    first_hole: Option<Instant>,
}

impl<'a> ContentMd5<'a> {
    /// Begins the MD5 of the content of `path`, `size` bytes with its holes.
    pub(crate) fn new(path: &'a [u8], size: u64, observer: &'a dyn Observer) -> Self {
        Self {
            md5: Md5::new(),
            position: 0,
            path,
            size,
            observer,
            first_hole: None,
        }
    }

    /// Adds bytes that stand at `offset`, after the hole before them.
    pub(crate) fn update(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Interrupted> {
        let _scope = scope!("md5");
        self.skip_to(offset)?;
        self.md5.update(bytes);
        self.position = offset + bytes.len() as u64;
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<[u8; 16], Interrupted> {
        self.skip_to(self.size)?;
        Ok(self.md5.finish())
    }

    /// Adds a hole, which reads as zeros.
    fn skip_to(&mut self, end: u64) -> Result<(), Interrupted> {
        while self.position < end {
            let len = (end - self.position).min(POLL_BYTES);
            update_zeros(&mut self.md5, len);
            self.position += len;
            if len < POLL_BYTES {
                continue;
            }
            if self.observer.is_interrupted() {
                return Err(Interrupted);
            }
            let begun = *self.first_hole.get_or_insert_with(Instant::now);
            if begun.elapsed() >= SLOW {
                let (path, position) = (self.path, self.position);
                self.observer.hashing_holes(path, position, self.size);
            }
        }
        Ok(())
    }
}

/// Takes the MD5 of a file, up to its end, wherever that is by now. None if `is_interrupted` says to stop, which it is
/// asked after each slice.
///
/// # Errors
/// If the file cannot be read.
pub(crate) fn file_md5(
    file: &File,
    expected_size: u64,
    buffers: &Buffers,
    is_interrupted: impl Fn() -> bool,
) -> io::Result<Option<[u8; 16]>> {
    // One byte more shows the end without another slice.
    let len = expected_size.saturating_add(1).min(BATCH_BYTES);
    let len = usize::try_from(len).map_err(io::Error::other)?;
    let (mut md5, mut offset) = (Md5::new(), 0);
    let mut bytes = buffers.take(len);
    let result = loop {
        bytes.clear();
        match append_at(file, &mut bytes, len, offset) {
            Ok(count) => {
                md5.update(&bytes);
                offset += count as u64;
                if count < len {
                    break Ok(Some(md5.finish()));
                }
            }
            Err(error) => break Err(error),
        }
        if is_interrupted() {
            break Ok(None);
        }
    };
    buffers.give(bytes);
    result
}

fn update_zeros(md5: &mut Md5, mut len: u64) {
    static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
    while len > 0 {
        let count = len.min(ZEROS.len() as u64);
        md5.update(&ZEROS[..usize::try_from(count).unwrap_or(0)]);
        len -= count;
    }
}

/// Returns why a member is not hashed: its sparse map claims more zeros than anybody is to wait for, at the cost of a
/// few bytes.
pub(crate) fn too_many_holes(member: &Member, max_hole_bytes: u64) -> Option<Cause> {
    let holes = member.header.size.saturating_sub(member.data_len);
    let is_sparse = member.header.sparse.is_some();
    (is_sparse && holes > max_hole_bytes).then_some(Cause::TooManyHoles {
        holes,
        limit: max_hole_bytes,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// Ends the operation at the last of so many questions.
    struct Impatient {
        questions: AtomicU64,
        told: Mutex<Vec<u64>>,
    }

    impl stook_pool::Observer for Impatient {
        type Failure = crate::Failure;

        fn is_interrupted(&self) -> bool {
            let left = self.questions.load(Ordering::Relaxed).saturating_sub(1);
            self.questions.store(left, Ordering::Relaxed);
            left == 0
        }
    }

    impl Observer for Impatient {
        fn hashing_holes(&self, path: &[u8], done: u64, size: u64) {
            assert_eq!((path, size), (&b"huge"[..], 1 << 62));
            self.told.lock().unwrap().push(done);
            self.questions.store(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn holes_are_zeros_wherever_they_are() {
        let whole = [&[0; 1000][..], b"abc", &[0; 50][..], b"d", &[0; 7][..]].concat();
        let mut md5 = ContentMd5::new(b"f", whole.len() as u64, &crate::Silent);
        md5.update(1000, b"abc").unwrap();
        md5.update(1053, b"d").unwrap();
        assert_eq!(md5.finish().unwrap(), stook_md5::md5_many(&[&whole])[0]);
    }

    #[test]
    fn endless_holes_are_named_and_can_be_interrupted() {
        let patient = Impatient {
            questions: AtomicU64::new(u64::MAX),
            told: Mutex::default(),
        };
        let mut md5 = ContentMd5::new(b"huge", 1 << 62, &patient);
        assert_eq!(md5.update(1 << 61, b"data"), Err(Interrupted));
        assert_eq!(patient.told.lock().unwrap().len(), 1);
        let impatient = Impatient {
            questions: AtomicU64::new(3),
            told: Mutex::default(),
        };
        let md5 = ContentMd5::new(b"huge", 1 << 62, &impatient);
        assert_eq!(md5.finish(), Err(Interrupted));
        assert!(impatient.told.lock().unwrap().is_empty());
    }
}
