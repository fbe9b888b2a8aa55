//! File systems measured by the tools of the system, and by one operation after the other: order, refusals, and what stays.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use stook_bench::fileset::{FilesetOptions, Filling, Jobs, Spec};
use stook_bench::fs::{FsBench, FsCaches, FsOptions, Phase, Tool, text};
use stook_bench::{BenchError, Observer, Remedy, Sample};
use stook_testkit::TempDir;

use crate::observer::Quiet;

/// The tools that need no stook program: it is tested where there is one.
fn options(folder: &TempDir, names: &[&str]) -> FsOptions {
    for name in names.iter().chain(&["work"]) {
        std::fs::create_dir_all(folder.join(name)).unwrap();
    }
    FsOptions {
        targets: names.iter().map(|name| folder.join(name)).collect(),
        files: FilesetOptions {
            spec: Spec::named("arc").unwrap(),
            files: 60,
            seed: 7,
            jobs: Jobs::Adaptive,
            filling: Filling::default(),
        },
        rounds: 2,
        phases: Phase::ALL.to_vec(),
        tools: vec![Tool::System, Tool::Single],
        caches: FsCaches::AsLeft,
        work: folder.join("work"),
        stook: PathBuf::from("no-such-program"),
    }
}

fn refused(options: FsOptions) -> BenchError {
    FsBench::new(options, &Quiet::default()).unwrap_err()
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).unwrap().next().is_none()
}

#[test]
fn every_target_phase_and_tool_has_a_sample_in_each_round() {
    let folder = TempDir::new().unwrap();
    let bench = FsBench::new(options(&folder, &["a", "b"]), &Quiet::default()).unwrap();
    let observer = Quiet::default();
    let samples = bench.run(&observer).unwrap();
    assert_eq!(samples.len(), 2 * 2 * 8 * 2);
    assert_eq!(*observer.samples.lock().unwrap(), samples);
    let order: Vec<String> = samples[..8]
        .iter()
        .map(|sample| {
            ["phase", "target", "tool"]
                .map(|name| sample.label(name).rsplit('/').next().unwrap().to_owned())
                .join(" ")
        })
        .collect();
    // Targets next to each other; the second round begins with the second tool.
    assert_eq!(
        order[..5],
        [
            "copy a system",
            "copy a single",
            "copy b system",
            "copy b single",
            "untar a system"
        ]
    );
    assert_eq!(samples[32].label("tool"), "single");
    let untar = samples
        .iter()
        .find(|sample| sample.label("phase") == "untar")
        .unwrap();
    assert_eq!((untar.files, untar.round), (Some(60), 1));
    for name in ["a", "b", "work"] {
        assert!(is_empty(&folder.join(name)), "{name}");
    }
    let header = bench.header("2026-11-21T10:00:00Z");
    assert!(header.programs["tar"].contains("tar") && header.facts.len() == 2);
    let text = text(&header, &samples);
    assert!(
        text.starts_with("Seconds, the median of 2 rounds: 60 files"),
        "{text}"
    );
    assert!(text.contains("one after the other") && text.contains("copy-tree"));
}

#[test]
fn phases_that_others_need_are_done_untimed_and_once() {
    let folder = TempDir::new().unwrap();
    let mut options = options(&folder, &["a"]);
    // What is chosen twice is done once.
    options.phases = vec![Phase::Stat, Phase::Stat];
    options.tools = vec![Tool::Single, Tool::Single];
    let samples = FsBench::new(options, &Quiet::default())
        .unwrap()
        .run(&Quiet::default())
        .unwrap();
    assert!(samples.iter().all(|sample| sample.label("phase") == "stat"));
    assert_eq!(samples.len(), 2);
}

#[test]
fn choices_that_make_no_sense_are_refused() {
    let folder = TempDir::new().unwrap();
    let with = |change: &dyn Fn(&mut FsOptions)| {
        let mut options = options(&folder, &["a"]);
        change(&mut options);
        let error = refused(options);
        assert!(matches!(error, BenchError::Usage { .. }), "{error}");
        error.to_string()
    };
    assert_eq!(
        with(&|options| options.rounds = 0),
        "zero rounds measure nothing"
    );
    with(&|options| options.files.files = 0);
    with(&|options| options.files.files = u64::MAX);
    with(&|options| options.targets.clear());
    with(&|options| options.tools.clear());
    let twice = with(&|options| options.targets.push(options.targets[0].join("../a")));
    assert!(twice.ends_with("are the same directory"), "{twice}");
}

