//! A tree that changes at random, step after step: after each the archive gives back exactly this tree,
//! and at the end every earlier one.

use std::fs::{self, File, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use stook_archive::{AsOf, Dialect, Jobs, RunId, WriteOptions, reindex};
use stook_sys::{Directory, FileKind, Timestamp};
use stook_testkit::{Compare, Fact, Kind, Random, Snapshot, Tree, remove_tree};

use crate::recorder::Recorder;
use crate::scene::{Scene, all_facts};

const STEPS: usize = 30;

/// Few, so that names are used again, for other kinds of entries too. They sort in awkward ways.
const NAMES: [&[u8]; 8] = [
    b"a",
    b"a-",
    b"a.b",
    b"B",
    b"\xc3\xbc",
    b"\xff",
    b"z z",
    b"%41",
];

/// Edits a tree at random; every time that it sets is one microsecond after the one before.
struct Editor<'a> {
    root: &'a Path,
    random: Random,
    clock: Duration,
}

impl<'a> Editor<'a> {
    fn new(root: &'a Path, seed: u64) -> Self {
        let clock = Duration::new(1_700_000_000, 123_456_789);
        let random = Random::new(seed);
        Self {
            root,
            random,
            clock,
        }
    }

    fn next_time(&mut self) -> SystemTime {
        self.clock += Duration::from_micros(1);
        UNIX_EPOCH + self.clock
    }

    /// A random path of one of these kinds; the root counts as a directory.
    fn pick(&mut self, kinds: &[Kind]) -> Option<PathBuf> {
        let snapshot = Snapshot::take(self.root).unwrap();
        let mut paths: Vec<PathBuf> = snapshot
            .entries()
            .filter(|(_, facts)| kinds.contains(&facts.kind))
            .map(|(path, _)| self.root.join(std::ffi::OsStr::from_bytes(path)))
            .collect();
        if kinds.contains(&Kind::Directory) {
            paths.push(self.root.to_owned());
        }
        let index = self.random.index(paths.len());
        paths.into_iter().nth(index)
    }

    /// A name in a random directory, with nothing there.
    fn free_place(&mut self) -> PathBuf {
        let directory = self.pick(&[Kind::Directory]).unwrap();
        let name = NAMES[self.random.index(NAMES.len())];
        let path = directory.join(std::ffi::OsStr::from_bytes(name));
        remove_tree(&path).unwrap();
        path
    }

    fn write(&mut self, path: &Path, len: usize) {
        if path.exists() {
            // Also for a user whom the permissions bind.
            fs::set_permissions(path, Permissions::from_mode(0o644)).unwrap();
        }
        fs::write(path, self.random.bytes(len)).unwrap();
        self.touch(path);
    }

    fn touch(&mut self, path: &Path) {
        let time = self.next_time();
        File::open(path).unwrap().set_modified(time).unwrap();
    }

    fn node(&mut self, path: &Path, make: impl Fn(&Directory, &[u8])) {
        self.next_time();
        let parent = Directory::open(path.parent().unwrap()).unwrap();
        let name = path.file_name().unwrap().as_bytes();
        make(&parent, name);
        let time = Timestamp {
            seconds: i64::try_from(self.clock.as_secs()).unwrap(),
            nanoseconds: self.clock.subsec_nanos(),
        };
        parent.set_mtime(name, time).unwrap();
    }

    fn edit(&mut self) {
        match self.random.below(15) {
            0..=3 => {
                let path = self.free_place();
                let len = self.random.index(5000);
                self.write(&path, len);
            }
            4 => fs::create_dir(self.free_place()).unwrap(),
            5 => {
                let path = self.free_place();
                self.node(&path, |parent, name| {
                    parent.create_symlink(name, b"a/../B").unwrap();
                });
            }
            6 => {
                let path = self.free_place();
                self.node(&path, |parent, name| {
                    parent.create_node(name, FileKind::Fifo, (0, 0)).unwrap();
                });
            }
            7 => self.remove(),
            8 => self.rename(),
            other => self.change_file(other),
        }
    }

