//! A report as an aligned table: one line for each call path, indented under its parent.
//!
//! ```text
//! scope     calls    total      self       min      mean       max   share
//! create        1  2.000 s  500.0 ms   2.000 s   2.000 s   2.000 s  100.0%
//!   open   12,000  1.500 s   1.500 s  90.00 us  125.0 us  1.250 ms   75.0%
//! sum           1  2.000 s         -         -         -         -  100.0%
//! workers in create: 2 (1.000 ms), 4 (12.00 ms), 8 (23.00 ms)
//! 3 threads, 0 scopes dropped
//! ```
//! The sum is that of the outermost scopes, and shares are of it; helpers running at once can exceed 100%.
//! `12+1` calls means one more still running, whose time so far is in total and self. If CPU time was
//! measured, three columns follow `self`: CPU time, the time blocked, and its share of CPU time and itself, all of
//! finished calls only; reading the CPU clock makes each call look blocked for some 0.5 us. A line before the sum
//! then has the CPU time that no scope explains, and the CPU time of the sum is that of the process: of all its threads,
//! so it can exceed the wall time beside it, and what is left of that says nothing. ASCII only, no colour.

use std::fmt::Write as _;
use std::time::Duration;

use crate::report::{Gauge, Record, Report};

/// What needs CPU time, and where it is put.
const CPU_HEADER: [&str; 3] = ["cpu", "blocked", "blocked%"];
const CPU_COLUMN: usize = 4;

const HEADER: [&str; 8] = [
    "scope", "calls", "total", "self", "min", "mean", "max", "share",
];

type Row = Vec<String>;

impl Report {
    /// Returns the report as an aligned table for people, with CPU time if that was measured; the last line
    /// counts threads and dropped scopes.
    pub fn tree(&self) -> String {
        render(self)
    }
}

/// Renders the table, each line ending in a newline.
fn render(report: &Report) -> String {
    let mut text = align(&rows(report));
    for gauge in &report.gauges {
        let _ = writeln!(text, "{}", series(gauge));
    }
    let plural = |count: u64| if count == 1 { "" } else { "s" };
    let (threads, dropped) = (report.threads as u64, report.dropped);
    let counts = (
        grouped(threads),
        plural(threads),
        grouped(dropped),
        plural(dropped),
    );
    let _ = writeln!(
        text,
        "{} thread{}, {} scope{} dropped",
        counts.0, counts.1, counts.2, counts.3
    );
    text
}

/// All lines of the table: the header, one for each record, CPU time outside of them, and the sum, if there is anything to
/// add up.
fn rows(report: &Report) -> Vec<Row> {
    let sum = sum(&report.roots);
    let titles = header(sum.cpu.is_some());
    let mut rows = vec![titles.into_iter().map(str::to_owned).collect()];
    for root in &report.roots {
        push_rows(&mut rows, root, 0, &sum);
    }
    if !report.roots.is_empty() {
        let outside = report.process_cpu.map(|cpu| cpu.outside());
        rows.extend(outside.map(|cpu| last_row("outside scopes", Some(cpu), rows[0].len())));
        rows.push(sum_row(&sum, report));
    }
    rows
}

/// The sum has neither an own time nor a shortest or longest call.
fn sum_row(sum: &Record, report: &Report) -> Row {
    let calls = row(sum, 0, sum);
    let cpu = report.process_cpu.map(|cpu| cpu.total);
    let mut row = last_row(&sum.name, cpu, calls.len());
    let titles = header(sum.cpu.is_some());
    for ((cell, title), value) in row.iter_mut().zip(titles).zip(calls) {
        if ["calls", "total", "share"].contains(&title) {
            *cell = value;
        }
    }
    row
}

/// A line that has CPU time alone.
fn last_row(name: &str, cpu: Option<Duration>, columns: usize) -> Row {
    let mut row = vec!["-".to_owned(); columns];
    name.clone_into(&mut row[0]);
    if let Some(cpu) = cpu {
        row[CPU_COLUMN] = readable(cpu);
    }
    row
}

/// The titles of the columns.
fn header(has_cpu: bool) -> Vec<&'static str> {
    let mut titles = HEADER.to_vec();
    if has_cpu {
        titles.splice(CPU_COLUMN..CPU_COLUMN, CPU_HEADER);
    }
    titles
}

/// The outermost scopes as one record, without what cannot be added up.
fn sum(roots: &[Record]) -> Record {
    let mut sum = Record::new("sum");
    for root in roots {
        sum.calls = sum.calls.saturating_add(root.calls);
        sum.running = sum.running.saturating_add(root.running);
        sum.total = sum.total.saturating_add(root.total);
        sum.running_time = sum.running_time.saturating_add(root.running_time);
        if let Some(cpu) = root.cpu {
            sum.cpu = Some(sum.cpu.unwrap_or_default().saturating_add(cpu));
        }
    }
    sum
}

/// Samples of a gauge that are shown.
const SHOWN: usize = 12;

