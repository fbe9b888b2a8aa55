//! What goes through the slow file system: all that a tree can hold, unchanged, and every call on it as in the source.

use crate::slow::slow;
use rustix::fs::{
    CWD, FallocateFlags, RenameFlags, SeekFrom, XattrFlags, fallocate, getxattr, getxattr_query,
    listxattr_query, removexattr, renameat_with, seek, setxattr,
};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;
use stook_testkit::slowfs::{Options, allow_many_directories};
use stook_testkit::{
    Compare, Fact, Snapshot, TempTree, Tree, remove_tree, supports_xattrs, without_privileges,
};

/// Enough for every answer to go through the timer.
const QUICK: Duration = Duration::from_micros(20);

/// Nothing is cached, so that every call reaches the source.
fn uncached() -> Options {
    Options::new(Duration::ZERO).ttl(Duration::ZERO)
}

fn every_fact() -> Compare {
    Compare::everything().with(Fact::Holes)
}

fn named_trees() -> Vec<(&'static str, Tree, Duration)> {
    let mut trees = vec![
        ("torture", Tree::torture(), QUICK),
        ("deep", Tree::deep(2100), Duration::ZERO),
        ("random", Tree::random(11, 500), Duration::ZERO),
    ];
    if !supports_xattrs(&std::env::temp_dir()) {
        for (_, tree, _) in &mut trees {
            *tree = tree.clone().without_xattrs();
        }
    }
    trees
}

#[test]
fn every_kind_of_entry_goes_through() {
    allow_many_directories();
    for (name, tree, latency) in named_trees() {
        let Some(slow) = slow(&Options::new(latency)) else {
            return;
        };
        let expected = TempTree::new(&tree).unwrap();
        let expected = Snapshot::take(expected.path()).unwrap();
        tree.write(&slow.path("tree")).unwrap();
        let seen = Snapshot::take(&slow.path("tree")).unwrap();
        assert_eq!(expected.difference(&seen, &every_fact()), [""; 0], "{name}");
        let stored = Snapshot::take(&slow.source.join("tree")).unwrap();
        assert_eq!(
            expected.difference(&stored, &every_fact()),
            [""; 0],
            "{name}"
        );
        remove_tree(&slow.path("tree")).unwrap();
        assert_eq!(fs::read_dir(slow.source.path()).unwrap().count(), 0);
    }
}

#[test]
fn what_was_there_before_the_mount_is_seen() {
    let Some(slow) = slow(&uncached()) else {
        return;
    };
    Tree::torture().write(&slow.source.join("tree")).unwrap();
    let stored = Snapshot::take(&slow.source.join("tree")).unwrap();
    let seen = Snapshot::take(&slow.path("tree")).unwrap();
    assert_eq!(stored.difference(&seen, &every_fact()), [""; 0]);
    let (one, two) = (
        slow.path("tree/hardlinks/a.txt"),
        slow.path("tree/hardlinks/z/hard.txt"),
    );
    assert_eq!(inode(&one), inode(&two));
    assert_eq!(
        inode(&one),
        inode(&slow.source.join("tree/hardlinks/a.txt"))
    );
}

fn inode(path: &Path) -> (u64, u64) {
    let metadata = fs::symlink_metadata(path).unwrap();
    (metadata.ino(), metadata.nlink())
}

#[test]
fn a_wide_directory_is_read_completely_and_again_after_a_rewind() {
    let Some(slow) = slow(&uncached()) else {
        return;
    };
    Tree::wide(5000).write(slow.source.path()).unwrap();
    let directory = File::open(slow.path("wide")).unwrap();
    let mut stream = rustix::fs::Dir::read_from(&directory).unwrap();
    for _ in 0..2 {
        let mut names: Vec<Vec<u8>> = stream
            .by_ref()
            .map(|entry| entry.unwrap().file_name().to_bytes().to_vec())
            .filter(|name| !name.starts_with(b"."))
            .collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 5000);
        stream.rewind();
    }
}

#[test]
fn files_are_written_as_in_the_source() {
    let Some(slow) = slow(&uncached()) else {
        return;
    };
    let path = slow.path("file");
    let stored = slow.source.join("file");
    let mut new = OpenOptions::new();
    new.write(true).read(true).create_new(true);
    let mut file = new.open(&path).unwrap();
    let exists = new.open(&path).unwrap_err();
    assert_eq!(exists.kind(), ErrorKind::AlreadyExists);
    file.write_all(b"one two").unwrap();
    file.write_all_at(b"ONE", 0).unwrap();
    let mut appending = OpenOptions::new().append(true).open(&path).unwrap();
    appending.write_all(b" three").unwrap();
    appending.write_all_at(b" four", 0).unwrap();
    assert_eq!(fs::read(&stored).unwrap(), b"ONE two three four");
    file.set_len(3).unwrap();
    assert_eq!(fs::read(&stored).unwrap(), b"ONE");
    file.sync_all().unwrap();
    File::create(&path).unwrap();
    assert_eq!(fs::metadata(&stored).unwrap().len(), 0);

    let big: Vec<u8> = (0..5_000_000_u32).map(|byte| (byte % 251) as u8).collect();
    fs::write(&path, &big).unwrap();
    assert!(fs::read(&stored).unwrap() == big && fs::read(&path).unwrap() == big);
    fs::copy(&path, slow.path("copy")).unwrap();
    assert!(fs::read(slow.source.join("copy")).unwrap() == big);
}

