use super::*;

const FREE: f64 = f64::INFINITY;

/// A storage: how a number of workers fares on it.
struct Storage {
    /// Time blocked for each unit, and on a processor, in seconds.
    latency: f64,
    work: f64,
    /// Requests that it serves at a time.
    queue: f64,
}

const PROCESSORS: usize = 2;

impl Storage {
    fn rate(&self, workers: usize) -> f64 {
        let wanted = float(workers) / (self.latency + self.work);
        let by_queue = if self.latency > 0.0 {
            self.queue / self.latency
        } else {
            FREE
        };
        wanted.min(float(PROCESSORS) / self.work).min(by_queue)
    }

    fn sample(&self, workers: usize, elapsed: Duration) -> Sample {
        let rate = self.rate(workers);
        let cycle = float(workers) / rate;
        let rest = cycle - self.work - self.latency;
        let is_full = rate >= float(PROCESSORS) / self.work * 0.999;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "positive and small"
        )]
        let units = (rate * elapsed.as_secs_f64()).round() as u64;
        Sample {
            elapsed,
            workers,
            units,
            on_cpu: self.work / cycle,
            run_delay: if is_full { rest / cycle } else { 0.0 },
            idle: 0.0,
        }
    }

    /// Returns the numbers of workers in their order, and the shares of the time with each of them.
    fn run(&self, seconds: f64) -> Vec<(usize, f64)> {
        let mut governor = Governor::new(PROCESSORS, 128);
        let mut seen = vec![(1, 0.0)];
        let mut left = seconds;
        while left > 0.0 {
            let (workers, time) = seen.last_mut().unwrap();
            let mut elapsed = Duration::ZERO;
            let mut sample = self.sample(*workers, elapsed);
            while !governor.is_significant(elapsed, *workers, sample.units) {
                elapsed += Duration::from_micros(500);
                sample = self.sample(*workers, elapsed);
            }
            *time += elapsed.as_secs_f64() / seconds;
            left -= elapsed.as_secs_f64();
            if let Some(decision) = governor.decide(&sample) {
                seen.push((decision.workers, 0.0));
            }
        }
        seen
    }

    fn path(&self, seconds: f64) -> Vec<usize> {
        self.run(seconds)
            .iter()
            .map(|(workers, _)| *workers)
            .collect()
    }
}

#[test]
fn work_without_waiting_takes_the_processors() {
    let storage = Storage {
        latency: 0.0,
        work: 1e-4,
        queue: FREE,
    };
    assert_eq!(storage.path(5.0), [1, 2]);
}

#[test]
fn what_fills_the_processors_is_there_after_the_first_millisecond() {
    for (latency, work, expected) in [(1e-3, 1e-6, 128), (1e-3, 1e-4, 22), (2e-4, 5e-5, 10)] {
        let storage = Storage {
            latency,
            work,
            queue: FREE,
        };
        assert_eq!(storage.path(0.15), [1, expected]);
        let time_with_expected: f64 = storage
            .run(5.0)
            .iter()
            .filter_map(|(workers, time)| (*workers == expected).then_some(*time))
            .sum();
        assert!(time_with_expected > 0.99, "{latency} {work}");
    }
}

#[test]
fn a_server_with_eight_slots_gets_about_eight_workers() {
    let storage = Storage {
        latency: 1e-3,
        work: 1e-6,
        queue: 8.0,
    };
    let seen = storage.run(50.0);
    assert_eq!(seen[1].0, 128, "{seen:?}");
    let time_in = |range: std::ops::RangeInclusive<usize>| -> f64 {
        let inside = seen.iter().filter(|(workers, _)| range.contains(workers));
        inside.map(|(_, time)| time).sum()
    };
    assert!(time_in(8..=12) > 0.95, "{seen:?}");
    // Tried again at most once in 6.4 s, up and down.
    assert!(seen.len() < 60, "{}", seen.len());
}

#[test]
fn a_lock_that_one_worker_fills_leaves_one_worker() {
    // Three quarters of each unit are under a lock that one holds at a time, so a second worker only waits for it.
    let sample = |workers: usize| Sample {
        elapsed: Duration::from_millis(20),
        workers,
        units: 200,
        on_cpu: 0.9 / float(workers),
        run_delay: 0.0,
        idle: 0.0,
    };
    let mut governor = Governor::new(2, 128);
    let (mut workers, mut alone) = (1, 0);
    for _ in 0..1000 {
        if let Some(decision) = governor.decide(&sample(workers)) {
            workers = decision.workers;
        }
        alone += usize::from(workers == 1);
    }
    assert!(alone > 900, "{alone}");
}

#[test]
fn storage_that_became_fast_needs_no_more_than_the_processors() {
    let mut governor = Governor::new(2, 128);
    let slow = Storage {
        latency: 1e-3,
        work: 1e-5,
        queue: FREE,
    };
    let elapsed = Duration::from_millis(50);
    let workers = governor.decide(&slow.sample(1, elapsed)).unwrap().workers;
    assert_eq!(governor.decide(&slow.sample(workers, elapsed)), None);
    let fast = Storage {
        latency: 1e-7,
        work: 1e-5,
        queue: FREE,
    };
    let decision = governor.decide(&fast.sample(workers, elapsed)).unwrap();
    assert_eq!((decision.workers, decision.reason), (2, Reason::Running));
    assert_eq!(governor.decide(&fast.sample(2, elapsed)), None);
}

