//! `verify`: no byte of a damaged file is given out, of large files not the last.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::Read;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;

use stook_mount::MountOptions;
use stook_testkit::tree;

use crate::scene::{Mount, Scene, catalogue, has_fuse};

const EIO: i32 = 5;

/// Above what is verified at once.
const LARGE: usize = (64 << 20) + 4096;

fn verifying() -> MountOptions {
    MountOptions {
        verify: true,
        ..MountOptions::default()
    }
}

/// Flips a bit in the content of a file, in the volume.
fn flip(scene: &Scene, name: &[u8], at: u64) {
    let catalogue = catalogue(&scene.archive());
    let entry = catalogue.find(name).unwrap();
    let (_, content) = catalogue.content_at(entry).unwrap();
    flip_byte(&scene.volume(), content + at);
}

fn flip_byte(volume: &Path, at: u64) {
    fs::set_permissions(volume, Permissions::from_mode(0o644)).unwrap();
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(volume)
        .unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 1], at).unwrap();
}

#[test]
fn damaged_files_cannot_be_read_and_others_can() {
    if !has_fuse() {
        return;
    }
    let medium = vec![7; 1_000_000];
    let scene = Scene::archived(&tree! {
        "small" => file(b"twelve bytes"), "medium" => file(&medium), "right" => file(&medium),
    });
    flip(&scene, b"small", 3);
    flip(&scene, b"medium", 999_999);
    // Who does not verify gets what is there.
    let careless = scene.mount();
    assert_eq!(fs::read(careless.join("small")).unwrap().len(), 12);
    careless.unmount();

    let mount = Mount::with(&scene.archive(), &verifying());
    let first_byte = |name: &str| {
        let file = File::open(mount.join(name)).unwrap();
        file.read_at(&mut [0], 0)
            .map_err(|error| error.raw_os_error())
    };
    assert_eq!(first_byte("small"), Err(Some(EIO)));
    assert_eq!(first_byte("medium"), Err(Some(EIO)));
    assert_eq!(first_byte("right"), Ok(1));
    assert_eq!(fs::read(mount.join("right")).unwrap(), medium);
    let lines = mount.lines();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(
        lines[0].ends_with("its content does not have the MD5 in the index"),
        "{lines:?}"
    );
}

#[test]
fn a_large_file_is_verified_while_it_is_read_in_order() {
    if !has_fuse() {
        return;
    }
    let content: Vec<u8> = (0..=250).cycle().take(LARGE).collect();
    let scene = Scene::archived(&tree! {"large" => file(&content)});
    let mount = Mount::with(&scene.archive(), &verifying());
    assert_eq!(fs::read(mount.join("large")).unwrap(), content);
    assert_eq!(mount.lines(), [""; 0]);
    mount.unmount();

    flip(&scene, b"large", 12_345);
    let mount = Mount::with(&scene.archive(), &verifying());
    // Some of it is read before anybody can know.
    let mut file = File::open(mount.join("large")).unwrap();
    let mut begin = [0; 4096];
    file.read_exact(&mut begin).unwrap();
    assert_eq!(begin[..], content[..4096]);
    let rest = file.read_to_end(&mut Vec::new());
    assert_eq!(rest.unwrap_err().raw_os_error(), Some(EIO));
    assert_eq!(mount.lines().len(), 1);
}
