//! From switches to time: what each thread did between its switches, and where it was blocked.
//!
//! perf records a sample with the stack when a thread is about to leave its processor, then that it has left, and later
//! that it has one again. The stretch in between belongs to that stack. A thread that wanted to go on waited for a
//! processor; any other one was blocked. From a wakeup on, a blocked thread waits for a processor, too: that is not
//! recorded, so it counts as blocked.
//!
//! ```text
//! fork ─wait─> runs ──sample──> leaves ─────blocked or waiting─────> runs ──> ends
//! ```

use std::collections::HashMap;

use super::options::Unwind;
use super::places::{Place, Places};
use super::script::{Frame, Record, What};
use super::stacks::{Stacks, seconds};

/// Beginnings of the names of events whose samples are taken when a thread leaves its processor.
const SWITCH_EVENTS: [&str; 2] = ["sched:sched_switch", "context-switches"];

/// Where the time of all threads went, in seconds of threads: two that sleep for a second are two.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize)]
pub struct ThreadTimes {
    /// On a processor.
    pub on_cpu: f64,
    /// Waiting for something: a file, another thread, a child, a time.
    pub blocked: f64,
    /// Ready, and without a processor.
    pub waiting_for_cpu: f64,
    /// Threads that there were.
    pub threads: usize,
}

/// What came of a recording.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    pub(super) on_cpu: Stacks,
    pub(super) off_cpu: Stacks,
    /// Where threads were blocked.
    pub(super) places: Vec<Place>,
    pub(super) times: ThreadTimes,
    /// Records that perf lost.
    pub(super) lost: u64,
    /// Records that there were, lost ones not counted.
    pub(super) records: u64,
}

/// What a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    Blocked,
    Waiting,
    /// It was there before the recording, and nothing was recorded of it yet.
    Found(Found),
}

/// What the kernel said of a thread at the beginning of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    /// Whether it ran, or was ready to.
    pub(super) is_runnable: bool,
    /// When it was asked, in nanoseconds: what was recorded before is older.
    pub(super) at: u64,
}

impl Found {
    /// What the thread did from the beginning on, if this is the first record of it.
    fn before(self, record: &Record<'_>) -> State {
        let was_ready = self.is_runnable && self.at <= record.time;
        match record.what {
            What::Runs if was_ready => State::Waiting,
            What::Runs => State::Blocked,
            What::Ends if !was_ready => State::Blocked,
            // It leaves a processor, or does something: it was on one.
            _ => State::Running,
        }
    }

    /// What it did if there is no record of it.
    fn always(self) -> State {
        match self.is_runnable {
            true => State::Running,
            false => State::Blocked,
        }
    }
}

#[derive(Debug)]
struct Thread {
    name: String,
    state: State,
    /// When that began, in nanoseconds.
    since: u64,
    /// The stack that it left its processor with.
    frames: Vec<Frame>,
}

/// Nanoseconds of all threads, and where they were blocked.
#[derive(Debug, Default)]
struct Sums {
    on_cpu: u64,
    blocked: u64,
    waiting: u64,
    off_cpu: Stacks,
    places: Places,
}

/// Follows the threads through a recording.
#[derive(Debug, Default)]
pub(super) struct Threads {
    threads: HashMap<u32, Thread>,
    /// Threads that there were.
    count: usize,
    on_cpu: Stacks,
    sums: Sums,
    records: u64,
    /// From when on time counts.
    begin: u64,
    /// The time of the last record.
    last: u64,
    lost: u64,
    lost_samples: u64,
}

impl Threads {
    /// Follows threads whose stacks are found in this way.
    pub(super) fn new(unwind: Unwind) -> Self {
        Self {
            sums: Sums {
                places: Places::new(unwind),
                ..Sums::default()
            },
            ..Self::default()
        }
    }

    /// Counts time from this moment on; records from before still say what threads do at it.
    pub(super) fn begin_at(&mut self, begin: u64) {
        self.begin = begin;
    }

    /// Adds a thread that was there before the recording began; if it was blocked, then in this stack.
    pub(super) fn found(&mut self, thread: u32, name: &str, frames: Vec<Frame>, found: Found) {
        let found = Thread {
            name: name.to_owned(),
            state: State::Found(found),
            since: self.begin,
            frames,
        };
        self.insert(thread, found);
    }

    fn insert(&mut self, number: u32, thread: Thread) {
        if self.threads.insert(number, thread).is_none() {
            self.count += 1;
        }
    }

    /// Takes the next record.
    pub(super) fn hear(&mut self, record: &Record<'_>) {
        match record.what {
            What::Lost(number) => self.lost += number,
            What::LostSamples(number) => self.lost_samples += number,
            What::Forks(new) => {
                self.heard(record);
                self.begin(new, record, State::Waiting);
            }
            _ => {
                self.heard(record);
                self.follow(record);
            }
        }
    }

