//! Other programs read the members that stook writes: Python's `tarfile` and GNU tar.

use std::path::Path;
use std::process::Command;

use stook_volume::{Depth, Dialect, Header, Kind, Segment};

use crate::interpreter::python;
use crate::volume::{Volume, content, file, lines};

const SIZE: u64 = 1 << 20;

fn segments() -> Vec<Segment> {
    vec![
        Segment {
            offset: 4096,
            len: 8192,
        },
        Segment {
            offset: 500_224,
            len: 512,
        },
    ]
}

/// Returns the volume and the content of its sparse file.
fn volume() -> (Vec<u8>, Vec<u8>) {
    let stored = content(3, 8192 + 512);
    let mut whole = vec![0; 1 << 20];
    whole[4096..4096 + 8192].copy_from_slice(&stored[..8192]);
    whole[500_224..500_224 + 512].copy_from_slice(&stored[8192..]);
    let sparse = Header {
        sparse: Some(segments()),
        ..file("dir/holes", SIZE)
    };
    let mut volume = Volume::default();
    volume.add_file("plain", 700);
    volume.add(&sparse, Dialect::Stook, &stored);
    volume.add(
        &Header {
            sparse: Some(Vec::new()),
            ..file("dir/nothing", 5000)
        },
        Dialect::Stook,
        b"",
    );
    let xattrs = vec![
        (b"user.a=%b".to_vec(), b"one".to_vec()),
        (b"user.note".to_vec(), b"two".to_vec()),
    ];
    let rich = Header {
        xattrs,
        link: Some(b"7:42".to_vec()),
        ..file(&("long/".repeat(40) + "é"), 3)
    };
    volume.add(&rich, Dialect::Stook, b"abc");
    let symlink = Header {
        kind: Kind::Symlink,
        target: b"plain".to_vec(),
        ..file("to-plain", 0)
    };
    volume.add(&symlink, Dialect::Stook, b"");
    volume.add(
        &Header {
            kind: Kind::Directory,
            mode: 0o755,
            ..file("empty", 0)
        },
        Dialect::Stook,
        b"",
    );
    volume.add_file("last", 513);
    (volume.finish(), whole)
}

