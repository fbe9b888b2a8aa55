//! A tree, an archive beside it, and the steps that nearly every test takes with the two.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use stook_archive::{
    AsOf, CheckOptions, CheckReport, DiffOptions, Difference, ExtractOptions, Jobs, ListOptions,
    Observer, RunId, WriteOptions, WriteReport, create,
};
use stook_testkit::{Compare, Fact, Snapshot, TempTree, Tree};

use crate::by_path::{cat, check, diff, extract, list, runs, update};
use crate::recorder::Recorder;

pub(crate) struct Scene {
    tree: TempTree,
    extracted: AtomicU64,
}

impl Scene {
    pub(crate) fn new(tree: &Tree) -> Self {
        let tree = TempTree::new(tree).unwrap();
        let extracted = AtomicU64::new(0);
        Self { tree, extracted }
    }

    /// The tree, archived with the default options.
    pub(crate) fn archived(tree: &Tree) -> Self {
        let scene = Self::new(tree);
        scene.create();
        scene
    }

    pub(crate) fn source(&self) -> &Path {
        self.tree.path()
    }

    /// A path in the source.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.tree.path().join(name)
    }

    /// A path outside of source and archive.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.tree.beside(name)
    }

    pub(crate) fn archive(&self) -> PathBuf {
        self.tree.beside("archive")
    }

    /// Lays a tree over the source: what it does not name stays.
    pub(crate) fn lay(&self, tree: &Tree) {
        tree.write(self.source()).unwrap();
    }

    /// Creates the archive and expects no failure.
    pub(crate) fn create(&self) -> WriteReport {
        let recorder = Recorder::new();
        let report = self.create_with(&options(), &recorder);
        assert_eq!(recorder.failure_texts(), [""; 0]);
        report
    }

    pub(crate) fn create_with(
        &self,
        options: &WriteOptions,
        observer: &dyn Observer,
    ) -> WriteReport {
        create(self.source(), &self.archive(), options, observer).unwrap()
    }

    /// Updates the archive and expects no failure.
    pub(crate) fn update(&self) -> WriteReport {
        let recorder = Recorder::new();
        let report = self.update_with(&options(), &recorder);
        assert_eq!(recorder.failure_texts(), [""; 0]);
        report
    }

    pub(crate) fn update_with(
        &self,
        options: &WriteOptions,
        observer: &dyn Observer,
    ) -> WriteReport {
        update(self.source(), &self.archive(), options, observer).unwrap()
    }

    pub(crate) fn last_run(&self) -> RunId {
        runs(&self.archive()).unwrap().last().unwrap().id
    }

    /// What `diff` says, as `new a`, `changed b`, `deleted c`.
    pub(crate) fn diff(&self) -> Vec<String> {
        let report = diff(
            self.source(),
            &self.archive(),
            &DiffOptions::default(),
            &Recorder::new(),
        );
        report.unwrap().differences.iter().map(shown).collect()
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot::take(self.source()).unwrap()
    }

    /// Extracts a state into a new folder and expects no failure.
    pub(crate) fn extract(&self, as_of: AsOf) -> Snapshot {
        let recorder = Recorder::new();
        let snapshot = self.extract_with(as_of, &recorder);
        assert_eq!(recorder.failure_texts(), [""; 0]);
        snapshot
    }

    pub(crate) fn extract_with(&self, as_of: AsOf, observer: &dyn Observer) -> Snapshot {
        let number = self.extracted.fetch_add(1, Ordering::Relaxed);
        let into = self.beside(&format!("extracted-{number}"));
        let options = ExtractOptions {
            as_of,
            same_permissions: true,
            ..ExtractOptions::default()
        };
        extract(&self.archive(), &into, &options, observer).unwrap();
        let snapshot = Snapshot::take(&into).unwrap();
        stook_testkit::remove_tree(&into).unwrap();
        snapshot
    }

    /// Extracts the newest state and compares it with the source, whole directories' times included.
    pub(crate) fn assert_extracts_to_source(&self) {
        let difference = self
            .snapshot()
            .difference(&self.extract(AsOf::Now), &all_facts());
        assert_eq!(difference, [""; 0]);
    }

    pub(crate) fn check(&self, observer: &dyn Observer) -> CheckReport {
        let options = CheckOptions {
            whole_volumes: true,
            ..CheckOptions::default()
        };
        check(&self.archive(), &options, observer).unwrap()
    }

    pub(crate) fn assert_clean(&self) -> CheckReport {
        let recorder = Recorder::new();
        let report = self.check(&recorder);
        assert_eq!(recorder.damage_texts(), [""; 0]);
        assert_eq!(report.damages, 0);
        assert_eq!(report.volume_md5s, report.volumes);
        report
    }

    /// Names of the files in the archive's folder, sorted.
    pub(crate) fn archive_files(&self) -> Vec<String> {
        let snapshot = Snapshot::take(&self.archive()).unwrap();
        let paths = snapshot.entries();
        paths
            .map(|(path, _)| String::from_utf8(path.to_vec()).unwrap())
            .collect()
    }
}

