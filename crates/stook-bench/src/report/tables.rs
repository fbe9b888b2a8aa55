//! Tables that all kinds of runs have: what was measured, single operations, proofs.

use std::collections::BTreeSet;

use serde_json::Value;

use super::words::{number, plain, words};
use crate::cases::{Case, Cases, as_float};
use crate::figure::{Unit, three_digits};
use crate::latency::Latencies;
use crate::record::Sample;
use crate::shares::{Shares, Waited};
use crate::statistics::{Spread, median};
use crate::table::Table;

/// Returns a table that begins with the labels of some cases.
fn labelled<'a>(cases: &Cases<'_>, rows: &(impl Iterator<Item = &'a Case<'a>> + Clone)) -> Table {
    let mut table = Table::default();
    for (place, name) in cases.labels.iter().enumerate() {
        table.texts(name, rows.clone().map(|case| case.labels[place].clone()));
    }
    table
}

/// Returns what was measured: the spread of the time, CPU, BLOCKED, rates, memory.
pub(super) fn measures(cases: &Cases<'_>) -> Table {
    let rows = || cases.all.iter();
    let mut table = labelled(cases, &rows());
    table.figures(
        "runs",
        rows().map(|case| Some(as_float(case.samples.len() as u64))),
    );
    let spread = |value: fn(&Spread) -> f64| {
        let spreads = rows().map(|case| case.spread(|sample| sample.real_seconds));
        let spreads = spreads.map(|spread| Some(value(&spread)));
        spreads.collect()
    };
    table.figures_alike(vec![
        ("median, s", spread(|spread| spread.median)),
        ("Q1", spread(|spread| spread.lower_quartile)),
        ("Q3", spread(|spread| spread.upper_quartile)),
        ("mean", spread(|spread| spread.mean)),
        ("min", spread(|spread| spread.min)),
        ("max", spread(|spread| spread.max)),
    ]);
    let of_samples = |value: fn(&Sample) -> Option<f64>| {
        let medians = cases.all.iter().map(|case| median(&case.known(value)));
        medians.collect::<Vec<_>>()
    };
    table.figures("user, s", of_samples(|sample| Some(sample.user_seconds)));
    table.figures(
        "system, s",
        of_samples(|sample| Some(sample.system_seconds)),
    );
    table.figures("building, s", of_samples(|sample| sample.building_seconds));
    table.figures("sending, s", of_samples(|sample| sample.sending_seconds));
    table.figures("served, s", of_samples(|sample| sample.served_seconds));
    let shares: Vec<Option<Shares>> = rows().map(Case::shares).collect();
    let shares = || shares.iter().copied();
    let cpu = shares().map(|shares| shares.map(|shares| shares.cpu));
    table.shown("CPU", cpu.map(|share| (share, percent)));
    table.written("waited for CPU", shares().map(waited));
    table.written("BLOCKED", shares().map(blocked));
    table.figures(
        "files/s",
        rows().map(|case| case.rate(|sample| sample.files)),
    );
    let bytes = rows().map(|case| case.rate(|sample| sample.bytes));
    table.figures("MB/s", bytes.map(|bytes| Some(bytes? / 1e6)));
    let peaks = of_samples(|sample| sample.peak_bytes.map(as_float));
    if peaks.iter().any(Option::is_some) {
        let show = |bytes| format!("{:.1}", bytes / 1_048_576.0);
        table.shown("peak, MiB", peaks.into_iter().map(|peak| (peak, show)));
    }
    table
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn waited(shares: Option<Shares>) -> (String, Option<f64>) {
    let share = shares.and_then(|shares| shares.waited);
    let share = share.map(|(Waited::Exactly(share) | Waited::AtMost(share))| share);
    let text = |shares: Shares| shares.waited_text(percent);
    (shares.map_or_else(|| "-".to_owned(), text), share)
}

fn blocked(shares: Option<Shares>) -> (String, Option<f64>) {
    let text = |shares: Shares| shares.blocked_text(percent);
    let share = shares.and_then(|shares| shares.blocked());
    (shares.map_or_else(|| "-".to_owned(), text), share)
}

/// Returns a row for each phase that the commands of the cases told.
pub(super) fn phases(cases: &Cases<'_>) -> Table {
    let all = cases.all.iter();
    let rows: Vec<_> = all
        .flat_map(|case| case.phases().into_iter().map(move |phase| (case, phase)))
        .collect();
    let mut table = labelled(cases, &rows.iter().map(|(case, _)| *case));
    table.texts("phase", rows.iter().map(|(_, (name, _))| name.clone()));
    table.figures("median, s", rows.iter().map(|(_, (_, time))| Some(*time)));
    let share = |(case, (_, time)): &(&Case<'_>, (String, f64))| {
        let all = case.median();
        (all > 0.0).then_some(time / all)
    };
    table.shown("share", rows.iter().map(|row| (share(row), percent)));
    table
}

/// Returns a row for each kind of operation of each case.
pub(super) fn operations(cases: &Cases<'_>) -> Table {
    let mut rows: Vec<(&Case<'_>, &str, Latencies)> = Vec::new();
    for case in &cases.all {
        let all = case.operations().into_iter();
        rows.extend(all.map(|(operation, _, latencies)| (case, operation, latencies)));
    }
    let mut table = labelled(cases, &rows.iter().map(|(case, ..)| *case));
    table.texts(
        "operation",
        rows.iter().map(|(_, name, _)| (*name).to_owned()),
    );
    let counts = rows
        .iter()
        .map(|(.., latencies)| Some(as_float(latencies.count())));
    table.shown("count", counts.map(|count| (count, three_digits)));
    let shares = [
        ("p50", 0.5),
        ("p90", 0.9),
        ("p99", 0.99),
        ("p99.9", 0.999),
        ("max", 1.0),
    ];
    for (title, share) in shares {
        let times = rows.iter().map(|(.., latencies)| {
            let seconds = as_float(latencies.quantile(share)) / 1e9;
            (Some(seconds), |seconds| Unit::Seconds.show(seconds))
        });
        table.shown(title, times);
    }
    table
}

/// Returns what was found before or after the runs: the proof that a state held, or that nothing was lost.
pub(super) fn proofs(cases: &Cases<'_>) -> Table {
    let samples = cases.all.iter().flat_map(|case| &case.samples);
    let keys: BTreeSet<&String> = samples.flat_map(|sample| sample.proof.keys()).collect();
    if keys.is_empty() {
        return Table::default();
    }
    let mut table = labelled(cases, &cases.all.iter());
    for key in keys {
        table.texts(
            &words(key),
            cases.all.iter().map(|case| over_all(case, key)),
        );
    }
    table
}

/// All values that a proof had in the samples of a case, in a few words.
fn over_all(case: &Case<'_>, key: &str) -> String {
    let values = case
        .samples
        .iter()
        .filter_map(|sample| sample.proof.get(key));
    let values: Vec<&Value> = values.collect();
    if !values.is_empty() && values.iter().all(|value| value.is_boolean()) {
        let held = values.iter().filter(|value| ***value == true);
        return format!("{} of {}", held.count(), values.len());
    }
    let numbers: Vec<f64> = values.iter().filter_map(|value| value.as_f64()).collect();
    if let (Some(spread), true) = (Spread::of(&numbers), numbers.len() == values.len()) {
        let (least, greatest) = (number(spread.min), number(spread.max));
        return match least == greatest {
            true => least,
            false => format!("{least} to {greatest}"),
        };
    }
    let texts: BTreeSet<String> = values.into_iter().map(plain).collect();
    match texts.len() {
        0 => "–".to_owned(),
        1 | 2 => texts.into_iter().collect::<Vec<String>>().join(", "),
        different => format!("{different} different ones"),
    }
}
