//! Content: any bytes, from many threads, with holes, behind the end.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::process::Command;
use std::thread;

use stook_testkit::{Random, tree};

use crate::scene::{Scene, has_fuse};

const LARGE: usize = 3_000_001;

fn bytes(seed: u64, len: usize) -> Vec<u8> {
    Random::new(seed).bytes(len)
}

#[test]
fn any_bytes_can_be_read_from_many_threads() {
    if !has_fuse() {
        return;
    }
    let content = bytes(1, LARGE);
    let scene =
        Scene::archived(&tree! {"large" => file(&content), "small" => file(&content[..777])});
    let mount = scene.mount();
    thread::scope(|scope| {
        for seed in 0..8 {
            let (content, path) = (&content, mount.join("large"));
            scope.spawn(move || {
                let file = File::open(path).unwrap();
                let mut random = Random::new(seed);
                for _ in 0..200 {
                    let offset = random.index(LARGE + 1000);
                    let mut buffer = vec![0; random.index(70_000)];
                    let count = file.read_at(&mut buffer, offset as u64).unwrap();
                    let expected = content.get(offset..).unwrap_or_default();
                    assert!(count <= buffer.len().min(expected.len()));
                    assert_eq!(buffer[..count], expected[..count]);
                    assert_eq!(count == 0, buffer.is_empty() || expected.is_empty());
                }
            });
        }
    });
    let small = File::open(mount.join("small")).unwrap();
    assert_eq!(small.read_at(&mut [0; 10], 777).unwrap(), 0);
    assert_eq!(small.read_at(&mut [0; 10], 1 << 40).unwrap(), 0);
    assert_eq!(fs::read(mount.join("small")).unwrap(), content[..777]);
}

#[test]
fn holes_read_as_zeros_and_are_told() {
    if !has_fuse() {
        return;
    }
    let scene = Scene::archived(&tree! {
        "sparse" => sparse(&[(0, b"begin"), (512 << 10, b"middle")], 1 << 20),
        "dense" => file(b"no hole"),
    });
    let mount = scene.mount();
    let (ours, theirs) = (scene.source().join("sparse"), mount.join("sparse"));
    let expected = fs::read(&ours).unwrap();
    assert_eq!(fs::read(&theirs).unwrap(), expected);
    let facts = fs::metadata(&theirs).unwrap();
    assert_eq!(facts.len(), expected.len() as u64);
    assert!(
        facts.blocks() * 512 < facts.len(),
        "{} blocks",
        facts.blocks()
    );
    // A copy keeps them.
    let copy = scene.archive().with_file_name("copy");
    let copied = Command::new("cp")
        .args(["--sparse=auto", "--reflink=never"])
        .args([&theirs, &copy])
        .status();
    assert!(copied.unwrap().success());
    assert_eq!(fs::read(&copy).unwrap(), expected);
    assert_eq!(
        fs::metadata(&copy).unwrap().blocks(),
        fs::metadata(&ours).unwrap().blocks()
    );
    let mut dense = File::open(mount.join("dense")).unwrap();
    dense.seek(SeekFrom::Start(3)).unwrap();
    let mut rest = String::new();
    dense.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "hole");
}

#[test]
fn thousands_of_files_are_open_at_once() {
    if !has_fuse() {
        return;
    }
    stook_sys::raise_open_files();
    let scene = Scene::archived(&stook_testkit::Tree::wide(3000));
    let mount = scene.mount();
    let names = fs::read_dir(mount.join("wide")).unwrap();
    let files: Vec<(File, Vec<u8>)> = names
        .map(|entry| {
            let entry = entry.unwrap();
            let expected = fs::read(scene.source().join("wide").join(entry.file_name())).unwrap();
            (File::open(entry.path()).unwrap(), expected)
        })
        .collect();
    assert_eq!(files.len(), 3000);
    for (mut file, expected) in files {
        let mut found = Vec::new();
        file.read_to_end(&mut found).unwrap();
        assert_eq!(found, expected);
    }
}

#[test]
fn attributes_of_the_volume_and_of_the_mount() {
    if !has_fuse() {
        return;
    }
    let scene = Scene::archived(
        &tree! {"with" => file(b"a").xattr("user.x", b"value"), "without" => file(b"a")},
    );
    if !stook_testkit::supports_xattrs(scene.source()) {
        stook_testkit::skip!("there are no attributes here");
        return;
    }
    let mount = scene.mount();
    let get = |name: &str, attribute: &str| {
        let output = Command::new("getfattr")
            .args(["--only-values", "-n", attribute])
            .arg(mount.join(name))
            .output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    assert_eq!(get("with", "user.x"), "value");
    assert_eq!(get("without", "user.x"), "");
    assert_eq!(get("with", "user.stook.volume"), "000000.tar");
    assert_eq!(
        get("with", "user.stook.md5"),
        "0cc175b9c0f1b6a831c399e269772661"
    );
    assert_eq!(get("with", "user.stook.offset"), "0");
    let listed = Command::new("getfattr")
        .args(["-d", "-m", "-"])
        .arg(mount.join("with"))
        .output()
        .unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(
        listed.contains("user.x") && !listed.contains("user.stook"),
        "{listed}"
    );
}
