//! The controller of an adaptive pool: it measures what the workers do, asks the governor, and starts workers.
//!
//! Nothing is measured while the workers work but their units, which they count themselves. At the begin and at the end of
//! a window the controller reads what some of them have done with their time. Windows are looked at often while they are
//! young, and seldom later:
//!
//! ```text
//!   window:  |0.5|0.5| 0.5 |  0.6  |   0.8   |    ...    | 10 ms | 10 ms      each pause: a third of the window's age
//!            begin: times ──────────────── significant? times, decide ──> next window
//! ```

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::Scope;
use std::time::{Duration, Instant};

use stook_sys::lock;
use stook_timers::gauge;

use crate::activity::{Activity, Spent};
use crate::governor::{Decision, Governor, Reason, Sample};
use crate::worker::{Exit, Shared, Spawn, Worker};

/// Shortest and longest time between two looks at the workers.
const SHORTEST_PAUSE: Duration = Duration::from_micros(500);
const LONGEST_PAUSE: Duration = Duration::from_millis(10);

/// Workers end between items only; after this long nothing waits for them any more.
const SETTLING: Duration = Duration::from_millis(500);

/// Workers whose time is read: all of them do the same kind of work, and to read one takes 5 us.
const READ: usize = 8;

/// Adjusts the number of workers until the work is over.
pub(crate) fn control<'scope, 'env, B: Fn(&Worker<'_>) -> Exit + Sync>(
    name: &'static str,
    spawn: Spawn<'env, B>,
    scope: &'scope Scope<'scope, 'env>,
    mut governor: Governor,
) {
    let mut window = Window::begin(spawn.shared, 0);
    let begun = Instant::now();
    let mut decided = begun;
    while !spawn.shared.ends_within(window.pause()) {
        let target = spawn.shared.target.load(Ordering::Relaxed);
        if spawn.shared.running.load(Ordering::Relaxed) > target && decided.elapsed() < SETTLING {
            // What is done now is not yet the work of fewer.
            window = Window::begin(spawn.shared, window.first);
            continue;
        }
        let (elapsed, units) = (window.since.elapsed(), window.units());
        if !governor.is_significant(elapsed, window.workers.len(), units) {
            continue;
        }
        if let Some(sample) = window.sample(spawn.shared, elapsed, units)
            && let Some(decision) = governor.decide(&sample)
        {
            trace(name, begun.elapsed(), &sample, decision);
            decided = Instant::now();
            let target = &spawn.shared.target;
            target.store(decision.workers, Ordering::Relaxed);
            let mut wanted = sample.workers..decision.workers;
            if let Err(error) = wanted.try_for_each(|_| spawn.worker(scope)) {
                tracing::debug!(pool = name, %error, "the system gives no more threads");
                return;
            }
        }
        window = Window::begin(spawn.shared, window.first + READ);
    }
}

fn trace(name: &'static str, at: Duration, sample: &Sample, decision: Decision) {
    let why = match decision.reason {
        Reason::Blocked => "blocked",
        Reason::Outnumbered => "others have the processors",
        Reason::NoGain => "no gain",
        Reason::Fewer => "fewer do as much",
        Reason::Running => "running",
    };
    gauge("workers", decision.workers as u64);
    let percent = |share: f64| (share * 100.0).round();
    tracing::debug!(
        pool = name,
        at_microseconds = at.as_micros(),
        from = sample.workers,
        to = decision.workers,
        why,
        cpu_percent = percent(sample.on_cpu),
        delay_percent = percent(sample.run_delay),
        idle_percent = percent(sample.idle),
        units = sample.units,
        microseconds = sample.elapsed.as_micros(),
        "number of workers"
    );
}

/// What the workers have done since the last decision.
struct Window {
    since: Instant,
    workers: Vec<(Arc<Activity>, u64)>,
    /// The first of those whose time is read.
    first: usize,
    read: Vec<(Arc<Activity>, Instant, Spent)>,
}

impl Window {
    fn begin(shared: &Shared, first: usize) -> Self {
        let mut activities = lock(&shared.activities);
        activities.retain(|activity| !activity.has_ended());
        let number = activities.len();
        let first = if number > READ { first % number } else { 0 };
        let chosen = activities.iter().cycle().skip(first);
        let chosen: Vec<_> = chosen.take(number.min(READ)).map(Arc::clone).collect();
        let workers = activities
            .iter()
            .map(|activity| (Arc::clone(activity), activity.units()))
            .collect();
        drop(activities);
        let since = Instant::now();
        // One that has not begun is left out: its thread may have worked before.
        let read = chosen.into_iter().filter_map(|activity| {
            let spent = activity.spent()?;
            Some((activity, Instant::now(), spent))
        });
        Self {
            read: read.collect(),
            workers,
            since,
            first,
        }
    }

    fn pause(&self) -> Duration {
        (self.since.elapsed() / 3).clamp(SHORTEST_PAUSE, LONGEST_PAUSE)
    }

    /// Units done by all since the window began.
    fn units(&self) -> u64 {
        let each = self.workers.iter();
        each.map(|(activity, before)| activity.units() - before)
            .sum()
    }

    /// None if all whose time is read have ended meanwhile.
    fn sample(&self, shared: &Shared, elapsed: Duration, units: u64) -> Option<Sample> {
        let mut sum = Spent::default();
        let mut time = Duration::ZERO;
        for (activity, since, before) in &self.read {
            let Some(now) = activity.spent() else {
                continue;
            };
            let elapsed = since.elapsed();
            let spent = now.since(before, elapsed, || activity.is_ready());
            time += elapsed;
            sum.on_cpu += spent.on_cpu;
            sum.run_delay += spent.run_delay;
            sum.idle += spent.idle;
        }
        let share = |part: Duration| part.as_secs_f64() / time.as_secs_f64();
        (!time.is_zero()).then(|| Sample {
            elapsed,
            workers: shared.running.load(Ordering::Relaxed),
            units,
            on_cpu: share(sum.on_cpu),
            run_delay: share(sum.run_delay),
            idle: share(sum.idle),
        })
    }
}
