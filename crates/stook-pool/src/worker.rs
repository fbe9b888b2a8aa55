//! The workers of one run: how they are started, counted, and told that there are too many of them.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, Scope};
use std::time::Duration;

use stook_sys::lock;
use stook_timers::Spawner;

use crate::activity::{Activity, advance};

/// Why a worker's loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// There is no work left, or it is not wanted any more.
    NoWork,
    /// There are more workers than the target.
    Surplus,
}

/// What all workers of a run share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// How many workers there should be.
    pub(crate) target: AtomicUsize,
    /// How many there are.
    pub(crate) running: AtomicUsize,
    /// Those that have not ended, in no order.
    pub(crate) activities: Mutex<Vec<Arc<Activity>>>,
    is_over: Mutex<bool>,
    ended: Condvar,
}

impl Shared {
    pub(crate) fn new(target: usize) -> Self {
        Self {
            target: AtomicUsize::new(target),
            running: AtomicUsize::new(0),
            activities: Mutex::default(),
            is_over: Mutex::new(false),
            ended: Condvar::new(),
        }
    }

    pub(crate) fn end(&self) {
        *lock(&self.is_over) = true;
        self.ended.notify_all();
    }

    pub(crate) fn wait_for_end(&self) {
        let is_over = lock(&self.is_over);
        let waited = self.ended.wait_while(is_over, |over| !*over);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Returns true if the work ended meanwhile.
    pub(crate) fn ends_within(&self, pause: Duration) -> bool {
        let is_over = lock(&self.is_over);
        let waited = self.ended.wait_timeout_while(is_over, pause, |over| !*over);
        let (is_over, _) = waited.unwrap_or_else(PoisonError::into_inner);
        *is_over
    }
}

/// Ends the work when it is dropped: no worker is started any more.
pub(crate) struct EndOnDrop<'a>(pub(crate) &'a Shared);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// A worker, as its own loop sees it. Counted as running until it is found surplus or dropped.
pub(crate) struct Worker<'a> {
    shared: &'a Shared,
    is_uncounted: Cell<bool>,
}

impl<'a> Worker<'a> {
    fn new(shared: &'a Shared) -> Self {
        Self {
            shared,
            is_uncounted: Cell::new(false),
        }
    }

    /// Returns how many workers there are now.
    pub(crate) fn number(&self) -> usize {
        self.shared.running.load(Ordering::Relaxed)
    }

    /// Counts an item as done; returns true if the worker should end because there are too many.
    pub(crate) fn is_surplus(&self) -> bool {
        advance(1);
        let target = self.shared.target.load(Ordering::Relaxed);
        // No more end than there are too many.
        let counted =
            self.shared
                .running
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |running| {
                    (running > target).then(|| running - 1)
                });
        self.is_uncounted.set(counted.is_ok());
        counted.is_ok()
    }
}

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        if self.is_uncounted.get() {
            return;
        }
        let was = self.shared.running.fetch_sub(1, Ordering::Relaxed);
        if was == 1 || thread::panicking() {
            self.shared.end();
        }
    }
}

/// What it takes to start a worker.
pub(crate) struct Spawn<'a, B> {
    pub(crate) shared: &'a Shared,
    pub(crate) spawner: &'a Spawner,
    pub(crate) body: &'a B,
}

impl<B> Clone for Spawn<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B> Copy for Spawn<'_, B> {}

impl<'env, B: Fn(&Worker<'_>) -> Exit + Sync> Spawn<'env, B> {
    /// Starts a worker.
    ///
    /// # Errors
    /// The system gives no thread, as under a limit on their number.
    pub(crate) fn worker<'scope>(self, scope: &'scope Scope<'scope, 'env>) -> std::io::Result<()> {
        let prepared = self.prepare();
        let activity = Arc::clone(&prepared.0);
        let spawned = thread::Builder::new().spawn_scoped(scope, move || {
            let _attached = self.spawner.attach();
            self.run_here(&prepared);
        });
        if let Err(error) = spawned {
            self.shared.running.fetch_sub(1, Ordering::Relaxed);
            lock(&self.shared.activities).retain(|other| !Arc::ptr_eq(other, &activity));
            return Err(error);
        }
        Ok(())
    }

    /// Counts a worker that has not begun yet: the last one to end must know that it is the last.
    pub(crate) fn prepare(self) -> Prepared {
        let activity = Arc::new(Activity::default());
        self.shared.running.fetch_add(1, Ordering::Relaxed);
        lock(&self.shared.activities).push(Arc::clone(&activity));
        Prepared(activity)
    }

    /// Makes the calling thread a worker until there is no work left, or it is one too many.
    pub(crate) fn run_here(self, prepared: &Prepared) {
        let _current = prepared.0.begin();
        if (self.body)(&Worker::new(self.shared)) == Exit::NoWork {
            self.shared.end();
        }
    }
}

/// A worker that is counted and has not begun.
pub(crate) struct Prepared(Arc<Activity>);
