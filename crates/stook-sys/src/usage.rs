//! CPU time of the calling thread, in user space and in the kernel.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// CPU time of the calling thread up to a moment.
#[derive(Debug, Clone, Copy)]
pub struct ThreadCpu {
    /// All of it, exactly.
    total: Duration,
    /// In user space and in the kernel, by the kernel's ticks.
    user: Duration,
    system: Duration,
}

impl ThreadCpu {
    /// Returns the CPU time of the calling thread up to now.
    ///
    /// # Source
    /// `clock_gettime(2)`, `getrusage(2)`.
    pub fn now() -> Self {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the place is ours, and large enough for what the call writes.
        let _ = unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
        // SAFETY: it was filled by the call, and with zeros before; zeros are a value of all of its fields.
        let usage = unsafe { usage.assume_init() };
        let total = clock_gettime(ClockId::ThreadCPUTime);
        Self {
            total: Duration::try_from(total).unwrap_or_default(),
            user: duration(usage.ru_utime),
            system: duration(usage.ru_stime),
        }
    }

    /// Returns the CPU time since an earlier moment: in user space, and in the kernel.
    ///
    /// The sum is exact. The parts are those of the ticks, and before the first tick all is the kernel's.
    pub fn since(&self, earlier: &Self) -> (Duration, Duration) {
        let total = self.total.saturating_sub(earlier.total);
        let user = self.user.saturating_sub(earlier.user).as_secs_f64();
        let system = self.system.saturating_sub(earlier.system).as_secs_f64();
        let share = if user > 0.0 {
            user / (user + system)
        } else {
            0.0
        };
        let user = total.mul_f64(share);
        (user, total.saturating_sub(user))
    }
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
        let spin = || {
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_millis(60) {}
        };
        let before = ThreadCpu::now();
        std::thread::spawn(spin).join().unwrap();
        let between = ThreadCpu::now();
        spin();
        let [others, own] = [between.since(&before), ThreadCpu::now().since(&between)]
            .map(|(user, system)| user + system);
        assert!(
            others < Duration::from_millis(30) && others < own,
            "{others:?}, {own:?}"
        );
    }
}
