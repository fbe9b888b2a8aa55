//! Random headers that keep to the rules stated at `Header`.

use proptest::prelude::*;
use stook_sys::Timestamp;
use stook_volume::{Header, Kind, Segment, align_segments};

/// Any bytes, ASCII more often than not, without NUL.
fn text(max: usize) -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        3 => prop::collection::vec(prop::sample::select(b"abc/. =%\n\t0".to_vec()), 0..max),
        1 => "\\PC{0,60}".prop_map(String::into_bytes),
        1 => prop::collection::vec(1_u8..=255, 0..max),
    ]
}

fn name() -> impl Strategy<Value = Vec<u8>> {
    text(300).prop_map(|mut name| {
        while name.starts_with(b"./") {
            name.drain(..2);
        }
        while name.ends_with(b"/") {
            name.pop();
        }
        if name.is_empty() { b"x".to_vec() } else { name }
    })
}

fn kind() -> impl Strategy<Value = Kind> {
    prop::sample::select(vec![
        Kind::File,
        Kind::File,
        Kind::HardLink,
        Kind::Symlink,
        Kind::Directory,
        Kind::Fifo,
        Kind::CharDevice,
        Kind::BlockDevice,
    ])
}

fn id() -> impl Strategy<Value = u64> {
    prop_oneof![0_u64..5000, 2_097_150_u64..2_097_155, any::<u64>()]
}

fn size() -> impl Strategy<Value = u64> {
    prop_oneof![
        0_u64..5000,
        8_589_934_590_u64..8_589_934_594,
        0..=i64::MAX as u64 >> 1
    ]
}

/// Times whose float prints as a decimal of at most nine digits after the point.
fn float_time() -> impl Strategy<Value = Timestamp> {
    let fraction = prop_oneof![Just(0_u32), (0_u32..4).prop_map(|n| n * 250_000_000)];
    (-10_000_000_000_i64..20_000_000_000, fraction).prop_map(|(seconds, nanoseconds)| Timestamp {
        seconds,
        nanoseconds,
    })
}

fn any_time() -> impl Strategy<Value = Timestamp> {
    let any_seconds = prop_oneof![any::<i64>(), -3_i64..3, 1_600_000_000_i64..1_800_000_000];
    (any_seconds, 0_u32..1_000_000_000).prop_map(|(seconds, nanoseconds)| Timestamp {
        seconds,
        nanoseconds,
    })
}

fn xattrs() -> impl Strategy<Value = Vec<(Vec<u8>, Vec<u8>)>> {
    let name = text(20).prop_filter("a name", |name| !name.is_empty());
    let value = prop::collection::vec(any::<u8>(), 0..600);
    prop::collection::btree_map(name, value, 0..3).prop_map(|map| map.into_iter().collect())
}

/// A size and segments that fit it.
fn sparse() -> impl Strategy<Value = (u64, Vec<Segment>)> {
    let pairs = prop::collection::vec((1_u64..100_000, 1_u64..100_000), 0..20);
    (pairs, 0_u64..100_000).prop_map(|(pairs, rest)| {
        let mut at = 0;
        let segments: Vec<_> = pairs
            .into_iter()
            .map(|(gap, len)| {
                let offset = at + gap;
                at = offset + len;
                Segment { offset, len }
            })
            .collect();
        (at + rest, align_segments(&segments, at + rest))
    })
}

/// A header as zstash writes them.
pub(crate) fn zstash_header() -> impl Strategy<Value = Header> {
    let entry = (name(), kind(), text(200), 0_u32..0o10000);
    let owner = (id(), id(), text(40), text(40));
    let rest = (size(), float_time(), (0_u32..2_097_152, 0_u32..2_097_152));
    (entry, owner, rest).prop_map(
        |((name, kind, target, mode), (uid, gid, uname, gname), (size, mtime, device))| {
            let target = match kind {
                Kind::Symlink if target.is_empty() => b"x".to_vec(),
                Kind::Symlink => target,
                Kind::HardLink => b"dir/first name".to_vec(),
                _ => Vec::new(),
            };
            let size = if kind.has_content() { size } else { 0 };
            let device = if kind.is_device() { device } else { (0, 0) };
            let (xattrs, sparse, link) = (Vec::new(), None, None);
            Header {
                name,
                kind,
                target,
                mode,
                uid,
                gid,
                uname,
                gname,
                size,
                mtime,
                device,
                xattrs,
                sparse,
                link,
            }
        },
    )
}

/// A header with all that stook adds.
pub(crate) fn stook_header() -> impl Strategy<Value = Header> {
    let additions = (
        any_time(),
        xattrs(),
        prop::option::of(sparse()),
        prop::option::of(text(30)),
    );
    (zstash_header(), additions).prop_map(|(header, (mtime, xattrs, sparse, link))| {
        let (size, sparse) = match sparse {
            Some((size, segments)) if header.kind == Kind::File => (size, Some(segments)),
            _ => (header.size, None),
        };
        Header {
            mtime,
            xattrs,
            sparse,
            size,
            link,
            ..header
        }
    })
}
