//! A process that runs already: the moment from which perf records it, and what its threads do at that moment.
//!
//! perf takes some tenths of a second to attach. So it starts with its events disabled, enables them on command, and says
//! so; the clock of the recording starts with that answer. A thread that neither leaves nor gets a processor afterwards
//! leaves no record, so the kernel is asked for its state: ready or running, or blocked.
//!
//! # Source
//! `perf-record(1)`, `--control` and `--delay=-1`; `proc_pid_stat(5)`.

use std::ffi::OsString;
use std::io::{PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::{AsRawFd, RawFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use stook_sys::{Context, Ended};

use super::script::Frame;
use super::threads::{Initial, Threads};
use crate::Observer;
use crate::error::BenchError;
use crate::job::Running;
use crate::trees::numbers_in;

/// How often perf is asked whether it has ended instead of answering.
const POLL_EVERY: Duration = Duration::from_millis(20);

/// The pipes that carry commands to perf, and its answers. perf opens them by their places in `/proc`.
#[derive(Debug)]
pub(super) struct Control {
    commands: (PipeReader, PipeWriter),
    answers: (PipeReader, PipeWriter),
}

/// How perf came to record.
#[derive(Debug)]
pub(super) enum Attached {
    /// It records since this moment, in nanoseconds.
    Since(u64),
    /// It has ended instead.
    Ended(Ended),
    /// The user wants an end.
    Stopped,
}

impl Control {
    pub(super) fn new() -> Result<Self, BenchError> {
        let pipe = || std::io::pipe().context("make", "a pipe to perf");
        Ok(Self {
            commands: pipe()?,
            answers: pipe()?,
        })
    }

    /// The options of `perf record` for it.
    pub(super) fn options(&self) -> [OsString; 2] {
        let place = |descriptor: RawFd| format!("/proc/{}/fd/{descriptor}", std::process::id());
        let commands = place(self.commands.0.as_raw_fd());
        let answers = place(self.answers.1.as_raw_fd());
        [
            "--delay=-1".into(),
            format!("--control=fifo:{commands},{answers}").into(),
        ]
    }

    /// Lets perf begin, and waits until it has.
    pub(super) fn begin(
        &mut self,
        running: &Running,
        observer: &dyn Observer,
    ) -> Result<Attached, BenchError> {
        let asked = self.commands.1.write_all(b"enable\n");
        asked.context("write", "a pipe to perf")?;
        loop {
            let answered = stook_sys::wait_readable(&self.answers.0, POLL_EVERY);
            if answered.context("read", "a pipe to perf")? {
                let now = stook_sys::monotonic_nanoseconds();
                let read = self.answers.0.read(&mut [0; 64]);
                read.context("read", "a pipe to perf")?;
                return Ok(Attached::Since(now));
            }
            if let Some(ended) = running.wait(Some(Duration::ZERO), observer)? {
                return Ok(Attached::Ended(ended));
            }
            if observer.is_stopped() {
                return Ok(Attached::Stopped);
            }
        }
    }
}

/// Finds the threads of a process at the beginning of a recording; returns those that are asleep.
pub(super) fn find_threads(pid: u32, threads: &mut Threads) -> Sleepers {
    let mut sleepers = Sleepers {
        pid,
        switches: Some(Vec::new()),
    };
    let tasks = PathBuf::from(format!("/proc/{pid}/task"));
    // A process that has ended has none.
    for thread in numbers_in(&tasks).unwrap_or_default() {
        let Some(state) = state(&fact(pid, thread, "stat")) else {
            continue;
        };
        let is_runnable = state == 'R';
        let switches = switches(pid, thread).filter(|_| !is_runnable);
        match (switches, &mut sleepers.switches) {
            (Some(switches), Some(all)) => all.push((thread, switches)),
            _ => sleepers.switches = None,
        }
        let name = fact(pid, thread, "comm");
        let frames = match is_runnable {
            true => Vec::new(),
            false => kernel_frames(&fact(pid, thread, "stack")),
        };
        let at = stook_sys::monotonic_nanoseconds();
        threads.insert(thread, name.trim(), frames, Initial { is_runnable, at });
    }
    sleepers
}

/// The threads of a process in which none ran when they were looked at.
#[derive(Debug)]
pub(super) struct Sleepers {
    pid: u32,
    /// Each thread with how often it has left a processor; None if one ran, or the kernel does not tell.
    switches: Option<Vec<(u32, u64)>>,
}

impl Sleepers {
    /// Returns true if none of them ran since.
    pub(super) fn have_slept(&self) -> bool {
        let has_slept =
            |(thread, before): &(u32, u64)| switches(self.pid, *thread) == Some(*before);
        let all = self.switches.as_ref().filter(|all| !all.is_empty());
        all.is_some_and(|all| all.iter().all(has_slept))
    }
}

fn fact(pid: u32, thread: u32, name: &str) -> String {
    let path = format!("/proc/{pid}/task/{thread}/{name}");
    stook_sys::read_text(Path::new(&path)).unwrap_or_default()
}

/// The letter of the state in `7 (name) S 1 ...`; None of a thread that has ended. The name may hold anything.
fn state(stat: &str) -> Option<char> {
    let letter = stat.rsplit_once(") ")?.1.chars().next()?;
    (!['Z', 'X', 'x'].contains(&letter)).then_some(letter)
}

/// How often a thread has left a processor.
fn switches(pid: u32, thread: u32) -> Option<u64> {
    let status = fact(pid, thread, "status");
    let count = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse::<u64>().ok()
    };
    Some(count("voluntary_ctxt_switches:")? + count("nonvoluntary_ctxt_switches:")?)
}

/// Frames out of lines such as `[<0>] do_nanosleep+0x5e/0x150`.
fn kernel_frames(stack: &str) -> Vec<Frame> {
    let function = |line: &str| Some(line.split_once("] ")?.1.split('+').next()?.to_owned());
    let frame = |function| Frame {
        function,
        module: String::new(),
        is_kernel: true,
    };
    stack.lines().filter_map(function).map(frame).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_of_the_kernel_are_read() {
        let frames = kernel_frames("[<0>] do_nanosleep+0x5e/0x150\n[<0>] do_syscall_64+0x71/0x1\n");
        let functions: Vec<&str> = frames.iter().map(|frame| frame.function.as_str()).collect();
        assert_eq!(functions, ["do_nanosleep", "do_syscall_64"]);
    }

    #[test]
    fn the_state_of_a_thread_is_read_whatever_its_name() {
        assert_eq!(state("7 (cat) R 1 7 7 0"), Some('R'));
        assert_eq!(state("7 (a) R (b c) D 1 7"), Some('D'));
        assert_eq!(state("7 (cat) Z 1 7"), None);
        assert_eq!(state(""), None);
    }

    #[test]
    fn a_process_in_which_a_thread_runs_is_no_sleeper() {
        let pid = std::process::id();
        let mut threads = Threads::default();
        assert!(!find_threads(pid, &mut threads).have_slept());
        let gone = Sleepers {
            pid,
            switches: Some(vec![(u32::MAX, 1)]),
        };
        assert!(!gone.have_slept());
    }
}
