//! `stook-same-tree A B [--mtime-tolerance-ns N]` compares two trees bit by bit and prints what differs.
//!
//! Exit codes: 0 equal, 1 different, 2 something could not be read or the usage was wrong. It does not use the code
//! that `stook` is made of, so it can vouch for it.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this is a program, its output is the point"
)]

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;
use stook_testkit::{Compare, Snapshot};

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let options: Vec<&OsStr> = arguments.iter().map(OsString::as_os_str).collect();
    let (first, second, compare) = match options.as_slice() {
        [first, second] => (first, second, Compare::everything()),
        [first, second, flag, number] if *flag == "--mtime-tolerance-ns" => {
            let Some(tolerance) = number.to_str().and_then(|text| text.parse().ok()) else {
                return usage();
            };
            (
                first,
                second,
                Compare::everything().mtime_tolerance_ns(tolerance),
            )
        }
        _ => return usage(),
    };
    match Snapshot::take(Path::new(first))
        .and_then(|one| Ok((one, Snapshot::take(Path::new(second))?)))
    {
        Ok((one, two)) => report(&one, &two, &compare),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn report(one: &Snapshot, two: &Snapshot, compare: &Compare) -> ExitCode {
    let lines = one.difference(two, compare);
    for line in &lines {
        println!("{line}");
    }
    if lines.is_empty() {
        println!("equal: {} entries", one.len());
        return ExitCode::SUCCESS;
    }
    ExitCode::FAILURE
}

fn usage() -> ExitCode {
    eprintln!("usage: stook-same-tree A B [--mtime-tolerance-ns N]");
    ExitCode::from(2)
}
