//! The golden archives of zstash: every volume is scanned and compared with what `zstash ls -l` said.

use std::fs;
use std::path::{Path, PathBuf};

use stook_volume::{Depth, Event, HeaderCheck, Kind, Scanner, decode};

const CASES: [&str; 8] = [
    "basic",
    "duplicate-tars",
    "gnu-format",
    "hard-links",
    "no-tars-table",
    "odd-names",
    "shifted-offsets",
    "volumes",
];

struct Row {
    name: Vec<u8>,
    size: u64,
    has_md5: bool,
    volume: String,
    offset: u64,
}

fn case_folder(case: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../stook-archive/tests/fixtures/zstash")
        .join(case)
}

#[expect(clippy::disallowed_methods, reason = "a test reads its fixtures")]
fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Reads `ls-l.txt`. Names hold tabs and newlines, so a row ends at the tab at its end.
fn rows(case: &str) -> Vec<Row> {
    let text = String::from_utf8(read(&case_folder(case).join("ls-l.txt"))).unwrap();
    let body = text
        .split_once("offset\t\n")
        .or_else(|| text.split_once("offset\n"))
        .unwrap()
        .1;
    let rows = body.split("\t\n").filter(|row| !row.trim().is_empty());
    rows.map(|row| {
        let mut fields = row.rsplitn(6, '\t');
        let mut next = || fields.next().unwrap();
        let (offset, volume, md5, _mtime, size) = (next(), next(), next(), next(), next());
        Row {
            name: next().split_once('\t').unwrap().1.into(),
            size: size.parse().unwrap(),
            has_md5: md5 != "None",
            volume: volume.into(),
            offset: offset.parse().unwrap(),
        }
    })
    .collect()
}

fn volumes(case: &str) -> Vec<(String, Vec<u8>)> {
    #[expect(clippy::disallowed_methods, reason = "a test lists its fixtures")]
    let entries = fs::read_dir(case_folder(case).join("archive")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut volumes: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "tar"))
        .map(|path| {
            (
                path.file_name().unwrap().to_str().unwrap().to_owned(),
                read(&path),
            )
        })
        .collect();
    volumes.sort();
    assert!(!volumes.is_empty());
    volumes
}

#[test]
fn every_volume_holds_the_members_of_its_index() {
    for case in CASES.iter().filter(|case| **case != "shifted-offsets") {
        let rows = rows(case);
        let mut found = 0;
        for (volume, bytes) in volumes(case) {
            let mut is_ended = false;
            for event in Scanner::new(&bytes, 0).with_depth(Depth::Contents) {
                match event.unwrap() {
                    Event::Member(member) => {
                        found += 1;
                        let row = rows
                            .iter()
                            .find(|row| row.volume == volume && row.offset == member.offset);
                        let row =
                            row.unwrap_or_else(|| panic!("{case}/{volume}@{}", member.offset));
                        assert_eq!(member.header.name, row.name, "{case}");
                        assert_eq!(member.header.size, row.size, "{case}");
                        assert_eq!(member.data_len, row.size, "{case}");
                        assert_eq!(member.header.kind.has_content(), row.has_md5, "{case}");
                        assert_eq!(member.checksum, HeaderCheck::Absent);
                        assert_eq!(decode(&bytes, row.offset).unwrap(), Some(member));
                    }
                    Event::End { offset } => {
                        is_ended = true;
                        assert_eq!(
                            offset + stook_volume::trailer_len(offset),
                            bytes.len() as u64,
                            "{case}"
                        );
                    }
                    Event::Damage { offset, reason, .. } => {
                        panic!("{case}/{volume}@{offset}: {reason}")
                    }
                }
            }
            assert!(is_ended, "{case}/{volume}");
        }
        let mut places: Vec<_> = rows.iter().map(|row| (&row.volume, row.offset)).collect();
        places.sort();
        places.dedup();
        assert_eq!(found, places.len(), "{case}");
    }
}

/// Defect D4: a file that shrank while it was archived shifts all later offsets.
#[test]
fn defect_4_members_after_a_shrunken_file_are_found() {
    let (_, bytes) = volumes("shifted-offsets").remove(0);
    let rows = rows("shifted-offsets");
    for depth in [Depth::Headers, Depth::Contents] {
        let mut names = Vec::new();
        let mut damage = Vec::new();
        let mut end = None;
        for event in Scanner::new(&bytes, 0).with_depth(depth) {
            match event.unwrap() {
                Event::Member(member) => {
                    assert_eq!(
                        decode(&bytes, member.offset).unwrap().as_ref(),
                        Some(&member)
                    );
                    let row = rows
                        .iter()
                        .find(|row| row.name == member.header.name)
                        .unwrap();
                    assert_eq!(member.header.size, row.size);
                    names.push(member.header.name);
                }
                Event::Damage {
                    offset,
                    len,
                    reason,
                } => damage.push((offset, len, reason.to_string())),
                Event::End { offset } => end = Some(offset),
            }
        }
        assert_eq!(
            names,
            rows.iter().map(|row| row.name.clone()).collect::<Vec<_>>()
        );
        let text = "the content of `a/deep/er/three.bin` is cut short: the next member begins at offset 34816";
        assert_eq!(damage, [(16_896, 17_920, text.to_owned())]);
        assert_eq!(end, Some(569_344));
    }
}

/// Defect D1: zstash stores the content of a hard link behind its header.
#[test]
fn defect_1_hard_links_carry_their_content() {
    let links: Vec<_> = volumes("hard-links")
        .iter()
        .flat_map(|(_, bytes)| {
            Scanner::new(bytes, 0)
                .map(Result::unwrap)
                .collect::<Vec<_>>()
        })
        .filter_map(|event| match event {
            Event::Member(member) if member.header.kind == Kind::HardLink => Some(member),
            _ => None,
        })
        .collect();
    assert!(!links.is_empty());
    for link in links {
        assert!(link.data_len > 0 && !link.header.target.is_empty());
    }
}
