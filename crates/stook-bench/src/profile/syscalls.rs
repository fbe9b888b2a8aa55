//! Counts the system calls of a command with `strace -f -c -w`.
//!
//! It tells wall time from the beginning of a call to its end, so a call that waits is a call that takes long. Calls that
//! had not returned when the recording ended are not in its table. The command is stopped twice at each call, so one with
//! many calls takes longer; the times are of the calls alone.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use super::Subject;
use crate::Observer;
use crate::error::BenchError;
use crate::job::{Job, Ran};

/// What counts, in the words of a command line.
pub const COUNTED_BY: &str = "strace -f -c -w";

/// Calls of one kind.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize)]
pub struct SystemCall {
    /// Its name.
    pub name: String,
    /// How many.
    pub calls: u64,
    /// How many of them failed.
    pub errors: u64,
    /// Seconds from the beginning to the end of each, all together.
    pub seconds: f64,
}

/// The system calls of a command and its children.
#[derive(Debug, Clone, PartialEq)]
pub struct SystemCalls {
    /// The calls, those with the most seconds first.
    pub calls: Vec<SystemCall>,
}

impl SystemCall {
    /// Returns the sum of two kinds.
    fn and(self, other: &Self) -> Self {
        Self {
            name: self.name,
            calls: self.calls + other.calls,
            errors: self.errors + other.errors,
            seconds: self.seconds + other.seconds,
        }
    }

    /// Returns the microseconds of one call in the mean.
    pub fn microseconds_each(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "nobody waits for 2^53 calls")]
        let calls = self.calls.max(1) as f64;
        self.seconds * 1e6 / calls
    }
}

impl SystemCalls {
    /// Returns the table of `strace -c`, with so many rows at most, and what counted them.
    pub fn table(&self, most: usize) -> String {
        if self.calls.is_empty() {
            return format!("no system call ended meanwhile, by {COUNTED_BY}\n");
        }
        let all: f64 = self.calls.iter().map(|call| call.seconds).sum();
        let mut text = format!(
            "% time     seconds   usecs/call      calls     errors  system call, by {COUNTED_BY}\n"
        );
        let rest = self.calls.iter().skip(most);
        let rest = rest.fold(SystemCall::default(), SystemCall::and);
        let total = self
            .calls
            .iter()
            .fold(SystemCall::default(), SystemCall::and);
        let last = [(rest, "others"), (total, "all")];
        let last = last.iter().filter(|(call, _)| call.calls > 0);
        let rows = self
            .calls
            .iter()
            .take(most)
            .map(|call| (call, call.name.as_str()));
        for (call, name) in rows.chain(last.map(|(call, name)| (call, *name))) {
            let share = if all > 0.0 {
                100.0 * call.seconds / all
            } else {
                0.0
            };
            text.push_str(&format!(
                "{share:>6.2} {:>11.6} {:>12.1} {:>10} {:>10}  {name}\n",
                call.seconds,
                call.microseconds_each(),
                call.calls,
                call.errors,
            ));
        }
        text
    }
}

/// Runs the command, or watches the process, and counts its system calls; `file` is written and removed again.
///
/// # Errors
/// [`BenchError::Command`] if strace could not count, [`BenchError::Refused`] if it may not watch the process.
pub(super) fn count(
    subject: &Subject,
    file: &Path,
    observer: &dyn Observer,
) -> Result<(Ran, SystemCalls), BenchError> {
    let mut words: Vec<OsString> = COUNTED_BY.split(' ').map(Into::into).collect();
    words.extend(["-o".into(), file.into()]);
    match subject {
        Subject::Process { pid, .. } => words.extend(["-p".into(), pid.to_string().into()]),
        Subject::Command(command) => {
            words.push("--".into());
            words.extend(command.iter().cloned());
        }
    }
    let job = Job::new(words);
    let ran = job.record(subject.longest(), observer)?;
    let text = stook_sys::read_text(file).unwrap_or_default();
    stook_sys::remove_file(file)?;
    match parse(&text) {
        Some(calls) => Ok((ran, calls)),
        None if observer.is_stopped() => Err(BenchError::Interrupted),
        None => {
            let failure = || job.failed("before it counted anything", &ran);
            let refused = subject.not_watched("strace", &ran.stderr);
            Err(refused.unwrap_or_else(failure))
        }
    }
}

