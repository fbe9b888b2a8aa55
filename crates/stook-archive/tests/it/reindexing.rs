//! Volumes that cannot be read, in part or at all: they are named, and the others are indexed.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use stook_archive::{
    ArchiveError, AsOf, BaseObserver, CheckOptions, Failure, Jobs, Observer, Silent, reindex,
};
use stook_testkit::TempDir;

use crate::by_path::check;
use crate::crafted::{Crafted, write_archive};
use crate::recorder::Recorder;
use crate::scene::names;

/// An archive of three volumes, each with the files `a` and `z` and its number, and without an index.
fn three_volumes(place: &TempDir) -> PathBuf {
    let archive = place.join("archive");
    std::fs::create_dir(&archive).unwrap();
    for number in 0..3 {
        let members = ["a", "z"].map(|name| Crafted::file(format!("{name}{number}"), b"some"));
        let made = place.join("made");
        write_archive(&made, stook_archive::Dialect::Stook, &members);
        std::fs::rename(made.join("000000.tar"), volume(&archive, number)).unwrap();
        std::fs::remove_dir_all(made).unwrap();
    }
    archive
}

fn volume(archive: &Path, number: u64) -> PathBuf {
    archive.join(format!("{number:06x}.tar"))
}

/// Puts a size record of all but 2^63 bytes in front of the second member.
fn spoil_size(path: &Path) {
    let bytes = std::fs::read(path).unwrap();
    let at = bytes.len().min(2048);
    let mut block = bytes[..512].to_vec();
    let records = b"28 size=9223372036854775807\n";
    block[124..136].copy_from_slice(format!("{:011o}\0", records.len()).as_bytes());
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let mut payload = records.to_vec();
    payload.resize(512, 0);
    let header = bytes[1024..1536].to_vec();
    let spoiled = [&bytes[..at], &block, &payload, &header, &bytes[at..]].concat();
    std::fs::write(path, spoiled).unwrap();
}

#[test]
fn one_bad_size_does_not_stop_a_reindex() {
    let place = TempDir::new().unwrap();
    let archive = three_volumes(&place);
    spoil_size(&volume(&archive, 1));
    let recorder = Recorder::new();
    let report = reindex(&archive, Jobs::Fixed(2), &recorder).unwrap();
    assert_eq!((report.volumes, report.members, report.damages), (3, 6, 1));
    assert_eq!(
        recorder.damage_texts(),
        [
            "000001.tar at byte 2048: the content of `a1` is cut short: the next member begins at offset 3584; \
             1536 bytes are skipped"
        ]
    );
    assert_eq!(
        names(&archive, AsOf::Now, false),
        ["a0", "z0", "a1", "z1", "a2", "z2"]
    );
}

/// Is interrupted when so many members are indexed, and counts those that are indexed all the same.
#[derive(Default)]
struct EndsEarly {
    members: AtomicU64,
}

impl BaseObserver for EndsEarly {
    type Failure = Failure;

    fn failed(&self, _failure: &Failure) {}

    fn advanced(&self, entries: u64, _bytes: u64) {
        self.members.fetch_add(entries, Relaxed);
    }

    fn is_interrupted(&self) -> bool {
        self.members.load(Relaxed) > 0
    }
}

impl Observer for EndsEarly {}

#[test]
fn an_interrupted_reindex_reads_no_more_members() {
    let place = TempDir::new().unwrap();
    let archive = place.join("archive");
    let members: Vec<_> = (0..200)
        .map(|number| Crafted::file(format!("f{number}"), b"some"))
        .collect();
    write_archive(&archive, stook_archive::Dialect::Stook, &members);
    std::fs::remove_file(archive.join("index.db")).unwrap_or_default();
    let observer = EndsEarly::default();
    let ended = reindex(&archive, Jobs::Fixed(1), &observer);
    assert!(matches!(ended, Err(ArchiveError::Interrupted)), "{ended:?}");
    assert_eq!(observer.members.into_inner(), 1);
}

#[test]
fn a_volume_that_cannot_be_opened_does_not_stop_a_reindex() {
    let place = TempDir::new().unwrap();
    let archive = three_volumes(&place);
    std::fs::remove_file(volume(&archive, 1)).unwrap();
    std::fs::create_dir(volume(&archive, 1)).unwrap();
    let recorder = Recorder::new();
    let report = reindex(&archive, Jobs::Fixed(2), &recorder).unwrap();
    assert_eq!((report.volumes, report.members, report.damages), (2, 4, 1));
    let texts = recorder.damage_texts();
    assert!(
        texts[0].starts_with("000001.tar: cannot ")
            && texts[0].ends_with("; its members are left out"),
        "{texts:?}"
    );
    assert_eq!(names(&archive, AsOf::Now, false), ["a0", "z0", "a2", "z2"]);
}

#[test]
fn an_index_is_not_replaced_if_no_volume_can_be_opened() {
    let place = TempDir::new().unwrap();
    let archive = three_volumes(&place);
    reindex(&archive, Jobs::Fixed(2), &Silent).unwrap();
    let kept = std::fs::read(archive.join("index.db")).unwrap();
    for number in 0..3 {
        std::fs::remove_file(volume(&archive, number)).unwrap();
        std::fs::create_dir(volume(&archive, number)).unwrap();
    }
    let failed = reindex(&archive, Jobs::Fixed(2), &Silent);
    assert!(matches!(failed, Err(ArchiveError::Sys(_))), "{failed:?}");
    assert!(std::fs::read(archive.join("index.db")).unwrap() == kept);
}

/// What reindex took for members is what check finds at their offsets.
#[test]
fn a_global_header_is_named_and_the_index_fits_the_members() {
    let place = TempDir::new().unwrap();
    let archive = three_volumes(&place);
    let path = volume(&archive, 1);
    let python = "import sys, tarfile, io
with tarfile.open(sys.argv[1], 'w', format=tarfile.PAX_FORMAT, pax_headers={'mtime': '77.5', 'uname': 'all'}) as tar:
    for name in ('a1', 'z1'):
        member = tarfile.TarInfo(name)
        member.size = 4
        tar.addfile(member, io.BytesIO(b'some'))
";
    let written = std::process::Command::new("python3")
        .args(["-c", python])
        .arg(&path)
        .status()
        .unwrap();
    assert!(written.success());
    let recorder = Recorder::new();
    let report = reindex(&archive, Jobs::Fixed(2), &recorder).unwrap();
    assert_eq!((report.members, report.damages), (6, 1));
    assert_eq!(
        recorder.damage_texts(),
        [
            "000001.tar at byte 0: the global header at offset 0 sets `mtime` for the members behind it; \
             they are read without that"
        ]
    );
    let recorder = Recorder::new();
    let report = check(&archive, &CheckOptions::default(), &recorder).unwrap();
    assert_eq!(recorder.damage_texts(), [""; 0]);
    assert_eq!(report.members, 6);
}
