//! What the kernel knows of one thread: time on a processor, and time spent waiting for one.
//!
//! Read from `/proc`, because that is where another thread's figures can be read, with no
//! unsafe code, while it sleeps in a system call.

use std::io;
use std::time::Duration;

use rustix::fs::{CWD, Mode, OFlags, openat};

/// A thread of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadId(i32);

/// How much of a thread's life was work. The rest it was blocked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadTimes {
    /// Time on a processor.
    pub running: Duration,
    /// Time ready to run while others had the processors; zero where the kernel does not count it.
    pub waiting: Duration,
}

/// Returns the calling thread.
pub fn current_thread() -> ThreadId {
    ThreadId(rustix::thread::gettid().as_raw_nonzero().get())
}

/// Returns how long a thread has been running and waiting for a processor so far.
///
/// # Errors
/// As of reading `/proc`; so when the thread has ended.
///
/// # Cost
/// Three system calls. In steps of 10 ms where the kernel does not count schedules.
///
/// # Source
/// `proc(5)`; `Documentation/scheduler/sched-stats.rst` of Linux.
pub fn thread_times(thread: ThreadId) -> io::Result<ThreadTimes> {
    let mut buffer = [0; 1024];
    if let Ok(text) = read(thread, "schedstat", &mut buffer)
        && let Some(times) = parse_schedstat(text)
    {
        return Ok(times);
    }
    let text = read(thread, "stat", &mut buffer)?;
    parse_stat(text, rustix::param::clock_ticks_per_second())
        .ok_or_else(|| io::Error::other("/proc has no times of the thread"))
}

fn read<'b>(thread: ThreadId, name: &str, buffer: &'b mut [u8]) -> io::Result<&'b [u8]> {
    let path = format!("/proc/self/task/{}/{name}", thread.0);
    let file = openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let count = rustix::io::read(&file, &mut *buffer)?;
    Ok(&buffer[..count])
}

/// `12345 678 9`: nanoseconds running, nanoseconds waiting, time slices. All zero if not counted.
fn parse_schedstat(text: &[u8]) -> Option<ThreadTimes> {
    let mut fields = fields(text);
    let (running, waiting): (u64, u64) = (fields.next()?.ok()?, fields.next()?.ok()?);
    (running > 0).then(|| ThreadTimes {
        running: Duration::from_nanos(running),
        waiting: Duration::from_nanos(waiting),
    })
}

/// `1 (name) S ...`: after the name, which may hold anything, user and system ticks are the fields 12
/// and 13.
fn parse_stat(text: &[u8], ticks_per_second: u64) -> Option<ThreadTimes> {
    let end_of_name = text.iter().rposition(|&byte| byte == b')')?;
    let mut fields = fields(&text[end_of_name + 1..]).skip(11);
    let ticks = fields.next()?.ok()? + fields.next()?.ok()?;
    Some(ThreadTimes {
        running: Duration::from_nanos(ticks * (1_000_000_000 / ticks_per_second.max(1))),
        waiting: Duration::ZERO,
    })
}

fn fields(text: &[u8]) -> impl Iterator<Item = Result<u64, std::num::ParseIntError>> {
    text.split(u8::is_ascii_whitespace)
        .filter(|field| !field.is_empty())
        .map(|field| String::from_utf8_lossy(field).parse())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_files_are_understood() {
        let times = parse_schedstat(b"12345 678 9\n").unwrap();
        assert_eq!(times.running, Duration::from_nanos(12_345));
        assert_eq!(times.waiting, Duration::from_nanos(678));
        assert_eq!(parse_schedstat(b"0 0 0\n"), None);
        assert_eq!(parse_schedstat(b""), None);
        let stat = b"7 (a ) b) S 1 2 3 4 5 6 7 8 9 10 40 2 0 0 20\n";
        let times = parse_stat(stat, 100).unwrap();
        assert_eq!(times.running, Duration::from_millis(420));
        assert_eq!(parse_stat(b"7 (cut", 100), None);
    }

    #[test]
    fn a_thread_that_works_runs_and_one_that_sleeps_does_not() {
        let before = thread_times(current_thread()).unwrap();
        std::thread::sleep(Duration::from_millis(30));
        let slept = thread_times(current_thread()).unwrap();
        assert!(slept.running - before.running < Duration::from_millis(20));
        let mut sum = 0_u64;
        let rounds = 20_000_000;
        for n in 0..rounds {
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(n));
        }
        let worked = thread_times(current_thread()).unwrap();
        assert!(worked.running > slept.running);
    }

    #[test]
    fn a_thread_that_has_ended_has_no_times() {
        let ended = std::thread::spawn(current_thread).join().unwrap();
        assert!(thread_times(ended).is_err());
    }
}