#[test]
fn holes_are_found_and_made() {
    let Some(slow) = slow(&uncached()) else {
        return;
    };
    let path = slow.path("file");
    let file = File::create_new(&path).unwrap();
    file.write_all_at(&[1; 65_536], 1 << 20).unwrap();
    let mut reader = File::open(&path).unwrap();
    assert_eq!(seek(&reader, SeekFrom::Data(0)), Ok(1 << 20));
    assert_eq!(
        seek(&reader, SeekFrom::Hole(1 << 20)),
        Ok((1 << 20) + 65_536)
    );
    assert_eq!(seek(&reader, SeekFrom::Data(2 << 20)), Err(Errno::NXIO));
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    fallocate(&file, punch, 1 << 20, 32_768).unwrap();
    reader.rewind().unwrap();
    assert_eq!(seek(&reader, SeekFrom::Data(0)), Ok((1 << 20) + 32_768));
}

#[test]
fn open_files_outlive_their_names() {
    let Some(slow) = slow(&uncached()) else {
        return;
    };
    fs::create_dir(slow.path("other")).unwrap();
    fs::write(slow.path("a"), b"aaa").unwrap();
    fs::write(slow.path("b"), b"b").unwrap();
    let mut a = OpenOptions::new()
        .read(true)
        .write(true)
        .open(slow.path("a"))
        .unwrap();
    let b = File::open(slow.path("b")).unwrap();
    // `a` takes the place of `b`, moves on, and goes.
    fs::rename(slow.path("a"), slow.path("b")).unwrap();
    assert_eq!(b.metadata().unwrap().nlink(), 0);
    assert_eq!(a.metadata().unwrap().len(), 3);
    fs::rename(slow.path("b"), slow.path("other/c")).unwrap();
    assert_eq!(fs::read(slow.source.join("other/c")).unwrap(), b"aaa");
    fs::remove_file(slow.path("other/c")).unwrap();
    // A new file in the source gets no number that is still in use.
    fs::write(slow.path("other/c"), b"new").unwrap();
    a.write_all(b"AAAA").unwrap();
    a.set_permissions(fs::Permissions::from_mode(0o640))
        .unwrap();
    a.set_len(5).unwrap();
    a.rewind().unwrap();
    let mut content = Vec::new();
    a.read_to_end(&mut content).unwrap();
    assert_eq!(content, b"AAAA\0");
    let facts = a.metadata().unwrap();
    assert_eq!(
        (facts.nlink(), facts.len(), facts.mode() & 0o777),
        (0, 5, 0o640)
    );
    assert_eq!(fs::read(slow.path("other/c")).unwrap(), b"new");
}

#[test]
fn renames_keep_their_flags() {
    let Some(slow) = slow(&uncached()) else {
        return;
    };
    let (one, two) = (slow.path("one"), slow.path("two"));
    fs::write(&one, b"1").unwrap();
    fs::create_dir(&two).unwrap();
    fs::write(two.join("below"), b"2").unwrap();
    let refused = renameat_with(CWD, &one, CWD, &two, RenameFlags::NOREPLACE);
    assert_eq!(refused, Err(Errno::EXIST));
    assert_eq!(fs::read(&one).unwrap(), b"1");
    renameat_with(CWD, &one, CWD, &two, RenameFlags::EXCHANGE).unwrap();
    assert_eq!(fs::read(&two).unwrap(), b"1");
    assert_eq!(fs::read(one.join("below")).unwrap(), b"2");
    assert_eq!(fs::read(slow.source.join("one/below")).unwrap(), b"2");
}

#[test]
fn the_file_system_below_is_told_about() {
    let Some(slow) = slow(&uncached()) else {
        return;
    };
    let seen = rustix::fs::statvfs(slow.mountpoint.path()).unwrap();
    let below = rustix::fs::statvfs(slow.source.path()).unwrap();
    assert_eq!(
        (seen.f_blocks, seen.f_frsize, seen.f_files, seen.f_namemax),
        (
            below.f_blocks,
            below.f_frsize,
            below.f_files,
            below.f_namemax
        )
    );
}

