//! CPU time of the calling thread, in user space and in the kernel.

use std::time::Duration;

/// Returns the CPU time that the calling thread has taken so far: in user space, and in the kernel.
///
/// # Source
/// `getrusage(2)`, `RUSAGE_THREAD`.
pub fn thread_cpu_times() -> (Duration, Duration) {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the place is ours, and large enough for what the call writes.
    let _ = unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
    // SAFETY: it was filled by the call, and with zeros before; zeros are a value of all of its fields.
    let usage = unsafe { usage.assume_init() };
    (duration(usage.ru_utime), duration(usage.ru_stime))
}

/// Returns a time as the kernel counts it.
pub(crate) fn duration(time: libc::timeval) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let microseconds = u64::try_from(time.tv_usec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_micros(microseconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn work_of_this_thread_is_counted_and_that_of_others_is_not() {
        let total = || {
            let (user, system) = thread_cpu_times();
            user + system
        };
        let spin = || {
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_millis(60) {}
        };
        let before = total();
        std::thread::spawn(spin).join().unwrap();
        assert!(total() - before < Duration::from_millis(30));
        spin();
        assert!(total() > before);
    }
}
