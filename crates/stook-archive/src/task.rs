//! One piece of work beside the rest, on a thread of its own if there is one to be had.

use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

use crate::ArchiveError;
use crate::mutex::lock;

/// Begins work that cannot be done at once instead, because others wait for what it sends.
///
/// # Errors
/// `NoThread`.
pub(crate) fn begin_in<'s, R: Send + 's>(
    scope: &'s Scope<'s, '_>,
    work: impl FnOnce() -> R + Send + 's,
) -> Result<ScopedJoinHandle<'s, R>, ArchiveError> {
    Builder::new()
        .spawn_scoped(scope, work)
        .map_err(ArchiveError::NoThread)
}

/// Work that has begun, or is done already.
pub(crate) enum Task<R> {
    Running(JoinHandle<R>),
    Done(R),
}

impl<R: Send + 'static> Task<R> {
    /// Begins `work` on a new thread. Where the system gives no more threads, does it at once: slower,
    /// and right.
    pub(crate) fn begin(work: impl FnOnce() -> R + Send + 'static) -> Self {
        let spawner = stook_timers::spawner();
        // A thread that cannot be made would take the work with it.
        let work = Arc::new(Mutex::new(Some(work)));
        let take = |work: &Mutex<Option<_>>| {
            let mut work = lock(work);
            work.take().expect("the work is done once")
        };
        let of_thread = Arc::clone(&work);
        let spawned = Builder::new().spawn(move || {
            let _attached = spawner.attach();
            take(&of_thread)()
        });
        match spawned {
            Ok(thread) => Self::Running(thread),
            Err(_) => Self::Done(take(&work)()),
        }
    }

    pub(crate) fn is_finished(&self) -> bool {
        match self {
            Self::Running(thread) => thread.is_finished(),
            Self::Done(_) => true,
        }
    }

    /// Waits for the result; a panic of the work goes on here.
    pub(crate) fn join(self) -> R {
        match self {
            Self::Running(thread) => thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Self::Done(result) => result,
        }
    }
}
