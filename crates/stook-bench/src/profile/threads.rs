//! From switches to time: what each thread did between its switches, and where it was blocked.
//!
//! perf records a sample with the stack when a thread is about to leave its processor, then that it has left, and later
//! that it has one again. The time in between belongs to that stack. A thread that wanted to go on waited for a
//! processor; any other one was blocked. From a wakeup on, a blocked thread waits for a processor, too: that is not
//! recorded, so it counts as blocked.
//!
//! ```text
//! fork ─wait─> runs ──sample──> leaves ─────blocked or waiting─────> runs ──> ends
//! ```

use std::collections::HashMap;

use super::options::Unwind;
use super::places::{Place, Places};
use super::script::{Event, Frame, Record};
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
    Initial(Initial),
}

/// What the kernel said of a thread at the beginning of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Initial {
    /// Whether it ran, or was ready to.
    pub(super) is_runnable: bool,
    /// When it was asked, in nanoseconds: what was recorded before is older.
    pub(super) at: u64,
}

impl Initial {
    /// What the thread did from the beginning on, if this is the first record of it.
    fn before(self, record: &Record<'_>) -> State {
        let was_ready = self.is_runnable && self.at <= record.time;
        match record.event {
            Event::Runs if was_ready => State::Waiting,
            Event::Runs => State::Blocked,
            Event::Ends if !was_ready => State::Blocked,
            // It leaves a processor, or does something: it was on one.
            _ => State::Running,
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
        let mut threads = Self::default();
        threads.sums.places.unwind = unwind;
        threads
    }

    /// Counts time from this moment on; records from before still say what threads do at it.
    pub(super) fn begin_at(&mut self, begin: u64) {
        self.begin = begin;
    }

    /// Adds a thread that was there before the recording began; if it was blocked, then in this stack.
    pub(super) fn insert(&mut self, thread: u32, name: &str, frames: Vec<Frame>, found: Initial) {
        self.start(thread, name, self.begin, State::Initial(found));
        if let Some(thread) = self.threads.get_mut(&thread) {
            thread.frames = frames;
        }
    }

    fn start(&mut self, number: u32, name: &str, since: u64, state: State) {
        let thread = Thread {
            name: name.to_owned(),
            state,
            since: since.max(self.begin),
            frames: Vec::new(),
        };
        let before = self.threads.insert(number, thread);
        self.count += usize::from(before.is_none());
    }

    /// Takes the next record.
    pub(super) fn add(&mut self, record: &Record<'_>) {
        match record.event {
            Event::Lost(number) => self.lost += number,
            Event::LostSamples(number) => self.lost_samples += number,
            _ => {
                self.records += u64::from(record.time >= self.begin);
                self.last = self.last.max(record.time);
                self.meet(record);
                self.follow(record);
            }
        }
    }

    /// Makes sure that the thread of a record is known, and what it did before.
    fn meet(&mut self, record: &Record<'_>) {
        if !self.threads.contains_key(&record.thread) {
            self.start(record.thread, record.name, record.time, State::Running);
        }
        let Some(thread) = self.threads.get_mut(&record.thread) else {
            return;
        };
        if let State::Initial(found) = thread.state {
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

    fn follow(&mut self, record: &Record<'_>) {
        match record.event {
            Event::Sample(event, _, frames)
                if SWITCH_EVENTS.iter().any(|name| event.starts_with(name)) =>
            {
                if let Some(thread) = self.threads.get_mut(&record.thread) {
                    thread.frames = frames.to_vec();
                }
            }
            Event::Sample(_, period, frames) if record.time >= self.begin => {
                self.on_cpu.add(record.name, frames, period);
            }
            Event::Forks(new) => self.start(new, record.name, record.time, State::Waiting),
            Event::Blocks => self.change(record, State::Blocked),
            Event::Preempted => self.change(record, State::Waiting),
            Event::Runs => self.change(record, State::Running),
            Event::Ends => {
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
        match thread.state {
            // Without a record it did the same all the time.
            State::Running
            | State::Initial(Initial {
                is_runnable: true, ..
            }) => self.on_cpu += took,
            State::Waiting => self.waiting += took,
            State::Blocked | State::Initial(_) => {
                self.blocked += took;
                self.off_cpu.add(&thread.name, &thread.frames, took);
                self.places.add(&thread.frames, took);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::script;
    use super::*;

    const OUT: &str = "PERF_RECORD_SWITCH OUT";
    const PREEMPTED: &str = "PERF_RECORD_SWITCH OUT preempt";
    const IN: &str = "PERF_RECORD_SWITCH IN";

    /// Times in milliseconds are made those of perf.
    fn recorded(lines: &[(u32, u64, &str)], end: Option<u64>) -> Recorded {
        let mut threads = Threads::default();
        for (thread, time, what) in lines {
            let text = format!("x 1/{thread} 0.{:09}: {what}\n", time * 1_000_000);
            script::read(text.as_bytes(), &mut |record| threads.add(record)).unwrap();
        }
        threads.finish(end)
    }

    fn leaves(function: &str) -> String {
        format!("1 sched:sched_switch:\n\tffffffff00000000 {function} ([kernel])")
    }

    #[expect(clippy::cast_possible_truncation, reason = "they are small")]
    fn microseconds(recorded: &Recorded) -> [i64; 3] {
        let times = recorded.times;
        [times.on_cpu, times.blocked, times.waiting_for_cpu].map(|time| (time * 1e6).round() as i64)
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
        let folded = "x;read_[k] 500000\nx;sleep_[k] 200000\n";
        assert_eq!(recorded.off_cpu.folded(), folded);
        assert_eq!(microseconds(&recorded), [406_000, 700_000, 7_000]);
        assert_eq!((recorded.times.threads, recorded.lost), (2, 0));
    }

    #[test]
    fn what_is_still_blocked_at_the_end_counts_up_to_it() {
        let poll = leaves("poll");
        let lines = [(1, 10, poll.as_str()), (1, 10, OUT)];
        let until_later = recorded(&lines, Some(500_000_000));
        assert_eq!(until_later.off_cpu.folded(), "x;poll_[k] 490000\n");
        assert_eq!(recorded(&lines, None).off_cpu.seconds(), 0.0);
    }

    /// A recording from 1 us to 2,001 us, of threads that were asked after a microsecond more.
    fn watched(threads: &[(u32, bool)], lines: &str) -> Recorded {
        let mut all = Threads::default();
        all.begin_at(1_000);
        for &(thread, is_runnable) in threads {
            let (frames, at) = (vec![Frame::of("do_wait", "")], 2_000);
            all.insert(
                thread,
                &format!("t{thread}"),
                frames,
                Initial { is_runnable, at },
            );
        }
        script::read(lines.as_bytes(), &mut |record| all.add(record)).unwrap();
        all.finish(Some(2_001_000))
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
        let cases = [
            (true, OUT, [500, 1500, 0]),
            (true, IN, [1500, 0, 500]),
            (false, IN, [1500, 500, 0]),
            (true, PREEMPTED, [500, 0, 1500]),
            (true, "PERF_RECORD_EXIT(7:1):(7:1)", [500, 0, 0]),
        ];
        for (is_runnable, what, expected) in cases {
            let line = format!("t1 7/1 0.000501000: {what}\n");
            let found = microseconds(&watched(&[(1, is_runnable)], &line));
            assert_eq!(found, expected, "{what}");
        }
    }

    #[test]
    fn a_state_that_was_asked_for_later_says_nothing_of_the_time_before() {
        // It was asleep until it got a processor, and ran when it was asked.
        let recorded = watched(&[(1, true)], &format!("t1 7/1 0.000001500: {IN}\n"));
        assert_eq!(recorded.off_cpu.folded(), "t1 1\n");
        // What was recorded before the beginning says what it did then, and has no time.
        let recorded = watched(&[(1, true)], &format!("t1 7/1 0.000000100: {OUT}\n"));
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
        let what = "1003009 cpu-clock:u:\n\t 12 f (/bin/x)\n\t 13 _start (/bin/x)";
        let recorded = recorded(&[(1, 1, what)], None);
        assert_eq!(recorded.on_cpu.folded(), "x;_start;f 1003\n");
    }
}
