//! The reader in `docs/format.md` reads what this crate writes: so the page tells all that is needed, and tells it right.

use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

use stook_volume::{Dialect, Header, Kind, Segment};

use crate::volume::{Volume, content, file};

const PAGE: &str = "../../docs/format.md";

/// Returns the first block of Python on the page.
fn reader() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = std::fs::read_to_string(page).unwrap();
    let (_, rest) = page.split_once("```python\n").unwrap();
    let (script, _) = rest.split_once("```").unwrap();
    script.to_owned()
}

/// Runs the reader; None if there is no Python.
fn read(volume: &[u8]) -> Option<std::process::Output> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("000000.tar");
    stook_sys::write_file(&path, volume).unwrap();
    let run = Command::new("python3")
        .args(["-I", "-c", &reader()])
        .arg(&path)
        .output();
    match run {
        Ok(output) => Some(output),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            stook_testkit::skip!("there is no python3");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn line(offset: u64, typeflag: char, content: &[u8], name: &[u8]) -> String {
    let name: String = name.iter().map(|byte| format!("{byte:02x}")).collect();
    let crc = crc32fast::hash(content);
    format!("{offset} {typeflag} {} {crc:08x} {name}\n", content.len())
}

/// One member of every sort, each with what makes its header special.
fn members(dialect: Dialect) -> Vec<(Header, char)> {
    let of_kind = |name: &str, kind| Header {
        kind,
        ..file(name, 0)
    };
    let mut members = vec![
        (file("plain", 1000), '0'),
        (file("empty", 0), '0'),
        (file("whole-blocks", 1024), '0'),
        (file(&"long/".repeat(80).replace("/l", "/ü"), 513), '0'),
        (of_kind("directory", Kind::Directory), '5'),
        (of_kind("fifo", Kind::Fifo), '6'),
        (
            Header {
                target: vec![b't'; 300],
                ..of_kind("link", Kind::Symlink)
            },
            '2',
        ),
        (
            Header {
                device: (1, 3),
                ..of_kind("null", Kind::CharDevice)
            },
            '3',
        ),
        (
            Header {
                name: b"raw \xff\n= name".to_vec(),
                uid: 1 << 40,
                gname: "grüppe".into(),
                xattrs: vec![(b"user.a=b%".to_vec(), b"\0=\n".to_vec())],
                link: Some(b"plain".to_vec()),
                ..file("", 700)
            },
            '0',
        ),
    ];
    members[3].0.name.pop();
    if dialect == Dialect::Zstash {
        let link = Header {
            target: b"plain".to_vec(),
            kind: Kind::HardLink,
            ..file("again", 1000)
        };
        members.push((link, '1'));
    }
    members
}

#[test]
fn the_reader_of_the_page_reads_members_of_both_dialects() {
    for dialect in [Dialect::Stook, Dialect::Zstash] {
        let mut volume = Volume::default();
        let mut expected = String::new();
        for (header, typeflag) in members(dialect) {
            let data = content(header.name[0], header.size);
            let offset = volume.add(&header, dialect, &data);
            expected.push_str(&line(offset, typeflag, &data, &header.name));
        }
        let Some(output) = read(&volume.finish()) else {
            return;
        };
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    }
}

#[test]
fn the_reader_of_the_page_fills_the_holes_of_sparse_files() {
    let mut volume = Volume::default();
    let mut expected = String::new();
    let segment = |offset, len| Segment { offset, len };
    let many: Vec<Segment> = (0..200).map(|n| segment(n * 8192, 512)).collect();
    for (name, size, segments) in [
        ("all hole", 5_000_000, vec![]),
        ("middle", 1 << 20, vec![segment(524_288, 4096)]),
        (
            "end",
            1_048_676,
            vec![segment(0, 512), segment(1_048_576, 100)],
        ),
        ("a/map/of/many/blocks", 2_000_000, many),
    ] {
        let mut whole = vec![0; usize::try_from(size).unwrap()];
        let mut stored = Vec::new();
        for segment in &segments {
            let data = content(b's', segment.len);
            let start = usize::try_from(segment.offset).unwrap();
            whole[start..start + data.len()].copy_from_slice(&data);
            stored.extend(data);
        }
        let header = Header {
            sparse: Some(segments),
            ..file(name, size)
        };
        let offset = volume.add(&header, Dialect::Stook, &stored);
        expected.push_str(&line(offset, '0', &whole, name.as_bytes()));
    }
    let Some(output) = read(&volume.finish()) else {
        return;
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}

#[test]
fn the_reader_of_the_page_sees_a_changed_header() {
    let mut volume = Volume::default();
    volume.add_file("file", 10);
    let mut bytes = volume.finish();
    // The mode, and the sum of the block put right again: a tar reader would believe it.
    let block = &mut bytes[1024..1536];
    let digit = |byte: u8, change: i8| byte.checked_add_signed(change).unwrap();
    assert_eq!(&block[100..107], b"0000644");
    block[106] = digit(block[106], 1);
    assert!(
        block[153] < b'7',
        "the sum is to be changed in its last digit"
    );
    block[153] = digit(block[153], 1);
    let Some(output) = read(&bytes) else {
        return;
    };
    assert!(!output.status.success());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("a damaged header"), "{errors}");
}
