//! What one worker does, written by itself and read by the controller while it runs.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use stook_sys::{ThreadId, current_thread};

#[derive(Debug)]
pub(crate) struct Activity {
    born: Instant,
    thread: OnceLock<ThreadId>,
    units: AtomicU64,
    idle_nanoseconds: AtomicU64,
    /// Since when the worker has nothing to do, in nanoseconds after its birth; else [`BUSY`].
    idle_since: AtomicU64,
    has_left: AtomicBool,
}

const BUSY: u64 = u64::MAX;

thread_local! {
    static CURRENT: RefCell<Option<Arc<Activity>>> = const { RefCell::new(None) };
}

/// Counts units of work that the calling worker has done, such as files; does nothing on other threads.
///
/// The pool judges by them whether more workers get more done. An item counts as one unit anyway: only
/// work that takes many steps for one item need call this.
pub fn advance(units: u64) {
    CURRENT.with_borrow(|current| {
        if let Some(activity) = current {
            activity.units.fetch_add(units, Ordering::Relaxed);
        }
    });
}

/// The calling worker has nothing to do until this is dropped.
pub(crate) struct Idle(Option<Arc<Activity>>);

/// Marks the calling worker as idle: it waits for work or for room, not for the storage.
pub(crate) fn idle() -> Idle {
    let current = CURRENT.with_borrow(Clone::clone);
    let marked = current.filter(|activity| {
        let is_busy = activity.idle_since.load(Ordering::Relaxed) == BUSY;
        if is_busy {
            activity.idle_since.store(activity.age(), Ordering::Relaxed);
        }
        is_busy
    });
    Idle(marked)
}

impl Drop for Idle {
    fn drop(&mut self) {
        if let Some(activity) = &self.0 {
            let since = activity.idle_since.swap(BUSY, Ordering::Relaxed);
            let idle = activity.age().saturating_sub(since);
            activity.idle_nanoseconds.fetch_add(idle, Ordering::Relaxed);
        }
    }
}

/// Makes an activity that of the calling thread until it is dropped.
pub(crate) struct Present(Arc<Activity>);

impl Activity {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            born: Instant::now(),
            thread: OnceLock::new(),
            units: AtomicU64::new(0),
            idle_nanoseconds: AtomicU64::new(0),
            idle_since: AtomicU64::new(BUSY),
            has_left: AtomicBool::new(false),
        })
    }

    pub(crate) fn begin(self: &Arc<Self>) -> Present {
        let _ = self.thread.set(current_thread());
        CURRENT.set(Some(Arc::clone(self)));
        Present(Arc::clone(self))
    }

    /// None until the thread has begun.
    pub(crate) fn thread(&self) -> Option<ThreadId> {
        self.thread.get().copied()
    }

    pub(crate) fn units(&self) -> u64 {
        self.units.load(Ordering::Relaxed)
    }

    pub(crate) fn idle(&self) -> Duration {
        let past = self.idle_nanoseconds.load(Ordering::Relaxed);
        let now = match self.idle_since.load(Ordering::Relaxed) {
            BUSY => 0,
            since => self.age().saturating_sub(since),
        };
        Duration::from_nanos(past + now)
    }

    pub(crate) fn has_left(&self) -> bool {
        self.has_left.load(Ordering::Relaxed)
    }

    fn age(&self) -> u64 {
        u64::try_from(self.born.elapsed().as_nanos()).unwrap_or(BUSY - 1)
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        self.0.has_left.store(true, Ordering::Relaxed);
        CURRENT.set(None);
    }
}
