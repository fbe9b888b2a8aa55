//! A crew: the workers of one run, and the controller that has more of them or fewer.
//!
//! ```text
//!   controller ──every 10 ms──> what did the workers do? ──> governor ──> target
//!   worker: item, item, item, ... more of us than the target? then leave
//! ```
//! A fixed crew has no controller. Workers leave between items only, so a long item holds its worker.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use stook_sys::available_cpus;
use stook_timers::{Spawner, gauge};

use crate::activity::{Activity, Doing, advance};
use crate::governor::{Decision, Governor, Reason, Sample};
use crate::mutex::lock;

/// How many workers a run has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Jobs {
    /// As many as the latency of the storage asks for, from the number of processors up to
    /// [`MOST_WORKERS`].
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

/// Workers of an adaptive crew at most. Past it the processors of a client, not its threads, are the
/// limit of a network file system at 1 ms: 128 workers do 128,000 operations a second.
pub const MOST_WORKERS: usize = 128;

/// Time between two looks at the workers.
const TICK: Duration = Duration::from_millis(10);

/// The workers of one run, before it begins.
#[derive(Debug, Clone, Copy)]
pub struct Crew {
    name: &'static str,
    jobs: Jobs,
    most: usize,
}

/// Why a worker's loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// There is no work left.
    Done,
    /// There are too many workers.
    Dismissed,
}

impl Crew {
    /// Returns a crew; the name is for timings and traces.
    pub fn new(name: &'static str, jobs: Jobs) -> Self {
        Self {
            name,
            jobs,
            most: usize::MAX,
        }
    }

    /// Limits the crew, also one of a fixed number, to what descriptors or memory allow.
    #[must_use]
    pub fn at_most(mut self, most: usize) -> Self {
        self.most = self.most.min(most.max(1));
        self
    }

    /// Returns the most workers this crew can have at a time.
    pub fn most(&self) -> usize {
        match self.jobs {
            Jobs::Adaptive => MOST_WORKERS.max(available_cpus()).min(self.most),
            Jobs::Fixed(number) => number.clamp(1, self.most),
        }
    }

    /// Runs `body` on every worker, or on this thread if the system gives no other; returns when all have
    /// ended.
    pub(crate) fn run(&self, body: impl Fn(&Worker<'_>) -> Ended + Sync) {
        self.staff(&body, |hand, hired| {
            if hired == 0 {
                hand.work();
            }
        });
    }

    /// Runs `body` on every worker, and `foreground` on this thread; returns when all have ended.
    ///
    /// # Panics
    /// If the system gives no thread.
    pub(crate) fn run_beside<R>(
        &self,
        body: impl Fn(&Worker<'_>) -> Ended + Sync,
        foreground: impl FnOnce() -> R,
    ) -> R {
        self.staff(&body, |_, hired| {
            assert!(hired > 0, "the system gives no thread");
            foreground()
        })
    }

    /// Hires the workers and keeps their number right while `foreground` runs and until all is done.
    fn staff<B: Fn(&Worker<'_>) -> Ended + Sync, R>(
        &self,
        body: &B,
        foreground: impl FnOnce(Hand<'_, B>, usize) -> R,
    ) -> R {
        let first = match self.jobs {
            Jobs::Adaptive => available_cpus().min(self.most()),
            Jobs::Fixed(_) => self.most(),
        };
        let shared = Shared::new(first);
        let spawner = stook_timers::spawner();
        let hand = Hand {
            shared: &shared,
            spawner: &spawner,
            body,
        };
        gauge("workers", first as u64);
        thread::scope(|scope| {
            // Whatever happens here, the controller ends.
            let _over = Over(&shared);
            let hired = (0..first).take_while(|_| hand.hire(scope)).count();
            if hired > 0 && self.jobs == Jobs::Adaptive && self.most() > first {
                let governor = Governor::new(first, self.most());
                // Without a thread for it, the crew stays as it is.
                let _ = thread::Builder::new().spawn_scoped(scope, move || {
                    let _attached = hand.spawner.attach();
                    control(self.name, hand, scope, governor);
                });
            }
            let result = foreground(hand, hired);
            shared.wait_until_over();
            result
        })
    }
}

#[derive(Debug)]
struct Shared {
    /// How many workers there should be, and are.
    target: AtomicUsize,
    present: AtomicUsize,
    /// Those that have not left, in no order.
    activities: Mutex<Vec<Arc<Activity>>>,
    is_over: Mutex<bool>,
    ended: Condvar,
}

impl Shared {
    fn new(target: usize) -> Self {
        Self {
            target: AtomicUsize::new(target),
            present: AtomicUsize::new(0),
            activities: Mutex::default(),
            is_over: Mutex::new(false),
            ended: Condvar::new(),
        }
    }

    fn end(&self) {
        *lock(&self.is_over) = true;
        self.ended.notify_all();
    }

    fn wait_until_over(&self) {
        let mut is_over = lock(&self.is_over);
        while !*is_over {
            is_over = self
                .ended
                .wait(is_over)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Returns true if the work ended meanwhile.
    fn is_over_after(&self, pause: Duration) -> bool {
        let is_over = lock(&self.is_over);
        let waited = self.ended.wait_timeout_while(is_over, pause, |over| !*over);
        let (is_over, _) = waited.unwrap_or_else(PoisonError::into_inner);
        *is_over
    }
}

/// The work is over: nobody is hired any more.
struct Over<'a>(&'a Shared);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// What it takes to hire a worker.
struct Hand<'a, B> {
    shared: &'a Shared,
    spawner: &'a Spawner,
    body: &'a B,
}

impl<B> Clone for Hand<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B> Copy for Hand<'_, B> {}

/// A worker, as its own loop sees it. Counted as present until it is dismissed or dropped.
pub(crate) struct Worker<'a> {
    shared: &'a Shared,
    is_dismissed: Cell<bool>,
}

impl<'a> Worker<'a> {
    fn new(shared: &'a Shared) -> Self {
        Self {
            shared,
            is_dismissed: Cell::new(false),
        }
    }

    /// Returns how many workers there are now.
    pub(crate) fn number(&self) -> usize {
        self.shared.present.load(Ordering::Relaxed)
    }

    /// Counts an item as done; returns true if the worker should leave.
    pub(crate) fn is_dismissed(&self) -> bool {
        advance(1);
        let target = self.shared.target.load(Ordering::Relaxed);
        // No more leave than there are too many.
        let left =
            self.shared
                .present
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |present| {
                    (present > target).then(|| present - 1)
                });
        self.is_dismissed.set(left.is_ok());
        left.is_ok()
    }
}

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        if self.is_dismissed.get() {
            return;
        }
        let was = self.shared.present.fetch_sub(1, Ordering::Relaxed);
        if was == 1 || thread::panicking() {
            self.shared.end();
        }
    }
}

