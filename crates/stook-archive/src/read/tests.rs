//! The member reader against reading the whole member, on volumes that are slow, fail, return short and change.

use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use stook_sys::SysError;
use stook_volume::{
    Dialect, Header, Kind, ReadAt, Segment, align_segments, decode, encode, padding,
};

use super::volume::fill_at;
use super::*;
use crate::buffers::Buffers;
use crate::mutex::lock;

/// A volume in memory, and what is wrong with it.
#[derive(Debug, Default)]
struct Faulty {
    bytes: Mutex<Vec<u8>>,
    delay: Duration,
    /// Most bytes that a call returns; 0: as many as are asked for.
    most: usize,
    /// Every so many calls one is interrupted; 0: none.
    interrupted_every: usize,
    /// From here on the volume cannot be read.
    unreadable_from: Option<u64>,
    calls: AtomicUsize,
    changes: AtomicU64,
}

impl Faulty {
    fn new(bytes: &[u8]) -> Self {
        Self {
            bytes: Mutex::new(bytes.to_vec()),
            ..Self::default()
        }
    }

    fn change(&self, offset: usize) {
        lock(&self.bytes)[offset] ^= 1;
        self.changes.fetch_add(1, Relaxed);
    }
}

impl ReadAt for Faulty {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let calls = self.calls.fetch_add(1, Relaxed) + 1;
        std::thread::sleep(self.delay);
        if self.interrupted_every > 0 && calls.is_multiple_of(self.interrupted_every) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let end = offset + buffer.len() as u64;
        if self.unreadable_from.is_some_and(|from| end > from) {
            return Err(io::Error::from_raw_os_error(5));
        }
        let len = match self.most {
            0 => buffer.len(),
            most => buffer.len().min(most),
        };
        lock(&self.bytes).read_at(&mut buffer[..len], offset)
    }
}

impl VolumeBytes for Faulty {
    fn len(&self) -> io::Result<u64> {
        Ok(lock(&self.bytes).len() as u64)
    }

    fn version(&self) -> io::Result<Option<VolumeVersion>> {
        let version = self.changes.load(Relaxed).to_string();
        Ok(Some(VolumeVersion::new(version)))
    }
}

