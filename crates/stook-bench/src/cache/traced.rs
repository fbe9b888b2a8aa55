//! Which files a command reads: it is run once under strace, which tells what was opened and executed.
//!
//! Where there is no strace, or it may not trace, the words of the command that are paths have to do. What a command makes
//! anew, or only writes, is no input; what it reads and then makes anew is one.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use crate::Observer;
use crate::error::BenchError;
use crate::job::{Job, kept_text};
use crate::page_state::{named_paths, words_that_are_paths};
use crate::remedy::Remedy;
use crate::template::Places;

/// Runs the command, which must succeed, and returns which files it read.
///
/// # Errors
/// Those of [`Job::succeed`], and of reading the trees among its words.
pub(super) fn run_traced(
    job: &Job,
    when: &str,
    observer: &dyn Observer,
) -> Result<Vec<PathBuf>, BenchError> {
    let trace = stook_sys::memory_file()?;
    let path = format!("/proc/{}/fd/{}", std::process::id(), trace.as_raw_fd());
    match traced(job, &path).run(observer) {
        Ok(ran) if ran.status.success() => {
            return Ok(paths_in(&kept_text(&trace)?, job.directory.as_deref()));
        }
        Err(BenchError::Interrupted) => return Err(BenchError::Interrupted),
        // Either strace may not trace, which the command does without, or the command fails.
        _ => {}
    }
    job.succeed(when, observer)?;
    let words = words_that_are_paths(&job.command, job.directory.as_deref());
    let what = format!(
        "what `{}` reads is not known without strace, but for the words that are paths",
        job.text()
    );
    observer.warning_with(&what, &Remedy::NameInputs);
    named_paths(&words, observer)
}

fn traced(job: &Job, trace: &str) -> Job {
    let calls = "trace=open,openat,openat2,creat,execve,execveat";
    let strace = "strace -f -qq -y -z --seccomp-bpf -e {calls} -e signal=none -o {trace} --";
    let strace = Places::default()
        .with("calls", calls)
        .with("trace", trace)
        .words(strace);
    let strace = strace.command.into_iter();
    Job {
        command: strace.chain(job.command.iter().cloned()).collect(),
        ..job.clone()
    }
}

/// What was read, in order and each once, without what was made before.
fn paths_in(trace: &str, directory: Option<&Path>) -> Vec<PathBuf> {
    let (mut read, mut made) = (BTreeSet::new(), BTreeSet::new());
    for line in trace.lines() {
        match used(line) {
            Some(Used::Read(path)) if !made.contains(&path) => read.insert(path),
            Some(Used::Made(path)) if !read.contains(&path) => made.insert(path),
            Some(Used::Executed(path)) => {
                let path = directory.unwrap_or(Path::new("")).join(path);
                // A relative path is that of the process, which may have gone elsewhere.
                stook_sys::absolute(&path).is_ok_and(|path| read.insert(path))
            }
            _ => false,
        };
    }
    read.into_iter().collect()
}

#[derive(Debug, PartialEq)]
enum Used {
    Read(PathBuf),
    Made(PathBuf),
    Executed(PathBuf),
}

/// `7 openat(AT_FDCWD</tmp>, "a", O_RDONLY) = 3</tmp/a>`, `7 execve("/bin/a", ["a"], 0x7f /* 1 var */) = 0`. With `-z` only
/// calls that succeeded are written, and each on one line.
fn used(line: &str) -> Option<Used> {
    let call = line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
    if call.starts_with("execve") {
        let (_, path) = call.split_once('"')?;
        return Some(Used::Executed(unescaped(&path[..path.find('"')?])));
    }
    let (arguments, result) = call.rsplit_once(" = ")?;
    let (_, path) = result.split_once('<')?;
    // What is gone already has `(deleted)` at its end.
    let path = unescaped(path.strip_suffix('>')?);
    // Of `creat` the second argument is not flags, and says nothing.
    let flags = arguments.rsplit_once("\", ").map_or("", |(_, flags)| flags);
    let is_new = call.starts_with("creat") || flags.contains("O_TRUNC");
    if !path.is_absolute() {
        return None;
    }
    if is_new || flags.contains("O_EXCL") {
        return Some(Used::Made(path));
    }
    (!flags.contains("O_WRONLY")).then_some(Used::Read(path))
}

