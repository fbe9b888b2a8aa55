//! The figures of a study, from its samples: what tables and figures show.
//!
//! Pairs differ in size, so times of several pairs are never compared as a whole: a ratio is that of two runs of the same
//! pair and round, and what is shown of several is their median.

use crate::cases::{Case, Cases, unique};
use crate::record::{Results, Sample};
use crate::statistics::Spread;

/// Operations in the order of the study; others come behind them.
const OPERATIONS: [&str; 6] = [
    "create",
    "update",
    "check",
    "extract_seq",
    "extract_par",
    "dry-run",
];

/// An ordered pair of directories: what the archive was made from, and what it was updated with.
pub(crate) type Pair = (String, String);

/// The samples of a study, sorted out.
#[derive(Debug)]
pub(crate) struct Numbers<'a> {
    pub(crate) cases: Cases<'a>,
    /// The tools, the one that others are compared with first; each once more with a store, if it was measured with one.
    pub(crate) tools: Vec<String>,
    /// The pairs, in the order of the study.
    pub(crate) pairs: Vec<Pair>,
    /// The operations, in the order of the study.
    pub(crate) operations: Vec<String>,
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
    pub(crate) fn of(results: &'a Results) -> Self {
        let cases = Cases::of(results);
        let mut operations = cases.values(3);
        let place = |operation: &String| OPERATIONS.iter().position(|known| known == operation);
        operations.sort_by_key(|operation| place(operation).unwrap_or(OPERATIONS.len()));
        let pair = |case: &Case<'_>| (case.labels[1].clone(), case.labels[2].clone());
        Self {
            tools: cases.values(0),
            pairs: unique(cases.all.iter().map(pair)),
            operations,
            cases,
        }
    }

    /// Returns the samples of an operation of a tool on one pair; None if it does not have the operation.
    pub(crate) fn case(&self, tool: &str, pair: &Pair, operation: &str) -> Option<&Case<'a>> {
        self.cases.find(&[tool, &*pair.0, &*pair.1, operation])
    }

    /// Returns the samples of an operation of a tool on one pair, or on all.
    pub(crate) fn of_pairs(
        &self,
        tool: &str,
        operation: &str,
        of: Option<&Pair>,
    ) -> Option<Case<'a>> {
        if let Some(pair) = of {
            return self.case(tool, pair, operation).cloned();
        }
        let is_it = |case: &&Case<'_>| case.labels[0] == tool && case.labels[3] == operation;
        let mut cases = self.cases.all.iter().filter(is_it);
        let mut all = cases.next()?.clone();
        all.samples
            .extend(cases.flat_map(|case| case.samples.iter().copied()));
        Some(all)
    }

    /// Returns the tool that this one is compared with: the first one that was measured with the same store, or without one.
    pub(crate) fn first_of<'s>(&'s self, tool: &'s str) -> &'s str {
        let store = |tool: &'s str| tool.split_once(" (").map(|(_, store)| store);
        let mut tools = self.tools.iter().map(String::as_str);
        tools
            .find(|first| store(first) == store(tool))
            .unwrap_or(tool)
    }

    /// Returns all tools but those that others are compared with.
    pub(crate) fn others(&self) -> impl Iterator<Item = &String> {
        let tools = self.tools.iter();
        tools.filter(|tool| self.first_of(tool) != tool.as_str())
    }

    /// Returns the ratios to [`Self::first_of`], run by run; None if either does not have the operation.
    pub(super) fn ratios(&self, tool: &str, operation: &str, of: Option<&Pair>) -> Option<Spread> {
        let first = self.of_pairs(self.first_of(tool), operation, of)?;
        let own = self.of_pairs(tool, operation, of)?;
        let ratios = own.samples.iter().filter_map(|sample| {
            let first = first
                .samples
                .iter()
                .find(|first| is_same_run(first, sample))?;
            (first.real_seconds > 0.0).then(|| sample.real_seconds / first.real_seconds)
        });
        Spread::of(&ratios.collect::<Vec<f64>>())
    }

    /// Returns what was found of the trees and lists of a tool.
    pub(super) fn equality(&self, tool: &str) -> Equality {
        let mut found = Equality::default();
        let of = |tool: &str| {
            let tool = tool.to_owned();
            let cases = self.cases.all.iter();
            let cases = cases.filter(move |case| case.labels[0] == tool);
            cases.flat_map(|case| case.samples.iter().copied())
        };
        for sample in of(tool) {
            if let Some(is_equal) = noted(sample, "equal") {
                found.trees += 1;
                found.equal_trees += usize::from(is_equal);
            }
            if let Some(is_equal) = noted(sample, "list_equal") {
                found.lists += 1;
                found.equal_lists += usize::from(is_equal);
                found.sorted += usize::from(noted(sample, "list_sorted") == Some(true));
                let order = |sample: &'a Sample| sample.proof.get("list_order");
                let mut firsts = of(self.first_of(tool)).filter(|first| order(first).is_some());
                let first = firsts.find(|first| is_same_run(first, sample));
                found.in_order_of_first +=
                    usize::from(first.is_some_and(|first| order(first) == order(sample)));
            }
        }
        found
    }
}

fn pair(sample: &Sample) -> (&str, &str) {
    (sample.label("create"), sample.label("update"))
}

fn is_same_run(one: &Sample, other: &Sample) -> bool {
    (pair(one), one.round) == (pair(other), other.round)
}

fn noted(sample: &Sample, name: &str) -> Option<bool> {
    sample.proof.get(name)?.as_bool()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::record::{Header, Kind, labels};
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
                        let of_sample = [
                            ("tool", tool),
                            ("create", "x"),
                            ("update", update),
                            ("operation", operation),
                        ];
                        let mut sample = Sample {
                            round,
                            labels: labels(of_sample),
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
        let pairs = ["y", "z"].map(|update| ("x".to_owned(), update.to_owned()));
        assert_eq!(numbers.pairs, pairs);
        assert_eq!(numbers.operations, ["create", "check", "extract_seq"]);
    }

    #[test]
    fn ratios_are_of_runs_of_the_same_pair_and_round() {
        let results = study();
        let numbers = Numbers::of(&results);
        let ratios = numbers.ratios("b", "create", None).unwrap();
        assert_eq!((ratios.count, ratios.min, ratios.max), (6, 2.0, 4.0));
        assert!((ratios.median - 3.0).abs() < 1e-9);
        let slow = numbers.case("b", &numbers.pairs[1], "create").unwrap();
        assert_eq!(slow.median(), 30.0);
        assert_eq!(slow.spread(Sample::cpu_seconds).max, 10.0);
        assert_eq!(slow.peaks(), [1e6, 2e6, 3e6]);
        assert_eq!(numbers.ratios("b", "check", None), None);
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
