//! What one worker does, written by itself and read by the controller while it runs.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use stook_sys::{ThreadId, current_thread, is_ready, monotonic_nanoseconds, thread_times};

#[derive(Debug, Default)]
pub(crate) struct Activity {
    thread: OnceLock<ThreadId>,
    units: AtomicU64,
    /// Nanoseconds without work, up to the last time it got some.
    idle: AtomicU64,
    /// When it last ran out of work, on the monotonic clock; 0 while it has some.
    idle_since: AtomicU64,
    has_ended: AtomicBool,
}

/// What a worker did with its time since it began. What is missing to the time that has passed it was blocked: in a system
/// call that waits, for the storage or for a lock of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Spent {
    pub(crate) on_cpu: Duration,
    /// Ready, without a processor.
    pub(crate) run_delay: Duration,
    /// Nothing to do.
    pub(crate) idle: Duration,
}

impl Spent {
    /// Returns what was spent since `before`. The scheduler counts a wait for a processor when it is over; so what is missing
    /// of a worker that is ready now is taken for such a wait.
    pub(crate) fn since(
        self,
        before: &Self,
        elapsed: Duration,
        is_ready: impl FnOnce() -> bool,
    ) -> Self {
        let mut spent = Self {
            on_cpu: self.on_cpu.saturating_sub(before.on_cpu),
            run_delay: self.run_delay.saturating_sub(before.run_delay),
            idle: self.idle.saturating_sub(before.idle),
        };
        let known = spent.on_cpu + spent.run_delay + spent.idle;
        let missing = elapsed.saturating_sub(known);
        if missing > elapsed / 5 && is_ready() {
            spent.run_delay += missing;
        }
        spent
    }
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<Activity>>> = const { RefCell::new(None) };
}

/// Counts units of work that the calling worker has done, such as files; does nothing on other threads.
///
/// By them the pool knows whether more workers get more done. An item counts as one unit anyway: only
/// work that takes many steps for one item need call this, after each of them.
///
/// # Cost
/// About 2 ns.
pub fn advance(units: u64) {
    CURRENT.with_borrow(|current| {
        if let Some(activity) = current {
            // Nobody else writes it.
            let before = activity.units.load(Ordering::Relaxed);
            activity.units.store(before + units, Ordering::Relaxed);
        }
    });
}

/// The calling worker has nothing to do until this is dropped.
pub(crate) struct Idle {
    /// False within another one, which ends later.
    is_outermost: bool,
}

/// Marks the calling worker as idle: it waits for work or for space, not for the storage.
pub(crate) fn idle() -> Idle {
    let is_outermost = CURRENT.with_borrow(|current| {
        current.as_ref().is_some_and(|activity| {
            let is_first = activity.idle_since.load(Ordering::Relaxed) == 0;
            if is_first {
                let now = monotonic_nanoseconds();
                activity.idle_since.store(now, Ordering::Relaxed);
            }
            is_first
        })
    });
    Idle { is_outermost }
}

impl Drop for Idle {
    fn drop(&mut self) {
        if !self.is_outermost {
            return;
        }
        CURRENT.with_borrow(|current| {
            if let Some(activity) = current {
                let since = activity.idle_since.swap(0, Ordering::Relaxed);
                let time = monotonic_nanoseconds().saturating_sub(since);
                activity.idle.fetch_add(time, Ordering::Relaxed);
            }
        });
    }
}

/// Makes an activity that of the calling thread until it is dropped.
pub(crate) struct Current {
    own: Arc<Activity>,
    outer: Option<Arc<Activity>>,
}

impl Activity {
    pub(crate) fn begin(self: &Arc<Self>) -> Current {
        let _ = self.thread.set(current_thread());
        Current {
            own: Arc::clone(self),
            outer: CURRENT.replace(Some(Arc::clone(self))),
        }
    }

    /// Returns what the worker has done with its time; None if it has ended, or not yet begun.
    pub(crate) fn spent(&self) -> Option<Spent> {
        let times = thread_times(*self.thread.get()?).ok()?;
        let since = self.idle_since.load(Ordering::Relaxed);
        let now_idle = match since {
            0 => 0,
            since => monotonic_nanoseconds().saturating_sub(since),
        };
        Some(Spent {
            on_cpu: times.on_cpu,
            run_delay: times.run_delay,
            idle: Duration::from_nanos(self.idle.load(Ordering::Relaxed) + now_idle),
        })
    }

    /// Returns whether the worker has a processor or waits for one at this moment.
    pub(crate) fn is_ready(&self) -> bool {
        let thread = self.thread.get();
        thread.is_some_and(|thread| is_ready(*thread).unwrap_or(false))
    }

    pub(crate) fn units(&self) -> u64 {
        self.units.load(Ordering::Relaxed)
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }
}

impl Drop for Current {
    fn drop(&mut self) {
        self.own.has_ended.store(true, Ordering::Relaxed);
        CURRENT.set(self.outer.take());
    }
}
