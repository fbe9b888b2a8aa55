//! Made-up results: plausible figures from a seed, for tests of the page only.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the figures are made up"
)]

use std::collections::BTreeMap;

use serde_json::json;
use stook_bench::{Header, Kind, Latencies, Machine, Results, Sample};
use stook_testkit::Random;

/// Names that break a page that does not escape or shorten them.
pub(crate) const ODD: [&str; 3] = [
    "</script><script>alert(1)</script>",
    "\"quoted\" & 'odd' — ñandú 日本語 \u{202e}\u{1}",
    "/gpfs/projects/climate/ensemble-of-simulations/member-0042/a-long-name-without-any-blank/scratch",
];

const FILES: u64 = 100_000;
const BYTES: u64 = 716_500_000;

/// What a target costs for each operation, in seconds.
fn latency(target: usize) -> f64 {
    [4e-6, 21e-6, 60e-6, 350e-6, 900e-6, 2.4e-3][target % 6]
}

/// Phase, operations per file, what else it takes in seconds, and the names of the operations.
const PHASES: [(&str, f64, f64, &[&str]); 8] = [
    ("copy", 0.0001, 0.4, &[]),
    ("untar", 3.1, 0.9, &["create", "write", "close"]),
    ("find", 0.27, 0.08, &["getdents"]),
    ("stat", 1.0, 0.11, &["stat"]),
    ("read", 3.0, 0.5, &["open", "read"]),
    ("tar", 3.2, 0.7, &[]),
    ("copytree", 6.1, 1.4, &[]),
    ("delete", 1.1, 0.2, &["unlink"]),
];

pub(crate) fn header(kind: Kind, started: &str) -> Header {
    let mut header = Header::new(kind, started);
    header.machine = Machine {
        processor: "Example Processor 9000 2.40GHz".to_owned(),
        processors: 16,
        memory_bytes: Some(64 << 30),
        kernel: "Linux 6.1.0-example".to_owned(),
        system: "Example GNU/Linux 12".to_owned(),
        is_superuser: false,
        load_average: Some(0.42),
    };
    header.programs = programs(&[
        "stook 0.1.0",
        "tar (GNU tar) 1.34",
        "find (GNU findutils) 4.9.0",
    ]);
    header
}

fn programs(versions: &[&str]) -> BTreeMap<String, String> {
    let named = versions.iter().map(|version| {
        (
            version.split(' ').next().unwrap().to_owned(),
            (*version).to_owned(),
        )
    });
    named.collect()
}

