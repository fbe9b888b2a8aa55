//! Who may do what: the kernel checks permissions, and a user mounts with the help of `fusermount3`.

use std::fs::{self, File};
use std::os::unix::fs::chown;
use std::process::Command;
use std::sync::Arc;

use stook_mount::{Log, MountError, MountOptions, Mounted, Unmount, require_apart};
use stook_testkit::{TempDir, tree, without_privileges};

use crate::scene::{Lines, Mount, Scene, catalogue, has_fuse};

fn log() -> Arc<dyn Log> {
    Arc::new(Lines::default())
}

const NOBODY: u32 = 65_534;
const EACCES: i32 = 13;

fn for_all() -> MountOptions {
    MountOptions {
        allow_other: true,
        ..MountOptions::default()
    }
}

fn errno<T>(result: std::io::Result<T>) -> Option<i32> {
    result.err().and_then(|error| error.raw_os_error())
}

/// A mount point that others can reach.
fn open_point() -> TempDir {
    let point = TempDir::new().unwrap();
    fs::set_permissions(
        point.path(),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    point
}

#[test]
fn other_users_get_what_modes_and_lists_allow() {
    if !has_fuse() || !stook_sys::is_root() {
        stook_testkit::skip!("only root can be two users");
        return;
    }
    let scene = Scene::archived(&tree! {
        "public" => file(b"public").mode(0o644),
        "private" => file(b"private").mode(0o600),
        "group" => file(b"for a list").mode(0o640),
        "closed/inside" => file(b"inside").mode(0o644),
        "closed" => dir().mode(0o700),
    });
    // The list's mask is in the bits of the group, which itself may do nothing.
    let set = Command::new("setfacl")
        .args(["-m", "u:65534:r--,g::---"])
        .arg(scene.source().join("group"))
        .status();
    let has_lists = set.is_ok_and(|status| status.success());
    let archive = scene.archive().with_file_name("listed");
    stook_archive::create(
        scene.source(),
        &archive,
        &Default::default(),
        &stook_archive::Silent,
    )
    .unwrap();
    let mount = Mount::at(open_point(), catalogue(&archive).into(), &for_all());
    let read = |name: &str| fs::read(mount.join(name));
    let seen = without_privileges(|| {
        ["public", "private", "closed/inside", "group"]
            .map(|name| read(name).map_err(|error| error.raw_os_error()))
    });
    let seen = match seen {
        Ok(seen) => seen,
        Err(error) => return stook_testkit::skip!("the user cannot be changed here: {error}"),
    };
    assert_eq!(seen[0].as_deref(), Ok(&b"public"[..]));
    assert_eq!(seen[1], Err(Some(EACCES)));
    assert_eq!(seen[2], Err(Some(EACCES)));
    if !has_lists {
        stook_testkit::skip!("there are no access control lists here");
    } else {
        assert_eq!(seen[3].as_deref(), Ok(&b"for a list"[..]));
    }
    mount.unmount();

    // Without allow_other nobody else gets in, not even root's friends.
    let mount = Mount::at(
        open_point(),
        catalogue(&archive).into(),
        &MountOptions::default(),
    );
    let path = mount.join("public");
    let seen = without_privileges(|| errno(fs::read(&path)));
    assert_eq!(seen.unwrap(), Some(EACCES));
}

#[test]
fn an_ordinary_user_mounts_and_unmounts() {
    if !has_fuse() {
        return;
    }
    let scene = Scene::archived(&tree! {"a" => file(b"content").mode(0o644)});
    let point = open_point();
    if stook_sys::is_root() {
        chown(point.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let catalogue = catalogue(&scene.archive());
    // Volumes are opened when they are read: by a user who must be able to reach them.
    let mut above = scene.archive();
    while above.pop() && above.starts_with(std::env::temp_dir()) && above != std::env::temp_dir() {
        fs::set_permissions(&above, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    let path = point.path().to_owned();
    let done = without_privileges(move || {
        let mounted = Mounted::mount(catalogue.into(), &path, &MountOptions::default(), &log());
        let mounted = match mounted {
            Ok(mounted) => mounted,
            Err(error) => return Err(error.to_string()),
        };
        let content = fs::read(path.join("a")).unwrap();
        let unmounter = mounted.unmounter();
        let open = File::open(path.join("a")).unwrap();
        let busy = unmounter.unmount(Unmount::Unused);
        drop(open);
        unmounter.unmount(Unmount::Unused).unwrap();
        mounted.wait().unwrap();
        Ok((content, matches!(busy, Err(MountError::Busy { .. }))))
    });
    match done {
        Ok(Ok((content, was_busy))) => {
            assert_eq!(content, b"content");
            assert!(was_busy);
            assert_eq!(fs::read_dir(point.path()).unwrap().count(), 0);
        }
        Ok(Err(error)) => stook_testkit::skip!("a user cannot mount here: {error}"),
        Err(error) => stook_testkit::skip!("the user cannot be changed here: {error}"),
    }
}

#[test]
fn a_mount_in_use_is_busy_and_says_who_holds_it() {
    if !has_fuse() {
        return;
    }
    let scene = Scene::archived(&tree! {"a" => file(b"content")});
    let mut mount = scene.mount();
    let mut holder = Command::new("sleep")
        .arg("60")
        .current_dir(mount.path())
        .spawn()
        .unwrap();
    let unmounter = mount.mounted().unmounter();
    assert!(matches!(
        unmounter.unmount(Unmount::Unused),
        Err(MountError::Busy { .. })
    ));
    let holders = unmounter.holders();
    let found = holders.iter().find(|found| found.process == holder.id());
    assert_eq!(found.map(|found| found.how.as_str()), Some("cwd"));
    // Detached, it is gone for all but who uses it.
    unmounter.unmount(Unmount::Detach).unwrap();
    assert_eq!(fs::read_dir(mount.path()).unwrap().count(), 0);
    holder.kill().unwrap();
    holder.wait().unwrap();
    mount.wait_for_end();
}

#[test]
fn a_mount_must_not_hide_its_archive() {
    let scene = Scene::archived(&tree! {"a" => file(b"content")});
    let above = scene.archive().parent().unwrap().to_owned();
    for point in [&above, &scene.archive()] {
        let refused = require_apart(&scene.archive(), point);
        assert!(
            matches!(refused, Err(MountError::HidesArchive { .. })),
            "{point:?}"
        );
    }
    let apart = TempDir::new().unwrap();
    require_apart(&scene.archive(), apart.path()).unwrap();
    let file = scene.source().join("a");
    let refused = Mounted::mount(
        catalogue(&scene.archive()).into(),
        &file,
        &MountOptions::default(),
        &log(),
    );
    assert!(matches!(refused, Err(MountError::NotADirectory { .. })));
}
