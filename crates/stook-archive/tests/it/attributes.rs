//! Attributes of what is never opened: symbolic links, fifos and devices.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use stook_archive::{ExtractOptions, Jobs};
use stook_sys::{Directory, FileKind};
use stook_testkit::tree;

use crate::folder::extract_to;
use crate::scene::Scene;

const NAME: &[u8] = b"trusted.stook";

/// Returns a tree with an attribute on each entry; None, said aloud, where it cannot be given.
fn with_attributes() -> Option<(Scene, Vec<&'static str>)> {
    let scene = Scene::new(&tree! {
        "fifo" => fifo(),
        "file" => file(b"x"),
        "link" => symlink("nowhere"),
    });
    let source = Directory::open(scene.source()).unwrap();
    let mut names = vec!["fifo", "file", "link"];
    match source.create_node(b"device", FileKind::CharDevice, (1, 3)) {
        Ok(()) => names.push("device"),
        Err(error) => stook_testkit::skip!("no device can be made here: {error}"),
    }
    for name in &names {
        if let Err(error) = source.set_xattr(name.as_bytes(), NAME, name.as_bytes()) {
            stook_testkit::skip!("`{name}` gets no attribute here: {error}");
            return None;
        }
    }
    Some((scene, names))
}

fn attribute(folder: &Path, name: &str) -> Option<Vec<u8>> {
    let found = Directory::open(folder)
        .unwrap()
        .xattrs(name.as_bytes())
        .unwrap();
    let found = found.into_iter().find(|(found, _)| found == NAME);
    found.map(|(_, value)| value)
}

#[test]
fn attributes_of_links_fifos_and_devices_come_back() {
    let Some((scene, names)) = with_attributes() else {
        return;
    };
    scene.create();
    let options = ExtractOptions {
        same_permissions: true,
        ..ExtractOptions::default()
    };
    let into = scene.beside("into");
    for round in 0..2 {
        let (report, _) = extract_to(&scene.archive(), &into, &options);
        assert_eq!(report.failed, 0);
        for name in &names {
            let value = attribute(&into, name);
            assert_eq!(value.as_deref(), Some(name.as_bytes()), "{name}, {round}");
            // Another thing in its place is replaced.
            fs::remove_file(into.join(name)).unwrap();
            fs::write(into.join(name), b"another content").unwrap();
        }
    }
    let (report, _) = extract_to(
        &scene.archive(),
        &scene.beside("bare"),
        &ExtractOptions {
            xattrs: false,
            ..options
        },
    );
    assert_eq!(report.failed, 0);
    assert_eq!(attribute(&scene.beside("bare"), "link"), None);
}

#[test]
fn attributes_that_only_the_superuser_may_set_are_counted_in_a_note() {
    let Some((scene, _)) = with_attributes() else {
        return;
    };
    scene.create();
    let (archive, into) = (scene.archive(), scene.beside("into"));
    let above = archive.parent().unwrap();
    fs::set_permissions(above, fs::Permissions::from_mode(0o777)).unwrap();
    let done = stook_testkit::without_privileges(|| {
        let options = ExtractOptions {
            jobs: Jobs::Fixed(1),
            patterns: vec![
                stook_tree::Pattern::new(b"link"),
                stook_tree::Pattern::new(b"fifo"),
            ],
            ..ExtractOptions::default()
        };
        extract_to(&archive, &into, &options)
    });
    match done {
        Err(error) => stook_testkit::skip!("root may not change its user here: {error}"),
        Ok((report, recorder)) => {
            assert_eq!(report.failed, 0);
            assert_eq!(
                recorder.notes(),
                ["2 attributes that only the superuser may set were left out"]
            );
        }
    }
}
