//! Tests of comparisons: each fact is noticed when it counts and passed over when it does not.

use super::{Compare, Directories, Fact, Snapshot};
use crate::{TempTree, Tree, tree};

fn difference(one: &Tree, two: &Tree, compare: &Compare) -> Vec<String> {
    let (one, two) = (TempTree::new(one).unwrap(), TempTree::new(two).unwrap());
    let (one, two) = (
        Snapshot::take(one.path()).unwrap(),
        Snapshot::take(two.path()).unwrap(),
    );
    one.difference(&two, compare)
}

#[test]
fn each_fact_is_noticed_in_words() {
    let cases = [
        (
            tree! { "a" => file(b"x") },
            tree! { "a" => file(b"y") },
            Fact::Content,
            "`a`: md5 is ",
        ),
        (
            tree! { "a" => file(b"x") },
            tree! { "a" => file(b"xy") },
            Fact::Size,
            "`a`: size is 1 in the first, 2 in",
        ),
        (
            tree! { "a" => fifo() },
            tree! { "a" => fifo().mode(0o600) },
            Fact::Mode,
            "`a`: mode is 0644 in the first, 0600",
        ),
        (
            tree! { "a" => symlink("x") },
            tree! { "a" => symlink("y") },
            Fact::Target,
            "`a`: target is `x` in the first",
        ),
        (
            tree! { "a" => file(b"").mtime(-1, 1) },
            tree! { "a" => file(b"").mtime(-1, 2) },
            Fact::Mtime,
            "`a`: mtime is -1.000000001 in the first, -1.000000002 in the second",
        ),
        (
            tree! { "d" => dir().mtime(1, 1) },
            tree! { "d" => dir().mtime(1, 2) },
            Fact::DirectoryMtime,
            "`d`: mtime is 1.000000001 in",
        ),
        (
            tree! { "a" => file(b""), "b" => hardlink("a") },
            tree! { "a" => file(b""), "b" => file(b"") },
            Fact::Links,
            "`a`: first hard link is `a` in the first, none in the second",
        ),
        (
            tree! { "a" => sparse(&[], 1 << 20) },
            tree! { "a" => file(vec![0; 1 << 20]) },
            Fact::Holes,
            "`a`: sparseness is sparse in the first, dense in the second",
        ),
    ];
    for (one, two, fact, expected) in cases {
        let lines = difference(&one, &two, &Compare::only([fact]));
        assert!(
            lines.first().is_some_and(|line| line.starts_with(expected)),
            "{fact:?}: {lines:?}"
        );
        assert_eq!(
            difference(&one, &two, &Compare::only([])),
            [""; 0],
            "{fact:?}"
        );
    }
}

#[test]
fn names_and_kinds_always_count() {
    let one = tree! { "a" => file(b""), "b" => dir(), "same" => fifo() };
    let two = tree! { "b" => symlink("x"), "c" => socket(), "same" => fifo() };
    assert_eq!(
        difference(&one, &two, &Compare::only([])),
        [
            "`a`: only in the first, a file",
            "`b`: kind is directory in the first, symbolic link in the second",
            "`c`: only in the second, a socket",
        ]
    );
}

#[test]
fn directories_with_contents_can_be_passed_over() {
    let one = tree! { "d" => dir().mode(0o700), "d/f" => file(b""), "e" => dir() };
    let two = tree! { "d/f" => file(b"") };
    let compare = Compare::content()
        .with(Fact::Mode)
        .directories(Directories::Empty);
    assert_eq!(
        difference(&one, &two, &compare),
        ["`e`: only in the first, a directory"]
    );
    // `a.b` sorts between `a` and `a/f`; it is not what makes `a` full.
    let tricky = tree! { "a" => dir(), "a.b" => file(b"") };
    let snapshot = Snapshot::take(TempTree::new(&tricky).unwrap().path()).unwrap();
    assert!(!snapshot.has_contents(b"a"));
}

#[test]
fn times_may_differ_within_the_tolerance() {
    let (one, two) = (
        tree! { "a" => file(b"").mtime(5, 0) },
        tree! { "a" => file(b"").mtime(4, 999_999_000) },
    );
    assert_eq!(difference(&one, &two, &Compare::zstash()), [""; 0]);
    assert_eq!(
        difference(&one, &two, &Compare::zstash().mtime_tolerance_ns(999)).len(),
        1
    );
    assert_eq!(difference(&one, &two, &Compare::everything()).len(), 1);
    assert_eq!(
        difference(&one, &two, &Compare::everything().without(Fact::Mtime)),
        [""; 0]
    );
}

#[test]
fn a_part_can_be_kept() {
    let written = TempTree::new(&tree! { "a" => file(b""), "b/c" => file(b"") }).unwrap();
    let mut snapshot = Snapshot::take(written.path()).unwrap();
    snapshot.retain(|path, _| path.starts_with(b"b"));
    let paths: Vec<&[u8]> = snapshot.entries().map(|(path, _)| path).collect();
    assert_eq!(paths, [&b"b"[..], b"b/c"]);
    assert!(!snapshot.is_empty());
}

#[test]
fn a_missing_root_is_an_error_with_its_path() {
    let error = Snapshot::take(std::path::Path::new("/nonexistent/stook")).unwrap_err();
    assert!(
        error.to_string().contains("`/nonexistent/stook`"),
        "{error}"
    );
}
