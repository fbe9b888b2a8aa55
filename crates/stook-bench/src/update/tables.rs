//! The tables of a study as text.

use super::numbers::{Numbers, Pair};
use crate::cases::Case;
use crate::figure::clean;
use crate::record::{Results, Sample};
use crate::statistics::median;
use crate::table::Table;

/// What stands where a tool does not have an operation.
const NONE: &str = "-";

/// Returns all tables: the directories, every operation, what was equal, pair by pair, stores, and phases.
pub fn tables(results: &Results) -> String {
    let numbers = Numbers::of(results);
    let mut parts = vec![directories(results)];
    if !results.samples.is_empty() {
        // Dry runs have no source that a list could be equal to.
        let compared = match results.header.options.contains_key("archive") {
            true => "as expected",
            false => "equal to the source",
        };
        parts.extend([
            operations(&numbers),
            equality(&numbers, compared),
            pairs(&numbers),
            stores(&numbers),
            phases(&numbers),
        ]);
    }
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

fn directories(results: &Results) -> String {
    let mut table = Table::new(["directory", "files", "MB", "mean B", "median B", "max B"]);
    let dirs = results.header.options.get("dirs");
    let dirs = dirs.and_then(|dirs| dirs.as_array()).into_iter().flatten();
    for label in dirs.filter_map(|dir| dir.as_str()) {
        let facts = results.header.files.as_ref().map(|files| &files[label]);
        let figure = |name: &str, unit: f64, digits: usize| {
            let figure = facts.and_then(|facts| facts[name].as_f64());
            shown(figure.map(|figure| format!("{:.digits$}", figure / unit)))
        };
        table.row([
            label.to_owned(),
            figure("files", 1.0, 0),
            figure("bytes", 1e6, 1),
            figure("mean", 1.0, 0),
            figure("median", 1.0, 0),
            figure("max", 1.0, 0),
        ]);
    }
    table.text()
}

/// A figure, if there is one.
fn shown(figure: Option<String>) -> String {
    figure.unwrap_or_else(|| NONE.to_owned())
}

/// All pairs together.
fn operations(numbers: &Numbers<'_>) -> String {
    let first = &numbers.tools[0];
    let ratio_title = format!("x {first}");
    // Names go to the left, and only the first column does.
    let name = |operation: &str, tool: &str| format!("{operation:<11}  {tool}");
    let both = name("operation", "tool");
    let titles = [
        &both,
        "seconds",
        "quartiles",
        &ratio_title,
        "CPU s",
        "peak MB",
    ];
    let has_store = numbers
        .cases
        .all
        .iter()
        .any(|case| building_and_sending(case).is_some());
    let of_stores: &[&str] = if has_store {
        &["building s", "sending s"]
    } else {
        &[]
    };
    let mut table = Table::new(titles.iter().chain(of_stores).copied());
    for operation in &numbers.operations {
        for tool in &numbers.tools {
            let case = numbers.of_pairs(tool, operation, None);
            let case = case.as_ref();
            let seconds = case.map(|case| case.spread(|sample| sample.real_seconds));
            let cpu = case.map(|case| case.spread(Sample::cpu_seconds));
            let peak = case.and_then(|case| case.peaks().into_iter().reduce(f64::max));
            let quartiles = seconds.map(|seconds| (seconds.lower_quartile, seconds.upper_quartile));
            let sent = case.and_then(building_and_sending);
            let sent = |place: usize| shown(sent.map(|sent| format!("{:.3}", sent[place])));
            table.row([
                name(operation, tool),
                shown(seconds.map(|seconds| format!("{:.3}", seconds.median))),
                shown(quartiles.map(|(lower, upper)| format!("{lower:.3}-{upper:.3}"))),
                ratio(numbers, tool, operation, None),
                shown(cpu.map(|cpu| format!("{:.3}", cpu.median))),
                shown(peak.map(|peak| format!("{:.1}", peak / 1e6))),
                sent(0),
                sent(1),
            ]);
        }
    }
    let same = if has_store {
        ", with the same store"
    } else {
        ""
    };
    format!(
        "all pairs: medians of the runs; x {first}: time of the tool / time of {first}{same}, run by run, the median\n{}",
        table.text()
    )
}

fn ratio(numbers: &Numbers<'_>, tool: &str, operation: &str, of: Option<&Pair>) -> String {
    let ratios = numbers.ratios(tool, operation, of);
    shown(ratios.map(|ratios| format!("{:.2}", ratios.median)))
}

fn equality(numbers: &Numbers<'_>, title: &str) -> String {
    let first = &numbers.tools[0];
    let as_first = format!("in order of {first}");
    let mut table = Table::new([title, "trees", "lists", &as_first, "sorted"]);
    for tool in &numbers.tools {
        let found = numbers.equality(tool);
        let of = |some: usize, all: usize| match all {
            0 => NONE.to_owned(),
            all => format!("{some} of {all}"),
        };
        table.row([
            tool.clone(),
            of(found.equal_trees, found.trees),
            of(found.equal_lists, found.lists),
            of(found.in_order_of_first, found.lists),
            of(found.sorted, found.lists),
        ]);
    }
    table.text()
}

/// Pair by pair: seconds of each tool, and the ratios of all but the first.
fn pairs(numbers: &Numbers<'_>) -> String {
    let others: Vec<&String> = numbers.others().collect();
    let mut titles = vec!["pair by pair".to_owned()];
    titles.extend(numbers.tools.iter().map(|tool| format!("{tool} s")));
    titles.extend(
        others
            .iter()
            .map(|tool| format!("{tool} x {}", numbers.first_of(tool))),
    );
    let mut table = Table::new(titles);
    for pair @ (create, update) in &numbers.pairs {
        table.row([format!("{create} -> {update}")]);
        for operation in &numbers.operations {
            let of = Some(pair);
            let mut row = vec![format!("  {operation}")];
            row.extend(numbers.tools.iter().map(|tool| {
                let case = numbers.of_pairs(tool, operation, of);
                shown(case.map(|case| format!("{:.3}", case.median())))
            }));
            row.extend(
                others
                    .iter()
                    .map(|tool| ratio(numbers, tool, operation, of)),
            );
            table.row(row);
        }
    }
    table.text()
}

/// What was sent to a store: medians of building and sending, which goes on beside it, and how near all comes to the slower one.
fn stores(numbers: &Numbers<'_>) -> String {
    let titles = [
        "building and sending",
        "seconds",
        "building s",
        "sending s",
        "x slower",
    ];
    let mut table = Table::new(titles);
    for case in &numbers.cases.all {
        let Some([building, sending]) = building_and_sending(case) else {
            continue;
        };
        let [tool, create, update, operation] = &case.labels[..] else {
            continue;
        };
        let slower = building.max(sending);
        let ratio = (slower > 0.0).then(|| format!("{:.2}", case.median() / slower));
        table.row([
            format!("{operation:<11}  {tool}  {create} -> {update}"),
            format!("{:.3}", case.median()),
            format!("{building:.3}"),
            format!("{sending:.3}"),
            shown(ratio),
        ]);
    }
    match table.is_empty() {
        true => String::new(),
        false => table.text(),
    }
}

/// Returns the medians; None if nothing was sent.
pub(crate) fn building_and_sending(case: &Case<'_>) -> Option<[f64; 2]> {
    let building = median(&case.known(|sample| sample.building_seconds))?;
    Some([
        building,
        median(&case.known(|sample| sample.sending_seconds))?,
    ])
}

/// What the tools told of their phases, as medians over all pairs.
fn phases(numbers: &Numbers<'_>) -> String {
    let mut table = Table::new(["phases, all pairs", "seconds", "share"]);
    for operation in &numbers.operations {
        for tool in &numbers.tools {
            let Some(case) = numbers.of_pairs(tool, operation, None) else {
                continue;
            };
            for (name, seconds) in case.phases() {
                let share = 100.0 * seconds / case.median();
                let name = format!("{operation:<11}  {tool}  {}", clean(&name));
                table.row([name, format!("{seconds:.3}"), format!("{share:.0} %")]);
            }
        }
    }
    match table.is_empty() {
        true => String::new(),
        false => table.text(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::numbers::tests::study;
    use super::*;
    use serde_json::json;

    #[test]
    fn tables_say_what_was_found() {
        let mut results = study();
        results
            .header
            .options
            .insert("dirs".to_owned(), json!(["x"]));
        let x = json!({"x": {"files": 3, "bytes": 2_500_000, "mean": 1.5, "median": 1, "max": 9}});
        results.header.files = Some(x);
        let text = tables(&results);
        for line in [
            "x              3  2.5       2         1      9",
            "create       b      10.200  0.325-27.500  3.00  5.050      3.0",
            "check        b           -             -     -      -        -",
            "check        a       5.050  0.100-10.000  1.00  5.050      3.0",
            "b                    4 of 6  6 of 6         0 of 6  6 of 6",
            "x -> z\n  create       10.000  30.000   3.00\n  check        10.000       -      -",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        assert!(text.contains("x a: time of the tool / time of a, run by run, the median\n"));
    }

    #[test]
    fn a_study_without_samples_has_its_directories() {
        let mut results = study();
        results.samples.clear();
        assert!(tables(&results).starts_with("directory"));
    }
}
