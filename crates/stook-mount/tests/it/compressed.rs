//! Compressed volumes in a mount: frames decoded ahead of readers, and by readers.

use std::fs;
use std::num::NonZeroUsize;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;

use stook_archive::{Archive, CatalogueOptions, OpenOptions, Silent, WriteOptions, ZstdLevel};
use stook_mount::MountOptions;
use stook_testkit::{Random, TempDir, Tree, file};

use crate::damage::writable;
use crate::scene::{Mount, Scene, has_fuse};

const FILES: usize = 600;

/// Some 8 MiB in small files, which compress to half, and one of several frames.
fn scene() -> Scene {
    let (mut random, mut tree) = (Random::new(3), Tree::new());
    let mut text = |len: usize| -> Vec<u8> {
        let letters = b"abcdefghijklmnop";
        (0..len).map(|_| letters[random.index(16)]).collect()
    };
    for number in 0..FILES {
        let len = 200 + 47 * number;
        tree.insert(name(number), file(text(len)));
    }
    tree.insert("z/large", file(text(5 << 20)));
    let options = WriteOptions {
        zstd: Some(ZstdLevel::default()),
        ..WriteOptions::default()
    };
    Scene::archived_with(&tree, &options)
}

fn name(number: usize) -> String {
    format!("d{}/f{number:04}", number / 50)
}

fn mount(archive: &Path, threads: usize) -> Mount {
    let mut archive = Archive::open(archive, &OpenOptions::default()).unwrap();
    let options = CatalogueOptions {
        decode_threads: NonZeroUsize::new(threads),
        ..CatalogueOptions::default()
    };
    let shown = archive.catalogue(&options, &Silent).unwrap();
    let point = TempDir::new().unwrap();
    Mount::at(point, shown.into(), &MountOptions::default())
}

fn same(scene: &Scene, mount: &Mount, name: &str) {
    let expected = fs::read(scene.source().join(name)).unwrap();
    assert!(fs::read(mount.join(name)).unwrap() == expected, "{name}");
}

#[test]
fn compressed_volumes_are_read_whoever_decodes() {
    if !has_fuse() {
        return;
    }
    let scene = scene();
    for threads in [0, 1, 4] {
        let mount = mount(&scene.archive(), threads);
        thread::scope(|scope| {
            for part in 0..4 {
                let (scene, mount) = (&scene, &mount);
                scope.spawn(move || {
                    for number in part * FILES / 4..(part + 1) * FILES / 4 {
                        same(scene, mount, &name(number));
                    }
                    same(scene, mount, "z/large");
                });
            }
        });
        assert_eq!(mount.lines(), [""; 0]);
        mount.unmount();
    }
}

#[test]
fn a_damaged_frame_that_is_decoded_ahead_fails_its_reader_only() {
    if !has_fuse() {
        return;
    }
    let scene = scene();
    let volume = scene.archive().join("000000.tar.zst");
    let middle = fs::metadata(&volume).unwrap().len() / 3;
    let mut byte = [0];
    let file = writable(&volume);
    file.read_exact_at(&mut byte, middle).unwrap();
    file.write_all_at(&[byte[0] ^ 0x55], middle).unwrap();
    for threads in [1, 4] {
        let mount = mount(&scene.archive(), threads);
        let (mut damaged, mut read) = (0, 0);
        for number in 0..FILES {
            match fs::read(mount.join(&name(number))) {
                Ok(content) => {
                    read += 1;
                    let expected = fs::read(scene.source().join(name(number))).unwrap();
                    assert!(content == expected, "{number}");
                }
                Err(error) => {
                    damaged += 1;
                    assert_eq!(error.raw_os_error(), Some(5));
                }
            }
        }
        assert!(damaged > 0 && read > FILES / 2, "{damaged} of {FILES}");
        assert!(mount.lines()[0].contains("000000.tar.zst"), "{threads}");
        mount.unmount();
    }
}
