//! A member means the same wherever reading begins: what a scan yields is what decoding at its offset gives.
//!
//! Volumes of members of all writers, with global headers between them, and some of their bytes changed.

use std::io::Write;

use proptest::prelude::*;
use stook_volume::{Depth, Dialect, Event, Kind, ReadAt, Scanner, decode};

use crate::generate::{stook_header, zstash_header};
use crate::hostile::{block, extension, pax, record};
use crate::volume::{Volume, content, lines, lines_of};

/// Something that stands in a volume.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let header = prop_oneof![
        stook_header().prop_map(|header| (header, Dialect::Stook)),
        zstash_header().prop_map(|header| (header, Dialect::Zstash)),
    ];
    let generated = header.prop_map(|(mut header, dialect)| {
        header.sparse = None;
        header.size = if header.kind.has_content() {
            header.size % 3000
        } else {
            0
        };
        let mut volume = Volume::default();
        let data = content(b'g', header.size);
        volume.add(&header, dialect, &data);
        volume.0
    });
    prop_oneof![3 => generated, 2 => foreign(), 2 => global()]
}

fn foreign() -> impl Strategy<Value = Vec<u8>> {
    let size = prop_oneof![8 => 0_u64..2000, 1 => Just(0o77777777777)];
    (size, any::<bool>(), prop::sample::select(b"0125".to_vec())).prop_map(
        |(size, is_extended, typeflag)| {
            let mut bytes = Vec::new();
            if is_extended {
                bytes.extend(pax(&[("mtime", b"1234.5"), ("path", b"long/name")]));
            }
            bytes.extend(block(typeflag, b"name", size, &[(157, b"target")]));
            let stored = if b"01".contains(&typeflag) {
                size.min(4000)
            } else {
                0
            };
            bytes.extend(content(b'f', stored));
            bytes.resize(bytes.len().next_multiple_of(512), 0);
            bytes
        },
    )
}

fn global() -> impl Strategy<Value = Vec<u8>> {
    let records = vec![
        record("comment", b"0123456789abcdef"),
        record("uname", b"everybody"),
        record("mtime", b"99.25"),
        record("size", b"700"),
        record("size", b"9223372036854775807"),
        record("path", b"the/same"),
        record("SCHILY.xattr.user.all", b"x"),
        b"7 broken".to_vec(),
    ];
    prop::collection::vec(prop::sample::select(records), 0..3)
        .prop_map(|records| extension(b'g', &records.concat()))
}

/// Bytes that are put somewhere.
fn change() -> impl Strategy<Value = (prop::sample::Index, Vec<u8>)> {
    let bytes = prop_oneof![
        prop::collection::vec(any::<u8>(), 1..8),
        Just(vec![0; 512]),
        Just(b"\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff".to_vec()),
    ];
    (any::<prop::sample::Index>(), bytes)
}

fn assert_agreement(bytes: &[u8]) {
    for depth in [Depth::Headers, Depth::Contents] {
        let mut at = 0;
        for event in Scanner::new(bytes, 0).with_depth(depth) {
            match event.unwrap() {
                Event::Member(member) => {
                    assert_eq!(member.offset, at);
                    at = member.end;
                    // Only a scan sees that a hard link has no content of its own.
                    if member.header.kind == Kind::HardLink && member.data_len == 0 {
                        continue;
                    }
                    let alone = decode(bytes, member.offset).unwrap();
                    assert_eq!(alone, Some(member));
                }
                Event::Damage { offset, len, .. } => {
                    at = offset + len;
                }
                Event::End { .. } => {}
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_scan_yields_what_decoding_at_its_offsets_gives(pieces in prop::collection::vec(piece(), 0..8)) {
        assert_agreement(&Volume(pieces.concat()).finish());
    }

    #[test]
    fn also_in_a_damaged_volume(
        pieces in prop::collection::vec(piece(), 1..8),
        changes in prop::collection::vec(change(), 1..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = Volume(pieces.concat()).finish();
        for (place, new) in changes {
            let at = place.index(bytes.len());
            let len = new.len().min(bytes.len() - at);
            bytes[at..at + len].copy_from_slice(&new[..len]);
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        assert_agreement(&bytes);
    }
}

#[test]
fn a_global_header_is_named_and_its_members_are_read_without_it() {
    let global = |keyword, value: &[u8]| extension(b'g', &record(keyword, value));
    let plain = |name: &[u8]| block(b'5', name, 0, &[(265, b"own")]);
    let parts = [
        global("comment", b"a commit"),
        plain(b"a"),
        global("uname", b"all"),
        plain(b"b"),
        plain(b"c"),
    ];
    let bytes = Volume(parts.concat()).finish();
    for depth in [Depth::Headers, Depth::Contents] {
        assert_eq!(
            lines(&bytes, depth),
            [
                "a@0",
                "damage@1536+0 Global",
                "b@1536",
                "c@3072",
                "end@3584"
            ]
        );
    }
    let names = [0, 1536, 3072].map(|offset| decode(&bytes, offset).unwrap().unwrap().header.uname);
    assert_eq!(names, [b"own", b"own", b"own"]);
    let named = Scanner::new(&bytes, 0).find_map(|event| match event.unwrap() {
        Event::Damage { reason, .. } => Some(reason.to_string()),
        _ => None,
    });
    assert_eq!(
        named.unwrap(),
        "the global header at offset 1536 sets `uname` for the members behind it; they are read without that"
    );
}

/// The system calls such offsets invalid; a slice in memory does not.
#[test]
fn a_size_past_all_files_is_damage_of_its_member_alone() {
    let mut place = tempfile::NamedTempFile::new().unwrap();
    for size in [
        "9223372036854775807",
        "9223372036854775806",
        "9223372036854771712",
        "4611686018427387904",
    ] {
        let mut volume = Volume::default();
        volume.add_file("a", 10);
        volume.0.extend(pax(&[("size", size.as_bytes())]));
        volume.0.extend(block(b'0', b"huge", 0, &[]));
        volume.add_file("z", 10);
        let bytes = volume.finish();
        place.as_file_mut().set_len(0).unwrap();
        let mut file = place.reopen().unwrap();
        file.write_all(&bytes).unwrap();
        for depth in [Depth::Headers, Depth::Contents] {
            let in_memory = lines(&bytes, depth);
            assert_eq!(
                in_memory,
                ["a@0", "damage@2048+1536 CutShort", "z@3584", "end@5632"],
                "{size}"
            );
            assert_eq!(lines_of(&file, depth), in_memory, "{size}");
        }
    }
    let file = place.reopen().unwrap();
    for offset in [1 << 63, u64::MAX - 1, u64::MAX] {
        assert_eq!(ReadAt::read_at(&file, &mut [0; 10], offset).unwrap(), 0);
        assert!(decode(&file, offset).is_err());
    }
}
