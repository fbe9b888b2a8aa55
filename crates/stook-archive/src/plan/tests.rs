//! Parts that no stook writes.

use stook_sys::{FileKind, Links, Metadata, Timestamp};
use stook_volume::Dialect;

use super::blocks::{BlockWriter, Encode, FileRole, PlanFileError};
use super::check_part;
use super::part::{PartHeader, PlanId};
use super::piece::{PieceEncoder, is_path_below};

/// How members of part 3 are written.
pub(super) fn a_header() -> PartHeader {
    PartHeader {
        plan: PlanId { run: 1, made: 2 },
        number: 3,
        dialect: Dialect::Stook,
        links: Links::Refuse,
        xattrs: true,
        takes_md5: true,
        read_only: true,
        is_retry: false,
        zstd: None,
        limit: 1 << 40,
        filesystem: (8, 1),
    }
}

fn header() -> Vec<u8> {
    let mut block = Vec::new();
    a_header().encode(&mut block);
    block
}

fn owners() -> Vec<u8> {
    let mut block = Vec::new();
    for which in *b"ug" {
        block.push(which);
        block.number(0);
        block.bytes(b"root");
    }
    block
}

fn a_file() -> Metadata {
    Metadata {
        mode: 0o644,
        links: 1,
        size: 10,
        mtime: Timestamp {
            seconds: 1,
            nanoseconds: 999_999_999,
        },
        inode: 5,
        filesystem: (8, 1),
        ..Metadata::of_kind(FileKind::File)
    }
}

type Entry<'a> = (&'a [u8], Option<&'a [u8]>, Metadata, Option<&'a [u8]>);

