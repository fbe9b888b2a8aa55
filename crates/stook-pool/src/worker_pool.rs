//! A worker pool: the workers of one run, and the controller that has more of them or fewer.
//!
//! ```text
//!   controller ──every 0.5 to 10 ms──> what did the workers do? ──> governor ──> target
//!   worker: item, item, item, ... more of us than the target? then end
//! ```
//! It begins with one worker, which is the calling thread unless that has other work: what is done within the first
//! millisecond needs no others. A pool of a fixed size has no controller. Workers end between items only, so a long item keeps its worker.

use std::fmt;
use std::thread::{self, Scope};

use stook_sys::available_cpus;
use stook_timers::gauge;

use crate::controller::control;
use crate::governor::Governor;
use crate::worker::{EndOnDrop, Exit, Shared, Spawn, Worker};

/// How many workers a run has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Jobs {
    /// As many as the latency of the storage asks for, up to [`MAX_WORKERS`].
    #[default]
    Adaptive,
    /// Always this many; at least one.
    Fixed(usize),
}

impl From<usize> for Jobs {
    fn from(number: usize) -> Self {
        Self::Fixed(number)
    }
}

/// Most workers of an adaptive pool. Past it the processors of a client, not its threads, are the
/// limit of a network file system at 1 ms: 128 workers do 128,000 operations a second.
pub const MAX_WORKERS: usize = 128;

/// The system gives no thread, where work cannot be done without one.
#[derive(Debug)]
pub struct NoThread {
    /// Why, as the system said it.
    pub source: std::io::Error,
}

impl fmt::Display for NoThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cause = stook_sys::cause(&self.source);
        write!(f, "cannot begin a thread: {cause}")
    }
}

impl std::error::Error for NoThread {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// The workers of one run, before it begins.
#[derive(Clone, Copy)]
pub struct WorkerPool<'a> {
    name: &'static str,
    jobs: Jobs,
    most: usize,
    is_interrupted: Option<&'a (dyn Fn() -> bool + Sync)>,
}

impl fmt::Debug for WorkerPool<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerPool")
            .field("name", &self.name)
            .field("jobs", &self.jobs)
            .field("most", &self.most)
            .finish_non_exhaustive()
    }
}

impl<'a> WorkerPool<'a> {
    /// Returns a pool; the name is for timings and traces.
    pub fn new(name: &'static str, jobs: Jobs) -> Self {
        Self {
            name,
            jobs,
            most: usize::MAX,
            is_interrupted: None,
        }
    }

    /// Limits the pool, also one of a fixed number, to what descriptors or memory allow.
    #[must_use]
    pub fn at_most(mut self, most: usize) -> Self {
        self.most = self.most.min(most.max(1));
        self
    }

    /// Has the pool ask before each item whether to end early: the items that are left are then dropped. Once it has
    /// returned true it must go on doing so. Work that takes long on one item has to ask by itself.
    #[must_use]
    pub fn until<'b>(self, is_interrupted: &'b (dyn Fn() -> bool + Sync)) -> WorkerPool<'b>
    where
        'a: 'b,
    {
        WorkerPool {
            is_interrupted: Some(is_interrupted),
            ..self
        }
    }

    /// Returns the most workers this pool can have at a time.
    pub fn most(&self) -> usize {
        match self.jobs {
            Jobs::Adaptive => MAX_WORKERS.max(available_cpus()).min(self.most),
            Jobs::Fixed(number) => number.clamp(1, self.most),
        }
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.is_interrupted.is_some_and(|asked| asked())
    }

    /// Runs `body` on every worker, the first of which is this thread; returns when all have ended.
    pub(crate) fn run(&self, body: impl Fn(&Worker<'_>) -> Exit + Sync) {
        let (shared, spawner) = (Shared::new(self.first_number()), stook_timers::spawner());
        let spawn = Spawn {
            shared: &shared,
            spawner: &spawner,
            body: &body,
        };
        thread::scope(|scope| {
            // Whatever happens here, the controller ends.
            let _end = EndOnDrop(&shared);
            let first = spawn.prepare();
            self.spawn_others(spawn, scope);
            spawn.run_here(&first);
            shared.wait_for_end();
        });
    }

    /// Runs `body` on every worker, and `foreground` on this thread; returns when all have ended.
    ///
    /// # Errors
    /// The system gives no thread; nothing was run then.
    pub(crate) fn run_beside<R>(
        &self,
        body: impl Fn(&Worker<'_>) -> Exit + Sync,
        foreground: impl FnOnce() -> R,
    ) -> Result<R, NoThread> {
        let (shared, spawner) = (Shared::new(self.first_number()), stook_timers::spawner());
        let spawn = Spawn {
            shared: &shared,
            spawner: &spawner,
            body: &body,
        };
        thread::scope(|scope| {
            let _end = EndOnDrop(&shared);
            spawn.worker(scope).map_err(|source| NoThread { source })?;
            self.spawn_others(spawn, scope);
            let result = foreground();
            shared.wait_for_end();
            Ok(result)
        })
    }

    /// How many workers there are before anything is known of the work.
    fn first_number(&self) -> usize {
        let number = match self.jobs {
            Jobs::Adaptive => 1,
            Jobs::Fixed(_) => self.most(),
        };
        gauge("workers", number as u64);
        number
    }

    /// Starts the workers that are missing, or what will start them.
    fn spawn_others<'scope, 'env, B: Fn(&Worker<'_>) -> Exit + Sync>(
        &self,
        spawn: Spawn<'env, B>,
        scope: &'scope Scope<'scope, 'env>,
    ) {
        let (name, most) = (self.name, self.most());
        match self.jobs {
            // Fewer than wanted do the same work.
            Jobs::Fixed(_) => drop((1..most).try_for_each(|_| spawn.worker(scope))),
            Jobs::Adaptive if most > 1 => {
                let governor = Governor::new(available_cpus(), most);
                // Without a thread for it, the pool stays as it is.
                let _ = thread::Builder::new().spawn_scoped(scope, move || {
                    let _attached = spawn.spawner.attach();
                    control(name, spawn, scope, governor);
                });
            }
            Jobs::Adaptive => {}
        }
    }
}