#[test]
fn a_target_that_cannot_be_used_is_named_before_anything_is_made() {
    let folder = TempDir::new().unwrap();
    let with = |target: &str| {
        let mut options = options(&folder, &["a"]);
        options.targets.push(folder.join(target));
        refused(options).to_string()
    };
    assert!(with("none").ends_with("none`: no such file or directory"));
    std::fs::write(folder.join("file"), "").unwrap();
    assert!(with("file").ends_with("file`: not a directory"));
    assert!(is_empty(&folder.join("a")) && is_empty(&folder.join("work")));
}

#[test]
fn a_target_without_free_space_is_refused_with_figures() {
    let folder = TempDir::new().unwrap();
    let mut options = options(&folder, &["a"]);
    // Sizes need not be made to be counted.
    options.files.files = 1000;
    (options.files.spec.sizes.min, options.files.spec.sizes.max) = (1 << 50, 1 << 50);
    let error = refused(options);
    assert!(error.to_string().contains("MB are needed"), "{error}");
    assert_eq!(error.remedy(), Some(&Remedy::MeasureLess));
}

#[test]
fn a_missing_program_is_named_with_what_helps() {
    let folder = TempDir::new().unwrap();
    let mut options = options(&folder, &["a"]);
    options.tools = vec![Tool::Stook];
    let error = refused(options);
    assert_eq!(
        error.to_string(),
        "cannot run `stook`: no such file or directory"
    );
    assert_eq!(error.remedy(), Some(&Remedy::InstallOrLeaveOut("stook")));
}

/// Removes a target at a certain sample, or wants an end then.
struct Meddler<'a> {
    quiet: Quiet,
    at: u32,
    seen: AtomicU32,
    vanishing: Option<&'a Path>,
}

impl Observer for Meddler<'_> {
    fn warning(&self, text: &str) {
        self.quiet.warning(text);
    }
    fn sampled(&self, sample: &Sample) {
        self.quiet.sampled(sample);
        if self.seen.fetch_add(1, Ordering::Relaxed) + 1 == self.at
            && let Some(target) = self.vanishing
        {
            stook_testkit::remove_tree(target).unwrap();
        }
    }
    fn is_stopped(&self) -> bool {
        self.vanishing.is_none() && self.seen.load(Ordering::Relaxed) >= self.at
    }
}

#[test]
fn a_target_that_vanishes_is_named_and_the_others_are_cleaned() {
    let folder = TempDir::new().unwrap();
    let vanishing = folder.join("b");
    for tool in [Tool::System, Tool::Single] {
        let mut options = options(&folder, &["a", "b"]);
        options.tools = vec![tool];
        let meddler = Meddler {
            quiet: Quiet::default(),
            at: 4,
            seen: AtomicU32::new(0),
            vanishing: Some(&vanishing),
        };
        let error = FsBench::new(options, &meddler)
            .unwrap()
            .run(&meddler)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("in round 1, find on `") && error.contains("/b` with"),
            "{error}"
        );
        assert!(error.contains("o such file or directory"), "{error}");
        assert!(is_empty(&folder.join("a")) && is_empty(&folder.join("work")));
        assert_eq!(
            meddler.quiet.samples.lock().unwrap().len(),
            5,
            "the samples until then were reported"
        );
        let warnings = meddler.quiet.warnings.lock().unwrap();
        assert!(
            warnings.len() == 1 && warnings[0].contains("that holds it has vanished"),
            "{warnings:?}"
        );
    }
}

#[test]
fn an_end_removes_what_was_made() {
    let folder = TempDir::new().unwrap();
    std::fs::create_dir(folder.join("a")).unwrap();
    std::fs::write(folder.join("a/mine"), "").unwrap();
    let meddler = Meddler {
        quiet: Quiet::default(),
        at: 9,
        seen: AtomicU32::new(0),
        vanishing: None,
    };
    let mut options = options(&folder, &["a"]);
    options.files.files = 2000;
    let error = FsBench::new(options, &meddler)
        .unwrap()
        .run(&meddler)
        .unwrap_err();
    assert!(matches!(error, BenchError::Interrupted), "{error}");
    let left: Vec<_> = std::fs::read_dir(folder.join("a"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["mine"]);
    assert!(is_empty(&folder.join("work")));
}
