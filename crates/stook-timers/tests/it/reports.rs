//! Reports as text and JSON.

use std::time::Duration;

use proptest::prelude::*;
use stook_timers::{Gauge, ProcessCpu, Record, Report};

use crate::turn;

fn sample() -> Report {
    let open = Record {
        name: "open".to_owned(),
        calls: 12_000,
        total: Duration::from_millis(1_500),
        own: Duration::from_millis(1_500),
        min: Duration::from_micros(90),
        max: Duration::from_micros(1_250),
        histogram: vec![0, 0, 12_000],
        ..Record::default()
    };
    let read = Record {
        name: "read".to_owned(),
        running: 2,
        total: Duration::from_millis(3_999),
        own: Duration::from_millis(3_999),
        running_time: Duration::from_millis(3_999),
        ..Record::default()
    };
    let create = Record {
        name: "create".to_owned(),
        calls: 1,
        running: 1,
        total: Duration::from_secs(2),
        own: Duration::from_millis(500),
        running_time: Duration::from_secs(1),
        min: Duration::from_secs(1),
        max: Duration::from_secs(1),
        histogram: vec![1],
        children: vec![read, open],
        ..Record::default()
    };
    Report {
        roots: vec![create],
        dropped: 1,
        threads: 3,
        gauges: vec![Gauge {
            path: vec!["create".to_owned(), "archive".to_owned()],
            name: "workers".to_owned(),
            samples: vec![(1_000_000, 2), (12_000_000, 4)],
        }],
        dropped_samples: 0,
        process_cpu: None,
    }
}

#[test]
fn tree_text_is_exactly_this() {
    let expected = "\
scope    calls    total      self       min      mean       max   share
create     1+1  2.000 s  500.0 ms   1.000 s   1.000 s   1.000 s  100.0%
  read     0+2  3.999 s   3.999 s         -         -         -  200.0%
  open  12,000  1.500 s   1.500 s  90.00 us  125.0 us  1.250 ms   75.0%
sum        1+1  2.000 s         -         -         -         -  100.0%
workers in create > archive: 2 (1.000 ms), 4 (12.00 ms)
3 threads, 1 scope dropped
";
    assert_eq!(sample().tree(), expected);
}

#[test]
fn tree_text_of_an_empty_report_still_counts() {
    let expected = "\
scope  calls  total  self  min  mean  max  share
0 threads, 0 scopes dropped
";
    assert_eq!(Report::default().tree(), expected);
}

/// The sample with CPU time in each record.
fn sample_with_cpu() -> Report {
    let mut report = sample();
    let create = &mut report.roots[0];
    create.cpu = Some(Duration::from_millis(250));
    create.children[0].cpu = Some(Duration::ZERO);
    create.children[1].cpu = Some(Duration::from_millis(1_501));
    report.process_cpu = Some(ProcessCpu {
        total: Duration::from_millis(1_800),
        in_scopes: Duration::from_millis(1_751),
    });
    report
}

#[test]
fn tree_text_with_cpu_time_is_exactly_this() {
    let expected = "\
scope            calls    total      self       cpu   blocked  blocked%       min      mean       max   share
create             1+1  2.000 s  500.0 ms  250.0 ms  750.0 ms     75.0%   1.000 s   1.000 s   1.000 s  100.0%
  read             0+2  3.999 s   3.999 s         -         -         -         -         -         -  200.0%
  open          12,000  1.500 s   1.500 s   1.501 s      0 ns      0.0%  90.00 us  125.0 us  1.250 ms   75.0%
outside scopes       -        -         -  49.00 ms         -         -         -         -         -       -
sum                1+1  2.000 s         -   1.800 s         -         -         -         -         -  100.0%
workers in create > archive: 2 (1.000 ms), 4 (12.00 ms)
3 threads, 1 scope dropped
";
    assert_eq!(sample_with_cpu().tree(), expected);
}

