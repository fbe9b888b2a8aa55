//! A process that this one started: its end, and what it took.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, kill_process_group, pidfd_open, set_parent_process_death_signal, setsid,
};

use crate::run_delay::{SchedStat, sched_stat};
use crate::usage::duration;
use crate::{Context, SysError};

pub use rustix::process::Signal;

/// A child that leads a process group of its own.
#[derive(Debug)]
pub struct Child {
    pid: Pid,
    descriptor: OwnedFd,
}

/// How a child ended, and what the kernel counted for it and for the children that it waited for.
#[derive(Debug, Clone, Copy)]
pub struct Ended {
    /// The status as `wait(2)` gives it.
    pub raw_status: i32,
    /// CPU time in user space.
    pub user: Duration,
    /// CPU time in the kernel.
    pub system: Duration,
    /// The most memory that one of the processes held, in bytes: from the fork on, so at least what its parent held then.
    pub peak_bytes: u64,
    /// Bytes that were read from devices for them; not what a server or another process read for them.
    pub read_bytes: u64,
    /// How long it waited for a processor; None if more than one thread took part, or where the kernel does not count it.
    pub run_delay: Option<Duration>,
}

/// The kernel reports user and system time in microseconds, each rounded down.
const ROUNDED: Duration = Duration::from_micros(2);

impl Child {
    /// Returns the child with this number, which nobody has waited for.
    ///
    /// # Errors
    /// The operation "watch", with the place of the process in `/proc`.
    pub fn watch(pid: u32) -> Result<Self, SysError> {
        let path = format!("/proc/{pid}");
        let found = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let pid = found
            .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
            .context("watch", &path)?;
        let descriptor = pidfd_open(pid, PidfdFlags::empty()).context("watch", &path)?;
        Ok(Self { pid, descriptor })
    }

    /// Waits for the end, but not longer than this; None if it has not come. After the end it must not be called again.
    ///
    /// # Errors
    /// The operation "wait for", with the place of the process in `/proc`.
    pub fn wait(&self, longest: Duration) -> Result<Option<Ended>, SysError> {
        let path = format!("/proc/{}", self.pid.as_raw_nonzero());
        let longest = Timespec::try_from(longest).ok();
        let mut descriptors = [PollFd::new(&self.descriptor, PollFlags::IN)];
        match poll(&mut descriptors, longest.as_ref()) {
            Ok(0) | Err(rustix::io::Errno::INTR) => Ok(None),
            Ok(_) => reap(self.pid).map(Some).context("wait for", path),
            Err(error) => Err(error).context("wait for", path),
        }
    }

    /// Sends a signal to all of the child's group; a group that is gone needs none.
    pub fn signal_group(&self, signal: Signal) {
        let _ = kill_process_group(self.pid, signal);
    }
}

/// Starts a command from a process that has nothing else to do than to wait for it: SIGINT and SIGTERM, which go to the
/// whole process group, end the command, and are ignored here from now on.
///
/// The command is forked, with a copy of this process's own pages. `Command::spawn` alone shares all memory until the
/// command runs, and the kernel counts the peak of that as the command's.
///
/// # Errors
/// Those of `Command::spawn`.
pub fn start_and_ignore_signals(command: &mut Command) -> io::Result<std::process::Child> {
    set_dispositions(libc::SIG_IGN);
    let defaults = || {
        set_dispositions(libc::SIG_DFL);
        Ok(())
    };
    // SAFETY: between fork and exec only `signal` is called, which is async-signal-safe.
    unsafe { command.pre_exec(defaults) };
    command.spawn()
}

/// Starts a command in a session of its own, which has no terminal: nothing there can ask for a password, and no key
/// reaches it. It is killed when the thread that starts it ends, so that nothing goes on after a process that was killed.
///
/// # Errors
/// Those of `Command::spawn`.
pub fn start_in_own_session(command: &mut Command) -> io::Result<std::process::Child> {
    let detach = || {
        setsid()?;
        Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
    };
    // SAFETY: between fork and exec only `setsid` and `prctl` are called, which are async-signal-safe.
    unsafe { command.pre_exec(detach) };
    command.spawn()
}

fn set_dispositions(disposition: libc::sighandler_t) {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: neither ignoring a signal nor its default needs a function of ours.
        unsafe { libc::signal(signal, disposition) };
    }
}

/// Waits until a descriptor can be read, but not longer than this; returns whether it can.
///
/// # Errors
/// Those of `poll(2)`; an interruption is none.
pub fn wait_readable(descriptor: &impl AsFd, longest: Duration) -> io::Result<bool> {
    let longest = Timespec::try_from(longest).ok();
    let mut descriptors = [PollFd::new(descriptor, PollFlags::IN)];
    match poll(&mut descriptors, longest.as_ref()) {
        Err(rustix::io::Errno::INTR) => Ok(false),
        polled => Ok(polled? > 0),
    }
}

