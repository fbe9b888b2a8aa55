//! The results as text: the table of all targets, the figures of each, its operations, and what they say.

use super::advice::{Concern, advise};
use super::figures::{Cell, Figures};
use super::options::Tool;
use super::words::{duration, grouped, seconds};
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
    let figures = Figures::new(samples);
    let mut text = format!(
        "{}\n\n{}\n{LEGEND}",
        title(header, &figures),
        overview(&figures).text()
    );
    for target in &figures.targets {
        text.push_str(&format!(
            "\n{}\n\n{}",
            about(header, target),
            details(&figures, target).text()
        ));
        if figures.tools.contains(&Tool::Single.name()) {
            text.push_str(&format!(
                "\nSingle operations on {target}, one after the other\n\n"
            ));
            text.push_str(&operations(&figures, target).text());
        }
    }
    text.push_str(&price(samples));
    text.push_str(&advice(samples));
    text
}

fn title(header: &Header, figures: &Figures<'_>) -> String {
    let option = |name: &str| {
        header
            .options
            .get(name)
            .map(ToString::to_string)
            .unwrap_or_default()
    };
    let set = |name: &str| {
        let files = header.files.as_ref();
        files
            .and_then(|files| files.get(name)?.as_f64())
            .unwrap_or(0.0)
    };
    let caches = match option("cold").as_str() {
        "true" => "caches dropped before each",
        _ => "caches as the phase before left them",
    };
    format!(
        "Seconds, the median of {}: {} files, {} MB ({}), {caches}",
        rounds(figures.rounds()),
        grouped(set("files")),
        grouped(set("bytes") / 1e6),
        option("spec").trim_matches('"'),
    )
}

fn rounds(number: u32) -> String {
    format!("{number} round{}", if number == 1 { "" } else { "s" })
}

/// Rows are targets and tools, columns phases.
fn overview(figures: &Figures<'_>) -> Table {
    let mut table = Table::new(["target", "tool"].iter().chain(&figures.phases).copied());
    for target in &figures.targets {
        for tool in &figures.tools {
            let cells = figures.phases.iter().map(|phase| {
                let cell = figures.cell(target, phase, tool);
                cell.map_or_else(String::new, |cell| seconds(cell.spread().median))
            });
            let names = [*target, *tool].map(ToOwned::to_owned);
            table.row(names.into_iter().chain(cells));
        }
    }
    table
}

fn about(header: &Header, target: &str) -> String {
    let Some(facts) = header.facts.get(target) else {
        return target.to_owned();
    };
    let shown = ["type", "device", "options"]
        .iter()
        .filter_map(|name| facts.get(*name));
    let shown: Vec<&str> = shown
        .map(String::as_str)
        .filter(|fact| !fact.is_empty())
        .collect();
    format!("{target}: {}", shown.join(", "))
}

/// Rows are phases and tools.
fn details(figures: &Figures<'_>, target: &str) -> Table {
    let titles = [
        "phase", "tool", "seconds", "least", "most", "files/s", "MB/s", "CPU", "WAITED", "BLOCKED",
    ];
    let mut table = Table::new(titles);
    for phase in &figures.phases {
        for tool in &figures.tools {
            if let Some(cell) = figures.cell(target, phase, tool) {
                let names = [*phase, *tool].map(ToOwned::to_owned);
                table.row(names.into_iter().chain(row(&cell)));
            }
        }
    }
    table
}

fn row(cell: &Cell<'_>) -> [String; 8] {
    let spread = cell.spread();
    let rate = |rate: Option<f64>| rate.map_or_else(String::new, grouped);
    let shares = cell.shares();
    [
        seconds(spread.median),
        seconds(spread.min),
        seconds(spread.max),
        rate(cell.files_per_second()),
        rate(cell.bytes_per_second().map(|bytes| bytes / 1e6)),
        shares.map_or_else(String::new, |shares| percent(shares.cpu)),
        shares.map_or_else(String::new, |shares| shares.waited_text(percent)),
        shares.map_or_else(String::new, |shares| shares.blocked_text(percent)),
    ]
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Rows are phases and operations; the times of all rounds together.
fn operations(figures: &Figures<'_>, target: &str) -> Table {
    let mut table = Table::new(["phase", "operation", "number", "timed", "p50", "p99", "max"]);
    for phase in &figures.phases {
        let cell = figures.cell(target, phase, Tool::Single.name());
        for (name, number, latencies) in cell.iter().flat_map(Cell::operations) {
            let times = [
                latencies.quantile(0.5),
                latencies.quantile(0.99),
                latencies.max(),
            ];
            let [p50, p99, max] = times.map(duration);
            let (number, timed) = (count(number), count(latencies.count()));
            table.row([
                (*phase).to_owned(),
                name.to_owned(),
                number,
                timed,
                p50,
                p99,
                max,
            ]);
        }
    }
    table
}

/// Says what the clock reads cost.
fn price(samples: &[Sample]) -> String {
    let shares = samples
        .iter()
        .filter_map(|sample| sample.proof.get("overhead_share")?.as_f64());
    let most = shares.fold(None, |most: Option<f64>, share| {
        Some(most.unwrap_or(0.0).max(share))
    });
    most.map_or_else(String::new, |most| {
        format!(
            "\nTiming single operations took at most {:.1} % of a phase; where it would be more, not all are timed.\n",
            most * 100.0
        )
    })
}

#[expect(
    clippy::cast_precision_loss,
    reason = "numbers of operations are exact far enough"
)]
fn count(number: u64) -> String {
    grouped(number as f64)
}

fn advice(samples: &[Sample]) -> String {
    let all = advise(samples);
    let lines = |title: &str, is_warning: bool| {
        let of_kind = all
            .iter()
            .filter(|advice| (advice.concern == Concern::Warning) == is_warning);
        let lines: String = of_kind
            .map(|advice| format!("- {}\n", advice.text))
            .collect();
        if lines.is_empty() {
            lines
        } else {
            format!("\n{title}\n{lines}")
        }
    };
    lines("What the figures say", false) + &lines("What they do not say", true)
}