#[test]
fn cpu_time_comes_back_from_json_and_reports_without_it_are_read() {
    let report = sample_with_cpu();
    assert!(report.json().contains(r#""cpu_ns":1501000000,"#));
    assert_eq!(
        serde_json::from_str::<Report>(&report.json()).unwrap(),
        report
    );
    let old = sample().json();
    assert!(!old.contains("cpu_ns"));
    assert_eq!(serde_json::from_str::<Report>(&old).unwrap(), sample());
}

#[test]
fn folded_stacks_are_exactly_this() {
    let mut report = sample();
    let names = [" odd;name\n", "_odd:name ", "read"];
    let odd = names.map(|name| Record {
        name: name.to_owned(),
        own: Duration::from_nanos(1_700),
        ..Record::default()
    });
    report.roots[0].children.extend(odd);
    let expected = "\
create 500000
create;_odd:name_ 3
create;open 1500000
create;read 3999001
";
    assert_eq!(report.folded(), expected);
    assert_eq!(Report::default().folded(), "");
}

#[test]
fn json_names_units() {
    let mut report = sample();
    report.roots[0].children.clear();
    let expected = concat!(
        r#"{"roots":[{"name":"create","calls":1,"total_ns":2000000000,"self_ns":500000000,"#,
        r#""min_ns":1000000000,"max_ns":1000000000,"histogram":[1],"running":1,"#,
        r#""running_ns":1000000000,"children":[]}],"dropped":1,"threads":3,"#,
        r#""gauges":[{"path":["create","archive"],"name":"workers","#,
        r#""samples":[[1000000,2],[12000000,4]]}],"dropped_samples":0}"#
    );
    assert_eq!(report.json(), expected);
}

#[test]
fn records_are_found_by_path() {
    let report = sample();
    assert_eq!(
        report.at(&["create", "open"]).map(|record| record.calls),
        Some(12_000)
    );
    for path in [
        &[][..],
        &["open"],
        &["create", "write"],
        &["create", "open", "open"],
    ] {
        assert_eq!(report.at(path), None, "{path:?}");
    }
}

#[test]
fn mean_is_of_finished_calls() {
    let report = sample();
    assert_eq!(
        report.at(&["create"]).map(Record::mean),
        Some(Duration::from_secs(1))
    );
    assert_eq!(
        report.at(&["create", "read"]).map(Record::mean),
        Some(Duration::ZERO)
    );
    let longest = Record {
        calls: 1,
        total: Duration::MAX,
        ..Record::default()
    };
    assert_eq!(longest.mean(), Duration::from_nanos(u64::MAX));
}

fn any_record() -> impl Strategy<Value = Record> {
    let numbers = (
        any::<[u64; 2]>(),
        any::<[u64; 5]>().prop_map(|times| times.map(Duration::from_nanos)),
    );
    let leaf = (".*", numbers, prop::collection::vec(any::<u64>(), 0..64)).prop_map(
        |(name, ([calls, running], [total, own, min, max, running_time]), histogram)| Record {
            name,
            calls,
            total,
            own,
            min,
            max,
            histogram,
            running,
            running_time,
            cpu: (running % 2 == 0).then_some(max),
            children: Vec::new(),
        },
    );
    leaf.clone().prop_recursive(4, 32, 4, move |inner| {
        (leaf.clone(), prop::collection::vec(inner, 0..4))
            .prop_map(|(record, children)| Record { children, ..record })
    })
}

proptest! {
    /// Any report comes back from JSON equal, and has a table of one line for each record and two more.
    #[test]
    fn any_report_survives_json(
        roots in prop::collection::vec(any_record(), 0..4),
        dropped in any::<u64>(),
        threads in any::<usize>(),
    ) {
        let report = Report { roots, dropped, threads, ..sample() };
        prop_assert_eq!(&serde_json::from_str::<Report>(&report.json()).unwrap(), &report);
        prop_assert!(report.tree().ends_with(" dropped\n"));
    }
}

#[test]
fn gauges_keep_their_samples_and_their_path() {
    let _turn = turn();
    {
        let _scope = stook_timers::scope!("gauged");
        for value in [2, 4, 2] {
            stook_timers::gauge("threads", value);
        }
    }
    let report = stook_timers::snapshot();
    let gauge = report.gauges.iter().find(|gauge| gauge.path == ["gauged"]);
    let samples = &gauge.unwrap().samples;
    let values: Vec<u64> = samples.iter().map(|&(_, value)| value).collect();
    assert_eq!(values, [2, 4, 2]);
    assert!(samples.is_sorted_by_key(|&(at, _)| at));
}
