//! Counts the system calls of a command with `perf trace -s`, or where that is not allowed, with `strace -f -c -w`.
//!
//! Both tell wall time from the beginning of a call to its end, so a call that waits is a call that takes long. Calls that
//! had not returned when the recording ended are not in the tables of either.
//!
//! `perf trace` does not tell how the command ended. So the command runs below a shell that notes it, and the shell's own
//! calls are left out.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use super::Subject;
use super::rights::Tracer;
use crate::Observer;
use crate::error::BenchError;
use crate::job::{Job, Ran};

/// Runs the command, and notes the number of the shell before and the status after it. With `exec` it is the program, not
/// what the shell has built in by the same name.
const NOTE_STATUS: &str = "echo $$ >\"$0\"; (exec \"$@\"); echo $? >>\"$0\"";
/// Calls that return in the new thread as well, where `perf trace` counts them again, without time.
const RETURN_TWICE: [&str; 4] = ["clone", "clone3", "fork", "vfork"];

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
    /// What counted them.
    pub tracer: Tracer,
    /// The calls, those with the most seconds first.
    pub calls: Vec<SystemCall>,
    /// Events that perf lost, so that calls are missing.
    pub lost: u64,
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
            return format!(
                "no system call ended meanwhile, by {}\n",
                self.tracer.text()
            );
        }
        let all: f64 = self.calls.iter().map(|call| call.seconds).sum();
        let mut text = format!(
            "% time     seconds   usecs/call      calls     errors  system call, by {}\n",
            self.tracer.text()
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

impl Tracer {
    fn program(self) -> &'static str {
        match self {
            Self::PerfTrace => "perf",
            Self::Strace => "strace",
        }
    }

    /// Returns the program in the words of a command line.
    pub fn text(self) -> &'static str {
        match self {
            Self::PerfTrace => "perf trace -s",
            Self::Strace => "strace -f -c -w",
        }
    }
}

/// Runs the command, or watches the process, and counts its system calls with the first of these that can; `file` is
/// written and removed again.
///
/// # Errors
/// [`BenchError::Command`] if none of them could count, [`BenchError::Refused`] if they may not watch the process.
pub(super) fn count(
    subject: &Subject,
    tracers: &[Tracer],
    file: &Path,
    observer: &dyn Observer,
) -> Result<(Ran, SystemCalls), BenchError> {
    let mut failed = None;
    for tracer in tracers {
        let (job, ran) = run(subject, *tracer, file, observer)?;
        let text = stook_sys::read_text(file).unwrap_or_default();
        stook_sys::remove_file(file)?;
        let (ran, calls) = match tracer {
            Tracer::PerfTrace => {
                let note = note_of(file);
                let noted = stook_sys::read_text(&note).unwrap_or_default();
                stook_sys::remove_file(&note)?;
                let (shell, ran) = with_status(ran, &noted);
                (ran, perf_calls(&text, shell))
            }
            Tracer::Strace => (ran, strace_calls(&text)),
        };
        match calls {
            Some(calls) => return Ok((ran, calls)),
            None if observer.is_stopped() => return Err(BenchError::Interrupted),
            None => {
                let failure = || job.failed("before it counted anything", &ran);
                let refused = subject.not_watched(tracer.program(), &ran.stderr);
                failed = Some(refused.unwrap_or_else(failure));
            }
        }
    }
    Err(failed.unwrap_or_else(|| BenchError::Usage("nothing can count system calls".to_owned())))
}

fn note_of(file: &Path) -> PathBuf {
    file.with_extension("status")
}

fn run(
    subject: &Subject,
    tracer: Tracer,
    file: &Path,
    observer: &dyn Observer,
) -> Result<(Job, Ran), BenchError> {
    let mut words: Vec<OsString> = match tracer {
        // Unsorted, the end of a call is taken before its beginning if a thread has changed processors meanwhile: on two
        // busy processors one run of twenty lost a call so.
        Tracer::PerfTrace => ["perf", "trace", "-s", "--sort-events"]
            .map(Into::into)
            .into(),
        Tracer::Strace => ["strace", "-f", "-c", "-w"].map(Into::into).into(),
    };
    words.extend(["-o".into(), file.into()]);
    match subject {
        Subject::Process { pid, .. } => words.extend(["-p".into(), pid.to_string().into()]),
        Subject::Command(command) => {
            words.push("--".into());
            if tracer == Tracer::PerfTrace {
                words.extend(["sh", "-c", NOTE_STATUS].map(Into::into));
                words.push(note_of(file).into());
            }
            words.extend(command.iter().cloned());
        }
    }
    let job = Job::new(words);
    let ran = job.record(subject.longest(), observer)?;
    Ok((job, ran))
}

/// The number of the shell, and the run with the status that it noted.
fn with_status(mut ran: Ran, noted: &str) -> (Option<u32>, Ran) {
    let mut numbers = noted.split_whitespace().map(str::parse::<u32>);
    let shell = numbers.next().and_then(Result::ok);
    if let Some(Ok(status)) = numbers.next() {
        // A shell adds 128 to the number of a signal.
        let raw = match status {
            129..=192 => status - 128,
            status => status << 8,
        };
        ran.status = ExitStatus::from_raw(i32::try_from(raw).unwrap_or(1 << 8));
    }
    (shell, ran)
}

