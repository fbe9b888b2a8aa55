//! The results as text: the table of all targets, the figures of each, its operations, and what they say.

use super::advice::{Concern, advise};
use super::figures::Figures;
use super::phase::Tool;
use crate::cases::{Case, as_float};
use crate::numbers::{duration, grouped, seconds};
use crate::record::{Header, Sample};
use crate::table::Table;

/// What the words in the tables mean.
const LEGEND: &str = "\
system: cp, tar, find, xargs with cat, rm. stook: the same work by stook, but `copy` is of its archive, `read` is of that,
in place, with the MD5 of every file, and `tar` makes one and waits until it is on the disk. single: one thread, one
operation after the other, each of them timed. `delete` is of one of the two trees. CPU is the share of the time on a
processor, WAITED that of waiting for one, and in BLOCKED neither was the case.
";

/// Returns the tables and the advice.
pub fn text(header: &Header, samples: &[Sample]) -> String {
    let figures = Figures::of(samples);
    let (title, all) = (title(header, &figures), figures.overview().text());
    let mut text = format!("{title}\n\n{all}\n{LEGEND}");
    for target in &figures.targets {
        let (about, details) = (about(header, target), details(&figures, target).text());
        text.push_str(&format!("\n{about}\n\n{details}"));
        if figures.tools.iter().any(|tool| tool == Tool::Single.name()) {
            let operations = operations(&figures, target).text();
            let title = format!("Single operations on {target}, one after the other");
            text.push_str(&format!("\n{title}\n\n{operations}"));
        }
    }
    text + &overhead(samples) + &advice(samples)
}

fn title(header: &Header, figures: &Figures<'_>) -> String {
    let files = |name: &str| header.files.as_ref()?.get(name)?.as_f64();
    let set = |name| files(name).unwrap_or(0.0);
    let caches = match header
        .options
        .get("cold")
        .and_then(serde_json::Value::as_bool)
    {
        Some(true) => "caches dropped before each",
        _ => "caches as the phase before left them",
    };
    let rounds = figures.cases.rounds;
    format!(
        "Seconds, the median of {rounds} round{}: {} files, {} MB ({}), {caches}",
        if rounds == 1 { "" } else { "s" },
        grouped(set("files")),
        grouped(set("bytes") / 1e6),
        header
            .options
            .get("spec")
            .and_then(|spec| spec.as_str())
            .unwrap_or_default(),
    )
}

fn about(header: &Header, target: &str) -> String {
    let Some(facts) = header.facts.get(target) else {
        return target.to_owned();
    };
    let facts = ["type", "device", "options"]
        .iter()
        .filter_map(|name| facts.get(*name));
    let shown: Vec<&str> = facts
        .map(String::as_str)
        .filter(|fact| !fact.is_empty())
        .collect();
    format!("{target}: {}", shown.join(", "))
}

/// Rows are phases and tools.
fn details(figures: &Figures<'_>, target: &str) -> Table {
    let mut table = Table::new([
        "phase", "tool", "seconds", "least", "most", "files/s", "MB/s", "CPU", "WAITED", "BLOCKED",
    ]);
    for phase in &figures.phases {
        for tool in &figures.tools {
            if let Some(case) = figures.case(target, phase, tool) {
                let names = [phase, tool].map(Clone::clone);
                table.row(names.into_iter().chain(row(case)));
            }
        }
    }
    table
}

fn row(case: &Case<'_>) -> [String; 8] {
    let spread = case.spread(|sample| sample.real_seconds);
    let rate = |handled: fn(&Sample) -> Option<u64>, unit: f64| {
        let rate = case.rate(handled);
        rate.map_or_else(String::new, |rate| grouped(rate / unit))
    };
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let [cpu, waited, blocked] = case.shares().map_or_else(Default::default, |shares| {
        [
            percent(shares.cpu),
            shares.waited_text(percent),
            shares.blocked_text(percent),
        ]
    });
    [
        seconds(spread.median),
        seconds(spread.min),
        seconds(spread.max),
        rate(|sample| sample.files, 1.0),
        rate(|sample| sample.bytes, 1e6),
        cpu,
        waited,
        blocked,
    ]
}

/// Rows are phases and operations; the times of all rounds together.
fn operations(figures: &Figures<'_>, target: &str) -> Table {
    let mut table = Table::new(["phase", "operation", "number", "timed", "p50", "p99", "max"]);
    for phase in &figures.phases {
        let case = figures.case(target, phase, Tool::Single.name());
        for (name, number, times) in case.into_iter().flat_map(Case::operations) {
            let counts = [number, times.count()].map(|count| grouped(as_float(count)));
            let times = [times.quantile(0.5), times.quantile(0.99), times.max()].map(duration);
            let names = [phase, name].map(ToOwned::to_owned);
            table.row(names.into_iter().chain(counts).chain(times));
        }
    }
    table
}

/// Says what the clock reads cost.
fn overhead(samples: &[Sample]) -> String {
    let shares = samples
        .iter()
        .filter_map(|sample| sample.proof.get("overhead_share")?.as_f64());
    let most = shares.max_by(f64::total_cmp).map(|most| most * 100.0);
    most.map_or_else(String::new, |most| {
        format!(
            "\nTiming single operations took at most {most:.1} % of a phase; where it would be more, not all are timed.\n"
        )
    })
}

fn advice(samples: &[Sample]) -> String {
    let all = advise(samples);
    let mut text = String::new();
    for (title, is_warning) in [
        ("What the figures say", false),
        ("What they do not say", true),
    ] {
        let of_kind = all
            .iter()
            .filter(|one| (one.concern == Concern::Warning) == is_warning);
        let lines: String = of_kind
            .map(|advice| format!("- {}\n", advice.text))
            .collect();
        if !lines.is_empty() {
            text.push_str(&format!("\n{title}\n{lines}"));
        }
    }
    text
}