impl<'env, B: Fn(&Worker<'_>) -> Ended + Sync> Hand<'env, B> {
    /// Starts a worker; false where the system gives no thread, as under a limit on their number.
    fn hire<'scope>(self, scope: &'scope Scope<'scope, 'env>) -> bool {
        let activity = Arc::new(Activity::default());
        let own = Arc::clone(&activity);
        // Counted before it runs: the last one to leave must know that it is the last.
        self.shared.present.fetch_add(1, Ordering::Relaxed);
        let spawned = thread::Builder::new().spawn_scoped(scope, move || {
            let _present = own.begin();
            let _attached = self.spawner.attach();
            self.work_as(&Worker::new(self.shared));
        });
        if spawned.is_err() {
            self.shared.present.fetch_sub(1, Ordering::Relaxed);
            return false;
        }
        lock(&self.shared.activities).push(activity);
        true
    }

    /// Works on this thread.
    fn work(self) {
        self.shared.present.fetch_add(1, Ordering::Relaxed);
        self.work_as(&Worker::new(self.shared));
    }

    fn work_as(self, worker: &Worker<'_>) {
        if (self.body)(worker) == Ended::Done {
            self.shared.end();
        }
    }
}

fn control<'scope, 'env, B: Fn(&Worker<'_>) -> Ended + Sync>(
    name: &'static str,
    hand: Hand<'env, B>,
    scope: &'scope Scope<'scope, 'env>,
    mut governor: Governor,
) {
    let mut observed = Observed::begin(hand.shared);
    while !hand.shared.is_over_after(TICK) {
        observed.look();
        let sample = observed.sample(hand.shared);
        if !Governor::is_telling(&sample) {
            continue;
        }
        if let Some(decision) = governor.decide(&sample) {
            tell(name, &sample, decision);
            hand.shared
                .target
                .store(decision.workers, Ordering::Relaxed);
            let mut wanted = sample.workers..decision.workers;
            if !wanted.all(|_| hand.hire(scope)) {
                tracing::debug!(pool = name, "the system gives no more threads");
                return;
            }
        }
        observed = Observed::begin(hand.shared);
    }
}

fn tell(name: &'static str, sample: &Sample, decision: Decision) {
    let why = match decision.reason {
        Reason::Blocked => "blocked",
        Reason::NoGain => "no gain",
        Reason::Running => "running",
    };
    gauge("workers", decision.workers as u64);
    tracing::debug!(
        pool = name,
        from = sample.workers,
        to = decision.workers,
        why,
        blocked_percent = (sample.blocked * 100.0).round(),
        idle_percent = (sample.idle * 100.0).round(),
        units = sample.units,
        milliseconds = sample.elapsed.as_millis(),
        "number of workers"
    );
}

/// The workers since the last decision: the units that each had done by then, and what they were seen doing.
struct Observed {
    since: Instant,
    workers: Vec<(Arc<Activity>, u64)>,
    /// The worker to look at next.
    next: usize,
    looks: usize,
    idle: usize,
    blocked: usize,
}

/// Workers looked at in one tick; a crew of 128 comes by in eight.
const LOOKS: usize = 16;

impl Observed {
    fn begin(shared: &Shared) -> Self {
        let mut activities = lock(&shared.activities);
        activities.retain(|activity| !activity.has_left());
        let workers = activities
            .iter()
            .map(|activity| (Arc::clone(activity), activity.units()));
        Self {
            workers: workers.collect(),
            since: Instant::now(),
            next: 0,
            looks: 0,
            idle: 0,
            blocked: 0,
        }
    }

    fn look(&mut self) {
        let number = self.workers.len();
        for _ in 0..number.min(LOOKS) {
            let (activity, _) = &self.workers[self.next % number];
            self.next += 1;
            match activity.doing() {
                Some(Doing::Idle) => self.idle += 1,
                Some(Doing::Blocked) => self.blocked += 1,
                Some(Doing::Work) => {}
                None => continue,
            }
            self.looks += 1;
        }
    }

    fn sample(&self, shared: &Shared) -> Sample {
        let units = self
            .workers
            .iter()
            .map(|(activity, before)| activity.units() - before);
        Sample {
            elapsed: self.since.elapsed(),
            workers: shared.present.load(Ordering::Relaxed),
            looks: self.looks,
            blocked: share(self.blocked, self.looks - self.idle),
            idle: share(self.idle, self.looks),
            units: units.sum(),
        }
    }
}

fn share(part: usize, whole: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "numbers of looks are small")]
    let (part, whole) = (part as f64, whole.max(1) as f64);
    part / whole
}
