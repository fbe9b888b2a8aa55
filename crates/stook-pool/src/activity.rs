//! What one worker does, written by itself and read by the controller while it runs.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use stook_sys::{ThreadId, current_thread, is_blocked};

#[derive(Debug, Default)]
pub(crate) struct Activity {
    thread: OnceLock<ThreadId>,
    units: AtomicU64,
    is_idle: AtomicBool,
    has_ended: AtomicBool,
}

/// What a worker is doing at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkerState {
    /// It works, or would if it had a processor.
    Working,
    /// It has nothing to do.
    Idle,
    /// It is in a system call that waits for the storage.
    Blocked,
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<Activity>>> = const { RefCell::new(None) };
}

/// Counts units of work that the calling worker has done, such as files; does nothing on other threads.
///
/// By them the pool knows whether more workers get more done. An item counts as one unit anyway: only
/// work that takes many steps for one item need call this.
pub fn advance(units: u64) {
    CURRENT.with_borrow(|current| {
        if let Some(activity) = current {
            activity.units.fetch_add(units, Ordering::Relaxed);
        }
    });
}

/// The calling worker has nothing to do until this is dropped.
pub(crate) struct Idle(());

/// Marks the calling worker as idle: it waits for work or for space, not for the storage.
pub(crate) fn idle() -> Idle {
    set_idle(true);
    Idle(())
}

impl Drop for Idle {
    fn drop(&mut self) {
        set_idle(false);
    }
}

fn set_idle(is_idle: bool) {
    CURRENT.with_borrow(|current| {
        if let Some(activity) = current {
            activity.is_idle.store(is_idle, Ordering::Relaxed);
        }
    });
}

/// Makes an activity that of the calling thread until it is dropped.
pub(crate) struct Current(Arc<Activity>);

impl Activity {
    pub(crate) fn begin(self: &Arc<Self>) -> Current {
        let _ = self.thread.set(current_thread());
        CURRENT.set(Some(Arc::clone(self)));
        Current(Arc::clone(self))
    }

    /// Returns what the worker does now; None if it has ended, or not yet begun.
    pub(crate) fn state(&self) -> Option<WorkerState> {
        let thread = *self.thread.get()?;
        let is_blocked = is_blocked(thread).ok()?;
        Some(if self.is_idle.load(Ordering::Relaxed) {
            WorkerState::Idle
        } else if is_blocked {
            WorkerState::Blocked
        } else {
            WorkerState::Working
        })
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
        self.0.has_ended.store(true, Ordering::Relaxed);
        CURRENT.set(None);
    }
}
