//! `stook talk`: asks the server of a mount, and prints what it answers.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde_json::Value;
use stook_bench::{Palette, flame_graph};
use stook_mount::{EvictedLayers, MountError, Request, TimersDetail, talk as ask, timers_tree};
use stook_sys::{MountPoint, mount_of_device};
use stook_timers::Report;

use crate::args::{TalkArgs, TalkCommand, TimersDetailArg, TimersFormatArg};
use crate::exit::{CliError, Ending, to_stdout};
use crate::output;

/// Quantiles of latencies: their field, and how Prometheus names them.
const QUANTILES: [(&str, &str); 4] = [
    ("p50_ns", "0.5"),
    ("p90_ns", "0.9"),
    ("p99_ns", "0.99"),
    ("p999_ns", "0.999"),
];

/// Single numbers: the field, the name, the type, what it is.
const NUMBERS: [(&str, &str, &str, &str); 6] = [
    ("entries", "entries", "gauge", "Names in the mount"),
    (
        "open_requests",
        "open_requests",
        "gauge",
        "Requests that are not answered yet",
    ),
    (
        "waited",
        "waited_requests_total",
        "counter",
        "Requests that were left to a worker",
    ),
    (
        "unreadable",
        "unreadable_total",
        "counter",
        "Requests that failed because of the archive",
    ),
    (
        "read_bytes",
        "read_bytes_total",
        "counter",
        "Bytes of content that were given out",
    ),
    (
        "peak_memory_bytes",
        "peak_memory_bytes",
        "gauge",
        "Most memory that the server held",
    ),
];

pub(crate) fn talk(args: &TalkArgs) -> Result<Ending, CliError> {
    let directory = directory_of(owner_of(&args.mountpoint));
    let ask = |request: &Request| ask(&directory, &args.mountpoint, request);
    let mut ending = Ending::Done;
    let text = match &args.command {
        TalkCommand::Stats { prometheus: false } => format!("{:#}", ask(&Request::Stats)?),
        TalkCommand::Stats { prometheus: true } => prometheus_text(&ask(&Request::Stats)?),
        TalkCommand::Timers {
            record: Some(detail),
            ..
        } => {
            let detail = recorded(*detail);
            ask(&Request::Record { detail })?;
            return Ok(Ending::Done);
        }
        TalkCommand::Timers {
            format: TimersFormatArg::Trace,
            ..
        } => trace_text(ask(&Request::Trace)?)?,
        TalkCommand::Timers { format, .. } => timers_text(ask(&Request::Timers)?, *format)?,
        TalkCommand::Prefetch { patterns } => {
            let patterns = patterns.clone();
            let prefetched = ask(&Request::Prefetch { patterns })?;
            ending = said_of(&prefetched);
            format!("{prefetched:#}")
        }
        TalkCommand::Sync => return done(ask(&Request::Sync)),
        TalkCommand::Evict { memory } => {
            let layers = match memory {
                true => EvictedLayers::Memory,
                false => EvictedLayers::All,
            };
            return done(ask(&Request::Evict { layers }));
        }
        TalkCommand::Quit => return done(ask(&Request::Quit)),
    };
    to_stdout(|data| Ok(data.line(text.trim_end())?))?;
    Ok(ending)
}

fn done(answer: Result<Value, MountError>) -> Result<Ending, CliError> {
    answer?;
    Ok(Ending::Done)
}

fn recorded(detail: TimersDetailArg) -> TimersDetail {
    match detail {
        TimersDetailArg::Wall => TimersDetail::Wall,
        TimersDetailArg::Cpu => TimersDetail::Cpu,
        TimersDetailArg::Calls => TimersDetail::Calls,
    }
}

fn timers_text(answer: Value, format: TimersFormatArg) -> Result<String, CliError> {
    if format == TimersFormatArg::Json {
        return Ok(answer.to_string());
    }
    let report: Report = serde_json::from_value(answer).map_err(std::io::Error::other)?;
    Ok(match format {
        TimersFormatArg::Folded => report.folded(),
        TimersFormatArg::Svg => drawing(&report.folded())?,
        _ => timers_tree(&report),
    })
}

fn trace_text(answer: Value) -> Result<String, CliError> {
    match answer {
        Value::String(trace) => Ok(trace),
        _ => Err(CliError::Option {
            option: "--format",
            value: "trace".to_owned(),
            why: "no single calls are recorded; `--record calls` begins".to_owned(),
        }),
    }
}

