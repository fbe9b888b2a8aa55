//! Volumes that try to get out of the folder they are extracted into: nothing outside is ever touched.

use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;

use stook_archive::{Dialect, ExtractOptions, Jobs, Observer, reindex};
use stook_testkit::{Snapshot, TempDir, tree};

use crate::by_path::{check, extract};
use crate::crafted::{Crafted, SECONDS, write_archive};
use crate::recorder::Recorder;
use crate::scene::all_facts;

/// A folder to extract into, next to one that must stay as it is.
struct Trap {
    folder: TempDir,
    before: Snapshot,
    modes: (u32, i64, u64),
}

impl Trap {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let tree = tree! {
            "secret" => file(b"own bytes").mtime(SECONDS, 0),
            "dir/file" => file(b"inside"),
            "link" => symlink("secret"),
        };
        tree.write(&folder.join("outside")).unwrap();
        fs::create_dir(folder.join("into")).unwrap();
        let before = Snapshot::take(&folder.join("outside")).unwrap();
        let mut trap = Self {
            folder,
            before,
            modes: (0, 0, 0),
        };
        trap.modes = trap.modes();
        trap
    }

    fn target(&self) -> PathBuf {
        self.folder.join("into")
    }

    fn outside(&self, name: &str) -> Vec<u8> {
        self.folder
            .join("outside")
            .join(name)
            .as_os_str()
            .as_bytes()
            .to_vec()
    }

    /// What a snapshot does not tell: facts about the folder itself, and further names of the secret.
    fn modes(&self) -> (u32, i64, u64) {
        let folder = fs::metadata(self.folder.join("outside")).unwrap();
        let secret = fs::metadata(self.folder.join("outside/secret")).unwrap();
        (folder.mode(), folder.mtime(), secret.nlink())
    }

    fn assert_untouched(&self, what: &str) {
        let after = Snapshot::take(&self.folder.join("outside")).unwrap();
        let difference = self.before.difference(&after, &all_facts());
        assert_eq!(difference, [""; 0], "{what}");
        assert_eq!(self.modes(), self.modes, "{what}");
        let mut names: Vec<_> = fs::read_dir(self.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        assert_eq!(names, ["archive", "into", "outside"], "{what}");
    }

    /// Extracts the members, in both dialects and with one worker and several; returns what failed.
    fn spring(self, what: &str, members: &[Crafted]) -> Vec<String> {
        let mut failed = Vec::new();
        for (jobs, dialect) in [
            (1, Dialect::Stook),
            (4, Dialect::Stook),
            (1, Dialect::Zstash),
        ] {
            let archive = self.folder.join("archive");
            write_archive(&archive, dialect, members);
            for _ in 0..2 {
                let recorder = Recorder::new();
                self.extract(jobs, &recorder);
                self.assert_untouched(what);
                failed = recorder.failed_paths();
            }
            let check_recorder = Recorder::new();
            check(
                &archive,
                &stook_archive::CheckOptions::default(),
                &check_recorder,
            )
            .unwrap();
            let mut damages = check_recorder.damage_texts();
            damages.retain(|text| !text.ends_with(": its name is no plain path below the tree"));
            assert_eq!(damages, [""; 0], "{what}");
            fs::remove_file(archive.join("index.db")).unwrap();
            reindex(&archive, Jobs::Fixed(jobs), &Recorder::new()).unwrap();
            self.extract(jobs, &Recorder::new());
            self.assert_untouched(what);
            fs::remove_dir_all(archive).unwrap();
        }
        failed
    }

    fn extract(&self, jobs: usize, observer: &dyn Observer) {
        let options = ExtractOptions {
            jobs: Jobs::Fixed(jobs),
            same_permissions: true,
            ..ExtractOptions::default()
        };
        extract(
            &self.folder.join("archive"),
            &self.target(),
            &options,
            observer,
        )
        .unwrap();
    }
}

