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

#[test]
fn tools_are_compared_with_the_first_other_one_wherever_stook_stands() {
    let pairs = [("a", "b", 1.0), ("b", "a", 4.0)];
    let samples = pairs.iter().flat_map(|(create, update, seconds)| {
        let labels = |tool| {
            [
                ("tool", tool),
                ("create", *create),
                ("update", *update),
                ("operation", "update"),
            ]
        };
        [
            sample(&labels("tar"), 10.0 * seconds),
            sample(&labels("stook"), *seconds),
        ]
    });
    let part = part_of(&results(Kind::Update, samples.collect()));
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
    assert_eq!(names, ["time", "scatter-tar", "ratios-tar"]);
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
fn doubts_are_told() {
    let mut run = results(Kind::Cache, vec![sample(&[("state", "hot")], 0.001)]);
    run.header.machine.processors = 2;
    run.header.machine.load_average = Some(7.0);
    let told = plain(&doubts::of(&run));
    for doubt in [
        "was run once",
        "load 7.0 on 2 processors",
        "1 of 1 took less than 10.0 ms",
    ] {
        assert!(told.contains(doubt), "{told}");
    }
    run.samples.clear();
    assert!(plain(&doubts::of(&run)).contains("There are no samples"));
}