/// One member, and its content with holes filled.
fn volume_of(size: u64, segments: Option<Vec<Segment>>) -> (Vec<u8>, Vec<u8>) {
    let segments = segments.map(|segments| align_segments(&segments, size));
    let byte_at = |position: u64| (position.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8 | 1;
    let header = Header {
        name: b"member".to_vec(),
        kind: Kind::File,
        size,
        sparse: segments.clone(),
        ..Header::default()
    };
    let mut volume = Vec::new();
    encode(&header, Dialect::Stook, &mut volume).unwrap();
    let whole = vec![Segment {
        offset: 0,
        len: size,
    }];
    let mut content = vec![0; usize::try_from(size).unwrap()];
    let mut stored = 0;
    for segment in segments.unwrap_or(whole) {
        for position in segment.offset..segment.offset + segment.len {
            volume.push(byte_at(position));
            content[usize::try_from(position).unwrap()] = byte_at(position);
        }
        stored += segment.len;
    }
    let padded = volume.len() + usize::try_from(padding(stored)).unwrap();
    volume.resize(padded, 0);
    (volume, content)
}

fn reader_of(volume: Faulty) -> (MemberReader, Arc<Faulty>) {
    let volume = Arc::new(volume);
    let member = decode(&*volume, 0).unwrap().unwrap();
    volume.calls.store(0, Relaxed);
    let shared: Arc<dyn VolumeBytes> = Arc::clone(&volume) as _;
    (MemberReader::new(shared, member), volume)
}

fn segments(pairs: &[(u64, u64)]) -> (u64, Vec<Segment>) {
    let mut offset = 0;
    let segments = pairs.iter().map(|&(hole, len)| {
        let segment = Segment {
            offset: offset + hole,
            len,
        };
        offset = segment.offset + len;
        segment
    });
    let segments: Vec<Segment> = segments.collect();
    (offset, segments)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_range_is_that_of_the_whole_member(
        parts in proptest::option::of(proptest::collection::vec((0..6000_u64, 1..6000_u64), 0..6)),
        end in 0..5000_u64,
        most in prop_oneof![Just(0_usize), 1..700_usize],
        interrupted_every in prop_oneof![Just(0_usize), 2..5_usize],
        ranges in proptest::collection::vec((0..50_000_u64, 0..20_000_usize), 1..8),
    ) {
        let (size, sparse) = match &parts {
            Some(parts) => {
                let (size, segments) = segments(parts);
                (size + end, Some(segments))
            }
            None => (end, None),
        };
        let (bytes, content) = volume_of(size, sparse);
        let (reader, _) = reader_of(Faulty { most, interrupted_every, ..Faulty::new(&bytes) });
        prop_assert_eq!(reader.size(), size);
        std::thread::scope(|scope| {
            for &(offset, len) in &ranges {
                let (reader, content) = (&reader, &content);
                scope.spawn(move || {
                    let mut buffer = vec![0xaa; len];
                    let count = reader.read_at(offset, &mut buffer).unwrap();
                    let start = usize::try_from(offset).unwrap().min(content.len());
                    let end = (start + len).min(content.len());
                    assert_eq!(count, end - start);
                    assert_eq!(&buffer[..count], &content[start..end]);
                    assert!(buffer[count..].iter().all(|&byte| byte == 0xaa));
                });
            }
        });
    }
}

#[test]
fn threads_wait_for_a_slow_volume_together() {
    let (bytes, content) = volume_of(80_000, None);
    let (reader, volume) = reader_of(Faulty {
        delay: Duration::from_millis(50),
        ..Faulty::new(&bytes)
    });
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for part in 0..16_usize {
            let (reader, content) = (&reader, &content);
            scope.spawn(move || {
                let mut buffer = [0; 5000];
                assert_eq!(
                    reader.read_at(part as u64 * 5000, &mut buffer).unwrap(),
                    5000
                );
                assert_eq!(buffer, content[part * 5000..(part + 1) * 5000]);
            });
        }
    });
    assert_eq!(volume.calls.load(Relaxed), 16);
    // One after the other they would take 0.8 s.
    assert!(
        begun.elapsed() < Duration::from_millis(500),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn holes_and_the_end_cost_no_call() {
    let (size, sparse) = segments(&[(100_000, 1000), (100_000, 1000), (100_000, 1000)]);
    let (bytes, content) = volume_of(size + 100_000, Some(sparse));
    let (reader, volume) = reader_of(Faulty::new(&bytes));
    let mut buffer = vec![1; content.len()];
    assert_eq!(reader.read_at(0, &mut buffer[..90_000]).unwrap(), 90_000);
    assert_eq!(reader.read_at(reader.size(), &mut buffer).unwrap(), 0);
    assert_eq!(reader.read_at(u64::MAX, &mut buffer).unwrap(), 0);
    assert_eq!(volume.calls.load(Relaxed), 0);
    assert_eq!(reader.read_at(0, &mut buffer).unwrap(), content.len());
    assert_eq!(buffer, content);
    assert_eq!(volume.calls.load(Relaxed), 3);
}

#[test]
fn what_cannot_be_read_fails_and_the_rest_is_read() {
    let (bytes, content) = volume_of(10_000, None);
    let start = bytes.len() as u64 - 10_000 - padding(10_000);
    let (reader, _) = reader_of(Faulty {
        unreadable_from: Some(start + 6000),
        ..Faulty::new(&bytes)
    });
    let mut buffer = [0; 5000];
    assert_eq!(reader.read_at(1000, &mut buffer).unwrap(), 5000);
    assert_eq!(buffer, content[1000..6000]);
    let error = reader.read_at(1001, &mut buffer).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(5));
}

