//! Says that a test, or a part of one, cannot run here.
//!
//! The test harness hides what a passing test prints. So the reason also goes to the file that `STOOK_SKIPS` names;
//! `make test` prints that file at its end, and counts its lines.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::thread;

/// Prints `skipped: REASON`, and adds it to the list of the test run.
///
/// ```
/// # let has_fuse = true;
/// if !has_fuse {
///     stook_testkit::skip!("there is no FUSE");
///     return;
/// }
/// ```
#[macro_export]
macro_rules! skip {
    ($($reason:tt)+) => {
        $crate::record_skip(env!("CARGO_PKG_NAME"), &format!($($reason)+))
    };
}

/// What [`skip!`](crate::skip) calls; `package` is the crate of the test.
///
/// # Panics
/// When the list cannot be written: a skip that nobody sees is a failure.
#[expect(
    clippy::print_stdout,
    reason = "somebody who runs one test with --nocapture sees why it did nothing"
)]
pub fn record_skip(package: &str, reason: &str) {
    println!("skipped: {reason}");
    if let Some(list) = std::env::var_os("STOOK_SKIPS")
        && let Err(error) = append(Path::new(&list), package, reason)
    {
        panic!("cannot add to the list of skipped tests: {error}");
    }
}

fn append(list: &Path, package: &str, reason: &str) -> io::Result<()> {
    let thread = thread::current();
    let name = thread.name().unwrap_or("?");
    let line = format!("{package} {name}: {}\n", reason.replace('\n', " "));
    // One write of an appending descriptor: lines of several processes do not mix.
    let mut file = OpenOptions::new().append(true).open(list)?;
    file.write_all(line.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::append;
    use crate::TempDir;
    use std::fs;

    #[test]
    fn every_skip_is_a_line_of_the_list() {
        let place = TempDir::new().unwrap();
        let list = place.path().join("skips");
        fs::write(&list, "before\n").unwrap();
        append(&list, "stook-x", "no\ndevice").unwrap();
        let text = fs::read_to_string(&list).unwrap();
        let name = "skip::tests::every_skip_is_a_line_of_the_list";
        assert_eq!(text, format!("before\nstook-x {name}: no device\n"));
    }

    #[test]
    fn a_list_that_is_not_there_is_an_error() {
        let place = TempDir::new().unwrap();
        assert!(append(&place.path().join("none"), "stook-x", "why").is_err());
    }
}
