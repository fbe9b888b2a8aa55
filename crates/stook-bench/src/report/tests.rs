//! What sections say of results; the page as a whole is looked at by the tests of the program.

use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::latency::Latencies;
use crate::record::{Header, Sample};

fn results(kind: Kind, samples: Vec<Sample>) -> Results {
    Results {
        header: Header::new(kind, "2026-11-21T10:00:00Z"),
        samples,
    }
}

fn sample(labels: &[(&str, &str)], seconds: f64) -> Sample {
    let labels = labels.iter();
    let labels = labels.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Sample {
        round: 1,
        labels: labels.collect(),
        real_seconds: seconds,
        user_seconds: seconds / 10.0,
        run_delay_seconds: Some(0.0),
        ..Sample::default()
    }
}

fn plain(texts: &[String]) -> String {
    texts.join("\n").replace('\u{a0}', " ")
}

fn findings(run: &Results) -> String {
    plain(&section_of(run).findings)
}

fn names(run: &Results) -> Vec<String> {
    let figures = figures(std::slice::from_ref(run)).into_iter();
    figures.map(|figure| figure.name).collect()
}

#[track_caller]
fn contains(text: &str, part: &str) {
    assert!(text.contains(part), "{part} is not in:\n{text}");
}

#[test]
fn local_runs_are_compared_with_themselves_and_with_the_others() {
    let states = [
        ("hot", 1.0),
        ("local hot", 0.5),
        ("cold", 8.0),
        ("local cold", 1.0),
    ];
    let samples = states.map(|(state, seconds)| sample(&[("state", state)], seconds));
    let run = results(Kind::Cache, samples.to_vec());
    let found = findings(&run);
    for sentence in [
        "cold takes 8.00 × as long as hot (",
        "local cold takes 2.00 × as long as local hot (",
        "cold takes 8.00 × as long as local cold (",
        "hot takes 2.00 × as long as local hot (",
        "BLOCKED is 90.0 % of the cold time",
    ] {
        contains(&found, sentence);
    }
    assert!(!found.contains("as long as cold"), "{found}");
    assert_eq!(
        section_of(&run).title,
        "Caches: cold, hot, local cold and local hot"
    );
}

/// Two pairs of directories and these tools, each with the seconds of its update and its peak in MB.
fn update_of(tools: &[(&str, f64, u64)]) -> Results {
    let mut samples = Vec::new();
    for (create, update, factor) in [("a", "b", 1.0), ("b", "a", 4.0)] {
        for (tool, seconds, peak) in tools {
            let labels = [
                ("tool", *tool),
                ("create", create),
                ("update", update),
                ("operation", "update"),
            ];
            samples.push(Sample {
                peak_bytes: (*peak > 0).then_some(*peak << 20),
                ..sample(&labels, seconds * factor)
            });
        }
    }
    results(Kind::Update, samples)
}

#[test]
fn tools_are_compared_with_the_first_one_as_in_the_tables() {
    let run = update_of(&[("tar", 10.0, 0), ("stook", 1.0, 0)]);
    let sentence = "stook takes 0.10 × the time of tar, the geometric mean over 2 pairs";
    contains(&findings(&run), sentence);
    // Nothing is known of memory.
    assert_eq!(names(&run), ["time", "scatter-stook"]);
    contains(&crate::update::tables(&run), "stook x tar");
    let run = update_of(&[("stook", 1.0, 0), ("tar", 10.0, 0)]);
    contains(&findings(&run), "tar takes 10.0 × the time of stook");
    contains(&crate::update::tables(&run), "tar x stook");
}

#[test]
fn tools_that_have_no_operation_in_common_are_not_drawn_against_each_other() {
    let samples = [("tar", "create"), ("cp", "update")]
        .map(|(tool, operation)| sample(&[("tool", tool), ("operation", operation)], 1.0));
    assert_eq!(names(&results(Kind::Update, samples.to_vec())), ["time"]);
}

#[test]
fn memory_is_reported_as_far_as_it_is_known() {
    let run = |first, other| update_of(&[("stook", 1.0, first), ("tar", 1.0, other)]);
    let both = run(40, 20);
    let sentence = "At its peak tar holds, as a multiple of the memory of stook, 0.50 × to";
    contains(&findings(&both), sentence);
    let shown = page(&[both]);
    contains(&shown, ">40.0\u{a0}MiB");
    contains(&shown, ">20.0</td>");
    assert!(!findings(&run(40, 0)).contains("At its peak"));
}

