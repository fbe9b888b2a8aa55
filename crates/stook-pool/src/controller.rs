//! The controller of an adaptive pool: it samples what the workers do, asks the governor, and starts workers.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::Scope;
use std::time::{Duration, Instant};

use stook_sys::lock;
use stook_timers::gauge;

use crate::activity::{Activity, WorkerState};
use crate::governor::{Decision, Governor, Reason, Sample};
use crate::worker::{Exit, Shared, Spawn, Worker};

/// Time between two samples of the workers.
const TICK: Duration = Duration::from_millis(10);

/// Adjusts the number of workers until the work is over.
pub(crate) fn control<'scope, 'env, B: Fn(&Worker<'_>) -> Exit + Sync>(
    name: &'static str,
    spawn: Spawn<'env, B>,
    scope: &'scope Scope<'scope, 'env>,
    mut governor: Governor,
) {
    let mut window = Window::begin(spawn.shared);
    while !spawn.shared.ends_within(TICK) {
        window.observe();
        let sample = window.sample(spawn.shared);
        if !Governor::is_significant(&sample) {
            continue;
        }
        if let Some(decision) = governor.decide(&sample) {
            trace(name, &sample, decision);
            let target = &spawn.shared.target;
            target.store(decision.workers, Ordering::Relaxed);
            let mut wanted = sample.workers..decision.workers;
            if let Err(error) = wanted.try_for_each(|_| spawn.worker(scope)) {
                tracing::debug!(pool = name, %error, "the system gives no more threads");
                return;
            }
        }
        window = Window::begin(spawn.shared);
    }
}

fn trace(name: &'static str, sample: &Sample, decision: Decision) {
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

/// What the workers have done since the last decision: units, and the states they were seen in.
struct Window {
    since: Instant,
    workers: Vec<(Arc<Activity>, u64)>,
    /// The worker to observe next.
    next: usize,
    observations: usize,
    idle: usize,
    blocked: usize,
}

/// Workers observed in one tick: a pool of 128 is seen as a whole every eight ticks.
const OBSERVED_PER_TICK: usize = 16;

impl Window {
    fn begin(shared: &Shared) -> Self {
        let mut activities = lock(&shared.activities);
        activities.retain(|activity| !activity.has_ended());
        let workers = activities
            .iter()
            .map(|activity| (Arc::clone(activity), activity.units()));
        Self {
            workers: workers.collect(),
            since: Instant::now(),
            next: 0,
            observations: 0,
            idle: 0,
            blocked: 0,
        }
    }

    fn observe(&mut self) {
        let number = self.workers.len();
        for _ in 0..number.min(OBSERVED_PER_TICK) {
            let (activity, _) = &self.workers[self.next % number];
            self.next += 1;
            match activity.state() {
                Some(WorkerState::Idle) => self.idle += 1,
                Some(WorkerState::Blocked) => self.blocked += 1,
                Some(WorkerState::Working) => {}
                None => continue,
            }
            self.observations += 1;
        }
    }

    fn sample(&self, shared: &Shared) -> Sample {
        let units = self
            .workers
            .iter()
            .map(|(activity, before)| activity.units() - before);
        Sample {
            elapsed: self.since.elapsed(),
            workers: shared.running.load(Ordering::Relaxed),
            observations: self.observations,
            blocked: share(self.blocked, self.observations - self.idle),
            idle: share(self.idle, self.observations),
            units: units.sum(),
        }
    }
}

fn share(part: usize, whole: usize) -> f64 {
    #[expect(
        clippy::cast_precision_loss,
        reason = "numbers of observations are small"
    )]
    let (part, whole) = (part as f64, whole.max(1) as f64);
    part / whole
}
