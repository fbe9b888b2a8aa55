//! Hard links that cannot be made: a file that is linked nowhere is written again only where no link is possible.

use std::path::Path;
use std::process::Command;

use stook_testkit::tree;

use crate::place::{Place, Ran};

/// Runs the program with every `linkat` failing; None, said aloud, where that is not possible.
fn without_links(place: &Place, error: &str, arguments: &[&str]) -> Option<Ran> {
    let tried = Command::new("strace")
        .args(["-qq", "-o", "/dev/null", "true"])
        .status();
    if !tried.is_ok_and(|status| status.success()) {
        stook_testkit::skip!("strace is not there, or may not trace");
        return None;
    }
    let inject = format!("inject=linkat:error={error}");
    let tracer = [
        "-f",
        "-qq",
        "-o",
        "/dev/null",
        "-e",
        "trace=linkat",
        "-e",
        &inject,
    ];
    let all = [&tracer[..], &[env!("CARGO_BIN_EXE_stook")], arguments].concat();
    let mut command = place.command_of(Path::new("strace"), &all);
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    Some(Ran::of(command.output().unwrap()))
}

#[test]
fn a_link_that_fails_is_a_failure_and_one_that_is_impossible_becomes_a_file() {
    let place = Place::with(&tree! { "a" => file(b"content"), "b" => hardlink("a") });
    place.stderr(&["create", "src", "arc"]);
    for (number, error) in ["EIO", "ENOSPC", "EMLINK", "EXDEV", "EPERM", "EOPNOTSUPP"]
        .iter()
        .enumerate()
    {
        let is_impossible = number > 1;
        for command in ["extract", "copy"] {
            let out = format!("{command}-{error}");
            let arguments = match command {
                "extract" => ["extract", "arc", "--into", &out],
                _ => ["copy", "src", &out, "--quiet"],
            };
            let Some(ran) = without_links(&place, error, &arguments) else {
                return;
            };
            let (first, second) = (place.path(&out).join("a"), place.path(&out).join("b"));
            let there = [&first, &second].map(|path| path.exists());
            if is_impossible {
                assert_eq!(ran.status, Some(0), "{command} {error}: {}", ran.stderr);
                assert_eq!(there, [true, true], "{command} {error}");
            } else {
                assert_ne!(ran.status, Some(0), "{command} {error}");
                assert_ne!(there, [true, true], "{command} {error}");
                assert!(
                    ran.stderr.contains("error: cannot "),
                    "{command} {error}: {}",
                    ran.stderr
                );
            }
        }
    }
}
