//! Where the time went: phase lines of `--verbose`, and `--timings`.

use serde_json::Value;

use crate::commands::{sample_tree, updated};
use crate::place::Place;

/// Returns the record at a path of scope names.
fn scope<'a>(report: &'a Value, path: &[&str]) -> &'a Value {
    let mut records = &report["roots"];
    let mut found = &Value::Null;
    for name in path {
        let all = records.as_array().unwrap();
        found = all
            .iter()
            .find(|record| record["name"] == *name)
            .unwrap_or_else(|| panic!("no {name} of {path:?} in {records}"));
        records = &found["children"];
    }
    found
}

/// Runs a command with `--timings=json`; returns its report, which is all that a quiet run prints on stderr.
fn measured(place: &Place, arguments: &[&str]) -> Value {
    let ran = place.run(&[arguments, &["--timings=json", "--quiet"]].concat());
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let report: Value = serde_json::from_str(&ran.stderr).unwrap();
    assert_eq!(report["dropped"], 0);
    for root in report["roots"].as_array().unwrap() {
        assert_eq!(root["running"], 0, "{root}");
    }
    report
}

#[test]
fn every_command_has_the_scopes_of_its_work() {
    let place = Place::with(&sample_tree());
    let create = measured(&place, &["create", "src", "arc"]);
    assert_eq!(scope(&create, &["archive", "pack", "read"])["calls"], 3);
    assert_eq!(scope(&create, &["survey", "walk", "compare"])["calls"], 3);
    assert_eq!(
        scope(&create, &["archive", "finish volumes", "commit"])["calls"],
        1
    );
    for path in [
        &["archive", "write", "write volume"][..],
        &["survey", "sort"],
        &["finish"],
    ] {
        assert!(
            scope(&create, path)["total_ns"].as_u64().unwrap() > 0,
            "{path:?}"
        );
    }
    place.write("src/a", "changed");
    let update = measured(&place, &["update", "src", "arc"]);
    assert_eq!(scope(&update, &["load index"])["calls"], 1);
    assert_eq!(scope(&update, &["archive", "pack", "read"])["calls"], 1);
    scope(
        &measured(&place, &["diff", "src", "arc"]),
        &["survey", "walk"],
    );
    scope(
        &measured(&place, &["check", "arc"]),
        &["check", "section", "md5"],
    );
    scope(&measured(&place, &["list", "arc"]), &["list"]);
    scope(&measured(&place, &["cat", "arc", "a"]), &["cat", "md5"]);
    scope(
        &measured(&place, &["extract", "arc", "--into", "out"]),
        &["extract", "batch", "write"],
    );
    scope(&measured(&place, &["reindex", "arc"]), &["reindex", "md5s"]);
}

#[test]
fn the_parts_of_a_scope_are_not_longer_than_it() {
    let place = Place::with(&sample_tree());
    let report = measured(&place, &["create", "src", "arc", "--jobs", "1"]);
    let mut records: Vec<&Value> = report["roots"].as_array().unwrap().iter().collect();
    while let Some(record) = records.pop() {
        let number = |name: &str| record[name].as_u64().unwrap();
        assert!(number("self_ns") <= number("total_ns"), "{record}");
        assert!(
            number("min_ns") <= number("max_ns") && number("max_ns") <= number("total_ns"),
            "{record}"
        );
        let histogram = record["histogram"].as_array().unwrap();
        assert_eq!(
            histogram
                .iter()
                .map(|count| count.as_u64().unwrap())
                .sum::<u64>(),
            number("calls")
        );
        records.extend(record["children"].as_array().unwrap());
    }
}

#[test]
fn timings_are_a_table_on_stderr_or_a_file_of_their_own() {
    let place = Place::with(&sample_tree());
    let table = place.stderr(&["create", "src", "arc", "--timings"]);
    let head = table
        .lines()
        .find(|line| line.starts_with("scope"))
        .unwrap();
    let columns: Vec<&str> = head.split_whitespace().collect();
    assert_eq!(
        columns,
        [
            "scope", "calls", "total", "self", "min", "mean", "max", "share"
        ]
    );
    for row in ["archive ", "  pack ", "    read ", "survey "] {
        assert!(
            table.lines().any(|line| line.starts_with(row)),
            "{row}\n{table}"
        );
    }
    assert!(
        table.lines().last().unwrap().ends_with("0 scopes dropped"),
        "{table}"
    );
    let ran = place.run(&[
        "list",
        "arc",
        "--timings=json",
        "--timings-to",
        "report.json",
    ]);
    assert_eq!((ran.status, ran.stderr.as_str()), (Some(0), ""));
    assert_eq!(ran.text(), place.stdout(&["list", "arc"]));
    let report: Value =
        serde_json::from_slice(&std::fs::read(place.path("report.json")).unwrap()).unwrap();
    scope(&report, &["list"]);
    place.stderr(&[
        "list",
        "arc",
        "--timings=tree",
        "--timings-to",
        "report.txt",
    ]);
    assert!(
        std::fs::read_to_string(place.path("report.txt"))
            .unwrap()
            .starts_with("scope ")
    );
}