#[test]
fn workers_without_work_bring_no_others() {
    let sample = Sample {
        elapsed: Duration::from_millis(50),
        workers: 4,
        units: 1000,
        on_cpu: 0.005,
        run_delay: 0.0,
        idle: 0.5,
    };
    let mut governor = Governor::new(2, 128);
    assert_eq!(governor.decide(&sample), None);
    let with_work = Sample {
        idle: 0.0,
        ..sample
    };
    assert_eq!(governor.decide(&with_work).unwrap().workers, 128);
}

#[test]
fn one_worker_that_gets_nothing_done_does_not_stay_alone() {
    let blocked = Sample {
        elapsed: LONGEST_WAIT,
        workers: 1,
        units: 2,
        on_cpu: 0.004,
        run_delay: 0.9,
        idle: 0.0,
    };
    let mut governor = Governor::new(1, 128);
    for _ in 0..3 {
        assert_eq!(governor.decide(&blocked), None, "it waits for a processor");
    }
    let blocked = Sample {
        run_delay: 0.0,
        ..blocked
    };
    assert_eq!(governor.decide(&blocked).unwrap().workers, 128);
}

#[test]
fn those_that_wait_for_a_processor_bring_no_others() {
    let sample = Sample {
        elapsed: Duration::from_millis(50),
        workers: 2,
        units: 1000,
        on_cpu: 0.2,
        run_delay: 0.8,
        idle: 0.0,
    };
    assert_eq!(Governor::new(2, 128).decide(&sample), None);
}

/// A server on the same processors: workers wait for one eight times as long as they use it, and the server does more,
/// up to a limit, the more it is asked for.
struct LocalServer {
    /// Workers that it still does more for.
    uses: usize,
}

impl LocalServer {
    fn sample(&self, workers: usize) -> Sample {
        Sample {
            elapsed: Duration::from_millis(10),
            workers,
            units: 10 * workers.min(self.uses) as u64,
            on_cpu: 0.2 / float(workers),
            run_delay: 1.6 / float(workers),
            idle: 0.0,
        }
    }

    fn run(&self, windows: usize) -> Vec<Decision> {
        let (mut governor, mut workers) = (Governor::new(PROCESSORS, 128), 16);
        let mut seen = Vec::new();
        for _ in 0..windows {
            if let Some(decision) = governor.decide(&self.sample(workers)) {
                workers = decision.workers;
                seen.push(decision);
            }
        }
        seen
    }
}

#[test]
fn where_a_local_server_has_the_processors_workers_double_while_it_pays() {
    let numbers: Vec<usize> = LocalServer { uses: 1000 }
        .run(100)
        .iter()
        .map(|step| step.workers)
        .collect();
    assert_eq!(numbers, [32, 64, 128]);
}

#[test]
fn where_doubling_does_not_pay_it_is_given_back_and_seldom_tried() {
    let seen = LocalServer { uses: 16 }.run(1000);
    assert_eq!((seen[0].workers, seen[0].reason), (32, Reason::Outnumbered));
    assert_eq!((seen[1].workers, seen[1].reason), (16, Reason::NoGain));
    let climbs = seen
        .iter()
        .filter(|step| step.reason == Reason::Outnumbered);
    assert!(climbs.count() < 8, "{seen:?}");
}

#[test]
fn windows_are_short_after_a_change_and_long_without_one() {
    let mut governor = Governor::new(2, 128);
    let millisecond = Duration::from_millis(1);
    assert!(governor.is_significant(millisecond, 1, 0), "the first one");
    assert!(!governor.is_significant(millisecond / 2, 1, 1000));
    let storage = Storage {
        latency: 1e-3,
        work: 1e-6,
        queue: FREE,
    };
    governor.decide(&storage.sample(1, millisecond)).unwrap();
    assert!(!governor.is_significant(millisecond, 128, 255));
    assert!(governor.is_significant(millisecond, 128, 256));
    assert!(governor.is_significant(LONGEST_WAIT, 128, 0));
    for _ in 0..10 {
        assert_eq!(governor.decide(&storage.sample(128, millisecond)), None);
    }
    assert!(!governor.is_significant(STEADY_WINDOW - millisecond, 128, 100_000));
    assert!(governor.is_significant(STEADY_WINDOW, 128, 256));
}

/// A storage that stalls: of ten windows one finds next to nothing done, however many workers there are.
#[test]
fn stalls_do_not_bring_workers_that_do_not_help() {
    let mut governor = Governor::new(2, 128);
    let mut workers = 2;
    let mut sum = 0;
    for number in 0_u64..1000 {
        let sample = Sample {
            elapsed: Duration::from_millis(20),
            workers,
            units: if number % 10 == 7 { 20 } else { 500 },
            on_cpu: 0.2 / float(workers),
            run_delay: 0.0,
            idle: 0.0,
        };
        if let Some(decision) = governor.decide(&sample) {
            workers = decision.workers;
        }
        sum += workers;
    }
    assert!(sum < 3000, "{sum} in all");
}

/// A storage so slow that a window sees next to nothing done.
#[test]
fn without_units_there_are_no_fewer_workers() {
    let storage = Storage {
        latency: 2.0,
        work: 1e-5,
        queue: FREE,
    };
    let seen = storage.run(60.0);
    assert!(
        seen.iter().all(|step| [1, 128].contains(&step.0)),
        "{seen:?}"
    );
    let most: f64 = seen
        .iter()
        .filter(|step| step.0 == 128)
        .map(|step| step.1)
        .sum();
    assert!(most > 0.9, "{seen:?}");
}