/// Undoes what strace and the kernel do to bytes that are not plain text: `\n`, `\"`, `\303`.
pub(super) fn unescaped(text: &str) -> PathBuf {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        rest = behind;
        let (b'\\', [escaped, behind @ ..]) = (*first, rest) else {
            bytes.push(*first);
            continue;
        };
        let octal = |byte: &&u8| (b'0'..=b'7').contains(*byte);
        let digits: Vec<u8> = rest
            .iter()
            .take(3)
            .take_while(octal)
            .map(|digit| digit - b'0')
            .collect();
        if digits.is_empty() {
            bytes.push(plain(*escaped));
            rest = behind;
        } else {
            bytes.push(
                digits
                    .iter()
                    .fold(0, |byte: u8, digit| byte.wrapping_mul(8) + digit),
            );
            rest = &rest[digits.len()..];
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

fn plain(escaped: u8) -> u8 {
    match escaped {
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'v' => 0x0b,
        b'f' => 0x0c,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    use crate::testing::Quiet;
    use stook_testkit::TempDir;

    #[test]
    fn lines_of_a_trace_are_understood() {
        let read = |path: &str| Some(Used::Read(PathBuf::from(path)));
        let opened =
            r#"7  openat(AT_FDCWD</tmp>, "a, \"b\"", O_RDONLY|O_CLOEXEC) = 3</tmp/a, \"b\">"#;
        assert_eq!(used(opened), read("/tmp/a, \"b\""));
        assert_eq!(
            used(r#"open("x", O_RDWR) = 3</t/\303\244\12\\n>"#),
            read("/t/ä\n\\n")
        );
        let listed = r#"7 openat(AT_FDCWD</>, "tmp", O_RDONLY|O_DIRECTORY) = 3</tmp>"#;
        assert_eq!(used(listed), read("/tmp"));
        let made = r#"7 openat(3</tmp>, "o", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 4</tmp/o>"#;
        assert_eq!(used(made), Some(Used::Made("/tmp/o".into())));
        assert_eq!(
            used(r#"7 creat("o", 0666) = 4</tmp/o>"#),
            Some(Used::Made("/tmp/o".into()))
        );
        let appended = r#"7 openat(3</tmp>, "log", O_WRONLY|O_CREAT|O_APPEND, 0666) = 4</tmp/log>"#;
        assert_eq!(used(appended), None);
        let started = r#"7 execve("/bin/a b", ["a", "= 3</x>"], 0x7f /* 1 var */) = 0"#;
        assert_eq!(used(started), Some(Used::Executed("/bin/a b".into())));
        for other in [
            "7 +++ exited with 0 +++",
            r#"7 openat(3</>, "x", O_RDONLY) = 4</x>(deleted)"#,
            "",
        ] {
            assert_eq!(used(other), None, "{other}");
        }
    }

    #[test]
    fn what_a_command_reads_is_found() {
        let folder = TempDir::new().unwrap();
        let path = |name: &str| stook_sys::absolute(folder.path()).unwrap().join(name);
        for name in ["in", "b\tä", "count"] {
            std::fs::write(path(name), "x").unwrap();
        }
        let job = Job {
            directory: Some(folder.path().to_owned()),
            ..Job::shell("cat in b* > out; cat out count; echo 2 > count")
        };
        let found = run_traced(&job, "once", &Quiet::default());
        let paths = match found {
            Err(error) => {
                stook_testkit::skip!("{error}");
                return;
            }
            Ok(paths) => paths,
        };
        let of_folder = paths
            .iter()
            .filter(|path| path.is_file() && path.starts_with(self::path_of(&folder)));
        let of_folder: Vec<&OsStr> = of_folder.filter_map(|path| path.file_name()).collect();
        assert_eq!(of_folder, ["b\tä", "count", "in"].map(OsStr::new));
        assert!(
            paths
                .iter()
                .any(|path| path.ends_with("cat") || path.ends_with("coreutils"))
        );
    }

    fn path_of(folder: &TempDir) -> PathBuf {
        stook_sys::absolute(folder.path()).unwrap()
    }
}
