//! Records with `perf record` where threads are on a processor, where they leave it, or both in one run.
//!
//! One run for both, as a switch costs its sample a few microseconds and a sample of the clock costs less: so both
//! pictures show the same run. The recording is read with `perf script`, line by line, and removed.

use std::ffi::OsString;
use std::io::BufReader;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use stook_sys::Context;

use super::Subject;
use super::Unwind;
use super::script::{self, Frame};
use super::threads::{Recorded, Threads};
use crate::Observer;
use crate::error::BenchError;
use crate::job::{Job, Ran, ending, last_lines};

/// Bytes of each stack that are kept for unwinding: of a sample of the clock, and of a switch, of which there may be far more.
const STACK_BYTES: u32 = 32_768;
const STACK_BYTES_OF_SWITCH: u32 = 16_384;

/// How perf keeps up with what is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    /// As any other program.
    Ordinary,
    /// Before all others, and with larger rings. Of a `stook create` that switched 25,000 times, recorded with `--dwarf`,
    /// it lost nothing where an ordinary perf lost as many records as it kept.
    RealTime,
}

/// What is recorded, and how.
#[derive(Debug)]
pub(super) struct Recording<'a> {
    pub(super) subject: &'a Subject,
    pub(super) clock: Option<&'static str>,
    pub(super) switches: Option<&'static str>,
    pub(super) unwind: Unwind,
    pub(super) pace: Pace,
    /// Where perf writes.
    pub(super) file: &'a Path,
}

impl Recording<'_> {
    /// Runs the command, or watches the process; returns how it went and what was recorded.
    ///
    /// # Errors
    /// [`BenchError::Command`] if perf could not record. A command that fails, or an end that the user wants, is no error.
    pub(super) fn make(&self, observer: &dyn Observer) -> Result<(Ran, Recorded), BenchError> {
        let job = Job::new(self.command());
        let mut threads = Threads::default();
        let begun = stook_sys::monotonic_nanoseconds();
        let mut end = None;
        if let Subject::Process { pid, .. } = self.subject {
            find_threads(*pid, begun, &mut threads);
        }
        let ran = job.record(self.subject.longest(), observer)?;
        if let Subject::Process { longest, .. } = self.subject {
            let longest = longest.unwrap_or(Duration::MAX).min(ran.real);
            end = Some(begun + u64::try_from(longest.as_nanos()).unwrap_or(0));
        }
        let has_file = stook_sys::exists(self.file)?.is_some_and(|file| file.size > 0);
        let read = match has_file {
            true => read(self.file, &mut threads),
            false => Ok(()),
        };
        let recorded = threads.finish(end);
        if recorded.records == 0 && observer.is_stopped() {
            return Err(BenchError::Interrupted);
        }
        // If nothing was recorded, the recorder knows why.
        self.require_recorded(&job, &ran, recorded.records)?;
        read?;
        Ok((ran, recorded))
    }

    /// A command that was run leaves records; of a process that does not run there may be none, but perf must not fail.
    fn require_recorded(&self, job: &Job, ran: &Ran, records: u64) -> Result<(), BenchError> {
        match self.subject {
            Subject::Command(_) if ran.status.success() || records > 0 => Ok(()),
            Subject::Process { .. } if matches!(ran.status.code(), None | Some(0)) => Ok(()),
            subject => Err(subject
                .not_watched("perf", &ran.stderr)
                .unwrap_or_else(|| job.failed("before it recorded anything", ran))),
        }
    }

    fn command(&self) -> Vec<OsString> {
        let mut words: Vec<OsString> = [
            "perf",
            "record",
            // Build ids take a pass over all of the recording, and are for looking at it elsewhere.
            "--no-buildid",
            "--no-buildid-cache",
            "--switch-events",
            "--clockid=mono",
            "-g",
        ]
        .map(Into::into)
        .into();
        if self.pace == Pace::RealTime {
            words.extend(["--realtime=1", "--mmap-pages=2M"].map(Into::into));
        }
        for (event, bytes) in [
            (self.clock, STACK_BYTES),
            (self.switches, STACK_BYTES_OF_SWITCH),
        ] {
            if let Some(event) = event {
                words.extend(["-e".into(), self.event(event, bytes).into()]);
            }
        }
        words.extend(["-o".into(), self.file.into()]);
        match self.subject {
            Subject::Command(command) => {
                words.push("--".into());
                words.extend(command.iter().cloned());
            }
            Subject::Process { pid, .. } => words.extend(["-p".into(), pid.to_string().into()]),
        }
        words
    }

    /// The event with how its stack is found.
    fn event(&self, event: &str, bytes: u32) -> String {
        if self.unwind == Unwind::FramePointers {
            return event.to_owned();
        }
        let how = format!("call-graph=dwarf,stack-size={bytes}");
        match event.split_once('/') {
            Some((name, rest)) => {
                let (terms, modifier) = rest.split_once('/').unwrap_or((rest, ""));
                format!("{name}/{terms},{how}/{modifier}")
            }
            None => format!("{event}/{how}/"),
        }
    }
}

