//! Paths of members that are as long as they may be, and longer.

use crate::place::{Place, python};

/// Writes a volume with two members, one of them with a path of this many bytes, one letter a name.
const WRITE: &str = r#"
import io, os, sys, tarfile
os.mkdir(sys.argv[1])
with tarfile.open(sys.argv[1] + "/000000.tar", "w", format=tarfile.PAX_FORMAT) as volume:
    for name in "a/" * (int(sys.argv[2]) // 2) + "f", "short":
        member = tarfile.TarInfo(name)
        member.size = 1
        volume.addfile(member, io.BytesIO(b"x"))
"#;

/// Runs a program; prints its status, the most memory that it had in KiB, and its messages.
const RUN: &str = r#"
import resource, subprocess, sys
done = subprocess.run(sys.argv[2:], cwd=sys.argv[1], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
print(done.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, done.stderr.decode())
"#;

fn extract(place: &Place, pattern: &str) -> (i32, u64, String) {
    let root = place.root().to_str().unwrap();
    let program = env!("CARGO_BIN_EXE_stook");
    let arguments = [
        root, program, "extract", "arc", pattern, "--into", "out", "--jobs", "1",
    ];
    let text = python(RUN, &arguments);
    let mut words = text.splitn(3, ' ');
    let mut next = || words.next().unwrap().to_owned();
    (next().parse().unwrap(), next().parse().unwrap(), next())
}

fn archive_with(place: &Place, path_len: usize) {
    let folder = place.path("arc");
    python(WRITE, &[folder.to_str().unwrap(), &path_len.to_string()]);
    place.stderr(&["reindex", "arc"]);
}

/// All beginnings of this path that end with a name take 100 MB.
#[test]
fn the_directories_of_a_long_path_take_memory_in_proportion_to_its_length() {
    let place = Place::new();
    archive_with(&place, 20_000);
    let (status, least, stderr) = extract(&place, "short");
    assert_eq!(status, 0, "{stderr}");
    let (status, kibibytes, stderr) = extract(&place, "*");
    assert_eq!(status, 0, "{stderr}");
    assert!(kibibytes < least + (50 << 10), "{least}, {kibibytes} KiB");
    assert!(place.path("out/a/a/a").is_dir());
    let (_, _, stderr) = extract(&place, "*");
    assert!(stderr.contains("2 were there already"), "{stderr}");
}

#[test]
fn a_longer_path_is_a_failure_and_the_rest_is_extracted() {
    let place = Place::new();
    archive_with(&place, 400_000);
    let (status, kibibytes, stderr) = extract(&place, "*");
    assert_eq!(status, 3);
    assert!(
        stderr.contains(": its path is longer than 65,535 bytes"),
        "{}",
        &stderr[stderr.len() - 300..]
    );
    assert!(kibibytes < 200 << 10, "{kibibytes} KiB");
    assert_eq!(place.names("out"), ["short"]);
}
