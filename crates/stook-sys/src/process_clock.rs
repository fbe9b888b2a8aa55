//! The CPU time of another process, to the nanosecond.
//!
//! Its clock counts all of its threads, those that have ended as well; `/proc` has the same in steps of 10 ms.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::{Context, SysError};

/// The clock of a process, which stops when it ends.
#[derive(Debug)]
pub struct ProcessClock {
    process: u32,
    clock: libc::clockid_t,
    descriptor: OwnedFd,
}

impl ProcessClock {
    /// Returns the clock of a process.
    ///
    /// # Errors
    /// The operation "watch", with the place of the process in `/proc`.
    pub fn of(process: u32) -> Result<Self, SysError> {
        Self::found(process).context("watch", format!("/proc/{process}"))
    }

    fn found(process: u32) -> io::Result<Self> {
        let number = i32::try_from(process).map_err(io::Error::other)?;
        let pid = Pid::from_raw(number).ok_or(io::ErrorKind::NotFound)?;
        // It keeps the number from meaning another process later, unseen.
        let descriptor = pidfd_open(pid, PidfdFlags::empty())?;
        let mut clock = 0;
        // SAFETY: the place is ours, and of the type that the call fills.
        let failed = unsafe { libc::clock_getcpuclockid(number, &raw mut clock) };
        if failed != 0 {
            return Err(io::Error::from_raw_os_error(failed));
        }
        Ok(Self {
            process,
            clock,
            descriptor,
        })
    }

    /// Returns the number of the process.
    pub fn process(&self) -> u32 {
        self.process
    }

    /// Returns the CPU time of the process so far, in user space and in the kernel together.
    ///
    /// # Errors
    /// The operation "watch", with the place of the process in `/proc`: if it has ended.
    pub fn now(&self) -> Result<Duration, SysError> {
        self.read()
            .context("watch", format!("/proc/{}", self.process))
    }

    fn read(&self) -> io::Result<Duration> {
        let now = read_clock(self.clock);
        if self.has_ended()? {
            return Err(io::Error::other("the process has ended"));
        }
        now
    }

    fn has_ended(&self) -> io::Result<bool> {
        let at_once = Timespec::default();
        let mut descriptors = [PollFd::new(&self.descriptor, PollFlags::IN)];
        match poll(&mut descriptors, Some(&at_once)) {
            Ok(ready) => Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns what a clock shows; an error if its process or thread has ended.
pub(crate) fn read_clock(clock: libc::clockid_t) -> io::Result<Duration> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the place is ours, and of the type that the call fills.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let seconds = u64::try_from(time.tv_sec).map_err(io::Error::other)?;
    let nanoseconds = u32::try_from(time.tv_nsec).map_err(io::Error::other)?;
    Ok(Duration::new(seconds, nanoseconds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn work_is_counted_and_sleep_is_not() {
        let clock = ProcessClock::of(std::process::id()).unwrap();
        let before = clock.now().unwrap();
        let mut sum = 0_u64;
        while clock.now().unwrap() - before < Duration::from_millis(20) {
            sum = std::hint::black_box(sum + 1);
        }
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let idle = ProcessClock::of(child.id()).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        let spent = idle.now().unwrap();
        assert!(spent < Duration::from_millis(40), "{spent:?}");
        child.kill().unwrap();
        child.wait().unwrap();
        let error = idle.now().unwrap_err().to_string();
        assert!(error.ends_with("the process has ended"), "{error}");
        assert!(ProcessClock::of(child.id()).is_err());
    }
}