#[test]
fn attributes_obey_their_flags() {
    let Some(slow) = slow(&uncached()) else {
        return;
    };
    if !supports_xattrs(slow.source.path()) {
        stook_testkit::skip!("no extended attributes in the temporary directory");
        return;
    }
    let path = slow.path("file");
    fs::write(&path, b"").unwrap();
    let replaced = setxattr(&path, "user.a", b"1", XattrFlags::REPLACE);
    assert_eq!(replaced, Err(Errno::NODATA));
    setxattr(&path, "user.a", b"1", XattrFlags::CREATE).unwrap();
    let again = setxattr(&path, "user.a", b"2", XattrFlags::CREATE);
    assert_eq!(again, Err(Errno::EXIST));
    let mut long = [0; 2];
    assert_eq!(getxattr_query(&path, "user.a"), Ok(1));
    assert_eq!(getxattr(&path, "user.a", &mut long), Ok(1));
    setxattr(&path, "user.a", b"long", XattrFlags::empty()).unwrap();
    let cut_off = getxattr(&path, "user.a", &mut long);
    assert_eq!(cut_off, Err(Errno::RANGE));
    assert_eq!(listxattr_query(&path), Ok(b"user.a\0".len()));
    removexattr(&path, "user.a").unwrap();
    assert_eq!(listxattr_query(&path), Ok(0));
}

#[test]
fn what_another_user_makes_is_his_and_what_he_may_not_is_refused() {
    let Some(slow) = slow(&uncached()) else {
        return;
    };
    fs::write(slow.path("secret"), b"x").unwrap();
    fs::set_permissions(slow.path("secret"), fs::Permissions::from_mode(0o600)).unwrap();
    for (name, mode) in [("open", 0o777), ("group", 0o2777)] {
        fs::create_dir(slow.path(name)).unwrap();
        fs::set_permissions(slow.path(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    for path in [slow.mountpoint.path(), slow.source.path()] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    if !rustix::process::geteuid().is_root() {
        stook_testkit::skip!("only root can be another user");
        return;
    }
    let done = without_privileges(|| {
        assert!(File::open(slow.path("secret")).is_err());
        assert!(File::create(slow.path("new")).is_err());
        for name in ["open", "group"] {
            let directory = slow.path(name);
            File::create_new(directory.join("file")).unwrap();
            fs::create_dir(directory.join("dir")).unwrap();
            std::os::unix::fs::symlink("file", directory.join("link")).unwrap();
        }
    });
    if let Err(error) = done {
        stook_testkit::skip!("the user cannot be changed here: {error}");
        return;
    }
    let group_of_parent = fs::metadata(slow.source.join("group")).unwrap().gid();
    for name in ["file", "dir", "link"] {
        let owner = |path: &Path| {
            let facts = fs::symlink_metadata(path).unwrap();
            (facts.uid(), facts.gid())
        };
        let (open, group) = (slow.source.join("open"), slow.source.join("group"));
        assert_eq!(owner(&open.join(name)), (65_534, 65_534), "{name}");
        assert_eq!(
            owner(&group.join(name)),
            (65_534, group_of_parent),
            "{name}"
        );
    }
    let inherits = fs::metadata(slow.source.join("group/dir")).unwrap().mode();
    assert_eq!(inherits & 0o2000, 0o2000);
}

#[test]
fn set_id_bits_go_when_another_user_writes() {
    let Some(slow) = slow(&uncached()) else {
        return;
    };
    if !rustix::process::geteuid().is_root() {
        stook_testkit::skip!("only root can be another user");
        return;
    }
    for path in [slow.mountpoint.path(), slow.source.path()] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let make = |name: &str| {
        let path = slow.path(name);
        fs::write(&path, b"#!").unwrap();
        std::os::unix::fs::chown(&path, Some(65_534), Some(65_534)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o6775)).unwrap();
        path
    };
    let (written, cut, opened, kept) = (make("w"), make("c"), make("o"), make("k"));
    let open = |path: &Path| OpenOptions::new().write(true).open(path).unwrap();
    let done = without_privileges(|| {
        open(&written).write_all(b"new").unwrap();
        open(&cut).set_len(1).unwrap();
        File::create(&opened).unwrap();
    });
    if let Err(error) = done {
        stook_testkit::skip!("the user cannot be changed here: {error}");
        return;
    }
    open(&kept).write_all(b"by root").unwrap();
    let modes = ["w", "c", "o", "k"].map(|name| {
        let facts = fs::metadata(slow.source.join(name)).unwrap();
        facts.mode() & 0o7777
    });
    assert_eq!(modes, [0o775, 0o775, 0o775, 0o6775]);
}

#[test]
fn changes_behind_the_mount_are_seen() {
    let Some(slow) = slow(&uncached()) else {
        return;
    };
    fs::write(slow.path("file"), b"old").unwrap();
    assert_eq!(fs::read(slow.path("file")).unwrap(), b"old");
    fs::rename(slow.source.join("file"), slow.source.join("moved")).unwrap();
    fs::write(slow.source.join("file"), b"replaced").unwrap();
    assert_eq!(fs::read(slow.path("file")).unwrap(), b"replaced");
    assert_eq!(fs::read(slow.path("moved")).unwrap(), b"old");
    fs::remove_file(slow.source.join("file")).unwrap();
    let gone = fs::read(slow.path("file")).unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::NotFound);
}
