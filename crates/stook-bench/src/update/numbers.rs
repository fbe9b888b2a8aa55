//! The figures of a study, from its samples: what tables and drawings show.
//!
//! Pairs differ in size, so times of several pairs are never compared as a whole: a ratio is that of two runs of the same
//! pair and round, and what is shown of several is their median.

use std::collections::BTreeMap;

use crate::record::{Results, Sample};
use crate::statistics::Spread;

/// Operations in the order of the study; others come behind them.
const OPERATIONS: [&str; 5] = ["create", "update", "check", "extract_seq", "extract_par"];

/// An ordered pair of directories: what the archive was made from, and what it was updated with.
pub(super) type Pair<'a> = (&'a str, &'a str);

/// The samples of a study, sorted out.
#[derive(Debug)]
pub(super) struct Numbers<'a> {
    /// The tools, the one that others are compared with first.
    pub(super) tools: Vec<&'a str>,
    /// The pairs, in the order of the study.
    pub(super) pairs: Vec<Pair<'a>>,
    /// The operations, in the order of the study.
    pub(super) operations: Vec<&'a str>,
    samples: &'a [Sample],
}

/// Which samples are meant.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell<'a> {
    /// Of this tool.
    pub(super) tool: &'a str,
    /// Of this operation.
    pub(super) operation: &'a str,
    /// Of this pair; of all, if None.
    pub(super) pair: Option<Pair<'a>>,
}

/// What was found of the trees and lists of a tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Equality {
    /// Extracted trees.
    pub(super) trees: usize,
    /// Those among them that were their source.
    pub(super) equal_trees: usize,
    /// Lists.
    pub(super) lists: usize,
    /// Those among them that had the names of the source.
    pub(super) equal_lists: usize,
    /// Lists that had them in the order of the first tool.
    pub(super) in_order_of_first: usize,
    /// Lists that were sorted as bytes.
    pub(super) sorted: usize,
}

impl<'a> Numbers<'a> {
    /// Sorts out the samples of `stook bench update`.
    pub(super) fn of(results: &'a Results) -> Self {
        let samples = &results.samples;
        let mut operations = unique(samples.iter().map(|sample| sample.label("operation")));
        let place = |operation: &&str| {
            let place = OPERATIONS.iter().position(|known| known == operation);
            place.unwrap_or(OPERATIONS.len())
        };
        operations.sort_by_key(place);
        Self {
            tools: unique(samples.iter().map(|sample| sample.label("tool"))),
            pairs: unique(samples.iter().map(pair)),
            operations,
            samples,
        }
    }

    fn samples(&self, cell: Cell<'a>) -> impl Iterator<Item = &'a Sample> {
        self.samples.iter().filter(move |sample| {
            sample.label("tool") == cell.tool
                && sample.label("operation") == cell.operation
                && cell.pair.is_none_or(|wanted| pair(sample) == wanted)
        })
    }

    /// Returns a figure of each sample.
    pub(super) fn each(&self, cell: Cell<'a>, figure: fn(&Sample) -> f64) -> Vec<f64> {
        self.samples(cell).map(figure).collect()
    }

    /// Returns the wall times; None if the tool does not have the operation.
    pub(super) fn seconds(&self, cell: Cell<'a>) -> Option<Spread> {
        Spread::of(&self.each(cell, |sample| sample.real_seconds))
    }

    /// Returns the CPU times; None if the tool does not have the operation.
    pub(super) fn cpu_seconds(&self, cell: Cell<'a>) -> Option<Spread> {
        Spread::of(&self.each(cell, Sample::cpu_seconds))
    }

    /// Returns the most memory of all runs.
    pub(super) fn peak_bytes(&self, cell: Cell<'a>) -> Option<u64> {
        let peaks = self.samples(cell).filter_map(|sample| sample.peak_bytes);
        peaks.max()
    }

    /// Returns the wall times as pairs: of the first tool, and of this one in the same pair and round.
    pub(super) fn against_first(&self, cell: Cell<'a>) -> Vec<(f64, f64)> {
        let Some(tool) = self.tools.first() else {
            return Vec::new();
        };
        let key = |sample: &'a Sample| (pair(sample), sample.round);
        let first: BTreeMap<_, f64> = self
            .samples(Cell { tool, ..cell })
            .map(|sample| (key(sample), sample.real_seconds))
            .collect();
        let own = self.samples(cell);
        own.filter_map(|sample| Some((*first.get(&key(sample))?, sample.real_seconds)))
            .collect()
    }

    /// Returns the ratios to the first tool, run by run; None if either does not have the operation.
    pub(super) fn ratios(&self, cell: Cell<'a>) -> Option<Spread> {
        let pairs = self.against_first(cell);
        let ratios = pairs.iter().filter(|(first, _)| *first > 0.0);
        Spread::of(&ratios.map(|(first, own)| own / first).collect::<Vec<f64>>())
    }

    /// Returns what was found of the trees and lists of a tool.
    pub(super) fn equality(&self, tool: &str) -> Equality {
        let mut found = Equality::default();
        let Some(first) = self.tools.first() else {
            return found;
        };
        let of_first: BTreeMap<_, &str> = self
            .samples
            .iter()
            .filter(|sample| sample.label("tool") == *first)
            .filter_map(|sample| Some(((pair(sample), sample.round), order(sample)?)))
            .collect();
        let own = self.samples.iter();
        for sample in own.filter(|sample| sample.label("tool") == tool) {
            if let Some(is_equal) = noted(sample, "equal") {
                found.trees += 1;
                found.equal_trees += usize::from(is_equal);
            }
            if let Some(is_equal) = noted(sample, "list_equal") {
                found.lists += 1;
                found.equal_lists += usize::from(is_equal);
                found.sorted += usize::from(noted(sample, "list_sorted") == Some(true));
                let first = of_first.get(&(pair(sample), sample.round)).copied();
                found.in_order_of_first += usize::from(first.is_some() && first == order(sample));
            }
        }
        found
    }
}

fn pair(sample: &Sample) -> Pair<'_> {
    (sample.label("create"), sample.label("update"))
}

