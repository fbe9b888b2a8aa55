//! How long threads waited for a processor although they were ready: the run delay of the scheduler.
//!
//! The kernel counts it for each thread, and forgets it with the thread; nothing adds it up over the threads and the
//! children of a process.
//!
//! # Source
//! `Documentation/scheduler/sched-stats.rst` of Linux, `/proc/<pid>/schedstat`.

use std::time::Duration;

use rustix::fs::{CWD, Mode, OFlags, openat};

/// What the scheduler counted for one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SchedStat {
    /// Time on a processor.
    pub(crate) ran: Duration,
    /// Time ready and without one.
    pub(crate) waited: Duration,
}

/// Returns how long the calling thread waited for a processor up to now; None where the kernel does not count it.
pub fn thread_run_delay() -> Option<Duration> {
    sched_stat("/proc/thread-self/schedstat").map(|stat| stat.waited)
}

/// Returns what was counted for the thread with this place in `/proc`; None where the kernel does not count it.
pub(crate) fn sched_stat(path: &str) -> Option<SchedStat> {
    let file = openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    // Three numbers of up to 20 digits.
    let mut buffer = [0; 80];
    let count = rustix::io::read(&file, &mut buffer).ok()?;
    parsed(std::str::from_utf8(&buffer[..count]).ok()?)
}

/// Time on a processor, time waiting, and how often it got one: a kernel that does not count says 0 of a thread that ran.
fn parsed(text: &str) -> Option<SchedStat> {
    let mut numbers = text.split_whitespace().map(str::parse::<u64>);
    let (ran, waited) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    (numbers.next()?.ok()? > 0).then_some(SchedStat {
        ran: Duration::from_nanos(ran),
        waited: Duration::from_nanos(waited),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_does_not_count_says_nothing() {
        let stat = parsed("475992535 4620937 2963\n").unwrap();
        assert_eq!(stat.ran, Duration::from_nanos(475_992_535));
        assert_eq!(stat.waited, Duration::from_nanos(4_620_937));
        assert_eq!(
            (parsed("0 0 0\n"), parsed(""), parsed("7 x 1")),
            (None, None, None)
        );
    }
}
