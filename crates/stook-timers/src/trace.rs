//! Single calls on their threads, as a file for trace viewers.
//!
//! The form is that of Chrome's trace events, which Perfetto and `chrome://tracing` show: a complete event
//! (`X`) for each call, a counter (`C`) for each sample of a gauge, times in microseconds.
//!
//! # Source
//! "Trace Event Format", Google, 2016.

use std::time::Duration;

use serde_json::{Value, json};

use crate::registry::Records;
use crate::report::Gauge;
use crate::{clock, gauge};

/// The first calls of each thread, with their beginnings and ends; times count from when recording began.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace {
    /// The calls, in order of their beginnings.
    pub calls: Vec<Call>,
    /// Calls there was no room for.
    pub dropped: u64,
    /// Numbers that changed on the way.
    pub gauges: Vec<Gauge>,
}

/// One call of a scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Name of the scope.
    pub name: &'static str,
    /// Number of the thread, from 1, in order of their first scopes.
    pub thread: usize,
    /// When it began.
    pub start: Duration,
    /// How long it took; of a running one, the time so far.
    pub time: Duration,
    /// Whether it has not finished yet.
    pub is_running: bool,
}

/// Collects the events of all threads.
pub(crate) fn collect(records: &Records<'_>) -> Trace {
    let (begun, now) = (gauge::begun(), clock::now());
    let mut trace = Trace {
        gauges: gauge::collect().0,
        ..Trace::default()
    };
    let span = |from, to| Duration::from_nanos(clock::nanoseconds(from, to));
    for tree in records.trees {
        let events = tree.events();
        trace.dropped += events.dropped;
        trace.calls.extend(events.all.iter().map(|event| Call {
            name: event.callsite.name(),
            thread: event.thread,
            start: span(begun, event.start),
            time: span(event.start, event.end.unwrap_or(now)),
            is_running: event.end.is_none(),
        }));
    }
    trace.calls.sort_by_key(|call| (call.start, call.thread));
    trace
}

impl Trace {
    /// Returns the trace as JSON for trace viewers, one event on each line.
    ///
    /// Calls without room are counted in `otherData`, and named by an event at the end of the picture.
    pub fn chrome(&self) -> String {
        let calls = self.calls.iter().map(complete);
        let counters = self.gauges.iter().flat_map(counters);
        let lines: Vec<String> = calls
            .chain(counters)
            .chain(self.losses())
            .map(|event| event.to_string())
            .collect();
        format!(
            "{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"dropped_events\":{}}},\"traceEvents\":[\n{}\n]}}\n",
            self.dropped,
            lines.join(",\n")
        )
    }

    fn losses(&self) -> Option<Value> {
        let end = self.calls.iter().map(|call| call.start + call.time).max();
        (self.dropped > 0).then(|| {
            json!({
                "ph": "i", "s": "g", "pid": 1, "tid": 0, "ts": microseconds(end.unwrap_or_default()),
                "name": format!("{} later calls are not shown", self.dropped),
            })
        })
    }
}

fn complete(call: &Call) -> Value {
    let mut event = json!({
        "ph": "X", "pid": 1, "tid": call.thread, "name": call.name,
        "ts": microseconds(call.start), "dur": microseconds(call.time),
    });
    if call.is_running {
        event["args"] = json!({"running": true});
    }
    event
}

fn counters(gauge: &Gauge) -> impl Iterator<Item = Value> {
    let name = format!("{} in {}", gauge.name, gauge.path.join(" > "));
    gauge.samples.iter().map(move |&(at, value)| {
        json!({
            "ph": "C", "pid": 1, "name": name, "ts": microseconds(Duration::from_nanos(at)),
            "args": {&gauge.name: value},
        })
    })
}

fn microseconds(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e3
}
