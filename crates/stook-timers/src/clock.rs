//! The clock: raw ticks of the time-stamp counter, scaled to nanoseconds when a scope ends.
//!
//! Reading the counter costs 10 ns where `Instant::now` costs 23 ns, and a scope reads it twice. On
//! machines without a steady counter `quanta` falls back to the system's monotonic clock. The thread's CPU
//! clock is a system call of 200 to 500 ns, hence only read on request.

use std::sync::OnceLock;

use quanta::Clock;
use rustix::time::{ClockId, clock_gettime};

static CLOCK: OnceLock<Clock> = OnceLock::new();

/// Starts the clock, which until then stands still. For the first time this measures the tick rate.
pub(crate) fn calibrate() {
    CLOCK.get_or_init(Clock::new);
}

/// Returns the present moment in ticks: 2 or more, which leaves 0 and 1 free for other meanings.
#[inline]
pub(crate) fn now() -> u64 {
    CLOCK.get().map_or(0, Clock::raw).max(2)
}

/// Returns the nanoseconds from one moment to a later one; 0 if the counter went backwards.
#[inline]
pub(crate) fn nanoseconds(from: u64, to: u64) -> u64 {
    CLOCK
        .get()
        .map_or(0, |clock| clock.delta_as_nanos(from, to))
}

/// Returns the nanoseconds the calling thread has spent on a processor.
#[cold]
pub(crate) fn thread_cpu() -> u64 {
    cpu(ClockId::ThreadCPUTime)
}

/// Returns the nanoseconds that all threads of the process, dead and running, have spent on a processor.
pub(crate) fn process_cpu() -> u64 {
    cpu(ClockId::ProcessCPUTime)
}

fn cpu(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let (seconds, rest) = (time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs());
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}
