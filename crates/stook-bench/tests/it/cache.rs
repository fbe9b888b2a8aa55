//! Cold, warm and hot runs of a command: their order, their proofs, and what refuses them.

use std::sync::MutexGuard;

use stook_bench::page_state::Method;
use stook_bench::{BenchError, CacheOptions, Job, cache};
use stook_testkit::TempDir;

use crate::observer::{Quiet, alone_with_the_caches};

fn in_folder(folder: &TempDir, line: &str) -> Job {
    Job {
        directory: Some(folder.path().to_owned()),
        ..Job::shell(line)
    }
}

fn options(folder: &TempDir, line: &str, rounds: u32) -> CacheOptions {
    std::fs::write(folder.join("data"), vec![1; 3_000_000]).unwrap();
    CacheOptions {
        files: vec![folder.join("data")],
        ..CacheOptions::new(in_folder(folder, line), rounds)
    }
}

fn refusal(options: &CacheOptions) -> String {
    let error = cache(options, &Quiet::default()).unwrap_err();
    assert!(
        matches!(
            error,
            BenchError::Refused { .. } | BenchError::Command { .. }
        ),
        "{error}"
    );
    error.to_string()
}

/// A folder whose files can be proved to be in memory or not, and the caches for this test alone.
fn scene() -> Option<(MutexGuard<'static, ()>, TempDir)> {
    let (alone, folder) = (alone_with_the_caches(), TempDir::new().unwrap());
    if stook_sys::storage(folder.path()).unwrap() == stook_sys::Storage::Memory {
        stook_testkit::skip!("the temporary folder is in memory");
        return None;
    }
    Some((alone, folder))
}

#[test]
fn each_round_has_each_state_and_its_proof() {
    let Some((_alone, folder)) = scene() else {
        return;
    };
    let quiet = Quiet::default();
    let mut options = options(&folder, "cat data", 2);
    options.local = Some(in_folder(&folder, "cat data"));
    let outcome = cache(&options, &quiet).unwrap();
    let labels: Vec<&str> = outcome
        .samples
        .iter()
        .map(|sample| sample.label("state"))
        .collect();
    let (command, local): (&[&str], &[&str]) = match Method::available() {
        Method::DropCaches => (
            &["cold", "warm", "hot"],
            &["local cold", "local warm", "local hot"],
        ),
        Method::Fadvise => (&["cold", "hot"], &["local cold", "local hot"]),
    };
    assert_eq!(
        labels,
        [command, local, local, command].concat(),
        "the first one by turns"
    );
    assert_eq!(*quiet.samples.lock().unwrap(), outcome.samples);
    for sample in &outcome.samples {
        let share = sample.proof["pages_share"].as_f64().unwrap();
        let read = sample.proof["read_bytes"].as_u64().unwrap();
        if sample.label("state").ends_with("hot") {
            assert!(share >= 0.99, "{sample:?}");
        } else {
            assert!(share <= 0.01 && read >= 2_900_000, "{sample:?}");
        }
    }
}

#[test]
fn hooks_run_before_each_cold_and_each_warm_run() {
    let Some((_alone, folder)) = scene() else {
        return;
    };
    let mut options = options(&folder, "cat data", 2);
    options.cold_hook = Some(in_folder(&folder, "echo cold >> hooks"));
    options.warm_hook = Some(in_folder(&folder, "echo warm >> hooks"));
    let outcome = cache(&options, &Quiet::default()).unwrap();
    assert_eq!(outcome.samples.len(), 6);
    let hooks = std::fs::read_to_string(folder.join("hooks")).unwrap();
    assert_eq!(
        hooks, "cold\ncold\nwarm\ncold\nwarm\n",
        "and before the untimed run"
    );
    assert!(
        outcome.legend[1].starts_with("warm: `echo warm >> hooks`, then "),
        "{:?}",
        outcome.legend
    );
}

