//! An archive with one member of every kind, whose only volume a test may spoil and repair.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use stook_archive::{CheckOptions, Dialect, Jobs, WriteOptions};
use stook_testkit::{Tree, file, sparse, supports_xattrs, tree};

use crate::by_path::check;
use crate::recorder::Recorder;
use crate::scene::{Scene, options};

/// One member of every kind, small, with every sort of extended record.
pub(crate) fn one_of_each(dialect: Dialect) -> Tree {
    let mut tree = tree! {
        "dir/" => dir().mode(0o750),
        "dir/file" => file(b"seven hundred bytes or so".repeat(28)),
        "dir/link" => symlink("file"),
        "dir/link-long" => symlink("t".repeat(101)),
        "empty" => file(b""),
        "empty-dir/" => dir(),
        "full-block" => file(vec![b'b'; 512]),
        "hard" => hardlink("dir/file"),
        "old" => file(b"before 1970").mtime(-2, 250_000_000),
        "pipe" => fifo(),
        b"raw-\xff" => file(b"name"),
        "\u{fc}" => file(b"name"),
    };
    tree.insert("n".repeat(101), file(b"long name"));
    tree.insert("attributes", file(b"x").xattr("user.key", b"value"));
    if dialect == Dialect::Stook {
        tree.insert("sparse", sparse(&[(8192, b"data")], 65_536));
    }
    if supports_xattrs(&std::env::temp_dir()) {
        tree
    } else {
        stook_testkit::skip!("no extended attributes in the temporary directory");
        tree.without_xattrs()
    }
}

/// An archive with one volume that a test may write to.
pub(crate) struct Specimen {
    pub(crate) scene: Scene,
    pub(crate) bytes: Vec<u8>,
    pub(crate) file: File,
}

impl Specimen {
    pub(crate) fn new(tree: &Tree, dialect: Dialect) -> Self {
        let scene = Scene::new(tree);
        let options = WriteOptions {
            dialect,
            directories: dialect == Dialect::Stook,
            read_only_volumes: false,
            ..options()
        };
        let recorder = Recorder::new();
        scene.create_with(&options, &recorder);
        assert_eq!(recorder.failure_texts(), [""; 0]);
        scene.assert_clean();
        let volume = scene.archive().join("000000.tar");
        let bytes = fs::read(&volume).unwrap();
        let file = File::options().write(true).open(&volume).unwrap();
        Self { scene, bytes, file }
    }

    pub(crate) fn damages(&self) -> Vec<String> {
        damages(&self.scene.archive())
    }

    pub(crate) fn repair(&self) {
        self.file.set_len(0).unwrap();
        self.file.write_all_at(&self.bytes, 0).unwrap();
        assert_eq!(self.damages(), [""; 0]);
    }
}

/// What `check` says without being asked for whole volumes.
pub(crate) fn damages(archive: &Path) -> Vec<String> {
    let recorder = Recorder::new();
    let options = CheckOptions {
        jobs: Jobs::Fixed(1),
        ..CheckOptions::default()
    };
    let report = check(archive, &options, &recorder).unwrap();
    let texts = recorder.damage_texts();
    assert_eq!(report.damages, texts.len() as u64);
    texts
}
