//! What the tests of copies share: an observer that writes down, and trees beside their copies.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use stook_pool::Jobs;
use stook_testkit::{Compare, Fact, Kind, Snapshot, TempDir, Tree, supports_xattrs};
use stook_tree::{Copied, CopyObserver, CopyOptions, TreeError, Verified, copy, verify};

/// Records every call.
#[derive(Default)]
pub(crate) struct Recorded<'a> {
    failures: Mutex<Vec<(PathBuf, &'static str, String)>>,
    would_copy: Mutex<Vec<PathBuf>>,
    skipped: Mutex<Vec<(PathBuf, String)>>,
    notes: Mutex<Vec<String>>,
    pub(crate) entries: AtomicU64,
    pub(crate) bytes: AtomicU64,
    /// Entries, or bytes, after which the copy is to stop.
    stop_after: Option<(u64, u64)>,
    /// Called whenever anything was done, with the entries and bytes so far.
    meanwhile: Option<&'a (dyn Fn(u64, u64) + Sync)>,
}

impl stook_pool::Observer for Recorded<'_> {
    type Failure = TreeError;

    fn advanced(&self, entries: u64, bytes: u64) {
        let entries = self.entries.fetch_add(entries, Ordering::Relaxed) + entries;
        let bytes = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if let Some(meanwhile) = self.meanwhile {
            meanwhile(entries, bytes);
        }
    }

    fn failed(&self, error: &TreeError) {
        let cause = stook_sys::cause(&error.source);
        let recorded = (path_of(&error.path), error.operation, cause);
        self.failures.lock().unwrap().push(recorded);
    }

    fn is_interrupted(&self) -> bool {
        self.stop_after.is_some_and(|(entries, bytes)| {
            self.entries.load(Ordering::Relaxed) >= entries
                || self.bytes.load(Ordering::Relaxed) >= bytes
        })
    }
}

impl CopyObserver for Recorded<'_> {
    fn would_copy(&self, path: &[u8]) {
        self.would_copy.lock().unwrap().push(path_of(path));
    }

    fn skipped(&self, path: &[u8], why: &str) {
        let recorded = (path_of(path), why.to_owned());
        self.skipped.lock().unwrap().push(recorded);
    }

    fn noted(&self, text: &str) {
        self.notes.lock().unwrap().push(text.to_owned());
    }
}

impl<'a> Recorded<'a> {
    /// Returns an observer that calls this whenever anything was done.
    pub(crate) fn watching(meanwhile: &'a (dyn Fn(u64, u64) + Sync)) -> Self {
        Self {
            meanwhile: Some(meanwhile),
            ..Self::default()
        }
    }

    /// Returns what was told, without what was called.
    pub(crate) fn forget_meanwhile(self) -> Recorded<'static> {
        Recorded {
            meanwhile: None,
            ..self
        }
    }

    /// Returns an observer that stops the copy after so many entries, or bytes.
    pub(crate) fn stopping_after(entries: u64, bytes: u64) -> Self {
        Self {
            stop_after: Some((entries, bytes)),
            ..Self::default()
        }
    }

    /// Returns the failures: path, operation, cause.
    pub(crate) fn failures(&self) -> Vec<(PathBuf, &'static str, String)> {
        sorted(&self.failures)
    }

    pub(crate) fn would_copy(&self) -> Vec<PathBuf> {
        sorted(&self.would_copy)
    }

    pub(crate) fn skipped(&self) -> Vec<(PathBuf, String)> {
        sorted(&self.skipped)
    }

    pub(crate) fn notes(&self) -> Vec<String> {
        sorted(&self.notes)
    }
}

fn sorted<T: Clone + Ord>(recorded: &Mutex<Vec<T>>) -> Vec<T> {
    let mut recorded = recorded.lock().unwrap().clone();
    recorded.sort();
    recorded
}

pub(crate) fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

pub(crate) fn options(jobs: usize) -> CopyOptions {
    CopyOptions {
        jobs: Jobs::Fixed(jobs),
        ..CopyOptions::default()
    }
}

pub(crate) fn update() -> CopyOptions {
    CopyOptions {
        is_update: true,
        ..options(3)
    }
}

/// A place with the tree `a`; its copies are beside it.
pub(crate) struct Place {
    folder: TempDir,
}