#[test]
fn timings_with_cpu_time_show_what_was_blocked() {
    let place = Place::with(&sample_tree());
    let table = place.stderr(&["create", "src", "arc", "--timings=cpu", "-q"]);
    let columns: Vec<&str> = table.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(columns[3..7], ["self", "cpu", "blocked", "blocked%"]);
    let archive = table.lines().find(|line| line.starts_with("archive "));
    assert!(archive.unwrap().matches('%').count() == 2, "{table}");
    let line = |name: &str| {
        let line = table
            .lines()
            .find(|line| line.trim_start().starts_with(name));
        line.unwrap_or_else(|| panic!("no {name}: {table}"))
    };
    assert!(line("sum ").ends_with("100.0%"), "{table}");
    // The cell of CPU time is a number and its unit; where there is none, `-`.
    let milliseconds = |line: &str, cell: usize| -> f64 {
        let cells: Vec<&str> = line
            .split("  ")
            .map(str::trim)
            .filter(|cell| !cell.is_empty())
            .collect();
        let (number, unit) = cells[cell].split_once(' ').unwrap();
        let scale = match unit {
            "ns" => 1e-6,
            "us" => 1e-3,
            "ms" => 1.0,
            _ => 1e3,
        };
        number.parse::<f64>().unwrap() * scale
    };
    let cpu = |name: &str| milliseconds(line(name), 4);
    // Helpers may run some of `pack`, or all of it.
    let parts = cpu("archive ").max(cpu("pack ")) + cpu("survey ") + cpu("outside scopes ");
    assert!(cpu("sum ") * 1.001 >= parts, "{table}");
}

#[test]
fn folded_timings_are_paths_with_a_number() {
    let place = Place::with(&sample_tree());
    let text = place.stderr(&["create", "src", "arc", "--timings=folded", "-q"]);
    let stacks: Vec<(&str, u64)> = text
        .lines()
        .map(|line| line.rsplit_once(' ').unwrap())
        .map(|(path, number)| (path, number.parse().unwrap()))
        .collect();
    assert!(stacks.is_sorted(), "{text}");
    for path in ["survey;walk;compare", "archive;pack;read", "finish"] {
        assert!(stacks.iter().any(|stack| stack.0 == path), "{path}\n{text}");
    }
}

#[test]
fn a_flame_graph_has_a_frame_for_every_scope() {
    let place = Place::with(&sample_tree());
    let to_file = ["--timings=svg", "--timings-to", "t.svg", "-q"];
    place.stderr(&[&["create", "src", "arc"], &to_file[..]].concat());
    let drawing = std::fs::read_to_string(place.path("t.svg")).unwrap();
    assert!(drawing.starts_with("<?xml") && drawing.ends_with("</svg>\n"));
    for name in ["survey", "archive", "pack"] {
        assert!(
            drawing.contains(&format!("<title>{name} (")),
            "{name}\n{drawing}"
        );
    }
    // All that it needs is in it.
    assert!(!drawing.contains(" href=\"http") && !drawing.contains(" src=\"http"));
    let ran = place.run(&["list", "gone", "--timings=svg"]);
    assert_eq!(ran.status, Some(1));
}

#[test]
fn a_trace_has_the_single_calls() {
    let place = Place::with(&sample_tree());
    place.stderr(&[
        "create",
        "src",
        "arc",
        "--timings=trace",
        "--timings-to",
        "t.json",
    ]);
    let text = std::fs::read(place.path("t.json")).unwrap();
    let trace: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(trace["otherData"]["dropped_events"], 0);
    let events = trace["traceEvents"].as_array().unwrap();
    let is_read = |event: &&Value| event["ph"] == "X" && event["name"] == "read";
    assert_eq!(events.iter().filter(is_read).count(), 3);
    assert!(events.iter().any(|event| event["ph"] == "C"), "{trace}");
}

#[test]
fn timings_are_printed_when_a_command_fails_too() {
    let place = Place::with(&sample_tree());
    place.stderr(&["create", "src", "arc"]);
    place.sql(
        "arc/index.db",
        "update files set md5 = '00000000000000000000000000000000' where name = 'a'",
    );
    let ran = place.run(&["check", "arc", "--timings=json", "-q"]);
    assert_eq!(ran.status, Some(4));
    let report: Value = serde_json::from_str(ran.stderr.lines().last().unwrap()).unwrap();
    scope(&report, &["check"]);
    let ran = place.run(&["cat", "arc", "a", "--timings=json", "-q"]);
    assert_eq!(ran.status, Some(4));
    let is_report = |line: &str| serde_json::from_str::<Value>(line).is_ok();
    assert!(ran.stderr.lines().any(is_report), "{}", ran.stderr);
}

#[test]
fn verbose_runs_name_every_file_and_end_with_their_phases() {
    let place = updated();
    let lines: Vec<String> = place
        .stderr(&["update", "src", "arc", "-vv"])
        .lines()
        .map(ToOwned::to_owned)
        .collect();
    assert_eq!(&lines[..2], ["a", "new"], "{lines:?}");
    let columns = |line: &str| {
        line.split_whitespace()
            .map(ToOwned::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        columns(&lines[2]),
        ["phase", "seconds", "share", "files/s", "MB/s", "peak"]
    );
    let phases: Vec<String> = lines[3..]
        .iter()
        .map(|line| columns(line)[0].clone())
        .collect();
    assert_eq!(phases, ["survey", "archive", "archived"]);
    let shares: f64 = lines[3..5]
        .iter()
        .map(|line| columns(line)[2].parse::<f64>().unwrap())
        .sum();
    assert!((99.0..=101.0).contains(&shares), "{lines:?}");
    for (arguments, phase) in [
        (&["check", "arc", "-v"][..], "check"),
        (&["extract", "arc", "--into", "out", "-v"], "extract"),
        (&["reindex", "arc", "-v"], "reindex"),
        (&["diff", "src", "arc", "-v"], "compare"),
    ] {
        let text = place.stderr(arguments);
        assert!(
            text.lines().any(|line| line.starts_with(phase)),
            "{arguments:?}: {text}"
        );
    }
    let phases = place.json(&["check", "arc", "-v", "--json"])[0].clone();
    assert_eq!(
        (&phases["type"], &phases["phases"][1]["name"]),
        (&"phases".into(), &"check".into())
    );
    assert!(phases["phases"][0]["peak_bytes"].as_u64().unwrap() > 1 << 20);
}