fn labels(all: &[(&str, &str)]) -> BTreeMap<String, String> {
    all.iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

/// About `middle`, with a tail to longer times.
fn around(random: &mut Random, middle: f64, width: f64) -> f64 {
    middle * (random.normal() * width).exp()
}

/// A few thousand operations, and some that took long.
fn latencies(random: &mut Random, middle: f64) -> Latencies {
    let mut all = Latencies::default();
    for _ in 0..3000 {
        let is_slow = random.below(60) == 0;
        let seconds = around(random, if is_slow { middle * 12.0 } else { middle }, 0.35);
        all.add((seconds * 1e9) as u64);
    }
    all
}

/// Results of `stook bench fs`.
pub(crate) fn fs(targets: &[&str], rounds: u32, started: &str, seed: u64) -> Results {
    let mut random = Random::new(seed);
    let mut header = header(Kind::Fs, started);
    header.options.insert("targets".to_owned(), json!(targets));
    header.options.insert("rounds".to_owned(), json!(rounds));
    header.files = Some(json!({
        "format": "arc", "bytes": BYTES, "files": FILES, "mean": 7165, "stdev": 26623, "min": 21, "median": 1785, "max": 1258291,
    }));
    for (number, target) in targets.iter().enumerate() {
        let system = ["tmpfs", "ext4", "xfs", "lustre", "nfs4", "fuse"][number % 6];
        let facts = labels(&[("file_system", system), ("mount_options", "rw,relatime")]);
        header.facts.insert((*target).to_owned(), facts);
    }
    let mut samples = Vec::new();
    for round in 1..=rounds {
        for phase in &PHASES {
            for (number, target) in targets.iter().enumerate() {
                for tool in ["system", "stook"] {
                    let names = labels(&[("target", *target), ("phase", phase.0), ("tool", tool)]);
                    samples.push(fs_sample(&mut random, round, *phase, number, names));
                }
            }
        }
    }
    Results { header, samples }
}

type Phase = (&'static str, f64, f64, &'static [&'static str]);

fn fs_sample(
    random: &mut Random,
    round: u32,
    (_, per_file, base, names): Phase,
    target: usize,
    labels: BTreeMap<String, String>,
) -> Sample {
    let is_stook = labels["tool"] == "stook";
    let workers = if is_stook {
        1.5 + 4.0 * latency(target).log10().abs().recip() * (target as f64 + 1.0)
    } else {
        1.0
    };
    let waiting = per_file * FILES as f64 * latency(target) / workers;
    let busy = base * if is_stook { 0.7 } else { 1.0 };
    let real = around(random, waiting + busy, 0.04);
    Sample {
        round,
        real_seconds: real,
        run_delay_seconds: Some(0.0),
        user_seconds: around(random, busy * 0.35, 0.05),
        system_seconds: around(random, busy * 0.6, 0.05),
        peak_bytes: Some((if is_stook { 38 << 20 } else { 9 << 20 }) + random.below(1 << 20)),
        files: (per_file > 0.001).then_some(FILES),
        bytes: Some(BYTES),
        latencies: names
            .iter()
            .map(|name| ((*name).to_owned(), latencies(random, latency(target))))
            .collect(),
        labels,
        ..Sample::default()
    }
}

/// Results of `stook bench cache`.
pub(crate) fn cache(rounds: u32, has_mount: bool, started: &str, seed: u64) -> Results {
    let mut random = Random::new(seed);
    let mut header = header(Kind::Cache, started);
    header.options.insert(
        "command".to_owned(),
        json!(["python3", "-c", "import xarray"]),
    );
    let mut samples = Vec::new();
    for round in 1..=rounds {
        for (state, real, resident) in [
            ("cold", 6.1, 0.0),
            ("warm", 1.62, 0.002),
            ("hot", 0.51, 1.0),
        ] {
            samples.push(Sample {
                round,
                labels: labels(&[("state", state)]),
                real_seconds: around(&mut random, real, 0.05),
                run_delay_seconds: Some(0.0),
                user_seconds: around(&mut random, 0.31, 0.03),
                system_seconds: around(&mut random, if state == "hot" { 0.12 } else { 0.3 }, 0.05),
                served_seconds: has_mount
                    .then(|| around(&mut random, if state == "hot" { 0.001 } else { 0.33 }, 0.05)),
                peak_bytes: Some((120 << 20) + random.below(1 << 20)),
                proof: BTreeMap::from([("resident_share".to_owned(), json!(resident))]),
                ..Sample::default()
            });
        }
    }
    Results { header, samples }
}

/// Results of `stook bench update` over three directories.
pub(crate) fn update(tools: &[&str], rounds: u32, started: &str, seed: u64) -> Results {
    let mut random = Random::new(seed);
    let directories = [("build", 3.8), ("run", 21.0), ("init", 11.0)];
    let mut samples = Vec::new();
    for round in 1..=rounds {
        for (create, first) in directories {
            for (update, second) in directories.into_iter().filter(|(name, _)| *name != create) {
                for (number, tool) in tools.iter().enumerate() {
                    for (operation, seconds) in [
                        ("create", first),
                        ("update", second * 0.4),
                        ("extract", first + second),
                        ("check", (first + second) * 0.8),
                    ] {
                        let factor = if *tool == "stook" {
                            0.12
                        } else {
                            1.0 + 0.6 * number as f64
                        };
                        let real = around(&mut random, seconds * factor, 0.06);
                        samples.push(Sample {
                            round,
                            labels: labels(&[
                                ("tool", tool),
                                ("create", create),
                                ("update", update),
                                ("operation", operation),
                            ]),
                            real_seconds: real,
                            run_delay_seconds: Some(0.0),
                            user_seconds: real * 0.5,
                            system_seconds: real * 0.2,
                            peak_bytes: Some(
                                ((70.0 + 400.0 * factor) * 1e6) as u64 + random.below(5 << 20),
                            ),
                            files: Some(7046),
                            ..Sample::default()
                        });
                    }
                }
            }
        }
    }
    Results {
        header: header(Kind::Update, started),
        samples,
    }
}

/// Samples that have nothing but what they must, zeros, and labels that are missing.
pub(crate) fn bare(kind: Kind) -> Results {
    let empty = Sample {
        round: 1,
        ..Sample::default()
    };
    let zero = Sample {
        labels: labels(&[
            ("target", ""),
            ("phase", "x"),
            ("state", "odd"),
            ("news", "1"),
            ("tool", "a"),
        ]),
        peak_bytes: Some(0),
        files: Some(0),
        latencies: BTreeMap::from([("none".to_owned(), Latencies::default())]),
        ..empty.clone()
    };
    Results {
        header: header(kind, ""),
        samples: vec![empty, zero],
    }
}

/// The lines that a bench writes.
pub(crate) fn lines(results: &Results) -> String {
    let lines =
        std::iter::once(results.header.line()).chain(results.samples.iter().map(Sample::line));
    lines.map(|line| line + "\n").collect()
}
