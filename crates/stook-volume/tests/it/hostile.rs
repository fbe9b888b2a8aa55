//! Members of other writers, and members nobody should write: each is read or named precisely.

use stook_sys::Timestamp;
use stook_volume::{
    Decoded, Dialect, Kind, Member, Segment, VolumeError, decode, decode_bytes, encode,
};

use crate::volume::{file, what};

/// Returns a header block; `fields` replace what stands at their offsets.
pub(crate) fn block(typeflag: u8, name: &[u8], size: u64, fields: &[(usize, &[u8])]) -> Vec<u8> {
    let mut block = vec![0; 512];
    let size = format!("{size:011o}\0");
    let standard: [(usize, &[u8]); 7] = [
        (0, name),
        (100, b"0000640\0"),
        (108, b"0000012\0"),
        (116, b"0000013\0"),
        (124, size.as_bytes()),
        (136, b"14524770400\0"),
        (257, b"ustar\x0000"),
    ];
    for (offset, bytes) in standard.iter().chain(fields) {
        block[*offset..offset + bytes.len()].copy_from_slice(bytes);
    }
    block[156] = typeflag;
    set_checksum(&mut block);
    block
}

fn set_checksum(block: &mut [u8]) {
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}

pub(crate) fn record(keyword: &str, value: &[u8]) -> Vec<u8> {
    let rest = keyword.len() + value.len() + 3;
    let len = (rest..)
        .find(|len| rest + len.to_string().len() == *len)
        .unwrap();
    [format!("{len} {keyword}=").as_bytes(), value, b"\n"].concat()
}