#[test]
fn absolute_names_are_refused() {
    let trap = Trap::new();
    let (new, old) = (trap.outside("new"), trap.outside("secret"));
    let members = [
        Crafted::file(&new, b"x"),
        Crafted::file(&old, b"x"),
        Crafted::symlink(trap.outside("new-link"), "x"),
        Crafted::directory(trap.outside("new-dir")),
        Crafted::directory(trap.outside("dir")),
        Crafted::fifo(trap.outside("new-fifo")),
        Crafted::hard_link(trap.outside("new-hard-link"), &old),
        Crafted::file("fine", b"fine"),
    ];
    let fine = trap.target().join("fine");
    let archive = trap.folder.join("archive");
    write_archive(&archive, Dialect::Stook, &members);
    let recorder = Recorder::new();
    trap.extract(2, &recorder);
    trap.assert_untouched("absolute");
    let texts = recorder.failure_texts();
    assert_eq!(texts.len(), 7);
    assert!(
        texts
            .iter()
            .all(|text| text.ends_with(": its name is an absolute path")),
        "{texts:?}"
    );
    assert_eq!(fs::read(&fine).unwrap(), b"fine");
    fs::remove_dir_all(archive).unwrap();
    assert_eq!(trap.spring("absolute", &members).len(), 7);
}

#[test]
fn names_that_climb_are_refused() {
    let names = [
        "../outside/new",
        "a/../../outside/new",
        "..",
        "a/..",
        "../outside/secret",
        "./../x",
    ];
    for name in names.iter().filter(|name| !name.starts_with("./")) {
        let members = [Crafted::file(name, b"x"), Crafted::file("fine", b"fine")];
        assert_eq!(Trap::new().spring(name, &members), [*name]);
        let members = [Crafted::directory(name), Crafted::file("fine", b"fine")];
        assert_eq!(Trap::new().spring(name, &members), [*name]);
        let members = [Crafted::symlink(name, "x"), Crafted::file("fine", b"fine")];
        assert_eq!(Trap::new().spring(name, &members), [*name]);
    }
}

#[test]
fn nothing_is_written_through_a_link_of_the_volume() {
    let trap = Trap::new();
    let targets = [
        trap.outside(""),
        b"../outside".to_vec(),
        b"..".to_vec(),
        b"here/../../outside".to_vec(),
    ];
    for target in targets {
        let what = String::from_utf8_lossy(&target).into_owned();
        let members = [
            Crafted::symlink("here", "."),
            Crafted::symlink("out", &target),
            Crafted::file("out/new", b"x"),
            Crafted::file("out/secret", b"x"),
            Crafted::directory("out/new-dir"),
            Crafted::file("out/dir/new", b"x"),
            Crafted::directory("out/dir"),
            Crafted::fifo("out/fifo"),
            Crafted::file("here/fine", b"x"),
        ];
        let failed = Trap::new().spring(&what, &members);
        let expected = [
            "here/fine",
            "out/dir",
            "out/dir/new",
            "out/fifo",
            "out/new",
            "out/new-dir",
            "out/secret",
        ];
        assert_eq!(failed, expected, "{what}");
    }
}

#[test]
fn a_link_in_the_place_of_a_directory_is_not_followed_for_its_mode() {
    for members in [
        [
            Crafted::symlink("out", "../outside"),
            Crafted::directory("out"),
        ],
        [
            Crafted::directory("out"),
            Crafted::symlink("out", "../outside"),
        ],
    ] {
        // Two rows of one name: the newest counts, so the first never comes.
        assert_eq!(Trap::new().spring("mode", &members), [""; 0]);
    }
    let trap = Trap::new();
    symlink("../outside", trap.target().join("out")).unwrap();
    assert_eq!(trap.spring("mode", &[Crafted::directory("out")]), ["out"]);
}

