//! What a thread of this process did with its time, as another thread can read it.
//!
//! Two sources, because neither has both: the clock of a thread is exact at any moment, and the scheduler alone counts how
//! long a thread was ready and had no processor; it adds that up when the wait is over.

use std::io;
use std::time::Duration;

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

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

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
        let times = thread_times(thread).unwrap();
        assert!(times.on_cpu < Duration::from_millis(40), "{times:?}");
        drop(release);
        waiting.join().unwrap();
        assert!(thread_times(thread).is_err(), "it has ended");
    }
}
