//! Single calls, and the file for trace viewers.

use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use stook_timers::{Call, Detail, Gauge, Trace, scope, trace};

use crate::{turn, turn_with};

/// Whether one call is within another, on the same thread.
fn is_within(inner: &Call, outer: &Call) -> bool {
    inner.thread == outer.thread
        && inner.start >= outer.start
        && inner.start + inner.time <= outer.start + outer.time
}

#[test]
fn calls_are_on_their_threads_and_inside_each_other() {
    let _turn = turn_with(Detail::Events);
    {
        let _create = scope!("create");
        drop(scope!("open"));
        thread::spawn(|| drop(scope!("read"))).join().unwrap();
        thread::spawn(|| drop(scope!("read"))).join().unwrap();
    }
    let still = scope!("still");
    let trace = trace();
    let names: Vec<_> = trace
        .calls
        .iter()
        .map(|call| (call.name, call.thread))
        .collect();
    assert_eq!(
        names,
        [
            ("create", 1),
            ("open", 1),
            ("read", 2),
            ("read", 3),
            ("still", 1)
        ]
    );
    assert!(is_within(&trace.calls[1], &trace.calls[0]), "{trace:?}");
    assert!(trace.calls[1].start >= trace.calls[0].start);
    let running: Vec<_> = trace.calls.iter().map(|call| call.is_running).collect();
    assert_eq!(running, [false, false, false, false, true]);
    assert_eq!(trace.dropped, 0);
    drop(still);
}

#[test]
fn the_first_calls_are_kept_with_the_long_ones_around_them() {
    const CALLS: u64 = 30_000;
    let _turn = turn_with(Detail::Events);
    thread::spawn(|| {
        let _create = scope!("create");
        for _ in 0..CALLS {
            drop(scope!("read"));
        }
    })
    .join()
    .unwrap();
    let trace = trace();
    assert_eq!(trace.calls.len() as u64 + trace.dropped, CALLS + 1);
    assert!(trace.dropped > 0);
    let create = &trace.calls[0];
    assert_eq!((create.name, create.is_running), ("create", false));
    assert!(trace.calls[1..].iter().all(|call| is_within(call, create)));
    assert_eq!(
        stook_timers::snapshot()
            .at(&["create", "read"])
            .unwrap()
            .calls,
        CALLS
    );
}

#[test]
fn a_reset_forgets_calls_and_those_still_open() {
    let _turn = turn_with(Detail::Events);
    let open = scope!("open");
    drop(scope!("before"));
    stook_timers::reset();
    assert_eq!(trace().calls, []);
    drop(scope!("after"));
    drop(open);
    let names: Vec<_> = trace().calls.iter().map(|call| call.name).collect();
    assert_eq!(names, ["after"]);
}

#[test]
fn a_late_guard_ends_its_own_call_and_not_a_later_one_of_its_path() {
    let _turn = turn_with(Detail::Events);
    let enter = || scope!("outer");
    let inside = || scope!("inner");
    let outer = enter();
    let late = inside();
    drop(outer);
    let _outer = enter();
    let _inner = inside();
    drop(late);
    let ended: Vec<_> = trace()
        .calls
        .iter()
        .map(|call| (call.name, !call.is_running))
        .collect();
    assert_eq!(
        ended,
        [
            ("outer", true),
            ("inner", true),
            ("outer", false),
            ("inner", false)
        ]
    );
}

#[test]
fn a_call_ends_with_its_thread() {
    let _turn = turn_with(Detail::Events);
    thread::spawn(|| std::mem::forget(scope!("leaked")))
        .join()
        .unwrap();
    let running: Vec<_> = trace().calls.iter().map(|call| call.is_running).collect();
    assert_eq!(running, [false]);
}

#[test]
fn without_being_asked_for_there_are_no_single_calls() {
    let _turn = turn();
    drop(scope!("work"));
    assert_eq!(trace(), Trace::default());
}

#[test]
fn the_file_for_viewers_is_exactly_this() {
    let micros = Duration::from_micros;
    let call = |name, thread, start, time| Call {
        name,
        thread,
        start: micros(start),
        time: micros(time),
        is_running: name == "read",
    };
    let trace = Trace {
        calls: vec![call("create", 1, 0, 40), call("read", 2, 10, 20)],
        dropped: 7,
        gauges: vec![Gauge {
            path: vec!["create".to_owned(), "archive".to_owned()],
            name: "workers".to_owned(),
            samples: vec![(12_500, 4)],
        }],
    };
    let parsed: Value = serde_json::from_str(&trace.chrome()).unwrap();
    let expected = json!({
        "displayTimeUnit": "ns",
        "otherData": {"dropped_events": 7},
        "traceEvents": [
            {"ph": "X", "pid": 1, "tid": 1, "name": "create", "ts": 0.0, "dur": 40.0},
            {"ph": "X", "pid": 1, "tid": 2, "name": "read", "ts": 10.0, "dur": 20.0,
             "args": {"running": true}},
            {"ph": "C", "pid": 1, "name": "workers in create > archive", "ts": 12.5,
             "args": {"workers": 4}},
            {"ph": "i", "s": "g", "pid": 1, "tid": 0, "ts": 40.0,
             "name": "7 later calls are not shown"},
        ],
    });
    assert_eq!(parsed, expected);
}