impl Place {
    pub(crate) fn with(tree: &Tree) -> Self {
        let place = Self {
            folder: TempDir::new().unwrap(),
        };
        tree.write(&place.path("a")).unwrap();
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    pub(crate) fn metadata(&self, name: &str) -> std::fs::Metadata {
        std::fs::symlink_metadata(self.path(name)).unwrap()
    }

    pub(crate) fn exists(&self, name: &str) -> bool {
        std::fs::symlink_metadata(self.path(name)).is_ok()
    }

    /// Copies `a` to `b`.
    pub(crate) fn try_copy(&self, options: &CopyOptions, recorded: &Recorded<'_>) -> Copied {
        copy(&self.path("a"), &self.path("b"), options, recorded).unwrap()
    }

    /// Copies `a` to `b` without a failure.
    pub(crate) fn copy(&self, options: &CopyOptions) -> Copied {
        copied(&self.path("a"), &self.path("b"), options)
    }

    /// Compares `a` with `b`.
    pub(crate) fn verify(&self, recorded: &Recorded<'_>) -> Verified {
        self.verify_at("a", "b", recorded)
    }

    pub(crate) fn verify_at(&self, from: &str, to: &str, recorded: &Recorded<'_>) -> Verified {
        verify(&self.path(from), &self.path(to), &options(2), recorded).unwrap()
    }

    /// Asserts that `b` is `a` again.
    pub(crate) fn assert_same(&self) {
        assert_copy(&self.path("a"), &self.path("b"));
    }
}

/// Copies without a failure; what is reported must be what is returned.
pub(crate) fn copied(from: &Path, to: &Path, options: &CopyOptions) -> Copied {
    let recorded = Recorded::default();
    let copied = copy(from, to, options, &recorded).unwrap();
    assert_eq!(recorded.failures(), []);
    assert!(!copied.is_full);
    assert_eq!(
        recorded.entries.load(Ordering::Relaxed),
        copied.entries + copied.unchanged
    );
    assert_eq!(recorded.bytes.load(Ordering::Relaxed), copied.bytes);
    copied
}

/// Everything that a copy keeps.
pub(crate) fn everything() -> Compare {
    Compare::everything().with(Fact::Holes)
}

/// Takes a snapshot without what is not copied.
pub(crate) fn snapshot(path: &Path) -> Snapshot {
    let mut snapshot = Snapshot::take(path).unwrap();
    snapshot.retain(|_, facts| facts.kind != Kind::Socket);
    snapshot
}

/// Asserts that one tree is a copy of another, the roots included.
pub(crate) fn assert_copy(from: &Path, to: &Path) {
    let difference = snapshot(from).difference(&snapshot(to), &everything());
    assert_eq!(
        difference,
        [""; 0],
        "{} and {}",
        from.display(),
        to.display()
    );
    let facts = |path: &Path| {
        let found = std::fs::symlink_metadata(path).unwrap();
        let time = (found.mtime(), found.mtime_nsec());
        (found.mode(), found.uid(), found.gid(), time)
    };
    assert_eq!(facts(from), facts(to));
}

/// The tree with everything in it that the file system of the tests can hold.
pub(crate) fn torture() -> Tree {
    if supports_xattrs(&std::env::temp_dir()) {
        Tree::torture()
    } else {
        stook_testkit::skip!("attributes, which the file system does not take");
        Tree::torture().without_xattrs()
    }
}

/// Runs a program; false, and said aloud, if it fails.
pub(crate) fn can_run(program: &str, arguments: &[&str]) -> bool {
    let output = Command::new(program).args(arguments).output();
    let why = match output {
        Ok(output) if output.status.success() => return true,
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) => error.to_string(),
    };
    stook_testkit::skip!("{program} {arguments:?}: {why}");
    false
}

/// Something mounted, until it is dropped.
pub(crate) struct Mounted(PathBuf);

impl Mounted {
    /// Mounts a file system in memory; None, said aloud, where nothing can be mounted.
    pub(crate) fn in_memory(path: PathBuf, size: &str) -> Option<Self> {
        let options = format!("size={size},mode=755");
        let arguments = ["-t", "tmpfs", "-o", &options, "stook-test"];
        can_run("mount", &[&arguments[..], &[path.to_str()?]].concat()).then_some(Self(path))
    }

    /// Mounts a file system that needs no disk.
    pub(crate) fn of_kind(kind: &str, path: PathBuf) -> Option<Self> {
        can_run("mount", &["-t", kind, "stook-test", path.to_str()?]).then_some(Self(path))
    }

    /// Lets a directory appear in another place, too.
    pub(crate) fn again(from: &Path, path: PathBuf) -> Option<Self> {
        let arguments = ["--bind", from.to_str()?, path.to_str()?];
        can_run("mount", &arguments).then_some(Self(path))
    }

    pub(crate) fn grow(&self, size: &str) {
        let options = format!("remount,size={size}");
        assert!(can_run(
            "mount",
            &["-o", &options, self.0.to_str().unwrap()]
        ));
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // What stays mounted shows when the folder cannot be removed.
        let _ = Command::new("umount").arg(&self.0).status();
    }
}