/// One line for a gauge: where, and its values with the times of their changes.
fn series(gauge: &Gauge) -> String {
    let mut text = format!("{} in {}:", gauge.name, gauge.path.join(" > "));
    for (number, &(at, value)) in gauge.samples.iter().take(SHOWN).enumerate() {
        let at = readable(Duration::from_nanos(at));
        let comma = if number == 0 { "" } else { "," };
        let _ = write!(text, "{comma} {value} ({at})");
    }
    if gauge.samples.len() > SHOWN {
        let values = gauge.samples.iter().map(|&(_, value)| value);
        let (least, most) = (values.clone().min(), values.max());
        let more = grouped((gauge.samples.len() - SHOWN) as u64);
        let _ = write!(
            text,
            ", {more} more; {} to {} in all",
            least.unwrap_or(0),
            most.unwrap_or(0)
        );
    }
    text
}

fn push_rows(rows: &mut Vec<Row>, record: &Record, depth: usize, sum: &Record) {
    rows.push(row(record, depth, sum));
    for child in &record.children {
        push_rows(rows, child, depth + 1, sum);
    }
}

fn row(record: &Record, depth: usize, sum: &Record) -> Row {
    let finished = |duration: Duration| {
        if record.calls == 0 {
            "-".to_owned()
        } else {
            readable(duration)
        }
    };
    let calls = match record.running {
        0 => grouped(record.calls),
        running => format!("{}+{}", grouped(record.calls), grouped(running)),
    };
    let mut row = vec![
        format!("{:indent$}{}", "", record.name, indent = 2 * depth),
        calls,
        readable(record.total),
        readable(record.own),
        finished(record.min),
        finished(record.mean()),
        finished(record.max),
        share(record.total, sum.total),
    ];
    if sum.cpu.is_some() {
        row.splice(CPU_COLUMN..CPU_COLUMN, cpu(record));
    }
    row
}

/// CPU time, the time blocked and its share, for records that have any finished call.
fn cpu(record: &Record) -> [String; 3] {
    match (record.cpu, record.blocked()) {
        (Some(cpu), Some(blocked)) if record.calls > 0 => [
            readable(cpu),
            readable(blocked),
            share(blocked, cpu.saturating_add(blocked)),
        ],
        _ => CPU_HEADER.map(|_| "-".to_owned()),
    }
}

/// Pads names on the right and numbers on the left.
fn align(rows: &[Row]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            let cells = rows.iter().map(|row| row[column].chars().count());
            cells.max().unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    for row in rows {
        let _ = write!(text, "{:<width$}", row[0], width = widths[0]);
        for (number, width) in row.iter().zip(&widths).skip(1) {
            let _ = write!(text, "  {number:>width$}");
        }
        text.push('\n');
    }
    text
}

/// Returns a share in percent.
pub fn share(part: Duration, whole: Duration) -> String {
    if whole.is_zero() {
        return "-".to_owned();
    }
    let permille = (part.as_nanos() * 1000 + whole.as_nanos() / 2) / whole.as_nanos();
    format!("{}.{}%", permille / 10, permille % 10)
}

/// Returns four significant digits with a unit. Rounds before choosing the unit, so that 999.96 us
/// becomes `1.000 ms`.
pub fn readable(duration: Duration) -> String {
    let exact = duration.as_nanos();
    let step = 10_u128.pow(exact.checked_ilog10().unwrap_or(0).saturating_sub(3));
    let rounded = (exact + step / 2) / step * step;
    let (unit, name) = match rounded {
        0..1_000 => return format!("{rounded} ns"),
        1_000..1_000_000 => (1_000, "us"),
        1_000_000..1_000_000_000 => (1_000_000, "ms"),
        _ => (1_000_000_000, "s"),
    };
    let (whole, part) = (rounded / unit, rounded % unit * 1_000 / unit);
    match whole {
        0..10 => format!("{whole}.{part:03} {name}"),
        10..100 => format!("{whole}.{:02} {name}", part / 10),
        100..1_000 => format!("{whole}.{} {name}", part / 100),
        _ => format!("{} {name}", (exact + unit / 2) / unit),
    }
}

/// Writes a count with a comma between thousands.
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_four_digits_and_the_right_unit() {
        let cases = [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1.000 us"),
            (12_344, "12.34 us"),
            (12_345, "12.35 us"),
            (999_949, "999.9 us"),
            (999_950, "1.000 ms"),
            (123_456_789, "123.5 ms"),
            (999_999_999, "1.000 s"),
            (59_996_000_000, "60.00 s"),
            (999_960_000_000, "1000 s"),
            (12_345_678_000_000, "12346 s"),
        ];
        for (nanoseconds, text) in cases {
            assert_eq!(readable(Duration::from_nanos(nanoseconds)), text);
        }
        assert_eq!(readable(Duration::MAX), "18446744073709551616 s");
    }

    #[test]
    fn counts_are_grouped_by_thousands() {
        for (count, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (1_290_284, "1,290,284"),
        ] {
            assert_eq!(grouped(count), text);
        }
    }

    #[test]
    fn shares_round_and_survive_an_empty_whole() {
        let second = Duration::from_secs(1);
        assert_eq!(share(second, 3 * second), "33.3%");
        assert_eq!(share(5 * second, second), "500.0%");
        assert_eq!(share(second, Duration::ZERO), "-");
        assert_eq!(share(Duration::MAX, Duration::MAX), "100.0%");
    }
}
