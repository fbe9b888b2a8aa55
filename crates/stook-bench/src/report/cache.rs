//! The part about a command run with cold, warm and hot caches.

use crate::figure::{Chart, Stack, Stacks, Unit, three_digits};
use crate::record::{Results, Sample};
use crate::shares::Waited;
use crate::statistics::{Ratio, cpu_share, ratio_of_medians, through_origin};

use super::case::{Case, cases};
use super::measures::{measure_columns, proof_sheet};
use super::part::{Part, count, listed, shortened};
use super::sheet::Sheet;

/// The states in the order in which they are shown, and told; others follow.
const STATES: [&str; 3] = ["cold", "warm", "hot"];
/// So much of a command is shown in the sentence about it; all of it is among the options.
const SHOWN: usize = 160;
/// The ratios that the tables have, as the CernVM-FS tables do.
const RATIOS: [(&str, &str); 3] = [("cold", "hot"), ("cold", "warm"), ("warm", "hot")];
/// What CPU time leaves of the real time.
const OFF_CPU: &str = "off the CPU: BLOCKED, or waiting for one";
/// The parts of the real time, with their class.
const PARTS: [(&str, &str); 4] = [
    ("user", "user"),
    ("system", "system"),
    ("served (CPU of the mount)", "served"),
    (OFF_CPU, "blocked"),
];

/// Returns what is to be said about a run of `stook bench cache`.
pub(super) fn part(results: &Results) -> Part {
    let mut cases = cases(&results.samples, &["state"]);
    cases.sort_by_key(|case| place(&case.labels[0]));
    let mut part = Part {
        title: format!("Caches: {}", listed(&names(&cases))),
        measured: measured(results, &cases),
        findings: findings(&cases),
        exhibits: Vec::new(),
        sheets: Vec::new(),
    };
    let (times, shares) = (
        stacks(&cases, Scaled::Seconds),
        stacks(&cases, Scaled::Shares),
    );
    let caption = "The median real time, with its share of CPU time; what is left is BLOCKED, or waiting for a processor. Every dot is the real time of a run; the box spans the quartiles.";
    part.figure(
        "states",
        "Real time cold, warm and hot",
        caption,
        Chart::Stacks(times),
    );
    let caption = "The same as shares of the real time. More than 100 % is work by several processors at once.";
    part.figure(
        "shares",
        "Where the time goes",
        caption,
        Chart::Stacks(shares),
    );
    part.sheet(ratios(&cases));
    part.sheet(everything(&cases));
    part.sheet(proof_sheet(&cases, &["state"]));
    part
}

/// The state that a label names, such as `cold` of `local cold`, and what else it says.
fn state(label: &str) -> (&str, String) {
    let word = label
        .split(' ')
        .find(|word| STATES.contains(word))
        .unwrap_or(label);
    let rest: Vec<&str> = label.split(' ').filter(|other| *other != word).collect();
    (
        word,
        if word == label {
            String::new()
        } else {
            rest.join(" ")
        },
    )
}

/// Cold, warm and hot of the command itself come first.
fn place(label: &str) -> (String, usize) {
    let (word, rest) = state(label);
    (
        rest,
        STATES
            .iter()
            .position(|known| *known == word)
            .unwrap_or(STATES.len()),
    )
}

fn names(cases: &[Case<'_>]) -> Vec<String> {
    cases.iter().map(|case| case.labels[0].clone()).collect()
}

fn measured(results: &Results, cases: &[Case<'_>]) -> String {
    let rounds = results
        .samples
        .iter()
        .map(|sample| sample.round)
        .max()
        .unwrap_or(0);
    let command = results
        .header
        .options
        .get("command")
        .map(super::facts::plain);
    let of = command.map_or_else(
        || "One command".to_owned(),
        |command| format!("`{}`", shortened(&command, SHOWN)),
    );
    format!(
        "{of}, {}, in {}.",
        listed(&names(cases)),
        count(rounds as usize, "round", "rounds")
    )
}

/// Pairs of cases that differ in their state only; then those of one state that differ in the rest, such as `cold` and
/// `local cold`.
fn pairs<'a, 'b>(cases: &'b [Case<'a>]) -> Vec<(&'b Case<'a>, &'b Case<'a>)> {
    let all = || cases.iter().flat_map(|a| cases.iter().map(move |b| (a, b)));
    let of = |case: &Case<'_>| {
        let (word, rest) = state(&case.labels[0]);
        (word.to_owned(), rest)
    };
    let of_states = RATIOS.iter().flat_map(|(over, under)| {
        all().filter(move |(a, b)| {
            let ((a, rest_of_a), (b, rest_of_b)) = (of(a), of(b));
            a == *over && b == *under && rest_of_a == rest_of_b
        })
    });
    let of_places = all().filter(|(a, b)| {
        let ((a, rest_of_a), (b, rest_of_b)) = (of(a), of(b));
        a == b && rest_of_a.is_empty() && !rest_of_b.is_empty()
    });
    of_states.chain(of_places).collect()
}