#[test]
fn a_link_of_the_volume_is_replaced_and_not_written_through() {
    let trap = Trap::new();
    symlink("../outside/secret", trap.target().join("file")).unwrap();
    symlink("../outside/none", trap.target().join("new")).unwrap();
    let into = trap.target();
    let members = [
        Crafted::file("file", b"own bytes"),
        Crafted::file("new", b"x"),
    ];
    let archive = trap.folder.join("archive");
    write_archive(&archive, Dialect::Stook, &members);
    let recorder = Recorder::new();
    trap.extract(1, &recorder);
    assert_eq!(recorder.failure_texts(), [""; 0]);
    trap.assert_untouched("replaced");
    assert!(fs::symlink_metadata(into.join("file")).unwrap().is_file());
    assert_eq!(fs::read(into.join("new")).unwrap(), b"x");
}

#[test]
fn hard_links_never_reach_a_file_outside() {
    let trap = Trap::new();
    let absolute = trap.outside("secret");
    let into = trap.target();
    symlink("../outside", into.join("out")).unwrap();
    symlink("../outside/secret", into.join("direct")).unwrap();
    let targets = [
        &absolute[..],
        b"../outside/secret",
        b"out/secret",
        b"direct",
        b"..",
        b".",
        b"out",
    ];
    let mut members = Vec::new();
    for (number, target) in targets.iter().enumerate() {
        members.push(Crafted::hard_link(format!("old-{number}"), target));
        members.push(Crafted::file(format!("new-{number}"), b"own bytes").linked(target));
    }
    assert_eq!(trap.spring_keeping(&members), [""; 0]);
}

impl Trap {
    /// As [`Trap::spring`], and every file must have its own bytes.
    fn spring_keeping(self, members: &[Crafted]) -> Vec<String> {
        let archive = self.folder.join("archive");
        write_archive(&archive, Dialect::Stook, members);
        let recorder = Recorder::new();
        self.extract(2, &recorder);
        self.assert_untouched("hard links");
        for member in members {
            let path = self
                .target()
                .join(std::ffi::OsStr::from_bytes(&member.header.name));
            assert_eq!(fs::read(&path).unwrap(), member.content);
            assert_eq!(fs::metadata(&path).unwrap().nlink(), 1);
        }
        fs::remove_dir_all(archive).unwrap();
        self.spring("hard links", members)
    }
}

#[test]
fn links_that_stand_in_the_target_are_not_followed() {
    let trap = Trap::new();
    let into = trap.target();
    symlink("../outside", into.join("d")).unwrap();
    fs::create_dir(into.join("e")).unwrap();
    symlink(trap.folder.join("outside/dir"), into.join("e/f")).unwrap();
    fs::set_permissions(into.join("e"), Permissions::from_mode(0o700)).unwrap();
    let members = [
        Crafted::file("d/new", b"x"),
        Crafted::file("d/secret", b"x"),
        Crafted::file("e/f/file", b"x"),
        Crafted::directory("e/f"),
        Crafted::directory("e"),
        Crafted::file("e/fine", b"fine"),
    ];
    let failed = trap.spring("standing links", &members);
    assert_eq!(failed, ["d/new", "d/secret", "e/f", "e/f/file"]);
}

#[test]
fn names_with_dots_and_doubled_slashes_stay_inside() {
    let trap = Trap::new();
    let into = trap.target();
    let members = [
        Crafted::file("a//b", b"1"),
        Crafted::file("c/./d", b"2"),
        Crafted::directory("e/./f"),
        Crafted::file("...", b"3"),
        Crafted::file("..g/..h", b"4"),
    ];
    let archive = trap.folder.join("archive");
    write_archive(&archive, Dialect::Stook, &members);
    let recorder = Recorder::new();
    trap.extract(2, &recorder);
    assert_eq!(recorder.failure_texts(), [""; 0]);
    trap.assert_untouched("dots");
    for (path, content) in [
        ("a/b", b"1"),
        ("c/d", b"2"),
        ("...", b"3"),
        ("..g/..h", b"4"),
    ] {
        assert_eq!(fs::read(into.join(path)).unwrap(), content);
    }
    assert_eq!(
        fs::metadata(into.join("e/f")).unwrap().mode() & 0o7777,
        0o777
    );
}