fn pieces(entries: &[Entry<'_>]) -> Vec<Vec<u8>> {
    let (mut encoder, mut blocks) = (PieceEncoder::default(), Vec::new());
    let mut write = |block: &[u8]| {
        blocks.push(block.to_vec());
        Ok(())
    };
    for (directory, name, metadata, first_name) in entries {
        encoder
            .add(directory, *name, metadata, *first_name, &mut write)
            .unwrap();
    }
    encoder.finish(&mut write).unwrap();
    blocks
}

fn part(blocks: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let mut writer = BlockWriter::new(Vec::new(), FileRole::Part).unwrap();
    for (kind, payload) in blocks {
        writer.write(*kind, payload).unwrap();
    }
    writer.finish().unwrap()
}

/// A part with these members, and with totals that are right.
fn with_members(entries: &[Entry<'_>]) -> Result<u64, PlanFileError> {
    let content = |metadata: &Metadata| match metadata.kind {
        FileKind::File => metadata.size,
        _ => 0,
    };
    let bytes = entries
        .iter()
        .fold(0_u64, |sum, entry| sum.wrapping_add(content(&entry.2)));
    let mut totals = Vec::new();
    for number in [entries.len() as u64, bytes, 0] {
        totals.number(number);
    }
    let mut blocks = vec![(b'H', header()), (b'O', owners())];
    blocks.extend(pieces(entries).into_iter().map(|piece| (b'M', piece)));
    blocks.push((b'T', totals));
    check_part(&part(&blocks)[..])
}

fn named<'a>(directory: &'a [u8], name: &'a [u8]) -> Entry<'a> {
    (directory, Some(name), a_file(), None)
}

#[test]
fn members_in_order_are_accepted() {
    let own = Metadata::of_kind(FileKind::Directory);
    let entries = [
        named(b"", b"a"),
        named(b"", b"b"),
        (&b"d"[..], None, own, None),
        named(b"d", b"a"),
        (
            b"d",
            Some(b"b"),
            Metadata {
                links: 2,
                ..a_file()
            },
            Some(b"a"),
        ),
        named(b"d/e", b"\xff"),
    ];
    assert_eq!(with_members(&entries).unwrap(), 6);
}

#[test]
fn names_that_lead_out_of_the_tree_are_refused() {
    let directories: [&[u8]; 9] = [
        b"..", b"/etc", b"a/../b", b"a//b", b"a/", b"./a", b"a/.", b"../a", b"a\0b",
    ];
    for directory in directories {
        assert!(!is_path_below(directory));
        let refused = with_members(&[named(directory, b"a")]);
        assert!(
            matches!(refused, Err(PlanFileError::Malformed { .. })),
            "{directory:?}"
        );
        let own = (
            directory,
            None,
            Metadata::of_kind(FileKind::Directory),
            None,
        );
        assert!(with_members(&[own]).is_err(), "{directory:?}");
        let linked = (
            &b""[..],
            Some(&b"a"[..]),
            Metadata {
                links: 2,
                ..a_file()
            },
            Some(directory),
        );
        assert!(with_members(&[linked]).is_err(), "{directory:?}");
    }
    for name in [&b""[..], b".", b"..", b"a/b", b"/", b"a\0", &[b'x'; 70_000]] {
        let refused = with_members(&[named(b"d", name)]);
        assert!(
            matches!(refused, Err(PlanFileError::Malformed { .. })),
            "{name:?}"
        );
    }
}

#[test]
fn members_out_of_order_or_twice_are_refused() {
    let orders: [&[Entry<'_>]; 5] = [
        &[named(b"", b"b"), named(b"", b"a")],
        &[named(b"", b"a"), named(b"", b"a")],
        &[named(b"d", b"a"), named(b"", b"b")],
        &[named(b"d", b"a"), named(b"e", b"a"), named(b"d", b"b")],
        &[
            named(b"d", b"a"),
            (b"d", None, Metadata::of_kind(FileKind::Directory), None),
        ],
    ];
    for entries in orders {
        let refused = with_members(entries);
        assert!(
            matches!(refused, Err(PlanFileError::Malformed { .. })),
            "{entries:?}"
        );
    }
}

#[test]
fn values_that_no_walk_finds_are_refused() {
    let good = a_file();
    let nanoseconds = Timestamp {
        seconds: 0,
        nanoseconds: 1_000_000_000,
    };
    for bad in [
        Metadata {
            size: u64::MAX,
            ..good
        },
        Metadata {
            size: 1 << 56,
            ..good
        },
        Metadata {
            mode: 0o10_000,
            ..good
        },
        Metadata {
            mtime: nanoseconds,
            ..good
        },
        Metadata {
            filesystem: (1 << 12, 0),
            ..good
        },
        Metadata {
            device: (0, 1 << 20),
            ..good
        },
        Metadata {
            kind: FileKind::Socket,
            ..good
        },
        Metadata {
            kind: FileKind::Symlink,
            size: u64::MAX,
            uid: 1,
            ..good
        },
        Metadata { uid: 7, ..good },
        Metadata { gid: 7, ..good },
    ] {
        let refused = with_members(&[(b"", Some(b"a"), bad, None)]);
        assert!(
            matches!(refused, Err(PlanFileError::Malformed { .. })),
            "{bad:?}"
        );
    }
    // Each is possible, and all together are not.
    let large: Vec<Vec<u8>> = (0..200_u8)
        .map(|number| vec![b'a', number + b'0'])
        .collect();
    let metadata = Metadata {
        size: 1 << 55,
        ..good
    };
    let entries: Vec<Entry<'_>> = large
        .iter()
        .map(|name| (&b""[..], Some(&name[..]), metadata, None))
        .collect();
    assert!(with_members(&entries[..100]).is_ok());
    assert!(with_members(&entries).is_err());
}

#[test]
fn a_part_must_be_complete_and_end() {
    let piece = pieces(&[named(b"", b"a")]).remove(0);
    let totals = |members: u64, bytes: u64| {
        let mut block = Vec::new();
        for number in [members, bytes, 0] {
            block.number(number);
        }
        (b'T', block)
    };
    let start = [(b'H', header()), (b'O', owners())];
    let member = (b'M', piece);
    let with = |rest: &[(u8, Vec<u8>)]| check_part(&part(&[&start[..], rest].concat())[..]);
    assert_eq!(with(&[member.clone(), totals(1, 10)]).unwrap(), 1);
    for rest in [
        &[][..],
        std::slice::from_ref(&member),
        &[member.clone(), totals(2, 10)],
        &[member.clone(), totals(u64::MAX, 10)],
        &[member.clone(), totals(1, 11)],
        &[totals(0, 0), member.clone()],
        &[totals(0, 0), totals(0, 0)],
        &[(b'?', Vec::new()), totals(0, 0)],
        &[(b'M', vec![0]), totals(0, 0)],
        &[(b'M', vec![0xff; 12]), totals(0, 0)],
        &[(b'O', b"u\0\x7f".to_vec()), totals(0, 0)],
        &[(b'O', owners()), totals(0, 0)],
    ] {
        assert!(
            matches!(with(rest), Err(PlanFileError::Malformed { .. })),
            "{rest:?}"
        );
    }
    let headless = check_part(&part(&[(b'O', owners()), totals(0, 0)])[..]);
    assert!(matches!(headless, Err(PlanFileError::Malformed { .. })));
}