/// Reads the summary of `perf trace -s`, without the thread `left_out`; None if there is none.
///
/// ```text
///  sleep (3657), 254 events, 34.6%
///
///    syscall            calls  errors  total       min       avg       max       stddev
///                                      (msec)    (msec)    (msec)    (msec)        (%)
///    --------------- --------  ------ -------- --------- --------- ---------     ------
///    clock_nanosleep        1      0    50.118    50.118    50.118    50.118      0.00%
/// ```
fn perf_calls(text: &str, left_out: Option<u32>) -> Option<SystemCalls> {
    let (mut sums, mut lost) = (BTreeMap::new(), 0);
    let (mut columns, mut is_left_out): (Vec<&str>, bool) = (Vec::new(), false);
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let Some(thread) = thread_of(line) {
            is_left_out = left_out == Some(thread);
        } else if words.first() == Some(&"syscall") {
            columns = words;
        } else if words.first() == Some(&"LOST") {
            lost += words
                .get(1)
                .and_then(|number| number.parse().ok())
                .unwrap_or(0);
        } else if let Some(call) = perf_call(&columns, &words).filter(|_| !is_left_out) {
            add(&mut sums, call);
        }
    }
    // A process that calls nothing has no table, but the heading is there.
    let is_summary = text.contains("Summary of events");
    is_summary.then(|| SystemCalls {
        tracer: Tracer::PerfTrace,
        calls: sorted(sums),
        lost,
    })
}

/// The thread in ` name (3657), 254 events, 34.6%`.
fn thread_of(line: &str) -> Option<u32> {
    // The name may hold anything.
    let (before, rest) = line.rsplit_once("), ")?;
    rest.contains(" events").then_some(())?;
    before.rsplit('(').next()?.parse().ok()
}

/// Older versions of perf have no column of errors.
fn perf_call(columns: &[&str], words: &[&str]) -> Option<SystemCall> {
    if words.len() != columns.len() {
        return None;
    }
    let word = |name: &str| {
        let column = columns.iter().position(|column| *column == name)?;
        words.get(column).copied()
    };
    let name = *words.first()?;
    let is_second_return = RETURN_TWICE.contains(&name) && word("min") == Some("0.000");
    Some(SystemCall {
        name: name.to_owned(),
        calls: word("calls")?.parse::<u64>().ok()? - u64::from(is_second_return),
        errors: word("errors").map_or(Some(0), |errors| errors.parse().ok())?,
        seconds: word("total")?.parse::<f64>().ok()? / 1e3,
    })
}

/// Reads the table of `strace -c -w`; None if there is none.
///
/// ```text
/// % time     seconds  usecs/call     calls    errors syscall
/// ------ ----------- ----------- --------- --------- ----------------
///  50.19    0.103059       51529         2         1 wait4
/// ```
fn strace_calls(text: &str) -> Option<SystemCalls> {
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
        tracer: Tracer::Strace,
        calls: sorted(sums),
        lost: 0,
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

    const SUMMARY: &str = "
 Summary of events:

 sh (70), 162 events, 22.1%

   syscall            calls  errors  total       min       avg       max       stddev
                                     (msec)    (msec)    (msec)    (msec)        (%)
   --------------- --------  ------ -------- --------- --------- ---------     ------
   wait4                  1      0   250.000   250.000   250.000   250.000      0.00%

 a (b), c (71), 40 events, 5.0%

   syscall            calls  errors  total       min       avg       max       stddev
                                     (msec)    (msec)    (msec)    (msec)        (%)
   --------------- --------  ------ -------- --------- --------- ---------     ------
   openat                34     13     0.641     0.012     0.019     0.026      2.39%
   clone                  2      0     0.200     0.000     0.100     0.200      9.00%

LOST 12 events!
 ls (72), 294 events, 40.1%

   syscall            calls    total       min       avg       max      stddev
                               (msec)    (msec)    (msec)    (msec)        (%)
   --------------- -------- --------- --------- --------- ---------     ------
   openat                 6     0.359     0.012     0.019     0.026      2.39%
   clone                  1     0.000     0.000     0.000     0.000      0.00%

";

    #[test]
    fn the_summary_of_perf_is_added_up_over_threads() {
        let calls = perf_calls(SUMMARY, Some(70)).unwrap();
        // The second return of a clone is no call; older versions do not tell of errors.
        assert_eq!(
            rows(&calls),
            [("openat", 40, 13, 1000.0), ("clone", 1, 0, 200.0)]
        );
        assert_eq!((calls.lost, calls.tracer), (12, Tracer::PerfTrace));
        assert_eq!(
            rows(&perf_calls(SUMMARY, None).unwrap())[0],
            ("wait4", 1, 0, 250_000.0)
        );
        assert_eq!(perf_calls("Error: no permission\n", None), None);
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
        let calls = strace_calls(text).unwrap();
        let expected = [
            ("clock_nanosleep", 1, 0, 200_129.0),
            ("wait4", 2, 1, 103_059.0),
        ];
        assert_eq!(rows(&calls), expected);
        assert_eq!(strace_calls("strace: attach: not permitted\n"), None);
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
            tracer: Tracer::Strace,
            calls: vec![call("read", 4, 0, 0.3), call("open", 1, 1, 0.1)],
            lost: 0,
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
