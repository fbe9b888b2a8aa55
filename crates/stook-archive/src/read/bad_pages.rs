//! A volume as a scan reads it: the user may end it at any moment, and bad places are passed over.
//!
//! A search for members past damage may read terabytes between two of them, so each read asks whether to go on. A page
//! that the disk cannot give is handed over as bytes that are no header, so that the scan finds its way past it as past
//! other damage; a disk that gives nothing at all ends it.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use stook_volume::ReadAt;

use super::content_md5::Interrupted;
use crate::cause::Cause;
use crate::observer::Observer;

/// What is given up at a time.
const PAGE: u64 = 4096;

/// Pages after which the volume is given up: each may take the disk seconds.
const MOST_BAD_PAGES: u32 = 256;

/// What no header block is made of.
const NO_HEADER: u8 = 0xff;

/// Linux's number for an error of the device, which is no `ErrorKind`.
const EIO: i32 = 5;

pub(crate) struct SkipBadPages<'a, S: ?Sized> {
    source: &'a S,
    observer: &'a dyn Observer,
    bad_pages: AtomicU32,
}

impl<'a, S: ReadAt + ?Sized> SkipBadPages<'a, S> {
    pub(crate) fn new(source: &'a S, observer: &'a dyn Observer) -> Self {
        let bad_pages = AtomicU32::new(0);
        Self {
            source,
            observer,
            bad_pages,
        }
    }

    /// Reads the rest of one page only, or makes it up.
    fn read_page(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let rest = usize::try_from(PAGE - offset % PAGE).map_err(io::Error::other)?;
        let len = rest.min(buffer.len());
        let page = &mut buffer[..len];
        match self.source.read_at(page, offset) {
            Err(error) if is_bad_place(&error) => {
                if self.bad_pages.fetch_add(1, Ordering::Relaxed) >= MOST_BAD_PAGES {
                    return Err(error);
                }
                page.fill(NO_HEADER);
                Ok(len)
            }
            other => other,
        }
    }
}

impl<S: ReadAt + ?Sized> ReadAt for SkipBadPages<'_, S> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        if self.observer.is_interrupted() {
            return Err(Interrupted.into());
        }
        match self.source.read_at(buffer, offset) {
            Err(error) if is_bad_place(&error) => self.read_page(buffer, offset),
            Err(error) => match damaged_frame(&error) {
                Some(end) => Ok(skip_frame(buffer, offset, end)),
                None => Err(error),
            },
            other => other,
        }
    }
}

/// Returns where a frame ends that cannot be decoded, if that is the error. It costs no time to try again.
fn damaged_frame(error: &io::Error) -> Option<u64> {
    match Cause::from(error) {
        Cause::BadFrame { end, .. } => Some(end),
        _ => None,
    }
}

/// Makes up the rest of a frame.
fn skip_frame(buffer: &mut [u8], offset: u64, end: u64) -> usize {
    let rest = usize::try_from(end.saturating_sub(offset)).unwrap_or(usize::MAX);
    let len = rest.min(buffer.len());
    buffer[..len].fill(NO_HEADER);
    len
}

fn is_bad_place(error: &io::Error) -> bool {
    error.raw_os_error() == Some(EIO)
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use stook_volume::{Dialect, Event, Header, Kind, Scanner, encode};

    use super::*;
    use crate::Silent;

    /// Bytes, some of which cannot be read.
    struct Disk {
        bytes: Vec<u8>,
        bad: Range<u64>,
    }

    impl ReadAt for Disk {
        fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
            let end = offset + buffer.len() as u64;
            if offset < self.bad.end && end > self.bad.start {
                return Err(io::Error::from_raw_os_error(EIO));
            }
            self.bytes.read_at(buffer, offset)
        }
    }

    fn volume_of(names: &[String]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for name in names {
            let header = Header {
                name: name.clone().into_bytes(),
                kind: Kind::File,
                size: 3000,
                ..Header::default()
            };
            encode(&header, Dialect::Stook, &mut bytes).unwrap();
            bytes.resize(bytes.len() + 3072, b'c');
        }
        bytes.resize(bytes.len() + 10_240, 0);
        bytes
    }

    #[test]
    fn members_past_a_bad_place_are_found() {
        let names: Vec<String> = (0..40).map(|number| format!("f{number}")).collect();
        let bytes = volume_of(&names);
        let bad = 40_960..49_152;
        let disk = Disk { bytes, bad };
        let reading = SkipBadPages::new(&disk, &Silent);
        let mut found = Vec::new();
        let mut damaged = 0;
        for event in Scanner::new(&reading, 0) {
            match event.unwrap() {
                Event::Member(member) => found.push(member.header.name),
                Event::Damage { len, .. } => damaged += len,
                Event::End { .. } => {}
            }
        }
        assert!((30..40).contains(&found.len()), "{}", found.len());
        assert!(found.contains(&b"f39".to_vec()));
        assert!((4096..20_000).contains(&damaged), "{damaged}");
    }

    #[test]
    fn a_disk_that_gives_nothing_ends_the_scan() {
        let disk = Disk {
            bytes: vec![0; 1 << 20],
            bad: 0..u64::MAX,
        };
        let reading = SkipBadPages::new(&disk, &Silent);
        assert!(Scanner::new(&reading, 0).any(|event| event.is_err()));
    }

    struct Stopped;

    impl Observer for Stopped {}

    impl stook_pool::Observer for Stopped {
        type Failure = crate::Failure;

        fn is_interrupted(&self) -> bool {
            true
        }
    }

    #[test]
    fn a_scan_that_is_interrupted_reads_nothing() {
        let disk = volume_of(&["f".to_owned()]);
        let reading = SkipBadPages::new(&disk, &Stopped);
        assert!(Scanner::new(&reading, 0).next().unwrap().is_err());
    }
}