#[test]
fn a_hook_that_fails_is_named_with_its_round_and_its_stderr() {
    let Some((_alone, folder)) = scene() else {
        return;
    };
    let mut options = options(&folder, "cat data", 2);
    options.cold_hook = Some(Job::shell("true"));
    options.warm_hook = Some(in_folder(
        &folder,
        "[ -e once ] && { echo busy >&2; exit 32; }; touch once",
    ));
    let error = refusal(&options);
    assert!(
        error.ends_with("failed before round 2, warm: exit status 32\n  busy"),
        "{error}"
    );
}

#[test]
fn a_state_that_does_not_hold_ends_the_bench() {
    let Some((_alone, folder)) = scene() else {
        return;
    };
    let mut options = options(&folder, "cat data", 2);
    // From the first round on, not in the untimed run, a program has the file mapped.
    let map = "import mmap, time\nf = open('data', 'rb')\nm = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)\n\
               x = [m[i] for i in range(0, len(m), 4096)]\nopen('ready', 'w')\ntime.sleep(20)";
    std::fs::write(folder.join("map.py"), map).unwrap();
    let hook = "if [ -e second ]; then python3 map.py & echo $! > pid; while ! [ -e ready ]; do sleep 0.01; done; fi; touch second";
    options.cold_hook = Some(in_folder(&folder, hook));
    let error = refusal(&options);
    Job::shell(&format!(
        "kill {}",
        std::fs::read_to_string(folder.join("pid")).unwrap()
    ))
    .run(&Quiet::default())
    .unwrap();
    assert!(
        error.starts_with("round 1, cold: the state does not hold: of what `cat data` reads (files looked at: 1), 100.0 % of the pages"),
        "{error}"
    );
}

#[test]
fn a_command_that_changes_what_it_reads_is_refused() {
    let Some((_alone, folder)) = scene() else {
        return;
    };
    let options = options(&folder, "cat data; echo x >> data", 2);
    let error = refusal(&options);
    assert!(
        error.contains("/data`, which ") && error.ends_with("has changed since its first run"),
        "{error}"
    );
}

#[test]
fn a_command_that_prints_something_else_is_refused() {
    let Some((_alone, folder)) = scene() else {
        return;
    };
    let options = options(&folder, "cat data; echo . >> runs; cat runs", 2);
    let error = refusal(&options);
    assert!(
        error.ends_with("it does not do the same each time"),
        "{error}"
    );
}

#[test]
fn a_command_that_fails_in_one_of_its_runs_is_named_with_the_run() {
    let Some((_alone, folder)) = scene() else {
        return;
    };
    // Untimed, its lines counted, cold: the third one fails.
    let line = "cat data; echo . >> runs; [ $(wc -l < runs) != 3 ] || { echo gone >&2; exit 5; }";
    let error = refusal(&options(&folder, line, 1));
    assert!(
        error.ends_with("failed in round 1, cold: exit status 5\n  gone"),
        "{error}"
    );
}

#[test]
fn what_the_user_named_must_prove_something() {
    let _alone = alone_with_the_caches();
    let folder = TempDir::new().unwrap();
    let mut options = CacheOptions::new(Job::new(["true"]), 1);
    std::fs::write(folder.join("unread"), "").unwrap();
    options.files = vec!["/proc/self/status".into()];
    assert!(
        refusal(&options)
            .starts_with("nothing that `true` reads can be both dropped and asked for")
    );
    options.files = vec![folder.join("none")];
    let error = cache(&options, &Quiet::default()).unwrap_err().to_string();
    assert!(error.starts_with("cannot resolve `"), "{error}");
}

#[test]
fn no_rounds_make_no_sense_and_an_end_is_an_end() {
    let _alone = alone_with_the_caches();
    let none = cache(&CacheOptions::new(Job::new(["true"]), 0), &Quiet::default());
    assert!(matches!(none, Err(BenchError::Usage { .. })));
    let stopped = cache(
        &CacheOptions::new(Job::new(["sleep", "60"]), 1),
        &Quiet::stopped(),
    );
    assert!(matches!(stopped, Err(BenchError::Interrupted)));
}