/// Three workers: enough for members to overtake each other.
pub(crate) fn options() -> WriteOptions {
    WriteOptions {
        jobs: Jobs::Fixed(3),
        ..WriteOptions::default()
    }
}

/// Everything that an archive keeps, holes included.
pub(crate) fn all_facts() -> Compare {
    Compare::everything().with(Fact::Holes)
}

/// Names of the members of a state, in the order of the archive.
pub(crate) fn names(archive: &Path, as_of: AsOf, all_versions: bool) -> Vec<String> {
    let options = ListOptions {
        patterns: Vec::new(),
        as_of,
        all_versions,
    };
    let mut names = Vec::new();
    list(archive, &options, &Recorder::new(), |row| {
        names.push(String::from_utf8_lossy(row.name).into_owned());
        ControlFlow::Continue(())
    })
    .unwrap();
    names
}

/// The content of a member as it is now in the archive.
pub(crate) fn content(scene: &Scene, name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    cat(&scene.archive(), name.as_bytes(), AsOf::Now, &mut bytes).unwrap();
    bytes
}

fn shown(difference: &Difference) -> String {
    let change = match difference.change {
        stook_archive::Change::New => "new",
        stook_archive::Change::Changed { .. } => "changed",
        stook_archive::Change::Metadata(_) => "metadata",
        stook_archive::Change::Deleted => "deleted",
    };
    format!("{change} {}", String::from_utf8_lossy(&difference.path))
}

/// Number of the user that owns nothing.
const NOBODY: u32 = 65_534;

/// Runs `body` as a user whom permissions bind: if this process is root, the test `name` runs again in a
/// child process as nobody.
pub(crate) fn as_ordinary_user(name: &str, body: impl FnOnce()) {
    use std::os::unix::process::CommandExt;
    if !stook_sys::is_root() {
        return body();
    }
    let child = Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture"])
        .current_dir("/")
        .uid(NOBODY)
        .gid(NOBODY)
        .output();
    match child {
        Err(error) => stook_testkit::skip!("cannot run the tests as nobody: {error}"),
        Ok(output) => {
            let text = [output.stdout, output.stderr].concat();
            let text = String::from_utf8_lossy(&text);
            let has_run = output.status.success() && text.contains("1 passed");
            assert!(has_run, "as nobody: {text}");
        }
    }
}

/// Runs a Python script; None, said aloud, where there is no Python.
pub(crate) fn python(script: &str, arguments: &[&Path]) -> Option<String> {
    let output = Command::new("python3")
        .args(["-I", "-W", "ignore", "-c", script])
        .args(arguments)
        .output();
    match output {
        Err(error) => {
            stook_testkit::skip!("cannot run python3: {error}");
            None
        }
        Ok(output) => {
            let message = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{message}");
            Some(String::from_utf8(output.stdout).unwrap())
        }
    }
}