    fn heard(&mut self, record: &Record<'_>) {
        self.records += u64::from(record.time >= self.begin);
        self.last = self.last.max(record.time);
        if !self.threads.contains_key(&record.thread) {
            self.begin(record.thread, record, State::Running);
        }
        if let Some(thread) = self.threads.get_mut(&record.thread) {
            if let State::Found(found) = thread.state {
                thread.state = found.before(record);
                // The stack is of another time, or it is none that the thread was blocked in.
                if found.at > record.time || thread.state != State::Blocked {
                    thread.frames.clear();
                }
            }
            if thread.name != record.name && !record.name.is_empty() {
                record.name.clone_into(&mut thread.name);
            }
        }
    }

    fn begin(&mut self, thread: u32, record: &Record<'_>, state: State) {
        let begun = Thread {
            name: record.name.to_owned(),
            state,
            since: record.time.max(self.begin),
            frames: Vec::new(),
        };
        self.insert(thread, begun);
    }

    fn follow(&mut self, record: &Record<'_>) {
        match &record.what {
            What::Sample { event, frames, .. }
                if SWITCH_EVENTS.iter().any(|name| event.starts_with(name)) =>
            {
                if let Some(thread) = self.threads.get_mut(&record.thread) {
                    thread.frames = frames.to_vec();
                }
            }
            What::Sample { period, frames, .. } if record.time >= self.begin => {
                self.on_cpu.add(record.name, frames, *period);
            }
            What::Blocks => self.change(record, State::Blocked),
            What::Preempted => self.change(record, State::Waiting),
            What::Runs => self.change(record, State::Running),
            What::Ends => {
                self.change(record, State::Running);
                self.threads.remove(&record.thread);
            }
            _ => {}
        }
    }

    fn change(&mut self, record: &Record<'_>, state: State) {
        if let Some(thread) = self.threads.get_mut(&record.thread) {
            self.sums.add(thread, record.time);
            if state == State::Running {
                thread.frames.clear();
            }
            thread.state = state;
            thread.since = record.time.max(self.begin);
        }
    }

    /// Returns what came of it; what is still under way lasts up to `end`, or to the last record if that is later.
    pub(super) fn finish(mut self, end: Option<u64>) -> Recorded {
        let end = end.map_or(self.last, |end| end.max(self.last));
        for thread in self.threads.values() {
            self.sums.add(thread, end);
        }
        Recorded {
            times: ThreadTimes {
                on_cpu: seconds(self.sums.on_cpu),
                blocked: seconds(self.sums.blocked),
                waiting_for_cpu: seconds(self.sums.waiting),
                threads: self.count,
            },
            on_cpu: self.on_cpu,
            off_cpu: self.sums.off_cpu,
            places: self.sums.places.sorted(),
            // Lost samples are counted among the lost records, too; older kernels count only those.
            lost: self.lost.max(self.lost_samples),
            records: self.records,
        }
    }
}