/// Returns an extension header with its payload, padded.
pub(crate) fn extension(typeflag: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = block(typeflag, b"extension", payload.len() as u64, &[]);
    bytes.extend_from_slice(payload);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

pub(crate) fn pax(records: &[(&str, &[u8])]) -> Vec<u8> {
    let payload: Vec<u8> = records
        .iter()
        .flat_map(|(keyword, value)| record(keyword, value))
        .collect();
    extension(b'x', &payload)
}

fn member(bytes: &[u8]) -> Member {
    match decode_bytes(bytes, 0).unwrap() {
        Decoded::Member(member) => member,
        other => panic!("{other:?}"),
    }
}

fn error(bytes: &[u8]) -> String {
    match decode(bytes, 0) {
        Err(error) => what(&error),
        Ok(found) => panic!("{found:?}"),
    }
}

#[test]
fn plain_ustar_with_a_prefix() {
    let found = member(&block(
        b'0',
        b"file",
        5,
        &[(345, b"some/dir"), (265, b"ana"), (297, b"users")],
    ));
    assert_eq!(found.header.name, b"some/dir/file");
    assert_eq!(
        (found.header.mode, found.header.uid, found.header.gid),
        (0o640, 10, 11)
    );
    assert_eq!(
        (&found.header.uname[..], &found.header.gname[..]),
        (&b"ana"[..], &b"users"[..])
    );
    assert_eq!(
        (found.data_offset, found.data_len, found.end),
        (512, 5, 1024)
    );
    assert_eq!(
        found.header.mtime,
        Timestamp {
            seconds: 0o14524770400,
            nanoseconds: 0
        }
    );
}

#[test]
fn headers_older_than_ustar() {
    let v7 = block(0, b"dir/", 0, &[(257, &[0; 8])]);
    let found = member(&v7);
    assert_eq!(
        (found.header.kind, &found.header.name[..]),
        (Kind::Directory, &b"dir"[..])
    );
    let owner_is_garbage = block(
        0,
        b"f",
        1,
        &[(257, &[0; 8]), (265, b"garbage"), (345, b"garbage")],
    );
    assert_eq!(member(&owner_is_garbage).header.uname, b"");
    assert_eq!(member(&owner_is_garbage).header.name, b"f");
}

#[test]
fn gnu_names_and_numbers() {
    let long = vec![b'p'; 300];
    let bytes = [
        extension(b'K', b"old target\0"),
        extension(b'L', &[&long[..], b"\0"].concat()),
        block(
            b'2',
            &long[..100],
            0,
            &[
                (257, b"ustar  \0"),
                (108, b"\x80\0\0\0\x7f\xff\xff\xff"),
                (136, &[0xff; 12]),
                (345, b"atime"),
            ],
        ),
    ]
    .concat();
    let found = member(&bytes);
    assert_eq!(found.header.name, long, "the prefix of GNU tar is none");
    assert_eq!(found.header.target, b"old target");
    assert_eq!(found.header.uid, 0x7fff_ffff);
    assert_eq!(found.header.mtime.seconds, -1);
    // A PAX record wins over a GNU name wherever it stands.
    let with_pax = [pax(&[("path", b"by pax")]), bytes].concat();
    assert_eq!(member(&with_pax).header.name, b"by pax");
    let with_size = block(b'0', b"big", 0, &[(124, b"\x80\0\0\0\0\0\x01\0\0\0\0\0")]);
    assert_eq!(member(&with_size).header.size, 1 << 40);
}

#[test]
fn names_are_freed_of_dots_and_slashes() {
    for (stored, expected) in [
        (&b"./a/b"[..], &b"a/b"[..]),
        (b"././a", b"a"),
        (b".//etc/x", b"etc/x"),
        (b"./", b"."),
        (b".", b"."),
        (b"/", b"/"),
        (b"/abs/", b"/abs"),
        (b"../up", b"../up"),
        (b".hidden", b".hidden"),
        (b"dir///", b"dir"),
    ] {
        assert_eq!(
            member(&block(b'5', stored, 0, &[])).header.name,
            expected,
            "{}",
            stored.escape_ascii()
        );
    }
}

#[test]
fn the_size_of_a_record_always_wins() {
    for in_block in [0, 5, 100_000] {
        let bytes = [pax(&[("size", b"700")]), block(b'0', b"a", in_block, &[])].concat();
        let found = member(&bytes);
        assert_eq!(
            (found.header.size, found.data_len, found.end),
            (700, 700, 1536 + 1024)
        );
    }
}

#[test]
fn only_files_and_hard_links_have_content() {
    for typeflag in *b"23456" {
        let found = member(&block(typeflag, b"a", 999, &[(157, b"target")]));
        assert_eq!((found.header.size, found.data_len, found.end), (0, 0, 512));
    }
    for (size, end) in [(0, 512), (700, 1536)] {
        let found = member(&block(b'1', b"a", size, &[(157, b"./first")]));
        assert_eq!((found.header.size, found.end), (size, end));
        assert_eq!(found.header.target, b"first");
    }
}

#[test]
fn global_records_count_for_no_member() {
    let global = extension(
        b'g',
        &[record("comment", b"abc"), record("uname", b"all")].concat(),
    );
    let bytes = [&global[..], &block(b'0', b"a", 0, &[])].concat();
    let found = member(&bytes);
    assert_eq!((found.offset, found.data_offset), (0, 1536));
    assert_eq!(
        found.header.uname, b"",
        "as at the offset of any later member"
    );
    let own = [
        &global[..],
        &pax(&[("uname", b"own")]),
        &block(b'0', b"a", 0, &[]),
    ]
    .concat();
    assert_eq!(member(&own).header.uname, b"own");
    // At the end of a volume they hold for nothing.
    assert!(matches!(
        decode_bytes(&[&global[..], &[0; 1024]].concat(), 0),
        Ok(Decoded::End)
    ));
}

#[test]
fn the_older_sparse_versions_are_read() {
    let expected = Some(vec![
        Segment {
            offset: 512,
            len: 512,
        },
        Segment {
            offset: 4096,
            len: 100,
        },
    ]);
    let version_0_0 = pax(&[
        ("GNU.sparse.size", b"5000"),
        ("GNU.sparse.numblocks", b"3"),
        ("GNU.sparse.offset", b"512"),
        ("GNU.sparse.numbytes", b"512"),
        ("GNU.sparse.offset", b"4096"),
        ("GNU.sparse.numbytes", b"100"),
        ("GNU.sparse.offset", b"5000"),
        ("GNU.sparse.numbytes", b"0"),
    ]);
    let version_0_1 = pax(&[
        ("GNU.sparse.size", b"5000"),
        ("GNU.sparse.numblocks", b"3"),
        ("GNU.sparse.name", b"dir/a"),
        ("GNU.sparse.map", b"512,512,4096,100,5000,0"),
    ]);
    for (extended, name) in [(version_0_0, &b"a"[..]), (version_0_1, b"dir/a")] {
        let found = member(&[extended, block(b'0', b"a", 612, &[])].concat());
        assert_eq!(found.header.sparse, expected);
        assert_eq!(
            (found.header.size, found.data_len, &found.header.name[..]),
            (5000, 612, name)
        );
    }
    let hole = pax(&[("GNU.sparse.size", b"5000"), ("GNU.sparse.numblocks", b"0")]);
    let found = member(&[hole, block(b'0', b"a", 0, &[])].concat());
    assert_eq!(
        (found.header.size, found.header.sparse),
        (5000, Some(Vec::new()))
    );
}

fn sparse_1_0(map: &[u8], real_size: &[u8], stored: u64) -> Vec<u8> {
    let records = [
        ("GNU.sparse.major", &b"1"[..]),
        ("GNU.sparse.minor", b"0"),
        ("GNU.sparse.realsize", real_size),
    ];
    let mut bytes = [pax(&records), block(b'0', b"a", stored, &[]), map.to_vec()].concat();
    bytes.resize(bytes.len().next_multiple_of(512) + 8192, 0);
    bytes
}

#[test]
fn sparse_maps_that_do_not_fit_are_refused() {
    assert_eq!(
        member(&sparse_1_0(b"1\n0\n8\n", b"8", 520)).data_offset,
        2048
    );
    for (map, real_size, stored) in [
        (&b"2\n0\n8\n4\n8\n"[..], &b"100"[..], 528),
        (b"2\n8\n8\n0\n8\n", b"100", 528),
        (b"1\n0\n8\n", b"7", 520),
        (b"1\n0\n8\n", b"8", 521),
        (b"1\n0\n8\n", b"8", 519),
        (b"1\n0\n8\n", b"18446744073709551615", 520),
        (b"99999999\n0\n8\n", b"8", 520),
        (b"1\n0\n8\n", b"8", 3),
        (b"1\n18446744073709551615\n8\n", b"8", 520),
    ] {
        let bytes = sparse_1_0(map, real_size, stored);
        assert_eq!(error(&bytes), "SparseMap", "{}", map.escape_ascii());
    }
    let unknown = pax(&[("GNU.sparse.major", b"2"), ("GNU.sparse.minor", b"0")]);
    assert_eq!(
        error(&[unknown, block(b'0', b"a", 0, &[])].concat()),
        "SparseMap"
    );
}

#[test]
fn broken_headers_are_named() {
    let plain = block(b'0', b"a", 0, &[]);
    let zeros = vec![0; 1024];
    let mut damaged = plain.clone();
    damaged[0] ^= 1;
    let huge = b"9223372036854775807";
    for (bytes, expected) in [
        (damaged, "Checksum"),
        (vec![b'x'; 4096], "Checksum"),
        (Vec::new(), "Truncated"),
        (vec![0; 100], "Truncated"),
        (plain[..100].to_vec(), "Truncated"),
        ([&zeros[..512], &plain[..]].concat(), "LoneZeroBlock"),
        ([pax(&[("path", b"a")]), zeros.clone()].concat(), "NoMember"),
        (
            [extension(b'L', b"a\0"), zeros.clone()].concat(),
            "NoMember",
        ),
        (pax(&[("path", b"a")]), "Truncated"),
        (extension(b'x', b"12 path=a\n"), "Record"),
        (extension(b'x', b"10 path=a\n\0\0"), "Record"),
        (extension(b'g', b"nonsense"), "Record"),
        (block(b'x', b"a", 1 << 30, &[]), "TooLong"),
        (block(b'L', b"a", 0o77_777_777_777, &[]), "TooLong"),
        (block(b'0', b"a", 0, &[(124, &[0xff; 12])]), "Number"),
        (block(b'0', b"a", 0, &[(108, b"00x0012\0")]), "Number"),
        (
            block(b'0', b"a", 0, &[(124, b"\x80\0\0\0\x80\0\0\0\0\0\0\0")]),
            "Number",
        ),
        (
            block(b'3', b"a", 0, &[(329, b"\x80\0\0\x01\0\0\0\0")]),
            "Number",
        ),
        (
            [pax(&[("size", b"9223372036854775808")]), plain.clone()].concat(),
            "Number",
        ),
        ([pax(&[("path", b"a\0b")]), plain.clone()].concat(), "Name"),
        ([pax(&[("uname", b"a\0b")]), plain.clone()].concat(), "Name"),
        (
            [pax(&[("SCHILY.xattr.", b"v")]), plain.clone()].concat(),
            "Name",
        ),
        (block(b'0', b"", 0, &[]), "Name"),
        (block(b'1', b"a", 0, &[]), "Name"),
        (block(b'S', b"a", 0, &[(257, b"ustar  \0")]), "Unsupported"),
        (block(b'V', b"label", 0, &[]), "Unsupported"),
        (block(b'M', b"a", 0, &[]), "Unsupported"),
    ] {
        assert_eq!(
            error(&bytes),
            expected,
            "{}",
            bytes[..bytes.len().min(600)].escape_ascii()
        );
    }
    let at_the_edge = [pax(&[("size", huge)]), plain].concat();
    assert!(
        matches!(decode(&at_the_edge, 0), Ok(Some(_))),
        "the biggest size of all is one"
    );
    assert!(matches!(
        decode_bytes(&at_the_edge, u64::MAX - 4096),
        Err(VolumeError::Number { .. })
    ));
}

#[test]
fn the_end_is_two_zero_blocks_or_one_that_is_last() {
    assert!(matches!(decode(&vec![0; 1024], 0), Ok(None)));
    assert!(matches!(decode(&vec![0; 512], 0), Ok(None)));
    assert!(matches!(
        decode_bytes(&[0; 512], 0),
        Ok(Decoded::NeedMore(1024))
    ));
    assert!(matches!(decode_bytes(&[0; 1024], 0), Ok(Decoded::End)));
}

#[test]
fn a_stook_header_with_blocks_between_is_damaged() {
    let mut bytes = Vec::new();
    encode(&file("a", 0), Dialect::Stook, &mut bytes).unwrap();
    let moved = [&extension(b'L', b"other\0")[..], &bytes].concat();
    assert_eq!(error(&moved), "Damaged");
    let between = [&bytes[..1024], &extension(b'L', b"other\0"), &bytes[1024..]].concat();
    assert_eq!(error(&between), "Damaged");
}

#[test]
fn a_long_chain_of_extensions_is_read_in_bounded_time() {
    let bytes = [
        extension(b'L', b"a\0").repeat(20_000),
        block(b'0', b"a", 0, &[]),
    ]
    .concat();
    assert_eq!(decode(&bytes, 0).unwrap().unwrap().header.name, b"a");
    assert_eq!(error(&extension(b'L', b"a\0").repeat(66_000)), "TooLong");
}
