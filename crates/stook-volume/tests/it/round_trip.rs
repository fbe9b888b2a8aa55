//! What is encoded decodes to the same header, and has the length that was foretold.

use proptest::prelude::*;
use stook_volume::{
    Decoded, Dialect, Header, HeaderCheck, Kind, Segment, VolumeError, decode_bytes, encode,
    header_len, member_len, padding, stored_len,
};

use crate::generate::{stook_header, zstash_header};
use crate::volume::{file, what};

const FAR: u64 = 1 << 40;

fn round_trip(header: &Header, dialect: Dialect) {
    let mut bytes = b"what was there".to_vec();
    encode(header, dialect, &mut bytes).unwrap();
    let bytes = bytes.split_off(14);
    assert_eq!(bytes.len() % 512, 0);
    let Decoded::Member(member) = decode_bytes(&bytes, FAR).unwrap() else {
        panic!("no member")
    };
    assert_eq!(&member.header, header);
    assert_eq!(member.offset, FAR);
    assert_eq!(member.data_offset, FAR + bytes.len() as u64);
    let map_len = bytes.len() as u64 - header_len(header, dialect);
    let stored = stored_len(header, dialect);
    assert_eq!(member.data_len, stored - map_len);
    assert_eq!(member.end, FAR + member_len(header, dialect));
    assert_eq!(
        member.end,
        member.data_offset + member.data_len + padding(stored)
    );
    let expected = if dialect == Dialect::Stook {
        HeaderCheck::Verified
    } else {
        HeaderCheck::Absent
    };
    assert_eq!(member.checksum, expected);
    // Too few bytes are never mistaken for enough, and the error says how many are needed.
    for len in [0, 1, 511, 512, bytes.len() - 512, bytes.len() - 1] {
        match decode_bytes(&bytes[..len], FAR).unwrap() {
            Decoded::NeedMore(wanted) => assert!(wanted > len),
            other => panic!("{other:?}"),
        }
    }
}

proptest! {
    #[test]
    fn stook_members_come_back(header in stook_header()) {
        round_trip(&header, Dialect::Stook);
    }

    #[test]
    fn zstash_members_come_back(header in zstash_header()) {
        round_trip(&header, Dialect::Zstash);
    }

    #[test]
    fn every_flipped_bit_of_a_stook_header_is_noticed(header in stook_header(), place: prop::sample::Index, bit in 0..8) {
        let mut bytes = Vec::new();
        encode(&header, Dialect::Stook, &mut bytes).unwrap();
        let at = place.index(bytes.len());
        bytes[at] ^= 1_u8 << bit;
        match decode_bytes(&bytes, 0) {
            Err(_) | Ok(Decoded::NeedMore(_)) => {}
            Ok(other) => prop_assert!(false, "bit {bit} of byte {at}: {other:?}"),
        }
    }
}

#[test]
fn every_single_bit_of_one_header_is_covered() {
    let header = Header {
        xattrs: vec![(b"user.note".to_vec(), b"hello".to_vec())],
        sparse: Some(vec![Segment {
            offset: 512,
            len: 1024,
        }]),
        link: Some(b"7:42".to_vec()),
        ..file("dir/é", 1 << 20)
    };
    let mut bytes = Vec::new();
    encode(&header, Dialect::Stook, &mut bytes).unwrap();
    for at in 0..bytes.len() {
        for bit in 0..8 {
            bytes[at] ^= 1_u8 << bit;
            assert!(
                !matches!(
                    decode_bytes(&bytes, 0),
                    Ok(Decoded::Member(_) | Decoded::End)
                ),
                "bit {bit} of byte {at}"
            );
            bytes[at] ^= 1_u8 << bit;
        }
    }
}

#[test]
fn what_zstash_cannot_say_is_left_out() {
    let plain = file("a", 1 << 20);
    let rich = Header {
        xattrs: vec![(b"user.note".to_vec(), b"hello".to_vec())],
        sparse: Some(Vec::new()),
        link: Some(b"7:42".to_vec()),
        ..plain.clone()
    };
    let (mut expected, mut found) = (Vec::new(), Vec::new());
    encode(&plain, Dialect::Zstash, &mut expected).unwrap();
    encode(&rich, Dialect::Zstash, &mut found).unwrap();
    assert_eq!(found, expected);
    assert_eq!(stored_len(&rich, Dialect::Zstash), 1 << 20);
    assert_eq!(stored_len(&rich, Dialect::Stook), 512);
}

fn assert_refused(header: &Header) {
    let mut out = vec![1];
    let error = encode(header, Dialect::Stook, &mut out).unwrap_err();
    assert!(
        matches!(error, VolumeError::Unstorable { .. }),
        "{}",
        what(&error)
    );
    assert_eq!(out, [1]);
    // The lengths of such a header are of no use, but asking for them is no fault.
    let _ = member_len(header, Dialect::Stook);
}

#[test]
fn names_that_no_tar_holds_are_refused() {
    let base = || file("a", 0);
    let nul = || b"a\0b".to_vec();
    for name in [&b""[..], b"a/", b"./a", b"a\0b"] {
        assert_refused(&Header {
            name: name.to_vec(),
            ..base()
        });
    }
    assert_refused(&Header {
        gname: nul(),
        ..base()
    });
    assert_refused(&Header {
        kind: Kind::Symlink,
        target: nul(),
        ..base()
    });
    assert_refused(&Header {
        kind: Kind::Symlink,
        ..base()
    });
    assert_refused(&Header {
        xattrs: vec![(nul(), Vec::new())],
        ..base()
    });
}

#[test]
fn numbers_that_no_tar_holds_are_refused() {
    let base = || file("a", 0);
    let target = b"t".to_vec();
    let mtime = stook_sys::Timestamp {
        seconds: 0,
        nanoseconds: 1_000_000_000,
    };
    assert_refused(&Header {
        kind: Kind::HardLink,
        target,
        size: u64::MAX,
        ..base()
    });
    assert_refused(&Header {
        size: 1 << 63,
        ..base()
    });
    assert_refused(&Header { mtime, ..base() });
    assert_refused(&Header {
        kind: Kind::CharDevice,
        device: (1, 1 << 21),
        ..base()
    });
    let huge = vec![(b"user.big".to_vec(), vec![0; 65 << 20])];
    assert_refused(&Header {
        xattrs: huge,
        ..base()
    });
}

#[test]
fn segments_that_no_tar_holds_are_refused() {
    let pairs: [&[(u64, u64)]; 5] = [
        &[(0, 100), (512, 512)],
        &[(0, 1024), (512, 488)],
        &[(512, 512)],
        &[(0, 0)],
        &[(u64::MAX, u64::MAX), (0, u64::MAX)],
    ];
    for pairs in pairs {
        let segments = pairs.iter().map(|(offset, len)| Segment {
            offset: *offset,
            len: *len,
        });
        assert_refused(&Header {
            sparse: Some(segments.collect()),
            ..file("a", 1000)
        });
    }
}