/// Reads a recording.
///
/// # Errors
/// [`BenchError::Command`] if perf does not read all of it: what was heard until then is a part, and nobody knows which.
fn read(file: &Path, threads: &mut Threads) -> Result<(), BenchError> {
    let stderr = stook_sys::memory_file()?;
    let mut command = Command::new("perf");
    command
        .args([
            "script",
            "--ns",
            "--show-switch-events",
            "--show-task-events",
        ])
        // Inlined functions take minutes to find, and are a part of where they were put.
        .args(["--show-lost-events", "--no-inline", "-F", script::FIELDS])
        .arg("-i")
        .arg(file)
        // Nothing is fetched from the network.
        .env("DEBUGINFOD_URLS", "")
        .process_group(0)
        .stdin(Stdio::null())
        .stderr(stderr.try_clone().context("duplicate", "stderr of perf")?)
        .stdout(Stdio::piped());
    let not_started = |source| BenchError::Start {
        command: "perf script".to_owned(),
        source,
    };
    let mut child = command.spawn().map_err(not_started)?;
    let stdout = child.stdout.take().expect("it is piped");
    let lines = BufReader::with_capacity(1 << 20, stdout);
    let read = script::read(lines, &mut |record| threads.hear(record));
    let status = child.wait().map_err(not_started)?;
    read.context("read", file)?;
    if status.success() {
        return Ok(());
    }
    Err(BenchError::Command {
        command: "perf script".to_owned(),
        when: "while the recording was read".to_owned(),
        ending: ending(status),
        stderr: last_lines(&stderr)?,
    })
}

/// Finds the threads of a process, each with the stack in the kernel that it is blocked in, as far as this may be known.
fn find_threads(pid: u32, now: u64, threads: &mut Threads) {
    let folder = format!("/proc/{pid}/task");
    let Ok(directory) = stook_sys::Directory::open(Path::new(&folder)) else {
        return;
    };
    let mut found = Vec::new();
    let mut buffer = stook_sys::NameBuffer::default();
    let mut keep = |name: stook_sys::FoundName<'_>| found.push(name.name.to_vec());
    if directory.names(&mut buffer, &mut keep).is_err() {
        return;
    }
    let numbers = found
        .iter()
        .filter_map(|name| std::str::from_utf8(name).ok()?.parse::<u32>().ok());
    for thread in numbers {
        let fact = |name: &str| {
            let path = format!("{folder}/{thread}/{name}");
            stook_sys::read_text(Path::new(&path)).unwrap_or_default()
        };
        threads.found(
            thread,
            fact("comm").trim(),
            kernel_frames(&fact("stack")),
            now,
        );
    }
}

/// Frames out of lines such as `[<0>] do_nanosleep+0x5e/0x150`.
fn kernel_frames(stack: &str) -> Vec<Frame> {
    let functions = stack
        .lines()
        .filter_map(|line| line.split_once("] ")?.1.split('+').next());
    functions
        .map(|function| Frame {
            function: function.to_owned(),
            module: String::new(),
            is_kernel: true,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(recording: &Recording<'_>) -> String {
        let words = recording.command();
        let words: Vec<&str> = words.iter().map(|word| word.to_str().unwrap()).collect();
        words.join(" ")
    }

    #[test]
    fn each_event_has_its_own_rate_and_stack() {
        let subject = Subject::Command(vec!["ls".into(), "-l".into()]);
        let mut recording = Recording {
            subject: &subject,
            clock: Some("cpu-clock/freq=997/u"),
            switches: Some("sched:sched_switch"),
            unwind: Unwind::FramePointers,
            pace: Pace::Ordinary,
            file: Path::new("out/perf.data"),
        };
        let text = words(&recording);
        assert!(
            text.ends_with(
                "-g -e cpu-clock/freq=997/u -e sched:sched_switch -o out/perf.data -- ls -l"
            ),
            "{text}"
        );
        assert!(
            !text.contains(" -F"),
            "a rate for all would thin out the switches"
        );
        recording.unwind = Unwind::Dwarf;
        let text = words(&recording);
        assert!(text.contains(
            "-e cpu-clock/freq=997,call-graph=dwarf,stack-size=32768/u -e sched:sched_switch/call-graph=dwarf,stack-size=16384/ "
        ), "{text}");
    }

    #[test]
    fn stacks_of_the_kernel_are_read() {
        let frames = kernel_frames("[<0>] do_nanosleep+0x5e/0x150\n[<0>] do_syscall_64+0x71/0x1\n");
        let functions: Vec<&str> = frames.iter().map(|frame| frame.function.as_str()).collect();
        assert_eq!(functions, ["do_nanosleep", "do_syscall_64"]);
    }
}