#[test]
fn what_a_bench_itself_says_is_on_the_page() {
    let run = |slow: f64| {
        let of = |target, seconds: f64| {
            let labels = [("target", target), ("phase", "delete"), ("tool", "system")];
            (1..=3).map(move |round| Sample {
                round,
                ..sample(&labels, seconds)
            })
        };
        results(Kind::Fs, of("slow", slow).chain(of("fast", 1.0)).collect())
    };
    let found = findings(&run(20.0));
    let advice = "On `slow`, removing the tree takes 20 x as long as on `fast`: keep temporary files where it is fast.";
    assert!(found.starts_with(advice), "{found}");
    assert!(!found.contains("as long on `slow`"), "{found}");
    // No advice: the ratio is reported.
    let found = findings(&run(2.0));
    assert!(
        found.starts_with("`delete` takes 2.00 × as long on `slow`"),
        "{found}"
    );
    contains(
        &plain(&warnings::of(&run(0.001))),
        "On `slow`, these took less than 10 ms, too short to judge: delete.",
    );
    let cache = results(Kind::Cache, vec![sample(&[("state", "hot")], 0.001)]);
    contains(
        &plain(&warnings::of(&cache)),
        "Hot: a run takes 1.0 ms, not much more than starting a program.",
    );
}

#[test]
fn curves_are_drawn_of_few_operations_and_the_table_has_all() {
    let times = [("stat", 1000), ("unlink", 5), ("open", 1000), ("mkdir", 5)];
    let latencies = times.map(|(name, count)| {
        let mut times = Latencies::default();
        (0..count).for_each(|_| times.add(5_000));
        (name.to_owned(), times)
    });
    let labels = [("target", "/x"), ("phase", "untar"), ("tool", "single")];
    let all = Sample {
        latencies: BTreeMap::from(latencies),
        ..sample(&labels, 1.0)
    };
    let run = results(Kind::Fs, vec![all]);
    assert_eq!(names(&run), ["time-single", "latency-untar-stat"]);
    let page = page(&[run]);
    for name in ["open", "mkdir", "unlink"] {
        contains(&page, &format!("<td>{name}</td>"));
    }
}

#[test]
fn one_set_of_files_is_a_list_and_several_are_a_table() {
    let mut run = results(Kind::Fs, vec![]);
    let header = &mut run.header;
    header.files = Some(json!({ "stdev": 2.5, "files": 12_000, "format": "arc" }));
    let (title, files) = conditions::groups(header).pop().unwrap();
    let expected = [("format", "arc"), ("files", "12,000"), ("stdev", "2.50")];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!((title, files), ("Files", expected.to_vec()));
    assert!(conditions::file_sets(header).is_empty());
    header.files = Some(json!({ "a": { "files": 1 }, "b": { "files": 2, "mean": 1.5 } }));
    assert_eq!(conditions::groups(header).len(), 1);
    contains(&page(&[run]), ">1.50<");
}

#[test]
fn warnings_are_on_the_page() {
    let mut run = results(Kind::Update, vec![sample(&[("tool", "tar")], 0.001)]);
    run.header.machine.processors = 2;
    run.header.machine.load_average = Some(7.0);
    let found = plain(&warnings::of(&run));
    for warning in [
        "was run once",
        "load 7.0 on 2 processors",
        "1 of 1 took less than 10.0 ms",
    ] {
        contains(&found, warning);
    }
    run.samples.clear();
    contains(&plain(&warnings::of(&run)), "There are no samples");
}

#[test]
fn runs_of_different_commands_have_nothing_to_be_compared() {
    let run = |command: &str| {
        let mut results = results(Kind::Cache, vec![sample(&[("state", "hot")], 1.0)]);
        let command = ("command".to_owned(), json!(command));
        results.header.options.extend([command]);
        results
    };
    let [list, import] = ["stook list", "python3"].map(run);
    assert!(compare::compare(&[list.clone(), import.clone()]).is_empty());
    assert_eq!(compare::compare(&[list.clone(), import, list]).len(), 1);
}

#[test]
fn a_column_without_figures_is_left_out_and_texts_are_escaped() {
    let run = results(Kind::Cache, vec![sample(&[("state", "<b>")], 1.0)]);
    let page = page(&[run]);
    contains(&page, "<td>&lt;b&gt;</td>");
    assert!(!page.contains("peak, MiB"), "no memory was measured");
}
