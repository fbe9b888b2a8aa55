//! Where the time of a server went: in callbacks, which answer the kernel, and in threads that help.
//!
//! ```text
//!   mount.read ──> fetch, wait for a fetch, cache read, cache write, read frame, decompress      callbacks
//!   read ahead ──> fetch, ...                                                                   helper threads
//! ```

use std::fmt::Write as _;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use stook_timers::{Record, Report, readable, share};

/// What the names of callbacks begin with.
const CALLBACK: &str = "mount.";

/// Scopes in which a thread waits for bytes from a store: those that it has asked for itself, and those that another thread has.
const WAITING: [&str; 2] = ["fetch", "wait for a fetch"];

/// The time in callbacks, of all threads together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallbackTimes {
    /// All of it.
    pub total_ns: u64,
    /// What of it was spent waiting for bytes from a store.
    pub waiting_for_fetch_ns: u64,
    /// What of it was not spent on a processor; `None` if CPU time was not recorded.
    pub blocked_ns: Option<u64>,
}

impl CallbackTimes {
    /// Returns those of a report.
    pub fn of(report: &Report) -> Self {
        let callbacks = || report.roots.iter().filter(|root| is_callback(root));
        let blocked = callbacks().map(Record::blocked).sum::<Option<Duration>>();
        Self {
            total_ns: nanoseconds(callbacks().map(|root| root.total).sum()),
            waiting_for_fetch_ns: nanoseconds(callbacks().map(waiting).sum()),
            blocked_ns: blocked.map(nanoseconds),
        }
    }
}

/// Returns the time as a table for people: callbacks with what part of them is waiting, then helper threads.
pub fn timers_tree(report: &Report) -> String {
    let times = CallbackTimes::of(report);
    let (callbacks, helpers) = report.roots.iter().cloned().partition(is_callback);
    let part = |roots: Vec<Record>| Report {
        roots,
        dropped: report.dropped,
        threads: report.threads,
        ..Report::default()
    };
    let total = Duration::from_nanos(times.total_ns);
    let of_total = |nanoseconds: u64| {
        let time = Duration::from_nanos(nanoseconds);
        format!("{}, {}", readable(time), share(time, total))
    };
    let mut text = format!("callbacks\n{}", part(callbacks).tree());
    let (sum, waiting) = (readable(total), of_total(times.waiting_for_fetch_ns));
    let _ = write!(text, "{sum} in callbacks; waiting for a fetch: {waiting}");
    let blocked = times.blocked_ns.map(of_total);
    let blocked = blocked.unwrap_or_else(|| "not recorded".to_owned());
    let _ = writeln!(text, "; BLOCKED: {blocked}");
    let _ = write!(text, "\nhelper threads\n{}", part(helpers).tree());
    text
}

fn is_callback(root: &Record) -> bool {
    root.name.starts_with(CALLBACK)
}

fn waiting(record: &Record) -> Duration {
    match WAITING.contains(&record.name.as_str()) {
        true => record.total,
        false => record.children.iter().map(waiting).sum(),
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(name: &str, seconds: u64, children: Vec<Record>) -> Record {
        Record {
            name: name.to_owned(),
            calls: 1,
            total: Duration::from_secs(seconds),
            cpu: Some(Duration::from_secs(1)),
            children,
            ..Record::default()
        }
    }

    #[test]
    fn the_share_of_waiting_is_named() {
        let frame = record("read frame", 1020, vec![record("fetch", 1000, Vec::new())]);
        let waits = record("wait for a fetch", 15, Vec::new());
        let mut report = Report {
            roots: vec![
                record("mount.read", 1058, vec![frame, waits]),
                record("read ahead", 70, vec![record("fetch", 60, Vec::new())]),
                record("mount.lookup", 2, Vec::new()),
            ],
            ..Report::default()
        };
        let times = CallbackTimes::of(&report);
        assert_eq!(times.waiting_for_fetch_ns, 1_015_000_000_000);
        assert_eq!(times.blocked_ns, Some(1_058_000_000_000));
        let text = timers_tree(&report);
        let line =
            "1060 s in callbacks; waiting for a fetch: 1015 s, 95.8%; BLOCKED: 1058 s, 99.8%\n";
        assert!(text.contains(line), "{text}");
        let (callbacks, helpers) = text.split_once("helper threads").unwrap();
        assert!(callbacks.contains("mount.lookup") && !callbacks.contains("read ahead"));
        assert!(helpers.contains("read ahead") && !helpers.contains("mount."));
        report.roots[0].cpu = None;
        assert_eq!(CallbackTimes::of(&report).blocked_ns, None);
    }
}
