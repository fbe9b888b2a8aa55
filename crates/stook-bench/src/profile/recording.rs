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

use super::attach::{self, Attached, Control};
use super::options::{Subject, Unwind};
use super::script;
use super::threads::{Recorded, Threads};
use crate::Observer;
use crate::error::BenchError;
use crate::job::{Job, Ran, ending, last_lines};
use crate::remedy::{ProfileRemedy, Remedy};

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
        let mut threads = Threads::new(self.unwind);
        let (job, ran, end) = match self.subject {
            Subject::Command(_) => {
                let job = Job::new(self.command(None));
                let ran = job.record(None, observer)?;
                (job, ran, None)
            }
            Subject::Process { pid, longest, .. } => {
                self.watch(*pid, *longest, &mut threads, observer)?
            }
        };
        let has_file = stook_sys::exists(self.file)?.is_some_and(|file| file.size > 0);
        let read = match has_file {
            true => read(self.file, &mut threads),
            false => Ok(()),
        };
        let recorded = threads.finish(end.as_ref().map(|end| end.at));
        let has_slept = end.as_ref().is_some_and(|end| end.has_slept);
        if recorded.records == 0 && observer.is_stopped() && !has_slept {
            return Err(BenchError::Interrupted);
        }
        // If nothing was recorded, the recorder knows why.
        self.require_recorded(&job, &ran, recorded.records, end.as_ref())?;
        read?;
        Ok((ran, recorded))
    }

    /// Watches a process from the moment at which perf records it.
    fn watch(
        &self,
        pid: u32,
        longest: Option<Duration>,
        threads: &mut Threads,
        observer: &dyn Observer,
    ) -> Result<(Job, Ran, Option<End>), BenchError> {
        let mut control = Control::new()?;
        let job = Job::new(self.command(Some(&control)));
        let running = job.start()?;
        let begun = match control.begin(&running, observer)? {
            Attached::Since(begun) => begun,
            Attached::Ended(ended) => return Ok((job, running.finish(ended)?, None)),
            Attached::Stopped => return Ok((job, running.interrupt()?, None)),
        };
        threads.begin_at(begun);
        let sleepers = attach::find_threads(pid, threads);
        let spent = stook_sys::monotonic_nanoseconds().saturating_sub(begun);
        let left = longest.map(|longest| longest.saturating_sub(Duration::from_nanos(spent)));
        let (ended, done) = match self.subject.job() {
            Some(during) => {
                let done = during.succeed("while its server was recorded", observer);
                (None, done.map(drop))
            }
            None => (running.wait(left, observer)?, Ok(())),
        };
        let end = End {
            at: stook_sys::monotonic_nanoseconds(),
            has_slept: sleepers.have_slept(),
        };
        let ran = match ended {
            Some(ended) => running.finish(ended)?,
            None => running.interrupt()?,
        };
        done?;
        Ok((job, ran, Some(end)))
    }

    /// A recording without a record is an error, unless it is of a process that slept through it.
    fn require_recorded(
        &self,
        job: &Job,
        ran: &Ran,
        records: u64,
        end: Option<&End>,
    ) -> Result<(), BenchError> {
        match (self.subject, end) {
            (Subject::Command(_), _) if ran.status.success() || records > 0 => Ok(()),
            (Subject::Process { pid, .. }, Some(end))
                if matches!(ran.status.code(), None | Some(0)) =>
            {
                match records > 0 || end.has_slept {
                    true => Ok(()),
                    false => Err(nothing_recorded(*pid)),
                }
            }
            (Subject::Process { pid, .. }, None) if ran.status.success() => Err(
                BenchError::refused(format!("process {pid} ended before perf recorded it")),
            ),
            (subject, _) => Err(subject
                .not_watched("perf", &ran.stderr)
                .unwrap_or_else(|| job.failed("before it recorded anything", ran))),
        }
    }

    fn command(&self, control: Option<&Control>) -> Vec<OsString> {
        // Build ids take a pass over all of the recording, and are for looking at it elsewhere.
        const RECORD: &str =
            "perf record --no-buildid --no-buildid-cache --switch-events --clockid=mono -g";
        let mut words: Vec<OsString> = RECORD.split(' ').map(Into::into).collect();
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
        words.extend(control.into_iter().flat_map(Control::options));
        words.extend(["-o".into(), self.file.into()]);
        words.extend(self.subject.words());
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

/// How the recording of a process ended.
#[derive(Debug)]
struct End {
    /// When, in nanoseconds.
    at: u64,
    /// Whether no thread ran since the beginning.
    has_slept: bool,
}

fn nothing_recorded(pid: u32) -> BenchError {
    let what = format!("perf recorded nothing of process {pid}, which ran meanwhile");
    BenchError::refused_with(Remedy::Profile(ProfileRemedy::RecordLonger), what)
}

/// Reads a recording.
///
/// # Errors
/// [`BenchError::Command`] if perf does not read all of it: what was read until then is a part, and nobody knows which.
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
        .args([
            "--show-lost-events",
            "--no-inline",
            "-F",
            script::FIELDS,
            "-i",
        ])
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
    let read = script::read(lines, &mut |record| threads.add(record));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn words(recording: &Recording<'_>) -> String {
        let words = recording.command(None);
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
        let end = "-g -e cpu-clock/freq=997/u -e sched:sched_switch -o out/perf.data -- ls -l";
        assert!(text.ends_with(end), "{text}");
        assert!(
            !text.contains(" -F"),
            "a rate for all would thin out the switches"
        );
        recording.unwind = Unwind::Dwarf;
        let text = words(&recording);
        let events = "-e cpu-clock/freq=997,call-graph=dwarf,stack-size=32768/u -e sched:sched_switch/call-graph=dwarf,stack-size=16384/ ";
        assert!(text.contains(events), "{text}");
    }
}