    fn remove(&mut self) {
        let kinds = [Kind::File, Kind::Directory, Kind::Symlink, Kind::Fifo];
        let path = self.pick(&kinds).unwrap();
        if path != self.root {
            remove_tree(&path).unwrap();
        }
    }

    fn rename(&mut self) {
        let to = self.free_place();
        let from = self
            .pick(&[Kind::File, Kind::Directory, Kind::Symlink])
            .unwrap();
        if from != self.root && !to.starts_with(&from) {
            fs::rename(from, to).unwrap();
        }
    }

    fn change_file(&mut self, how: u64) {
        let Some(path) = self.pick(&[Kind::File]) else {
            return;
        };
        let len = usize::try_from(fs::metadata(&path).unwrap().len()).unwrap();
        match how {
            9 => self.write(&path, len),
            10 => self.write(&path, len + 700),
            11 => self.write(&path, len / 2),
            12 => {
                // The time goes back by an hour and the file changes.
                self.write(&path, len);
                let time = self.next_time() - Duration::from_secs(3600);
                File::open(&path).unwrap().set_modified(time).unwrap();
            }
            13 => {
                let mode = [0o600, 0o644, 0o755, 0o440][self.random.index(4)];
                fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
                self.touch(&path);
            }
            _ => {
                let place = self.free_place();
                if path.exists() {
                    fs::hard_link(path, place).unwrap();
                } else {
                    symlink("gone", place).unwrap();
                }
            }
        }
    }
}

/// Runs the machine; `compare` says what the archive must give back.
fn evolve(seed: u64, options: &WriteOptions, compare: &Compare) {
    let scene = Scene::new(&Tree::random(seed, 25));
    let mut editor = Editor::new(scene.source(), seed);
    let mut states: Vec<(RunId, Snapshot)> = Vec::new();
    scene.create_with(options, &Recorder::new());
    states.push((scene.last_run(), scene.snapshot()));
    for step in 0..STEPS {
        for _ in 0..=editor.random.below(4) {
            editor.edit();
        }
        let options = WriteOptions {
            jobs: Jobs::Fixed(1 + editor.random.index(4)),
            compare_content: editor.random.below(4) == 0,
            volume_bytes: [None, Some(10 << 10)][editor.random.index(2)],
            ..options.clone()
        };
        let recorder = Recorder::new();
        scene.update_with(&options, &recorder);
        assert_eq!(
            recorder.failure_texts(),
            [""; 0],
            "seed {seed}, step {step}"
        );
        let now = scene.snapshot();
        let difference = now.difference(&scene.extract(AsOf::Now), compare);
        assert_eq!(difference, [""; 0], "seed {seed}, step {step}");
        let again = scene.update_with(&options, &Recorder::new());
        let did = (again.members, again.deleted, again.volumes);
        assert_eq!(did, (0, 0, 0), "seed {seed}, step {step}");
        states.push((scene.last_run(), now));
    }
    scene.assert_clean();
    for rebuilt in [false, true] {
        if rebuilt {
            let recorder = Recorder::new();
            let report = reindex(&scene.archive(), Jobs::Fixed(2), &recorder).unwrap();
            assert_eq!(recorder.damage_texts(), [""; 0], "seed {seed}");
            assert_eq!(report.damages, 0, "seed {seed}");
            scene.assert_clean();
        }
        for (run, state) in &states {
            let extracted = scene.extract(AsOf::Run(*run));
            let difference = state.difference(&extracted, compare);
            assert_eq!(
                difference, [""; 0],
                "seed {seed}, run {run}, rebuilt: {rebuilt}"
            );
        }
    }
}

/// Of the names of one file, an update archives only the new ones, so the others need not be linked to it.
fn facts() -> Compare {
    all_facts().without(Fact::Links)
}

#[test]
fn an_archive_follows_its_tree_through_random_edits() {
    for seed in 1..=3 {
        evolve(seed, &WriteOptions::default(), &facts());
    }
}

#[test]
fn an_archive_in_zstashs_dialect_follows_its_tree_through_random_edits() {
    let options = WriteOptions {
        dialect: Dialect::Zstash,
        directories: false,
        ..WriteOptions::default()
    };
    for seed in 11..=13 {
        evolve(seed, &options, &Compare::zstash());
    }
}
