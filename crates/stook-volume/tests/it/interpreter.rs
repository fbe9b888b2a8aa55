//! Byte equality with the `tarfile` of the machine's Python, which is what zstash writes with.

use std::process::Command;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use stook_sys::Timestamp;
use stook_volume::{Dialect, Header, Kind, encode};

use crate::generate::zstash_header;
use crate::volume::file;

/// Reads one line of fields in hex per member and prints the header bytes in hex.
const SCRIPT: &str = r#"
import sys, tarfile
types = {"File": b"0", "HardLink": b"1", "Symlink": b"2", "CharDevice": b"3", "BlockDevice": b"4", "Directory": b"5", "Fifo": b"6"}
text = lambda field: bytes.fromhex(field).decode("utf-8", "surrogateescape")
for line in sys.stdin:
    name, kind, target, mode, uid, gid, uname, gname, size, sec, nsec, major, minor = line.rstrip("\n").split(",")
    info = tarfile.TarInfo(text(name))
    info.type = types[kind]
    info.linkname, info.uname, info.gname = text(target), text(uname), text(gname)
    info.mode, info.uid, info.gid, info.size = int(mode) | 0o100000, int(uid), int(gid), int(size)
    info.mtime = float(int(sec)) + 1e-9 * float(int(nsec))
    info.devmajor, info.devminor = int(major), int(minor)
    print(info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape").hex())
"#;

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

fn line(header: &Header) -> String {
    let Header {
        kind,
        mode,
        uid,
        gid,
        size,
        mtime,
        device,
        ..
    } = header;
    format!(
        "{},{kind:?},{},{mode},{uid},{gid},{},{},{size},{},{},{},{}\n",
        hex(&header.name),
        hex(&header.target),
        hex(&header.uname),
        hex(&header.gname),
        mtime.seconds,
        mtime.nanoseconds,
        device.0,
        device.1,
    )
}

/// Returns the machine's Python if its `tarfile` writes what 3.9 and later do.
pub(crate) fn python() -> Option<Command> {
    let check = "import sys; sys.exit(sys.version_info < (3, 9))";
    let is_fit = Command::new("python3")
        .args(["-c", check])
        .status()
        .is_ok_and(|status| status.success());
    if !is_fit {
        stook_testkit::skip!("there is no python3 of version 3.9 or later");
    }
    is_fit.then(|| Command::new("python3"))
}

fn compare(headers: &[Header]) {
    let Some(mut python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("input");
    let lines: String = headers.iter().map(line).collect();
    #[expect(clippy::disallowed_methods, reason = "a test feeds another program")]
    let stdin = {
        std::fs::write(&input, lines).unwrap();
        std::fs::File::open(&input).unwrap()
    };
    let output = python.args(["-c", SCRIPT]).stdin(stdin).output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(printed.lines().count(), headers.len());
    for (header, expected) in headers.iter().zip(printed.lines()) {
        let mut bytes = Vec::new();
        encode(header, Dialect::Zstash, &mut bytes).unwrap();
        assert!(
            hex(&bytes) == expected,
            "{header:?}\n{}",
            bytes.escape_ascii()
        );
    }
}

fn odd_names() -> Vec<Header> {
    let base = file("plain", 3);
    let mut headers = vec![base.clone()];
    for len in [1, 99, 100, 101, 255, 256, 5000] {
        let name = vec![b'n'; len];
        headers.push(Header {
            name: name.clone(),
            ..base.clone()
        });
        headers.push(Header {
            name: name.clone(),
            kind: Kind::Directory,
            size: 0,
            ..base.clone()
        });
        headers.push(Header {
            kind: Kind::Symlink,
            target: name.clone(),
            size: 0,
            ..base.clone()
        });
        headers.push(Header {
            kind: Kind::HardLink,
            target: name,
            ..base.clone()
        });
    }
    for before in 96..101 {
        for tail in [
            &"é".to_owned().into_bytes()[..],
            "🌾".as_bytes(),
            b"\xff",
            b"\xe2\x82",
            b"\xed\xa0\x80",
        ] {
            let name = [vec![b'n'; before], tail.to_vec()].concat();
            headers.push(Header {
                name: name.clone(),
                ..base.clone()
            });
            headers.push(Header {
                kind: Kind::Symlink,
                target: name,
                size: 0,
                ..base.clone()
            });
        }
    }
    headers
}

fn odd_numbers_and_owners() -> Vec<Header> {
    let base = file("plain", 3);
    let mut headers = Vec::new();
    for len in [0, 31, 32, 33] {
        headers.push(Header {
            uname: vec![b'u'; len],
            gname: vec![b'g'; len],
            ..base.clone()
        });
        headers.push(Header {
            uname: "ü".repeat(len).into(),
            gname: vec![0xff; len],
            ..base.clone()
        });
    }
    for id in [0, 2_097_151, 2_097_152, u64::from(u32::MAX), u64::MAX] {
        headers.push(Header {
            uid: id,
            gid: id,
            ..base.clone()
        });
    }
    for size in [8_589_934_591, 8_589_934_592, 1 << 50] {
        headers.push(Header {
            size,
            ..base.clone()
        });
    }
    for kind in [Kind::CharDevice, Kind::BlockDevice, Kind::Fifo] {
        let device = if kind.is_device() {
            (2_097_151, 7)
        } else {
            (0, 0)
        };
        headers.push(Header {
            kind,
            size: 0,
            device,
            ..base.clone()
        });
    }
    headers
}

fn odd_times() -> Vec<Header> {
    let times = [
        (0, 0),
        (0, 1),
        (0, 50_000),
        (0, 99_999),
        (0, 100_000),
        (0, 500_000_000),
        (1, 500_000_000),
        (-1, 500_000_000),
    ];
    let far = [
        (-2, 250_000_000),
        (8_589_934_591, 499_999_999),
        (8_589_934_591, 500_000_000),
        (8_589_934_592, 0),
    ];
    let huge = [
        (10_000_000_000_000_000, 0),
        (9_999_999_999_999_998, 0),
        (i64::MAX, 999_999_999),
        (i64::MIN, 0),
    ];
    times
        .into_iter()
        .chain(far)
        .chain(huge)
        .map(|(seconds, nanoseconds)| Header {
            mtime: Timestamp {
                seconds,
                nanoseconds,
            },
            ..file("plain", 3)
        })
        .collect()
}

#[test]
fn odd_members_are_written_as_python_writes_them() {
    compare(&[odd_names(), odd_numbers_and_owners(), odd_times()].concat());
}

#[test]
fn random_members_are_written_as_python_writes_them() {
    let mut runner = TestRunner::deterministic();
    let times = (any::<i64>(), 0_u32..1_000_000_000);
    let strategy = (zstash_header(), times, any::<bool>());
    let headers: Vec<Header> = (0..2000)
        .map(|_| {
            let (header, (seconds, nanoseconds), is_recent) =
                strategy.new_tree(&mut runner).unwrap().current();
            let seconds = if is_recent {
                seconds % 2_000_000_000
            } else {
                seconds
            };
            Header {
                mtime: Timestamp {
                    seconds,
                    nanoseconds,
                },
                ..header
            }
        })
        .collect();
    compare(&headers);
}