fn noted(sample: &Sample, name: &str) -> Option<bool> {
    sample.proof.get(name)?.as_bool()
}

fn order(sample: &Sample) -> Option<&str> {
    sample.proof.get("list_order")?.as_str()
}

fn unique<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut unique = Vec::new();
    for item in items {
        if !unique.contains(&item) {
            unique.push(item);
        }
    }
    unique
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::record::{Header, Kind};
    use serde_json::json;

    /// Two tools, two pairs, three rounds: `b` takes 2, 3 and 4 times as long as `a`, and cannot check.
    pub(in crate::update) fn study() -> Results {
        let mut samples = Vec::new();
        for round in 1..=3_u32 {
            for (update, seconds) in [("y", 0.1), ("z", 10.0)] {
                for (tool, factor) in [("a", 1.0), ("b", f64::from(round + 1))] {
                    for operation in ["extract_seq", "create", "check"] {
                        if (tool, operation) == ("b", "check") {
                            continue;
                        }
                        let labels = [
                            ("tool", tool),
                            ("create", "x"),
                            ("update", update),
                            ("operation", operation),
                        ];
                        let mut sample = Sample {
                            round,
                            labels: labels
                                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                                .into(),
                            real_seconds: seconds * factor,
                            user_seconds: seconds,
                            peak_bytes: Some(u64::from(round) * 1_000_000),
                            ..Sample::default()
                        };
                        if operation == "extract_seq" {
                            let is_equal = (tool, round) != ("b", 2);
                            sample.proof.insert("equal".to_owned(), json!(is_equal));
                            sample.proof.insert("list_equal".to_owned(), json!(true));
                            sample
                                .proof
                                .insert("list_sorted".to_owned(), json!(tool == "b"));
                            sample.proof.insert("list_order".to_owned(), json!(tool));
                        }
                        samples.push(sample);
                    }
                }
            }
        }
        Results {
            header: Header::new(Kind::Update, "2026-11-21T10:00:00Z"),
            samples,
        }
    }

    #[test]
    fn samples_are_sorted_out() {
        let results = study();
        let numbers = Numbers::of(&results);
        assert_eq!(numbers.tools, ["a", "b"]);
        assert_eq!(numbers.pairs, [("x", "y"), ("x", "z")]);
        assert_eq!(numbers.operations, ["create", "check", "extract_seq"]);
    }

    #[test]
    fn ratios_are_of_runs_of_the_same_pair_and_round() {
        let results = study();
        let numbers = Numbers::of(&results);
        let cell = Cell {
            tool: "b",
            operation: "create",
            pair: None,
        };
        let ratios = numbers.ratios(cell).unwrap();
        assert_eq!((ratios.count, ratios.min, ratios.max), (6, 2.0, 4.0));
        assert!((ratios.median - 3.0).abs() < 1e-9);
        let slow = Cell {
            pair: Some(("x", "z")),
            ..cell
        };
        assert_eq!(numbers.seconds(slow).unwrap().median, 30.0);
        assert_eq!(numbers.cpu_seconds(slow).unwrap().max, 10.0);
        assert_eq!(numbers.peak_bytes(slow), Some(3_000_000));
        let check = Cell {
            operation: "check",
            ..cell
        };
        assert_eq!(
            (numbers.ratios(check), numbers.seconds(check)),
            (None, None)
        );
    }

    #[test]
    fn equality_is_counted() {
        let results = study();
        let numbers = Numbers::of(&results);
        let expected = Equality {
            trees: 6,
            equal_trees: 4,
            lists: 6,
            equal_lists: 6,
            in_order_of_first: 0,
            sorted: 6,
        };
        assert_eq!(numbers.equality("b"), expected);
        assert_eq!(numbers.equality("a").in_order_of_first, 6);
    }
}