fn findings(cases: &[Case<'_>]) -> Vec<String> {
    let mut found = Vec::new();
    for (a, b) in pairs(cases) {
        let Some(ratio) = ratio_of_medians(&a.seconds(), &b.seconds()) else {
            continue;
        };
        found.push(format!(
            "{} takes {} as long as {} ({} against {}; 95 % interval {} to {}).",
            a.labels[0],
            Unit::Ratio.show(ratio.value),
            b.labels[0],
            Unit::Seconds.show(a.median()),
            Unit::Seconds.show(b.median()),
            three_digits(ratio.low),
            three_digits(ratio.high),
        ));
    }
    let blocked = cases.iter().filter_map(|case| {
        let shares = case.shares()?;
        let least = match shares.waited? {
            Waited::Exactly(_) => "",
            Waited::AtMost(_) => "at least ",
        };
        Some(format!(
            "{least}{} of the {} time",
            Unit::Share.show(shares.blocked()?),
            case.labels[0]
        ))
    });
    let blocked: Vec<String> = blocked.collect();
    if !blocked.is_empty() {
        found.push(format!(
            "BLOCKED is {}: neither the command nor what serves it computes, or waits for a processor.",
            listed(&blocked)
        ));
    }
    found
}

/// In which unit the parts are.
#[derive(Clone, Copy, PartialEq)]
enum Scaled {
    Seconds,
    Shares,
}

fn stacks(cases: &[Case<'_>], scaled: Scaled) -> Stacks {
    let is_served = cases.iter().any(|case| {
        case.samples
            .iter()
            .any(|sample| sample.served_seconds.is_some())
    });
    let parts: Vec<(String, &'static str)> = PARTS
        .iter()
        .filter(|(_, class)| is_served || *class != "served")
        .map(|(name, class)| ((*name).to_owned(), *class))
        .collect();
    Stacks {
        axis: if scaled == Scaled::Seconds {
            "Seconds"
        } else {
            "Share of the real time"
        }
        .to_owned(),
        unit: if scaled == Scaled::Seconds {
            Unit::Seconds
        } else {
            Unit::Share
        },
        stacks: cases
            .iter()
            .map(|case| stack(case, &parts, scaled))
            .collect(),
        parts,
    }
}

/// The parts are the shares as the tables have them, of the median real time.
fn stack(case: &Case<'_>, parts: &[(String, &'static str)], scaled: Scaled) -> Stack {
    let real = case.seconds();
    let share = |value: fn(&Sample) -> f64| {
        cpu_share(&case.of(|sample| Some(value(sample))), &real).unwrap_or(0.0)
    };
    let off_cpu = (1.0 - share(Sample::cpu_seconds)).max(0.0);
    let share_of = |class: &str| match class {
        "user" => share(|sample| sample.user_seconds),
        "system" => share(|sample| sample.system_seconds),
        "served" => share(|sample| sample.served_seconds.unwrap_or(0.0)),
        _ => off_cpu,
    };
    let (unit, samples, note) = match scaled {
        Scaled::Seconds => (
            case.median(),
            real.clone(),
            Unit::Seconds.show(case.median()),
        ),
        Scaled::Shares => (
            1.0,
            Vec::new(),
            format!("off the CPU {}", Unit::Share.show(off_cpu)),
        ),
    };
    Stack {
        label: case.labels[0].clone(),
        parts: parts
            .iter()
            .map(|(_, class)| share_of(class) * unit)
            .collect(),
        samples,
        note,
    }
}

fn ratios(cases: &[Case<'_>]) -> Sheet {
    let note = "Ratios of medians with their 95 % interval by resampling; beside them the slope through the origin, the estimator of CernVM-FS's tables.";
    let mut sheet = Sheet::new("Ratios", note);
    let pairs = pairs(cases);
    sheet.texts(
        "ratio",
        pairs
            .iter()
            .map(|(a, b)| format!("{} / {}", a.labels[0], b.labels[0])),
    );
    let of_medians: Vec<_> = pairs
        .iter()
        .map(|(a, b)| ratio_of_medians(&a.seconds(), &b.seconds()))
        .collect();
    let of = |value: fn(&Ratio) -> f64| {
        of_medians
            .iter()
            .map(|ratio| ratio.as_ref().map(value))
            .collect()
    };
    sheet.figures_alike(vec![
        ("of medians", of(|ratio| ratio.value)),
        ("from", of(|ratio| ratio.low)),
        ("to", of(|ratio| ratio.high)),
    ]);
    sheet.figures(
        "slope",
        pairs
            .iter()
            .map(|(a, b)| through_origin(&a.seconds(), &b.seconds())),
    );
    let cpu = |case: &Case<'_>| case.of(|sample| Some(sample.cpu_seconds()));
    sheet.figures(
        "of CPU time",
        pairs
            .iter()
            .map(|(a, b)| ratio_of_medians(&cpu(a), &cpu(b)).map(|ratio| ratio.value)),
    );
    sheet
}

fn everything(cases: &[Case<'_>]) -> Sheet {
    let mut sheet = Sheet::new("Every state", "");
    sheet.texts("state", names(cases));
    measure_columns(&mut sheet, cases);
    sheet
}
