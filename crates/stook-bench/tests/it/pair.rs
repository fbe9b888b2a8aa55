//! Sides of a pair: interleaved, with evidence and states, and what refuses them.

use std::path::Path;

use serde_json::{Value, json};
use stook_bench::{BenchError, PairOutcome, PairSpec, Warning, pair};
use stook_testkit::TempDir;

use crate::observer::{Quiet, alone_with_the_caches};

fn shell(line: &str) -> Value {
    json!(["sh", "-c", line])
}

fn side(name: &str, folder: &Path) -> Value {
    let log = folder.join("log");
    let noted = |what: &str| shell(&format!("echo {what} {name} >> {}", log.display()));
    json!({
        "name": name,
        "prepare": noted("prepare"),
        "command": shell("cat $FILE"),
        "tidy": noted("tidy"),
        "evidence": shell(&format!("wc -c < {}", folder.join("stdout").display())),
        "environment": {"FILE": folder.join("input")},
    })
}

/// Two sides that print a file of 5,000 bytes.
fn spec(folder: &TempDir) -> Value {
    std::fs::write(folder.join("input"), vec![b'x'; 5000]).unwrap();
    json!({
        "sides": [side("a", folder.path()), side("b", folder.path())],
        "rounds": 3,
        "state": "as-left",
        "stdout": folder.join("stdout"),
        "sync": [folder.path()],
    })
}

fn measured(spec: Value) -> Result<PairOutcome, BenchError> {
    let spec: PairSpec = serde_json::from_value(spec).unwrap();
    pair(&spec, &Quiet::default())
}

fn why(spec: Value) -> String {
    measured(spec).unwrap_err().to_string()
}

#[test]
fn sides_are_run_in_each_round_and_show_the_same() {
    let folder = TempDir::new().unwrap();
    let outcome = measured(spec(&folder)).unwrap();
    assert_eq!(outcome.facts, 5000);
    let runs: Vec<(u32, u64)> = outcome
        .samples
        .iter()
        .map(|sample| (sample.round, sample.proof["order"].as_u64().unwrap()))
        .collect();
    assert_eq!(runs, [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, 2)]);
    for round in outcome.samples.chunks(2) {
        assert_ne!(round[0].label("side"), round[1].label("side"));
    }
    let log = std::fs::read_to_string(folder.join("log")).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines.len(), 2 * (2 + 6), "untimed once, then three rounds");
    assert_eq!(lines[..4], ["prepare a", "tidy a", "prepare b", "tidy b"]);
}

#[test]
fn sides_that_differ_are_refused() {
    let folder = TempDir::new().unwrap();
    let mut spec = spec(&folder);
    spec["sides"][1]["command"] = shell("head -c 7 $FILE");
    assert_eq!(why(spec), "a and b differ: 5000 and 7");
}

#[test]
fn a_side_that_fails_is_named_with_its_round_and_is_tidied() {
    let folder = TempDir::new().unwrap();
    let mut spec = spec(&folder);
    spec["evidence_in_first_round"] = json!(true);
    spec["sides"] = json!([spec["sides"][0]]);
    spec["sides"][0]["command"] = shell("echo broken >&2; exit 3");
    let why = why(spec);
    assert!(
        why.ends_with("failed in round 1, a: exit status 3\n  broken"),
        "{why}"
    );
    let log = std::fs::read_to_string(folder.join("log")).unwrap();
    assert_eq!(log, "prepare a\ntidy a\n");
}

#[test]
fn without_time_for_another_round_there_is_one_and_a_warning() {
    let folder = TempDir::new().unwrap();
    let mut spec = spec(&folder);
    spec["evidence_in_first_round"] = json!(true);
    spec["budget_seconds"] = json!(0.0);
    let outcome = measured(spec).unwrap();
    assert_eq!(outcome.samples.len(), 2);
    assert_eq!(outcome.warnings[0], (String::new(), Warning::FewRuns(1)));
}

#[test]
fn hot_inputs_are_in_memory_and_cold_ones_are_not() {
    let _alone = alone_with_the_caches();
    let folder = TempDir::new().unwrap();
    let mut spec = spec(&folder);
    spec["inputs"] = json!([folder.join("input")]);
    spec["reads_data"] = json!(true);
    spec["warm"] = json!(["cat", folder.join("input")]);
    spec["state"] = json!("hot");
    let is_in_memory = stook_sys::storage(folder.path()).unwrap() == stook_sys::Storage::Memory;
    for sample in measured(spec.clone()).unwrap().samples {
        let share = sample.proof["pages_share"].as_f64();
        assert_eq!(share, (!is_in_memory).then_some(1.0));
    }
    spec["state"] = json!("cold");
    match measured(spec) {
        Ok(outcome) => {
            for sample in outcome.samples {
                assert_eq!(sample.proof["pages_share"], 0.0);
                assert!(
                    sample.proof["read_bytes"].as_u64().unwrap() >= 4096,
                    "{sample:?}"
                );
            }
        }
        // Not root, or nothing that could be cold.
        Err(error) => {
            let why = error.to_string();
            let may_not = why.contains("cannot be dropped");
            assert!(
                may_not || why.contains("nothing of the inputs can be asked for"),
                "{why}"
            );
        }
    }
}

#[test]
fn a_spec_without_sides_makes_no_sense() {
    let none = json!({"sides": [], "rounds": 1, "state": "hot"});
    assert!(matches!(measured(none), Err(BenchError::Usage { .. })));
}
