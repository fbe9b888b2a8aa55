//! Counts the system calls of a command with `strace -f -c -w`.
//!
//! It reports wall time from the beginning of a call to its end, so a call that waits is a call that takes long. Calls that
//! had not returned when the recording ended are not in its table. The command is stopped twice at each call, so one with
//! many calls takes longer; the times are of the calls alone.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use super::options::Subject;
use crate::Observer;
use crate::error::BenchError;
use crate::job::{Job, Ran};
use crate::table::Table;

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
    fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.errors += other.errors;
        self.seconds += other.seconds;
    }

    fn sum<'a>(name: &str, calls: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut sum = Self {
            name: name.to_owned(),
            ..Self::default()
        };
        calls.into_iter().for_each(|call| sum.add(call));
        sum
    }
}

impl SystemCalls {
    /// Returns the table of `strace -c`, with so many rows at most, and what counted them.
    #[expect(clippy::cast_precision_loss, reason = "nobody waits for 2^53 calls")]
    pub fn table(&self, most: usize) -> String {
        if self.calls.is_empty() {
            return format!("no system call ended meanwhile, by {COUNTED_BY}\n");
        }
        let name = format!("system call, by {COUNTED_BY}");
        let titles = ["% time", "seconds", "usecs/call", "calls", "errors", &name];
        let mut table = Table::name_last(titles);
        let all = SystemCall::sum("all", &self.calls);
        let others = SystemCall::sum("others", self.calls.iter().skip(most));
        let last = [&others, &all].into_iter().filter(|call| call.calls > 0);
        for call in self.calls.iter().take(most).chain(last) {
            let share = 100.0 * call.seconds / all.seconds.max(f64::MIN_POSITIVE);
            table.row([
                format!("{share:.2}"),
                format!("{:.6}", call.seconds),
                format!("{:.1}", call.seconds * 1e6 / call.calls.max(1) as f64),
                call.calls.to_string(),
                call.errors.to_string(),
                call.name.clone(),
            ]);
        }
        table.text()
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
    words.extend(subject.words());
    let job = Job::new(words);
    let ran = job.record(subject.longest(), observer)?;
    let text = stook_sys::read_text(file).unwrap_or_default();
    stook_sys::remove_file(file)?;
    match parse(&text) {
        Some(calls) => Ok((ran, calls)),
        None if observer.is_stopped() => Err(BenchError::Interrupted),
        None => {
            let refused = subject.not_watched("strace", &ran.stderr);
            Err(refused.unwrap_or_else(|| job.failed("before it counted anything", &ran)))
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
    let mut lines = text.lines().skip_while(|line| !line.starts_with("% time"));
    lines.next()?;
    // A call in more than one kind of machine code has more than one row.
    let mut sums: BTreeMap<String, SystemCall> = BTreeMap::new();
    for call in lines.filter_map(row) {
        sums.entry(call.name.clone()).or_default().add(&call);
    }
    let named = sums
        .into_iter()
        .map(|(name, call)| SystemCall { name, ..call });
    let mut calls: Vec<SystemCall> = named.filter(|call| call.calls > 0).collect();
    calls.sort_by(|a, b| b.seconds.total_cmp(&a.seconds).then(b.calls.cmp(&a.calls)));
    Some(SystemCalls { calls })
}

fn row(line: &str) -> Option<SystemCall> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (seconds, calls, errors, name) = match words[..] {
        [_, seconds, _, calls, errors, name] => (seconds, calls, errors, name),
        [_, seconds, _, calls, name] => (seconds, calls, "0", name),
        _ => return None,
    };
    let call = SystemCall {
        name: name.to_owned(),
        calls: calls.parse().ok()?,
        errors: errors.parse().ok()?,
        seconds: seconds.parse().ok()?,
    };
    (name != "total").then_some(call)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, calls: u64, errors: u64, seconds: f64) -> SystemCall {
        SystemCall {
            name: name.to_owned(),
            calls,
            errors,
            seconds,
        }
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
        let expected = [
            call("clock_nanosleep", 1, 0, 0.200_129),
            call("wait4", 2, 1, 0.103_059),
        ];
        assert_eq!(parse(text).unwrap().calls, expected);
        assert_eq!(parse("strace: attach: not permitted\n"), None);
    }

    #[test]
    fn the_table_ends_with_sums() {
        let mut counted = SystemCalls {
            calls: vec![call("read", 4, 0, 0.3), call("open", 1, 1, 0.1)],
        };
        let expected = "\
% time   seconds  usecs/call  calls  errors  system call, by strace -f -c -w
------  --------  ----------  -----  ------  -------------------------------
 75.00  0.300000     75000.0      4       0  read
 25.00  0.100000    100000.0      1       1  others
100.00  0.400000     80000.0      5       1  all
";
        assert_eq!(counted.table(1), expected);
        counted.calls.clear();
        let expected = "no system call ended meanwhile, by strace -f -c -w\n";
        assert_eq!(counted.table(1), expected);
    }
}
