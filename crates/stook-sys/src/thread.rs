//! What a thread of this process did with its time, as another thread can read it.
//!
//! Two sources, because neither has both: the clock of a thread is exact at any moment, and the scheduler alone counts how
//! long a thread was ready and had no processor; it adds that up when the wait is over.

use std::io;
use std::time::Duration;

use rustix::fs::{CWD, Mode, OFlags, openat};

use crate::process_clock::read_clock;
use crate::run_delay::sched_stat;

/// A thread of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadId(i32);

/// The time of a thread since it began that it did not spend in a system call that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ThreadTimes {
    /// On a processor.
    pub on_cpu: Duration,
    /// Ready, and waiting for a processor; zero where the kernel does not count it.
    pub run_delay: Duration,
}

/// Returns the calling thread.
pub fn current_thread() -> ThreadId {
    ThreadId(rustix::thread::gettid().as_raw_nonzero().get())
}

/// Returns the times of a thread.
///
/// # Errors
/// The thread has ended.
///
/// # Cost
/// Four system calls, together about 5 us.
///
/// # Source
/// `clock_getcpuclockid(3)`, of which the kernel's encoding is used as glibc does: the C library has it for processes and
/// for its own handles of threads, not for thread numbers.
pub fn thread_times(thread: ThreadId) -> io::Result<ThreadTimes> {
    const PER_THREAD: libc::clockid_t = 4;
    const SCHEDULED: libc::clockid_t = 2;
    let clock = (!thread.0 << 3) | PER_THREAD | SCHEDULED;
    let on_cpu = read_clock(clock)?;
    let stat = sched_stat(&format!("/proc/self/task/{}/schedstat", thread.0));
    Ok(ThreadTimes {
        on_cpu,
        run_delay: stat.map_or(Duration::ZERO, |stat| stat.waited),
    })
}

/// Returns true if a thread is on a processor, or ready and waiting for one.
///
/// # Errors
/// As of reading `/proc`; so when the thread has ended.
///
/// # Cost
/// Three system calls, together about 5 us.
///
/// # Source
/// `proc(5)`, `/proc/pid/stat`, field 3.
pub fn is_ready(thread: ThreadId) -> io::Result<bool> {
    let path = format!("/proc/self/task/{}/stat", thread.0);
    let file = openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut buffer = [0; 256];
    let count = rustix::io::read(&file, &mut buffer)?;
    let state = state_in(&buffer[..count]);
    Ok(state.ok_or_else(|| io::Error::other("no state in /proc"))? == b'R')
}

/// `1 (name) S ...`: the name may hold anything, so the last bracket counts.
fn state_in(text: &[u8]) -> Option<u8> {
    let end_of_name = text.iter().rposition(|&byte| byte == b')')?;
    text.get(end_of_name + 2).copied()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn the_state_stands_behind_the_name() {
        assert_eq!(state_in(b"7 (a ) R b) S 1 2 3"), Some(b'S'));
        assert_eq!(state_in(b"7 (cut"), None);
    }

    #[test]
    fn work_is_time_on_a_processor_and_waiting_is_not() {
        let own = current_thread();
        let before = thread_times(own).unwrap();
        let mut sum = 0_u64;
        while thread_times(own).unwrap().on_cpu - before.on_cpu < Duration::from_millis(5) {
            sum = std::hint::black_box(sum + 1);
        }
        let (send, receive) = channel();
        let (release, released) = channel::<()>();
        let waiting = std::thread::spawn(move || {
            send.send(current_thread()).unwrap();
            let _ = released.recv();
        });
        let thread = receive.recv().unwrap();
        std::thread::sleep(Duration::from_millis(50));
        assert!(is_ready(own).unwrap() && !is_ready(thread).unwrap());
        let times = thread_times(thread).unwrap();
        assert!(times.on_cpu < Duration::from_millis(40), "{times:?}");
        drop(release);
        waiting.join().unwrap();
        assert!(thread_times(thread).is_err(), "it has ended");
    }
}
