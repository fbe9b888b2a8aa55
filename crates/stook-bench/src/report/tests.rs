//! What parts say of results; the page as a whole is looked at by the tests of the program.

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
    let labels = labels
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
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

#[test]
fn names_of_files_are_plain_and_differ() {
    let texts = ["tar", "Tar!", "a/b c", "日本", "", "tar"].map(ToOwned::to_owned);
    assert_eq!(
        file_names(&texts),
        ["tar", "tar-2", "a-b-c", "unnamed", "unnamed-2", "tar-3"]
    );
}

#[test]
fn local_runs_are_compared_with_themselves_and_with_the_others() {
    let states = [
        ("hot", 1.0),
        ("local hot", 0.5),
        ("cold", 8.0),
        ("local cold", 1.0),
    ];
    let samples = states
        .map(|(state, seconds)| sample(&[("state", state)], seconds))
        .to_vec();
    let part = part_of(&results(Kind::Cache, samples));
    let told = plain(&part.findings);
    for sentence in [
        "cold takes 8.00 × as long as hot (",
        "local cold takes 2.00 × as long as local hot (",
        "cold takes 8.00 × as long as local cold (",
        "hot takes 2.00 × as long as local hot (",
        "BLOCKED is 90.0 % of the cold time",
    ] {
        assert!(told.contains(sentence), "{sentence} is not in:\n{told}");
    }
    assert!(!told.contains("as long as cold"), "{told}");
    assert_eq!(part.title, "Caches: cold, hot, local cold and local hot");
}

/// Two pairs of directories and these tools, each with the seconds of its update and its peak in MB.
fn update_of(tools: &[(&str, f64, u64)]) -> Results {
    let pairs = [("a", "b", 1.0), ("b", "a", 4.0)];
    let samples = pairs.iter().flat_map(|(create, update, factor)| {
        tools.iter().map(move |(tool, seconds, peak)| {
            let labels = [
                ("tool", *tool),
                ("create", *create),
                ("update", *update),
                ("operation", "update"),
            ];
            let mut sample = sample(&labels, seconds * factor);
            sample.peak_bytes = (*peak > 0).then_some(*peak << 20);
            sample
        })
    });
    results(Kind::Update, samples.collect())
}

#[test]
fn tools_are_compared_with_the_first_one_as_in_the_tables() {
    let run = update_of(&[("tar", 10.0, 0), ("stook", 1.0, 0)]);
    let part = part_of(&run);
    let told = plain(&part.findings);
    assert!(
        told.contains("stook takes 0.10 × the time of tar, the geometric mean over 2 pairs"),
        "{told}"
    );
    let names: Vec<String> = part
        .exhibits
        .iter()
        .flat_map(|exhibit| &exhibit.figures)
        .map(|figure| figure.name.clone())
        .collect();
    // Nothing is known of memory.
    assert_eq!(names, ["time", "scatter-stook", "ratios-stook"]);
    assert!(crate::update::tables(&run).contains("stook x tar"));
    let run = update_of(&[("stook", 1.0, 0), ("tar", 10.0, 0)]);
    let told = plain(&part_of(&run).findings);
    assert!(
        told.contains("tar takes 10.0 × the time of stook"),
        "{told}"
    );
    assert!(crate::update::tables(&run).contains("tar x stook"));
}

#[test]
fn tools_that_have_no_operation_in_common_are_not_drawn_against_each_other() {
    let samples = [("tar", "create"), ("cp", "update")]
        .map(|(tool, operation)| sample(&[("tool", tool), ("operation", operation)], 1.0));
    let names = |run: &Results| -> Vec<String> {
        let figures = figures(std::slice::from_ref(run));
        figures.into_iter().map(|figure| figure.name).collect()
    };
    assert_eq!(names(&results(Kind::Update, samples.to_vec())), ["time"]);
}

#[test]
fn memory_is_told_as_far_as_it_is_known() {
    let told = |first, other| {
        let run = update_of(&[("stook", 1.0, first), ("tar", 1.0, other)]);
        (plain(&part_of(&run).findings), page(&[run]))
    };
    let (both, shown) = told(40, 20);
    assert!(
        both.contains("At its peak tar holds, as a multiple of the memory of stook, 0.50 × to"),
        "{both}"
    );
    assert!(shown.contains(">40.0\u{a0}MiB") && shown.contains(">20.0</td>"));
    assert!(!told(40, 0).0.contains("At its peak"));
}