fn reap(pid: Pid) -> io::Result<Ended> {
    // The first thread of the process, which has ended, but is there until it is reaped.
    let first_thread = sched_stat(&format!("/proc/{}/schedstat", pid.as_raw_nonzero()));
    let mut raw_status = 0;
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: both places are ours, and large enough for what the call writes.
    let reaped = unsafe {
        libc::wait4(
            pid.as_raw_nonzero().get(),
            &raw mut raw_status,
            0,
            usage.as_mut_ptr(),
        )
    };
    if reaped < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so it has filled the structure.
    let usage = unsafe { usage.assume_init() };
    let (user, system) = (duration(usage.ru_utime), duration(usage.ru_stime));
    // If all CPU time is that of its first thread, there was no other thread, and no child: each takes more to begin.
    let is_alone = |stat: &SchedStat| stat.ran.abs_diff(user + system) <= ROUNDED;
    Ok(Ended {
        raw_status,
        user,
        system,
        run_delay: first_thread.filter(is_alone).map(|stat| stat.waited),
        // Linux counts in units of 1,024 bytes.
        peak_bytes: u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024,
        // In units of 512 bytes.
        read_bytes: u64::try_from(usage.ru_inblock).unwrap_or(0) * 512,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    const LONG: Duration = Duration::from_secs(60);

    fn started(line: &str) -> Child {
        let child = Command::new("sh")
            .args(["-c", line])
            .process_group(0)
            .spawn();
        Child::watch(child.unwrap().id()).unwrap()
    }

    #[test]
    fn the_end_and_the_figures_of_a_child_are_told() {
        let ended = started("exit 7").wait(LONG).unwrap().unwrap();
        assert_eq!(ExitStatus::from_raw(ended.raw_status).code(), Some(7));
        assert!(ended.peak_bytes > 100 << 10 && ended.user + ended.system < LONG);
    }

    #[test]
    fn the_run_delay_is_told_of_a_child_that_is_alone_and_of_no_other() {
        if crate::thread_run_delay().is_none() {
            stook_testkit::skip!("the kernel does not count how long threads wait for a processor");
            return;
        }
        let delay = |line: &str| started(line).wait(LONG).unwrap().unwrap().run_delay;
        let spin = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
        assert!(delay("exit 0").is_some());
        assert_eq!(delay("sleep 0.01; true"), None);
        assert_eq!(delay(&format!("({spin}) & {spin}; wait")), None);
        // More of them than processors: each waits, and not longer than it takes.
        let processors = std::thread::available_parallelism().unwrap().get();
        let begun = std::time::Instant::now();
        let children: Vec<Child> = (0..=processors).map(|_| started(spin)).collect();
        let ended = children
            .iter()
            .map(|child| child.wait(LONG).unwrap().unwrap());
        let delays: Vec<Duration> = ended.map(|ended| ended.run_delay.unwrap()).collect();
        let most = delays.iter().max().unwrap();
        assert!(
            *most > Duration::from_millis(10) && *most < begun.elapsed(),
            "{delays:?}"
        );
    }

    #[test]
    fn a_wait_ends_without_the_child_and_a_signal_reaches_its_group() {
        let child = started("sleep 60 & wait");
        assert!(child.wait(Duration::from_millis(1)).unwrap().is_none());
        child.signal_group(Signal::KILL);
        let ended = child.wait(LONG).unwrap().unwrap();
        assert_eq!(ExitStatus::from_raw(ended.raw_status).signal(), Some(9));
        child.signal_group(Signal::KILL);
    }

    #[test]
    fn a_session_of_its_own_has_no_terminal_and_ends_with_its_thread() {
        let start = || {
            let mut command = Command::new("sh");
            start_in_own_session(command.args(["-c", "exec sleep 60"])).unwrap()
        };
        let (mut process, session) = std::thread::spawn(move || {
            let process = start();
            let session = rustix::process::getsid(Pid::from_raw(process.id().cast_signed()));
            (process, session.unwrap())
        })
        .join()
        .unwrap();
        assert_eq!(session.as_raw_nonzero().get().cast_unsigned(), process.id());
        assert_eq!(process.wait().unwrap().signal(), Some(9));
    }

    #[test]
    fn a_process_that_is_not_there_is_an_error() {
        let error = Child::watch(u32::MAX).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("cannot watch `/proc/4294967295`"),
            "{error}"
        );
    }
}