#[test]
fn a_volume_that_ends_too_early_is_an_error() {
    let (bytes, _) = volume_of(10_000, None);
    let (reader, volume) = reader_of(Faulty::new(&bytes));
    lock(&volume.bytes).truncate(bytes.len() - 5000);
    let mut buffer = [0; 9000];
    assert_eq!(reader.read_at(0, &mut buffer[..5000]).unwrap(), 5000);
    let error = reader.read_at(0, &mut buffer).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
}

#[test]
fn a_volume_that_changes_under_its_reader_has_another_version() {
    let (bytes, _) = volume_of(10_000, None);
    let (reader, volume) = reader_of(Faulty::new(&bytes));
    let before = reader.version().unwrap();
    let mut buffer = [0; 100];
    reader.read_at(0, &mut buffer).unwrap();
    assert_eq!(reader.version().unwrap(), before);
    volume.change(bytes.len() - 1000);
    assert_ne!(reader.version().unwrap(), before);
}

#[test]
fn a_local_volume_that_changes_has_another_version() {
    let folder = stook_testkit::TempDir::new().unwrap();
    let path = folder.path().join("000000.tar");
    std::fs::write(&path, b"one").unwrap();
    let store = LocalFolder::new(folder.path());
    let volume = store.open("000000.tar").unwrap();
    let before = volume.version().unwrap();
    assert!(before.is_some());
    assert_eq!(volume.len().unwrap(), 3);
    std::fs::write(&path, b"two").unwrap();
    assert_ne!(volume.version().unwrap(), before);
    let missing: SysError = store.open("000001.tar").unwrap_err();
    assert!(missing.is_not_found());
    assert_eq!(missing.path, folder.path().join("000001.tar"));
}

#[test]
fn appending_takes_what_is_there_however_it_comes() {
    let volume = Faulty {
        most: 7,
        interrupted_every: 3,
        ..Faulty::new(b"0123456789abcdefghij")
    };
    let mut buffer = b"x".to_vec();
    assert_eq!(volume.append_at(&mut buffer, 12, 4).unwrap(), 12);
    assert_eq!(buffer, b"x456789abcdef");
    assert_eq!(volume.append_at(&mut buffer, 100, 18).unwrap(), 2);
    assert_eq!(buffer, b"x456789abcdefij");
    assert_eq!(volume.append_at(&mut buffer, 100, 99).unwrap(), 0);
}

/// Claims to have read more than it was asked for.
#[derive(Debug)]
struct Liar;

impl ReadAt for Liar {
    fn read_at(&self, buffer: &mut [u8], _: u64) -> io::Result<usize> {
        Ok(buffer.len() + 1)
    }
}

#[test]
fn a_source_that_claims_too_much_is_an_error_and_no_panic() {
    assert!(fill_at(&Liar, &mut [0; 10], 0).is_err());
}

#[test]
fn a_range_in_memory_needs_one_call_for_all_its_members() {
    let (mut bytes, content) = volume_of(3000, None);
    let second = bytes.len() as u64;
    bytes.extend_from_within(..);
    let volume = Faulty::new(&bytes);
    let buffers = Buffers::default();
    let range = LoadedRange::read(&volume, &buffers, 0, bytes.len() as u64).unwrap();
    let members = [0, second].map(|offset| range.member(offset).unwrap());
    let md5s = range.md5s(members.iter().map(Some));
    let md5 = stook_md5::md5_many(&[&content])[0];
    assert_eq!(md5s, [Some(md5); 2]);
    assert_eq!(volume.calls.load(Relaxed), 1);
    // What lies past the range is fetched.
    let range = LoadedRange::read(&volume, &buffers, 0, 2048).unwrap();
    let mut read = Vec::new();
    range
        .content(&members[1], |offset, bytes| -> io::Result<()> {
            assert_eq!(offset, read.len() as u64);
            read.extend_from_slice(bytes);
            Ok(())
        })
        .unwrap();
    assert_eq!(read, content);
}
