//! `stook-fileset` and `stook-same-tree` from the outside.

use std::process::{Command, Output};
use stook_testkit::TempDir;

fn fileset(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_stook-fileset"))
        .args(arguments)
        .output()
        .unwrap()
}

fn same_tree(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_stook-same-tree"))
        .args(arguments)
        .output()
        .unwrap()
}

#[test]
fn equal_sets_are_equal_and_a_changed_byte_is_found() {
    let directory = TempDir::new().unwrap();
    let (one, two) = (directory.join("one"), directory.join("two"));
    let (one, two) = (one.to_str().unwrap(), two.to_str().unwrap());
    let made = fileset(&[one, "200", "7"]);
    assert!(
        made.status.success() && made.stdout.starts_with(b"200 files, "),
        "{made:?}"
    );
    assert!(fileset(&[two, "200"]).status.success());
    let equal = same_tree(&[one, two]);
    assert_eq!(
        (equal.status.code(), equal.stdout.starts_with(b"equal: ")),
        (Some(0), true),
        "{equal:?}"
    );

    let touched = directory.join("two/10000/00/f0000000.dat");
    let permissions = std::process::Command::new("chmod")
        .arg("600")
        .arg(&touched)
        .status()
        .unwrap();
    assert!(permissions.success());
    let different = same_tree(&[one, two, "--mtime-tolerance-ns", "1000"]);
    assert_eq!(different.status.code(), Some(1));
    let line = "`10000/00/f0000000.dat`: mode is 0644 in the first, 0600 in the second\n";
    assert_eq!(String::from_utf8(different.stdout).unwrap(), line);
}

#[test]
fn wrong_usage_and_missing_trees_have_their_own_codes() {
    assert_eq!(fileset(&["only-one"]).status.code(), Some(2));
    assert_eq!(
        fileset(&["/nonexistent/stook/set", "1"]).status.code(),
        Some(1)
    );
    assert_eq!(same_tree(&["one"]).status.code(), Some(2));
    assert_eq!(
        same_tree(&["/nonexistent/a", "/nonexistent/b"])
            .status
            .code(),
        Some(2)
    );
}