/// Says what a prefetch did not do.
fn said_of(prefetched: &Value) -> Ending {
    let unmatched = prefetched["unmatched"].as_array().into_iter().flatten();
    let mut lines: Vec<String> = unmatched
        .filter_map(|pattern| Some(format!("nothing matches `{}`", pattern.as_str()?)))
        .collect();
    if let Some(error) = prefetched["error"].as_str() {
        lines.push(error.to_owned());
    }
    if let Some(bytes) = prefetched["left_out_bytes"]
        .as_u64()
        .filter(|bytes| *bytes > 0)
    {
        lines.push(format!("the cache has no room for {bytes} bytes more"));
    }
    for line in &lines {
        output::message(&format!("warning: {line}"));
    }
    match lines.is_empty() {
        true => Ending::Done,
        false => Ending::SomeFailed,
    }
}

fn drawing(folded: &str) -> Result<String, CliError> {
    let title = "stook mount: time by call path, all threads together";
    let drawing = flame_graph(folded, title, "microseconds", Palette::Green)?;
    Ok(String::from_utf8_lossy(&drawing).into_owned())
}

fn prometheus_text(stats: &Value) -> String {
    let mut text = String::new();
    let mut add = |line: String| {
        // A string takes any line.
        let _ = writeln!(text, "{line}");
    };
    for (field, name, kind, what) in NUMBERS {
        if let Some(number) = stats[field].as_u64() {
            add(format!("# HELP stook_mount_{name} {what}"));
            add(format!("# TYPE stook_mount_{name} {kind}"));
            add(format!("stook_mount_{name} {number}"));
        }
    }
    for (name, count) in stats["cache"].as_object().into_iter().flatten() {
        let kind = match name.as_str() {
            "memory_held_bytes" => "gauge",
            _ => "counter",
        };
        add(format!("# TYPE stook_mount_cache_{name} {kind}"));
        add(format!("stook_mount_cache_{name} {count}"));
    }
    add(
        "# HELP stook_mount_request_seconds From the arrival of a request to its answer".to_owned(),
    );
    add("# TYPE stook_mount_request_seconds summary".to_owned());
    for operation in stats["operations"].as_array().into_iter().flatten() {
        let name = operation["name"].as_str().unwrap_or_default();
        for (field, quantile) in QUANTILES {
            let seconds = seconds(&operation[field]);
            add(format!(
                "stook_mount_request_seconds{{operation=\"{name}\",quantile=\"{quantile}\"}} {seconds}"
            ));
        }
        let (total, calls) = (seconds(&operation["total_ns"]), &operation["calls"]);
        add(format!(
            "stook_mount_request_seconds_sum{{operation=\"{name}\"}} {total}"
        ));
        add(format!(
            "stook_mount_request_seconds_count{{operation=\"{name}\"}} {calls}"
        ));
    }
    text
}

fn seconds(nanoseconds: &Value) -> f64 {
    nanoseconds.as_f64().unwrap_or_default() / 1e9
}

/// Returns the directory of the control sockets of a user: one that both sides know without variables of the environment.
pub(crate) fn directory_of(user: u32) -> PathBuf {
    let runtime = match user {
        0 => PathBuf::from("/run"),
        user => PathBuf::from(format!("/run/user/{user}")),
    };
    match runtime.is_dir() {
        true => runtime.join("stook"),
        false => PathBuf::from(format!("/tmp/stook-{user}")),
    }
}

/// Returns who has mounted what is at a path: root may talk to all mounts.
pub(super) fn owner_of(mountpoint: &Path) -> u32 {
    let point = MountPoint::at(mountpoint).ok();
    let mount = point.and_then(|point| mount_of_device(point.device()));
    let options = mount.map(|mount| mount.options).unwrap_or_default();
    let user = options
        .iter()
        .find_map(|option| option.strip_prefix("user_id=")?.parse().ok());
    user.unwrap_or_else(stook_sys::effective_user)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_have_the_form_of_prometheus() {
        let stats = serde_json::json!({
            "entries": 3, "read_bytes": 10, "operations": [{
                "name": "read", "calls": 2, "total_ns": 3_000_000, "p50_ns": 1_000_000, "p90_ns": 2_000_000,
                "p99_ns": 2_000_000, "p999_ns": 2_000_000,
            }],
        });
        let text = prometheus_text(&stats);
        for line in [
            "# TYPE stook_mount_read_bytes_total counter",
            "stook_mount_entries 3",
            "stook_mount_request_seconds{operation=\"read\",quantile=\"0.5\"} 0.001",
            "stook_mount_request_seconds_sum{operation=\"read\"} 0.003",
            "stook_mount_request_seconds_count{operation=\"read\"} 2",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
