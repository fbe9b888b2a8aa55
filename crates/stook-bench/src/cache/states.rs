//! The states of a bench of caches: their order, whether each was proved, and which is compared with which.

use crate::cases::{Case, Cases};
use crate::record::Sample;
use crate::statistics::{median, through_origin};
use crate::table::Table;
use crate::warnings::Warning;

/// The states in the order in which they are shown; others follow.
const STATES: [&str; 3] = ["cold", "warm", "hot"];
/// The ratios that the tables have, as the CernVM-FS tables do.
const RATIOS: [(&str, &str); 3] = [("cold", "hot"), ("cold", "warm"), ("warm", "hot")];

/// The state that a label names, such as `cold` of `local cold`, and what else it says.
pub(super) fn state<'a>(case: &'a Case<'_>) -> (&'a str, String) {
    let label = case.labels[0].as_str();
    let Some(word) = label.split(' ').find(|word| STATES.contains(word)) else {
        return (label, String::new());
    };
    let rest: Vec<&str> = label.split(' ').filter(|other| *other != word).collect();
    (word, rest.join(" "))
}

/// Cold, warm and hot of the command itself come first.
pub(crate) fn place(case: &Case<'_>) -> (String, usize) {
    let (word, rest) = state(case);
    let place = STATES.iter().position(|known| *known == word);
    (rest, place.unwrap_or(STATES.len()))
}

/// Pairs of cases that differ in their state only; then those of one state that differ in the rest, such as `cold` and
/// `local cold`.
pub(crate) fn pairs<'a, 'b>(cases: &'b Cases<'a>) -> Vec<(&'b Case<'a>, &'b Case<'a>)> {
    let cases = &cases.all;
    let all = || cases.iter().flat_map(|a| cases.iter().map(move |b| (a, b)));
    let of_states = RATIOS.iter().flat_map(|(over, under)| {
        all().filter(move |(a, b)| {
            let ((a, rest_of_a), (b, rest_of_b)) = (state(a), state(b));
            a == *over && b == *under && rest_of_a == rest_of_b
        })
    });
    let has_local_warm = cases.iter().any(|case| case.labels[0] == "local warm");
    let of_places = all().filter(move |(a, b)| {
        let ((a, rest_of_a), (b, rest_of_b)) = (state(a), state(b));
        // With hooks, warm is in memory what the local cold is: nothing.
        let is_alike = a == b || (!has_local_warm && (a, b) == ("warm", "cold"));
        is_alike && rest_of_a.is_empty() && !rest_of_b.is_empty()
    });
    of_states.chain(of_places).collect()
}

/// Returns the ratios of medians with their intervals, and slopes through the origin. A state that is not proved has a
/// question mark.
pub(crate) fn ratios(cases: &Cases<'_>) -> Table {
    let pairs = pairs(cases);
    let mut table = Table::default();
    let names = pairs
        .iter()
        .map(|(a, b)| format!("{} / {}", name(a), name(b)));
    table.texts("compared", names);
    let medians: Vec<_> = pairs.iter().map(|(a, b)| a.ratio_to(b)).collect();
    table.ratios(&medians);
    let slopes = |figure: fn(&Sample) -> f64| {
        let slopes = pairs.iter();
        slopes.map(move |(a, b)| through_origin(&a.each(figure), &b.each(figure)))
    };
    table.figures("slope, real", slopes(|sample| sample.real_seconds));
    table.figures("user", slopes(|sample| sample.user_seconds));
    table.figures("system", slopes(|sample| sample.system_seconds));
    let cpu = |case: &Case<'_>| median(&case.each(Sample::cpu_seconds)).filter(|cpu| *cpu > 0.0);
    let ratios = pairs.iter().map(|(a, b)| Some(cpu(a)? / cpu(b)?));
    table.figures("of CPU time", ratios);
    table
}

/// The name in tables: with a question mark if the state is not proved.
pub(super) fn name(case: &Case<'_>) -> String {
    let mark = if unproved(case).is_some() { "?" } else { "" };
    format!("{}{mark}", case.labels[0])
}

pub(super) fn is_hot(case: &Case<'_>) -> bool {
    state(case).0 == "hot"
}

/// Whether memory was without names and data, as far as samples say; those that say nothing of it are taken for what they
/// are called.
pub(super) fn unproved(case: &Case<'_>) -> Option<Warning> {
    if is_hot(case) {
        return None;
    }
    let is_asked = |sample: &Sample| {
        let shares = ["pages_share", "names_share"].map(|name| sample.proof.get(name));
        shares
            .into_iter()
            .flatten()
            .any(serde_json::Value::is_number)
    };
    let of_sample = |sample: &&Sample| match sample.proof.get("method")?.as_str()? {
        "fadvise" => Some(Warning::DataOnly),
        _ => (!is_asked(sample)).then_some(Warning::NothingAsked),
    };
    case.samples.iter().find_map(of_sample)
}
