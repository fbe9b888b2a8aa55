//! Columns that tables of all kinds of runs have.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::figure::{Unit, three_digits};
use crate::latency::Latencies;
use crate::shares::{Shares, Waited};
use crate::statistics::{Spread, median};

use super::case::{Case, Measure, as_float};
use super::facts::{number, plain, words};
use super::sheet::Sheet;

/// Adds what was measured: the spread of the time, CPU, BLOCKED, rates, memory.
pub(super) fn measure_columns(sheet: &mut Sheet, cases: &[Case<'_>]) {
    let spreads: Vec<Option<Spread>> = cases.iter().map(Case::spread).collect();
    let of_spread = |value: fn(&Spread) -> f64| {
        spreads
            .iter()
            .map(|spread| spread.as_ref().map(value))
            .collect()
    };
    sheet.figures(
        "runs",
        cases
            .iter()
            .map(|case| Some(as_float(case.samples.len() as u64))),
    );
    sheet.figures_alike(vec![
        ("median, s", of_spread(|spread| spread.median)),
        ("Q1", of_spread(|spread| spread.lower_quartile)),
        ("Q3", of_spread(|spread| spread.upper_quartile)),
        ("mean", of_spread(|spread| spread.mean)),
        ("min", of_spread(|spread| spread.min)),
        ("max", of_spread(|spread| spread.max)),
    ]);
    let middle =
        |value: fn(&Case<'_>) -> Vec<f64>| cases.iter().map(move |case| median(&value(case)));
    sheet.figures(
        "user, s",
        middle(|case| case.of(|sample| Some(sample.user_seconds))),
    );
    sheet.figures(
        "system, s",
        middle(|case| case.of(|sample| Some(sample.system_seconds))),
    );
    sheet.figures(
        "served, s",
        middle(|case| case.of(|sample| sample.served_seconds)),
    );
    let shares: Vec<Option<Shares>> = cases.iter().map(Case::shares).collect();
    sheet.shown(
        "CPU",
        shares
            .iter()
            .map(|shares| percent(shares.map(|shares| shares.cpu))),
    );
    sheet.shown("waited for CPU", shares.iter().copied().map(waited));
    sheet.shown("BLOCKED", shares.iter().copied().map(blocked));
    sheet.figures("files/s", middle(|case| case.measure(Measure::FileRate)));
    sheet.figures(
        "MB/s",
        middle(|case| case.byte_rates().iter().map(|rate| rate / 1e6).collect()),
    );
    if cases.iter().any(|case| peak(case).1.is_some()) {
        sheet.shown("peak, MiB", cases.iter().map(peak));
    }
}

/// Returns the share of the time waiting for a processor as a cell.
fn waited(shares: Option<Shares>) -> (String, Option<f64>) {
    let share = shares.and_then(|shares| shares.waited);
    let share = share.map(|(Waited::Exactly(share) | Waited::AtMost(share))| share);
    let text = |shares: Shares| shares.waited_text(|share| percent(Some(share)).0);
    (shares.map_or_else(|| "-".to_owned(), text), share)
}

/// Returns the share of the time blocked as a cell.
fn blocked(shares: Option<Shares>) -> (String, Option<f64>) {
    let text = |shares: Shares| shares.blocked_text(|share| percent(Some(share)).0);
    let share = shares.and_then(|shares| shares.blocked());
    (shares.map_or_else(|| "-".to_owned(), text), share)
}

/// Returns the median of the peaks as a cell.
fn peak(case: &Case<'_>) -> (String, Option<f64>) {
    let Some(bytes) = median(&case.measure(Measure::Peak)) else {
        return ("–".to_owned(), None);
    };
    (format!("{:.1}", bytes / 1_048_576.0), Some(bytes))
}

/// Returns a share as a cell.
pub(super) fn percent(share: Option<f64>) -> (String, Option<f64>) {
    let text = share.map_or_else(|| "–".to_owned(), |share| format!("{:.1} %", share * 100.0));
    (text, share)
}

/// Adds a row for each kind of operation of each case.
pub(super) fn latency_columns(sheet: &mut Sheet, cases: &[Case<'_>], names: &[&str]) {
    let rows: Vec<(&Case<'_>, &str, Latencies)> = cases
        .iter()
        .flat_map(|case| {
            case.latencies()
                .into_iter()
                .map(move |(operation, latencies)| (case, operation, latencies))
        })
        .collect();
    for (place, name) in names.iter().enumerate() {
        sheet.texts(
            name,
            rows.iter().map(|(case, ..)| case.labels[place].clone()),
        );
    }
    sheet.texts(
        "operation",
        rows.iter().map(|(_, operation, _)| (*operation).to_owned()),
    );
    sheet.shown(
        "count",
        rows.iter().map(|(.., latencies)| {
            let count = as_float(latencies.count());
            (three_digits(count), Some(count))
        }),
    );
    for (title, share) in [
        ("p50", 0.5),
        ("p90", 0.9),
        ("p99", 0.99),
        ("p99.9", 0.999),
        ("max", 1.0),
    ] {
        sheet.shown(
            title,
            rows.iter().map(|(.., latencies)| {
                let seconds = as_float(latencies.quantile(share)) / 1e9;
                (Unit::Seconds.show(seconds), Some(seconds))
            }),
        );
    }
}

/// Returns what was found before or after the runs: the proof that a state held, or that nothing was lost.
pub(super) fn proof_sheet(cases: &[Case<'_>], names: &[&str]) -> Sheet {
    let proofs = cases
        .iter()
        .flat_map(|case| case.samples.iter().map(|sample| &sample.proof));
    let keys: BTreeSet<&String> = proofs.flat_map(|proof| proof.keys()).collect();
    let mut sheet = Sheet::new(
        "What was found beside the times",
        "Over all rounds: numbers from the least to the greatest.",
    );
    if keys.is_empty() {
        return sheet;
    }
    for (place, name) in names.iter().enumerate() {
        sheet.texts(name, cases.iter().map(|case| case.labels[place].clone()));
    }
    for key in keys {
        sheet.texts(&words(key), cases.iter().map(|case| over_all(case, key)));
    }
    sheet
}

/// All values that a proof had in the samples of a case, in a few words.
fn over_all(case: &Case<'_>, key: &str) -> String {
    let values: Vec<&Value> = case
        .samples
        .iter()
        .filter_map(|sample| sample.proof.get(key))
        .collect();
    let held = values
        .iter()
        .filter(|value| **value == &Value::Bool(true))
        .count();
    if !values.is_empty() && values.iter().all(|value| value.is_boolean()) {
        return format!("{held} of {}", values.len());
    }
    let numbers: Vec<f64> = values.iter().filter_map(|value| value.as_f64()).collect();
    if let (Some(spread), true) = (Spread::of(&numbers), numbers.len() == values.len()) {
        let (least, greatest) = (number(spread.min), number(spread.max));
        return if least == greatest {
            least
        } else {
            format!("{least} to {greatest}")
        };
    }
    let texts: BTreeSet<String> = values.into_iter().map(plain).collect();
    match texts.len() {
        0 => "–".to_owned(),
        1 | 2 => texts.into_iter().collect::<Vec<String>>().join(", "),
        different => format!("{different} different ones"),
    }
}