#[expect(clippy::disallowed_methods, reason = "a test feeds another program")]
fn put(folder: &Path, bytes: &[u8]) {
    std::fs::write(folder.join("000000.tar"), bytes).unwrap();
}

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{errors}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn python_reads_every_member() {
    let Some(mut python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (bytes, whole) = volume();
    put(folder.path(), &bytes);
    let script = "
import sys, tarfile, zlib
with tarfile.open('000000.tar') as volume:
    for m in volume:
        crc = zlib.crc32(volume.extractfile(m).read()) if m.isreg() else m.linkname
        print(m.name[-9:], m.type.decode(), m.size, m.mtime, oct(m.mode), m.uname, crc, m.offset, sep='|')
        if 'STOOK.link' in m.pax_headers:
            print(m.pax_headers['STOOK.link'], m.pax_headers['SCHILY.xattr.user.a%3D%25b'])
";
    let listing = output(python.current_dir(folder.path()).args(["-c", script]));
    let crc = |bytes: &[u8]| crc32fast::hash(bytes);
    let offsets: Vec<_> = lines(&bytes, Depth::Headers)
        .iter()
        .map(|l| l.split('@').nth(1).unwrap().to_owned())
        .collect();
    let time = "1700000000.1234567";
    let expected = [
        format!(
            "plain|0|700|{time}|0o644|ana|{}|{}",
            crc(&content(b'p', 700)),
            offsets[0]
        ),
        format!(
            "dir/holes|0|{SIZE}|{time}|0o644|ana|{}|{}",
            crc(&whole),
            offsets[1]
        ),
        format!(
            "r/nothing|0|5000|{time}|0o644|ana|{}|{}",
            crc(&[0; 5000]),
            offsets[2]
        ),
        format!(
            "ong/long/é|0|3|{time}|0o644|ana|{}|{}",
            crc(b"abc"),
            offsets[3]
        )
        .replacen("o", "", 1),
        "7:42 one".to_owned(),
        format!("to-plain|2|0|{time}|0o644|ana|plain|{}", offsets[4]),
        format!("empty|5|0|{time}|0o755|ana||{}", offsets[5]),
        format!(
            "last|0|513|{time}|0o644|ana|{}|{}",
            crc(&content(b'l', 513)),
            offsets[6]
        ),
    ];
    assert_eq!(listing.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn gnu_tar_reads_every_member() {
    let is_gnu = Command::new("tar")
        .arg("--version")
        .output()
        .is_ok_and(|o| o.stdout.starts_with(b"tar (GNU tar)"));
    if !is_gnu {
        stook_testkit::skip!("tar is not GNU tar");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (bytes, whole) = volume();
    put(folder.path(), &bytes);
    let tar = |arguments: &[&str]| {
        output(
            Command::new("tar")
                .current_dir(folder.path())
                .envs([("LC_ALL", "C.UTF-8"), ("TZ", "UTC")])
                .args(arguments),
        )
    };
    let listing = tar(&[
        "--warning=no-unknown-keyword",
        "--numeric-owner",
        "--xattrs",
        "-tvvf",
        "000000.tar",
    ]);
    let sizes = |name: &str| {
        listing
            .lines()
            .find(|line| line.ends_with(name))
            .map(|line| line.split_whitespace().nth(2).unwrap().to_owned())
    };
    assert_eq!(sizes("dir/holes").as_deref(), Some("1048576"), "{listing}");
    assert_eq!(sizes("dir/nothing").as_deref(), Some("5000"));
    assert_eq!(sizes("last").as_deref(), Some("513"));
    assert_eq!(sizes("to-plain -> plain").as_deref(), Some("0"));
    assert!(
        listing.contains("  x: 3 user.a=%b\n") && listing.contains("  x: 3 user.note\n"),
        "{listing}"
    );
    assert!(listing.contains("long/é\n"), "{listing}");
    for (name, expected) in [
        ("dir/holes", &whole[..]),
        ("dir/nothing", &[0; 5000]),
        ("last", &content(b'l', 513)),
    ] {
        tar(&[
            "--warning=no-unknown-keyword",
            "--no-same-owner",
            "-xf",
            "000000.tar",
            name,
        ]);
        #[expect(
            clippy::disallowed_methods,
            reason = "a test reads what another program wrote"
        )]
        let found = std::fs::read(folder.path().join(name)).unwrap();
        assert!(found == expected, "{name}: {} bytes", found.len());
    }
}

#[test]
fn what_gnu_tar_writes_is_read() {
    let is_gnu = Command::new("tar")
        .arg("--version")
        .output()
        .is_ok_and(|o| o.stdout.starts_with(b"tar (GNU tar)"));
    if !is_gnu {
        stook_testkit::skip!("tar is not GNU tar");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (bytes, whole) = volume();
    put(folder.path(), &bytes);
    let run = |arguments: &[&str]| {
        output(
            Command::new("tar")
                .current_dir(folder.path())
                .args(arguments),
        )
    };
    run(&[
        "--warning=no-unknown-keyword",
        "--no-same-owner",
        "-xf",
        "000000.tar",
    ]);
    for arguments in [
        &["--format=gnu"][..],
        &["--format=ustar"],
        &["--format=v7"],
        &["--format=pax"],
    ] {
        let names = ["dir/holes", "dir/nothing", "to-plain", "empty", "last"];
        run(&[arguments, &["-cf", "other.tar"], &names].concat());
        check_other(
            folder.path(),
            &["dir/holes", "dir/nothing", "to-plain", "empty", "last"],
            None,
        );
    }
    for version in ["0.0", "0.1", "1.0"] {
        let option = format!("--sparse-version={version}");
        run(&[
            "--format=pax",
            "-S",
            &option,
            "-cf",
            "other.tar",
            "dir/holes",
            "last",
        ]);
        check_other(folder.path(), &["dir/holes", "last"], Some(&whole));
    }
}

fn check_other(folder: &Path, names: &[&str], sparse: Option<&[u8]>) {
    #[expect(
        clippy::disallowed_methods,
        reason = "a test reads what another program wrote"
    )]
    let bytes = std::fs::read(folder.join("other.tar")).unwrap();
    let found = lines(&bytes, Depth::Headers);
    let listed: Vec<_> = found
        .iter()
        .map(|line| line.split('@').next().unwrap())
        .collect();
    assert_eq!(listed[..names.len()], *names);
    assert_eq!(listed[names.len()], "end");
    let member = stook_volume::decode(&bytes, 0).unwrap().unwrap();
    assert_eq!(member.header.size, SIZE);
    let start = usize::try_from(member.data_offset).unwrap();
    let data = &bytes[start..start + usize::try_from(member.data_len).unwrap()];
    if let (Some(whole), Some(segments)) = (sparse, &member.header.sparse) {
        let stored = segments.iter().flat_map(|segment| {
            let start = usize::try_from(segment.offset).unwrap();
            &whole[start..start + usize::try_from(segment.len).unwrap()]
        });
        assert!(stored.eq(data));
    } else {
        assert_eq!(data.len() as u64, SIZE);
    }
}
