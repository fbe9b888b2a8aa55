//! Whether a thread of this process is at work or blocked, as the scheduler sees it.
//!
//! Read from `/proc`, because that is where another thread can be looked at while it sleeps in a system
//! call. Its CPU time would say the same only after a while: the kernel adds up the time on a processor at
//! its ticks, and the time spent waiting for one when the wait is over.

use std::io;

use rustix::fs::{CWD, Mode, OFlags, openat};

/// A thread of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadId(i32);

/// Returns the calling thread.
pub fn current_thread() -> ThreadId {
    ThreadId(rustix::thread::gettid().as_raw_nonzero().get())
}

/// Returns true if a thread is blocked: neither on a processor nor waiting for one.
///
/// # Errors
/// As of reading `/proc`; so when the thread has ended.
///
/// # Cost
/// Three system calls, together about 5 us.
///
/// # Source
/// `proc(5)`, `/proc/pid/stat`, field 3.
pub fn is_blocked(thread: ThreadId) -> io::Result<bool> {
    let path = format!("/proc/self/task/{}/stat", thread.0);
    let file = openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut buffer = [0; 256];
    let count = rustix::io::read(&file, &mut buffer)?;
    let state = state_in(&buffer[..count]);
    Ok(state.ok_or_else(|| io::Error::other("no state in /proc"))? != b'R')
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
    fn a_thread_that_waits_is_blocked_and_one_that_works_is_not() {
        assert!(!is_blocked(current_thread()).unwrap());
        let (told, tell) = channel();
        let (release, released) = channel::<()>();
        let waiting = std::thread::spawn(move || {
            told.send(current_thread()).unwrap();
            let _ = released.recv();
        });
        let thread = tell.recv().unwrap();
        // It comes to its wait at some time; a test of it would hang if it never did.
        while !is_blocked(thread).unwrap() {
            std::thread::yield_now();
        }
        drop(release);
        waiting.join().unwrap();
        assert!(is_blocked(thread).is_err(), "it has ended");
    }
}