#[test]
fn what_a_bench_itself_says_is_on_the_page() {
    let run = |kind, name: &str, slow: f64| {
        let of = |target, seconds: f64| {
            (1..=3).map(move |round| Sample {
                round,
                ..sample(
                    &[("target", target), ("phase", name), ("tool", "system")],
                    seconds,
                )
            })
        };
        results(kind, of("slow", slow).chain(of("fast", 1.0)).collect())
    };
    let told = run(Kind::Fs, "delete", 20.0);
    let findings = plain(&part_of(&told).findings);
    assert!(
        findings.starts_with("On `slow`, removing the tree takes 20 x as long as on `fast`: keep temporary files where it is fast."),
        "{findings}"
    );
    assert!(!findings.contains("as long on `slow`"), "{findings}");
    // No advice: the ratio is told.
    let findings = plain(&part_of(&run(Kind::Fs, "delete", 2.0)).findings);
    assert!(
        findings.starts_with("`delete` takes 2.00 × as long on `slow`"),
        "{findings}"
    );
    let short = plain(&warnings::of(&run(Kind::Fs, "delete", 0.001)));
    assert!(
        short.contains(
            "On `slow`, less than 10 ms is too short to be judged; give more --files: delete."
        ),
        "{short}"
    );
    let samples = vec![sample(&[("state", "hot")], 0.001)];
    let of_cache = plain(&warnings::of(&results(Kind::Cache, samples)));
    assert!(
        of_cache.contains("Hot: a run takes 1.0 ms, not much more than starting a program."),
        "{of_cache}"
    );
}

#[test]
fn curves_are_drawn_of_operations_that_matter() {
    let mut latencies = BTreeMap::new();
    for (name, count, nanoseconds) in [
        ("open", 1000, 5_000),
        ("mkdir", 5, 90_000),
        ("close", 1000, 10),
    ] {
        let mut times = Latencies::default();
        (0..count).for_each(|_| times.add(nanoseconds));
        latencies.insert(name.to_owned(), times);
    }
    let labels = [("target", "/x"), ("phase", "untar"), ("tool", "single")];
    let run = results(
        Kind::Fs,
        vec![Sample {
            latencies,
            ..sample(&labels, 1.0)
        }],
    );
    let names: Vec<String> = figures(std::slice::from_ref(&run))
        .into_iter()
        .map(|figure| figure.name)
        .collect();
    assert_eq!(names, ["time-single", "latency-untar-open"]);
    assert!(page(&[run]).contains("<td>mkdir</td>"));
}

#[test]
fn one_set_of_files_is_a_list_and_several_are_a_table() {
    let mut header = Header::new(Kind::Fs, "");
    header.files = Some(json!({ "stdev": 2.5, "files": 12_000, "format": "arc" }));
    let groups = facts::groups(&header);
    let (title, files) = groups.last().unwrap();
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert_eq!(
        (*title, files),
        (
            "Files",
            vec![("format", "arc"), ("files", "12,000"), ("stdev", "2.50")]
        )
    );
    assert!(facts::file_sets(&header).is_empty());
    header.files = Some(json!({ "a": { "files": 1 }, "b": { "files": 2, "mean": 1.5 } }));
    assert_eq!(facts::groups(&header).len(), 1);
    assert!(
        facts::file_sets(&header)
            .html()
            .into_string()
            .contains(">1.50<")
    );
}

#[test]
fn warnings_are_on_the_page() {
    let mut run = results(Kind::Update, vec![sample(&[("tool", "tar")], 0.001)]);
    run.header.machine.processors = 2;
    run.header.machine.load_average = Some(7.0);
    let told = plain(&warnings::of(&run));
    for warning in [
        "was run once",
        "load 7.0 on 2 processors",
        "1 of 1 took less than 10.0 ms",
    ] {
        assert!(told.contains(warning), "{told}");
    }
    run.samples.clear();
    assert!(plain(&warnings::of(&run)).contains("There are no samples"));
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