/// Reads the table of `strace -c -w`; None if there is none.
///
/// ```text
/// % time     seconds  usecs/call     calls    errors syscall
/// ------ ----------- ----------- --------- --------- ----------------
///  50.19    0.103059       51529         2         1 wait4
/// ```
fn parse(text: &str) -> Option<SystemCalls> {
    let mut sums = BTreeMap::new();
    let lines = text.lines().skip_while(|line| !line.starts_with("% time"));
    for line in lines.clone() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (errors, name) = match words[..] {
            [_, _, _, _, errors, name] => (errors.parse().ok(), name),
            [_, _, _, _, name] => (Some(0), name),
            _ => continue,
        };
        let figures = (words[1].parse().ok(), words[3].parse().ok(), errors);
        if let (Some(seconds), Some(calls), Some(errors)) = figures
            && name != "total"
        {
            let name = name.to_owned();
            add(
                &mut sums,
                SystemCall {
                    name,
                    calls,
                    errors,
                    seconds,
                },
            );
        }
    }
    lines.clone().next()?;
    Some(SystemCalls {
        calls: sorted(sums),
    })
}

fn add(sums: &mut BTreeMap<String, SystemCall>, call: SystemCall) {
    let sum = sums.entry(call.name.clone()).or_default();
    sum.name = call.name;
    sum.calls += call.calls;
    sum.errors += call.errors;
    sum.seconds += call.seconds;
}

fn sorted(sums: BTreeMap<String, SystemCall>) -> Vec<SystemCall> {
    let mut calls: Vec<SystemCall> = sums.into_values().filter(|call| call.calls > 0).collect();
    calls.sort_by(|a, b| b.seconds.total_cmp(&a.seconds).then(b.calls.cmp(&a.calls)));
    calls
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(calls: &SystemCalls) -> Vec<(&str, u64, u64, f64)> {
        let row = |call: &'_ SystemCall| (call.calls, call.errors, (call.seconds * 1e6).round());
        let calls = calls.calls.iter();
        calls
            .map(|call| {
                let (calls, errors, microseconds) = row(call);
                (call.name.as_str(), calls, errors, microseconds)
            })
            .collect()
    }

    #[test]
    fn the_table_of_strace_is_read() {
        let text = "strace: Process 7 attached
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 50.19    0.103059       51529         2         1 wait4
 48.76    0.200129      100129         1           clock_nanosleep
------ ----------- ----------- --------- --------- ----------------
100.00    0.205316         946       217        24 total
";
        let calls = parse(text).unwrap();
        let expected = [
            ("clock_nanosleep", 1, 0, 200_129.0),
            ("wait4", 2, 1, 103_059.0),
        ];
        assert_eq!(rows(&calls), expected);
        assert_eq!(parse("strace: attach: not permitted\n"), None);
    }

    #[test]
    fn the_table_ends_with_sums() {
        let call = |name: &str, calls, errors, seconds| SystemCall {
            name: name.to_owned(),
            calls,
            errors,
            seconds,
        };
        let mut counted = SystemCalls {
            calls: vec![call("read", 4, 0, 0.3), call("open", 1, 1, 0.1)],
        };
        let expected = "\
% time     seconds   usecs/call      calls     errors  system call, by strace -f -c -w
 75.00    0.300000      75000.0          4          0  read
 25.00    0.100000     100000.0          1          1  others
100.00    0.400000      80000.0          5          1  all
";
        assert_eq!(counted.table(1), expected);
        counted.calls.clear();
        assert_eq!(
            counted.table(1),
            "no system call ended meanwhile, by strace -f -c -w\n"
        );
    }
}
