//! What the timers found: records by call path, and their JSON form.
//!
//! JSON keeps all of a report, durations as whole nanoseconds (`total_ns`), and reads back to an equal
//! value. The table for people is in [`crate::table`].

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// All threads' records at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The outermost scopes, longest total first; so are all children.
    pub roots: Vec<Record>,
    /// Scopes not recorded, because their thread had no room ([`MAX_NODES`](crate::MAX_NODES),
    /// [`MAX_DEPTH`](crate::MAX_DEPTH)) or was ending.
    pub dropped: u64,
    /// Threads that recorded anything, dead or running.
    pub threads: usize,
    /// Numbers that changed on the way, such as that of the workers.
    #[serde(default)]
    pub gauges: Vec<Gauge>,
    /// Samples of gauges that there was no room for.
    #[serde(default)]
    pub dropped_samples: u64,
    /// CPU time of the process, of which scopes explain a part; `None` if CPU time was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_cpu: Option<ProcessCpu>,
}

/// CPU time of the process since the last [`reset`](crate::reset), or since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessCpu {
    /// Of all threads, inside and outside of scopes.
    #[serde(rename = "total_ns", with = "nanoseconds")]
    pub total: Duration,
    /// Of the finished calls of the outermost scopes of each thread.
    #[serde(rename = "in_scopes_ns", with = "nanoseconds")]
    pub in_scopes: Duration,
}

impl ProcessCpu {
    /// Returns the CPU time that no finished call of a scope explains.
    pub fn outside(&self) -> Duration {
        self.total.saturating_sub(self.in_scopes)
    }
}

/// A number over time, at one call path.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gauge {
    /// Names of the scopes around it, outermost first.
    pub path: Vec<String>,
    /// What is counted.
    pub name: String,
    /// Nanoseconds since recording began, and the value from then on; in that order.
    pub samples: Vec<(u64, u64)>,
}

/// One call path.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Name of the scope; the names above it are those of the records around it.
    pub name: String,
    /// Finished calls.
    pub calls: u64,
    /// Wall time in the scope, of all threads together, with that of calls still running.
    #[serde(rename = "total_ns", with = "nanoseconds")]
    pub total: Duration,
    /// `total` without the scopes inside it on the same thread: time no other record explains.
    #[serde(rename = "self_ns", with = "nanoseconds")]
    pub own: Duration,
    /// CPU time of the finished calls on their own threads, of all threads together; `None` if that was
    /// not measured. A call not finished adds nothing: its thread's clock is only read by that thread.
    #[serde(
        rename = "cpu_ns",
        default,
        skip_serializing_if = "Option::is_none",
        with = "optional_nanoseconds"
    )]
    pub cpu: Option<Duration>,
    /// Shortest finished call; zero without calls.
    #[serde(rename = "min_ns", with = "nanoseconds")]
    pub min: Duration,
    /// Longest finished call; zero without calls.
    #[serde(rename = "max_ns", with = "nanoseconds")]
    pub max: Duration,
    /// Finished calls by time: element `i` counts those of `2^i` to `2^(i+1) - 1` ns, element 0 also
    /// those of 0 ns. Without trailing zeros.
    pub histogram: Vec<u64>,
    /// Calls not finished yet, at most one for each thread.
    pub running: u64,
    /// The part of `total` that belongs to calls not finished yet.
    #[serde(rename = "running_ns", with = "nanoseconds")]
    pub running_time: Duration,
    /// Scopes inside this one.
    pub children: Vec<Record>,
}

impl Record {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }

    /// Returns the mean time of finished calls; zero without calls.
    pub fn mean(&self) -> Duration {
        let finished = self.finished().as_nanos();
        let mean = finished.checked_div(self.calls.into()).unwrap_or(0);
        Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX))
    }

    /// Returns the wall time of finished calls.
    pub fn finished(&self) -> Duration {
        self.total.saturating_sub(self.running_time)
    }

    /// Returns the time finished calls were not on a processor: waiting for files, locks, helper threads, or
    /// a processor. `None` if CPU time was not measured.
    pub fn blocked(&self) -> Option<Duration> {
        Some(self.finished().saturating_sub(self.cpu?))
    }
}

impl Report {
    /// Returns the record at a path of names, outermost first.
    pub fn at(&self, path: &[&str]) -> Option<&Record> {
        let (first, rest) = path.split_first()?;
        let find = |records: &'_ [Record], name: &str| {
            records.iter().position(|record| record.name == name)
        };
        let mut record = &self.roots[find(&self.roots, first)?];
        for name in rest {
            record = &record.children[find(&record.children, name)?];
        }
        Some(record)
    }

    /// Returns the report as JSON on one line.
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("strings, integers and lists always have a JSON form")
    }
}

/// Durations as whole nanoseconds; past 584 years they stay there.
mod nanoseconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(
        duration: &Duration,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_nanos)
    }
}

/// The same for what may be absent.
mod optional_nanoseconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    #[expect(clippy::ref_option, reason = "serde passes the field by reference")]
    pub(super) fn serialize<S: Serializer>(
        duration: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match duration {
            Some(duration) => super::nanoseconds::serialize(duration, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(deserializer)?.map(Duration::from_nanos))
    }
}
