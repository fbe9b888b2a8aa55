//! Archives that cannot be written where they lie, also after a writer crashed there.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use stook_archive::{
    Archive, ArchiveError, AsOf, CheckOptions, DiffOptions, ExtractOptions, OpenOptions, Silent,
    cat, check, diff, extract,
};
use stook_testkit::{Compare, Snapshot, TempDir, Tree, tree, without_privileges};

use crate::recorder::Recorder;
use crate::scene::{Scene, python};

/// Copies an archive as it stood on disk in the middle of a large transaction on its index.
const CRASH: &str = "
import os, shutil, sqlite3, sys
archive, crashed = sys.argv[1:]
c = sqlite3.connect(archive + '/index.db', isolation_level=None)
c.execute('PRAGMA cache_size = 2')
c.execute('BEGIN')
c.execute('DELETE FROM files')
c.executemany('INSERT INTO files VALUES (NULL, ?, 0, \"2020-01-01 00:00:00\", NULL, \"000000.tar\", 0)', (('lost%d' % n,) for n in range(5000)))
os.mkdir(crashed)
for name in os.listdir(archive):
    shutil.copyfile(archive + '/' + name, crashed + '/' + name)
";

fn sample() -> Tree {
    tree! { "a" => file(b"first"), "d/b" => file(vec![7; 20_000]) }
}

/// A scene, and a copy of its archive with a journal beside the index; None, said aloud, where there is no Python.
fn crashed() -> Option<(Scene, PathBuf)> {
    let scene = Scene::archived(&sample());
    let copy = scene.beside("crashed");
    python(CRASH, &[&scene.archive(), &copy])?;
    assert!(copy.join("index.db-journal").exists());
    Some((scene, copy))
}

fn with_scratch(scratch: &TempDir) -> OpenOptions {
    OpenOptions {
        scratch: Some(scratch.path().to_owned()),
        ..OpenOptions::default()
    }
}

/// Reads an archive in every way, through one open archive.
fn assert_readable(archive: &mut Archive, source: &Path, into: &Path) {
    let recorder = Recorder::new();
    let mut bytes = Vec::new();
    cat(archive, b"a", AsOf::Now, &mut bytes, &Silent).unwrap();
    assert_eq!(bytes, b"first");
    assert_eq!(archive.runs().unwrap().len(), 1);
    let report = check(archive, &CheckOptions::default(), &recorder).unwrap();
    assert_eq!((report.damages, report.members), (0, 3));
    extract(archive, into, &ExtractOptions::default(), &recorder).unwrap();
    let compare = Compare::everything();
    let extracted = Snapshot::take(into).unwrap();
    let difference = Snapshot::take(source)
        .unwrap()
        .difference(&extracted, &compare);
    let differences = diff(source, archive, &DiffOptions::default(), &recorder).unwrap();
    assert!(differences.differences.is_empty());
    assert_eq!(recorder.failure_texts(), [""; 0]);
    assert_eq!(recorder.damage_texts(), [""; 0]);
    assert!(
        difference.iter().all(|line| line.contains("owner")),
        "{difference:?}"
    );
}

/// Files and their bytes.
fn bytes_in(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), std::fs::read(path).unwrap()))
        .collect();
    files.sort();
    files
}

/// A folder that appears read-only in another place, until dropped.
struct ReadOnly(PathBuf);

impl ReadOnly {
    fn mount(folder: &Path, at: PathBuf) -> Option<Self> {
        std::fs::create_dir(&at).unwrap();
        let mount = |arguments: &[&str], paths: &[&Path]| {
            let mut command = Command::new("mount");
            let done = command.args(arguments).args(paths).output();
            done.is_ok_and(|done| done.status.success())
        };
        if !mount(&["--bind"], &[folder, &at]) {
            stook_testkit::skip!("nothing can be mounted here");
            return None;
        }
        let mounted = Self(at);
        assert!(mount(&["-o", "remount,bind,ro"], &[&mounted.0]));
        Some(mounted)
    }
}

impl Drop for ReadOnly {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_read_only_mount_is_read_in_place() {
    let scene = Scene::archived(&sample());
    let Some(mounted) = ReadOnly::mount(&scene.archive(), scene.beside("mounted")) else {
        return;
    };
    let scratch = TempDir::new().unwrap();
    let mut archive = Archive::open(&mounted.0, &with_scratch(&scratch)).unwrap();
    assert_eq!(bytes_in(scratch.path()), []);
    assert_readable(&mut archive, scene.source(), &scene.beside("extracted"));
}

#[test]
fn a_crashed_write_on_a_read_only_mount_is_undone_in_a_copy() {
    let Some((scene, crashed)) = crashed() else {
        return;
    };
    let Some(mounted) = ReadOnly::mount(&crashed, scene.beside("mounted")) else {
        return;
    };
    let before = bytes_in(&crashed);
    let scratch = TempDir::new().unwrap();
    let mut archive = Archive::open(&mounted.0, &with_scratch(&scratch)).unwrap();
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 1);
    assert_readable(&mut archive, scene.source(), &scene.beside("extracted"));
    drop(archive);
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
    assert_eq!(bytes_in(&crashed), before);
    let refused = Archive::open(&mounted.0, &OpenOptions::default()).unwrap_err();
    assert!(matches!(refused, ArchiveError::Index(_)), "{refused}");
}

#[test]
fn a_crashed_write_in_the_folder_of_somebody_else_is_undone_in_a_copy() {
    let Some((scene, crashed)) = crashed() else {
        return;
    };
    let folder = TempDir::new().unwrap();
    let open = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let archive = folder.path().join("archive");
    std::fs::rename(&crashed, &archive).unwrap();
    for (path, _) in bytes_in(&archive) {
        open(&path, 0o444);
    }
    open(&archive, 0o555);
    open(folder.path(), 0o755);
    let (scratch, into) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    open(scratch.path(), 0o777);
    open(into.path(), 0o777);
    let source = TempDir::new().unwrap();
    let copied = source.path().join("source");
    assert!(
        Command::new("cp")
            .arg("-a")
            .args([scene.source(), &copied])
            .status()
            .unwrap()
            .success()
    );
    open(source.path(), 0o755);
    let read = without_privileges(|| {
        let mut opened = Archive::open(&archive, &with_scratch(&scratch)).unwrap();
        assert_readable(&mut opened, &copied, &into.path().join("extracted"));
    });
    if let Err(error) = read {
        stook_testkit::skip!("the user cannot be changed here: {error}");
    }
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
    assert!(archive.join("index.db-journal").exists());
}