impl Sums {
    /// Adds what a thread did up to now.
    fn add(&mut self, thread: &Thread, now: u64) {
        let took = now.saturating_sub(thread.since);
        let state = match thread.state {
            State::Found(found) => found.always(),
            state => state,
        };
        match state {
            State::Running => self.on_cpu += took,
            State::Waiting => self.waiting += took,
            State::Blocked => {
                self.blocked += took;
                self.off_cpu.add(&thread.name, &thread.frames, took);
                self.places.add(&thread.frames, took);
            }
            State::Found(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::script;
    use super::*;

    /// Times in milliseconds are made those of perf.
    fn recorded(lines: &[(u32, u64, &str)], end: Option<u64>) -> Recorded {
        let mut threads = Threads::default();
        for (thread, time, what) in lines {
            let text = format!("x 1/{thread} 0.{:09}: {what}\n", time * 1_000_000);
            script::read(text.as_bytes(), &mut |record| threads.hear(record)).unwrap();
        }
        threads.finish(end)
    }

    const OUT: &str = "PERF_RECORD_SWITCH OUT";
    const PREEMPTED: &str = "PERF_RECORD_SWITCH OUT preempt";
    const IN: &str = "PERF_RECORD_SWITCH IN";

    fn leaves(function: &str) -> String {
        format!("1 sched:sched_switch:\n\tffffffff00000000 {function} ([kernel])")
    }

    #[test]
    fn time_off_the_processor_belongs_to_the_stack_that_left_it() {
        let (sleep, read) = (leaves("sleep"), leaves("read"));
        let lines = [
            (1, 0, "PERF_RECORD_COMM exec: x:1/1"),
            (1, 1, "PERF_RECORD_FORK(1:2):(1:1)"),
            (2, 3, IN),
            (1, 10, sleep.as_str()),
            (1, 10, OUT),
            (2, 13, read.as_str()),
            (2, 13, OUT),
            (1, 210, IN),
            (1, 220, PREEMPTED),
            (1, 225, IN),
            (2, 513, IN),
            (2, 514, "PERF_RECORD_EXIT(1:2):(1:1)"),
            (1, 600, "PERF_RECORD_EXIT(1:1):(0:0)"),
        ];
        let recorded = recorded(&lines, None);
        assert_eq!(
            recorded.off_cpu.folded(),
            "x;read_[k] 500000\nx;sleep_[k] 200000\n"
        );
        let times = recorded.times;
        let expected = [0.010 + 0.010 + 0.375 + 0.010 + 0.001, 0.7, 0.007];
        let found = [times.on_cpu, times.blocked, times.waiting_for_cpu];
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-9, "{times:?}");
        }
        assert_eq!((times.threads, recorded.lost), (2, 0));
    }

    #[test]
    fn what_is_still_blocked_at_the_end_counts_up_to_it() {
        let poll = leaves("poll");
        let lines = [(1, 10, poll.as_str()), (1, 10, OUT)];
        assert_eq!(
            recorded(&lines, Some(500_000_000)).off_cpu.folded(),
            "x;poll_[k] 490000\n"
        );
        assert_eq!(recorded(&lines, None).off_cpu.seconds(), 0.0);
    }

    /// A recording from 1 us to 2,001 us, of threads that were looked at after a microsecond more.
    fn watched(threads: &[(u32, bool)], lines: &str) -> Recorded {
        let mut all = Threads::default();
        all.begin_at(1_000);
        for &(thread, is_runnable) in threads {
            let frame = Frame {
                function: "do_wait".to_owned(),
                module: String::new(),
                is_kernel: true,
            };
            let found = Found {
                is_runnable,
                at: 2_000,
            };
            all.found(thread, &format!("t{thread}"), vec![frame], found);
        }
        script::read(lines.as_bytes(), &mut |record| all.hear(record)).unwrap();
        all.finish(Some(2_001_000))
    }

    fn microseconds(recorded: &Recorded) -> [i64; 3] {
        let times = recorded.times;
        #[expect(clippy::cast_possible_truncation, reason = "they are small")]
        [times.on_cpu, times.blocked, times.waiting_for_cpu].map(|time| (time * 1e6).round() as i64)
    }

    #[test]
    fn a_thread_without_a_record_does_what_it_did_at_the_beginning() {
        let recorded = watched(&[(7, false), (8, true)], "");
        assert_eq!(microseconds(&recorded), [2000, 2000, 0]);
        assert_eq!(recorded.off_cpu.folded(), "t7;do_wait_[k] 2000\n");
        assert_eq!((recorded.times.threads, recorded.records), (2, 0));
    }

    #[test]
    fn the_first_record_of_a_thread_says_what_it_did_before() {
        let lines = [
            "t1 7/1 0.000501000: PERF_RECORD_SWITCH OUT",
            "t2 7/2 0.000501000: PERF_RECORD_SWITCH IN",
            "t3 7/3 0.000501000: PERF_RECORD_SWITCH IN",
            "t4 7/4 0.000501000: PERF_RECORD_SWITCH OUT preempt",
            "t5 7/5 0.000501000: PERF_RECORD_EXIT(7:5):(7:5)",
        ];
        let each = [true, true, false, true, true].into_iter().zip(1..);
        let found = each.zip(lines).map(|((is_runnable, thread), line)| {
            microseconds(&watched(&[(thread, is_runnable)], &format!("{line}\n")))
        });
        let expected = [
            [500, 1500, 0],
            [1500, 0, 500],
            [1500, 500, 0],
            [500, 0, 1500],
            [500, 0, 0],
        ];
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_state_that_was_asked_for_later_says_nothing_of_the_time_before() {
        // It was asleep until it got a processor, and ran when it was asked.
        let lines = "t1 7/1 0.000001500: PERF_RECORD_SWITCH IN\n";
        let mut recorded = watched(&[(1, true)], lines);
        assert_eq!(recorded.off_cpu.folded(), "t1 1\n");
        // What was recorded before the beginning says what it did then, and has no time.
        let lines = "t1 7/1 0.000000100: PERF_RECORD_SWITCH OUT\n";
        recorded = watched(&[(1, true)], lines);
        assert_eq!(
            (microseconds(&recorded), recorded.records),
            ([0, 2000, 0], 0)
        );
    }

    #[test]
    fn lost_records_are_counted_once() {
        let lines = [
            (1, 1, "PERF_RECORD_LOST lost 4"),
            (1, 2, "PERF_RECORD_LOST lost 5"),
            (1, 3, "PERF_RECORD_LOST_SAMPLES lost 6"),
        ];
        assert_eq!(recorded(&lines, None).lost, 9);
    }

    #[test]
    fn samples_of_a_clock_are_time_on_the_processor() {
        let lines = [(
            1,
            1,
            "1003009 cpu-clock:u:\n\t 12 f (/bin/x)\n\t 13 _start (/bin/x)",
        )];
        assert_eq!(recorded(&lines, None).on_cpu.folded(), "x;_start;f 1003\n");
    }
}
