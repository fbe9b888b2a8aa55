//! Small files that are sent to the kernel before it asks for them.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

use stook_mount::{MountOptions, Request, talk};
use stook_testkit::{Random, TempDir, Tree, file};

use crate::damage::writable;
use crate::scene::{Mount, Scene, catalogue, has_fuse};

const FILES: usize = 40;

fn name(number: usize) -> String {
    format!("d/f{number:03}")
}

/// Small files of one directory, one without content, and a large one among them.
fn scene() -> Scene {
    let (mut random, mut tree) = (Random::new(11), Tree::new());
    for number in 0..FILES {
        let len = match number {
            9 => 0,
            10 => 700_000,
            _ => 1000 + 300 * number,
        };
        tree.insert(name(number), file(random.bytes(len)));
    }
    Scene::archived(&tree)
}

struct Watched {
    mount: Mount,
    control: TempDir,
}

impl Watched {
    fn of(archive: &Path, verify: bool) -> Self {
        let control = TempDir::new().unwrap();
        let options = MountOptions {
            control: Some(control.join("sockets")),
            verify,
            ..MountOptions::default()
        };
        let point = TempDir::new().unwrap();
        let mount = Mount::at(point, catalogue(archive).into(), &options);
        Self { mount, control }
    }

    fn list(&self) {
        assert_eq!(fs::read_dir(self.mount.join("d")).unwrap().count(), FILES);
    }

    /// Reads, and lets workers send what follows.
    fn read(&self, number: usize) -> std::io::Result<Vec<u8>> {
        let content = fs::read(self.mount.join(&name(number)));
        thread::sleep(Duration::from_millis(20));
        content
    }

    /// Returns how many reads the kernel has asked for.
    fn reads(&self) -> u64 {
        let sockets = self.control.join("sockets");
        let stats = talk(&sockets, self.mount.path(), &Request::Stats).unwrap();
        let operations = stats["operations"].as_array().unwrap();
        let reads = operations.iter().find(|one| one["name"] == "read");
        reads.unwrap()["calls"].as_u64().unwrap()
    }
}

#[test]
fn files_read_in_order_are_not_asked_for() {
    if !has_fuse() {
        return;
    }
    let scene = scene();
    for verify in [false, true] {
        // Dropping the caches of the machine makes the kernel forget names; then it asks for all files.
        let is_spared = (0..5).any(|_| read_all(&scene, verify) < 25);
        assert!(is_spared, "verify: {verify}");
    }
}

/// Returns how many reads it took: with time enough five, and some of the large file.
fn read_all(scene: &Scene, verify: bool) -> u64 {
    let watched = Watched::of(&scene.archive(), verify);
    watched.list();
    for number in 0..FILES {
        let expected = fs::read(scene.source().join(name(number))).unwrap();
        assert!(watched.read(number).unwrap() == expected, "{number}");
    }
    let reads = watched.reads();
    watched.mount.unmount();
    reads
}

#[test]
fn files_that_the_kernel_was_not_told_of_are_not_sent() {
    if !has_fuse() {
        return;
    }
    let scene = scene();
    let watched = Watched::of(&scene.archive(), false);
    for number in 11..FILES {
        watched.read(number).unwrap();
    }
    assert_eq!(watched.reads(), FILES as u64 - 11);
    watched.mount.unmount();
}

#[test]
fn a_damaged_file_is_not_sent_and_is_told_to_its_reader_only() {
    if !has_fuse() {
        return;
    }
    let scene = scene();
    let broken = fs::read(scene.source().join(name(4))).unwrap();
    let volume = fs::read(scene.volume()).unwrap();
    let at = volume.windows(64).position(|part| part == &broken[..64]);
    let at = at.unwrap() as u64 + 500;
    let file = writable(&scene.volume());
    file.write_all_at(b"????", at).unwrap();
    let watched = Watched::of(&scene.archive(), true);
    watched.list();
    for number in 0..4 {
        watched.read(number).unwrap();
    }
    assert_eq!(watched.mount.lines(), [""; 0]);
    assert_eq!(watched.read(4).unwrap_err().raw_os_error(), Some(5));
    for number in 5..FILES {
        watched.read(number).unwrap();
    }
    assert_eq!(watched.mount.lines().len(), 1);
    watched.mount.unmount();
}
