//! `stook bench cache`: what it prints, what its samples hold, and what it refuses. How states are made is tested in
//! stook-bench.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use stook_testkit::slowfs::{Options, SlowFs, unavailable};

use crate::place::{Place, Ran, json_lines};

/// Keeps these tests apart: they drop the caches of the whole machine.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static CACHES: Mutex<()> = Mutex::new(());
    CACHES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A place with a file of some MB; None where temporary files are in memory.
fn place() -> Option<Place> {
    let place = Place::new();
    place.write("data", vec![b'\n'; 3_000_000]);
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let root = std::fs::canonicalize(place.root()).unwrap();
    let below = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (point, kind) = (fields.next()?, fields.next()?);
        root.starts_with(point).then_some((point.len(), kind))
    });
    let kind = below.max_by_key(|(len, _)| *len).map(|(_, kind)| kind);
    if kind == Some("tmpfs") {
        stook_testkit::skip!("the temporary folder is in memory");
        return None;
    }
    Some(place)
}

fn samples(lines: &[Value], state: &str) -> Vec<Value> {
    let of_state = lines.iter().filter(|line| line["labels"]["state"] == state);
    of_state.cloned().collect()
}

fn figure(sample: &Value, name: &str) -> f64 {
    sample[name].as_f64().unwrap()
}

fn cpu(sample: &Value) -> f64 {
    figure(sample, "user_seconds") + figure(sample, "system_seconds")
}

/// Runs the bench with a `PATH`, which strace needs to find a program; returns its lines of JSON.
fn json(place: &Place, arguments: &[&str]) -> Vec<Value> {
    let mut command = place.command(arguments);
    let ran = Ran::of(command.env("PATH", "/usr/bin:/bin").output().unwrap());
    assert_eq!(ran.status, Some(0), "{arguments:?}: {}", ran.stderr);
    let lines = ran.text().lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().unwrap()
}

fn bench(arguments: &[&'static str], command: &[&'static str]) -> Vec<&'static str> {
    [&["bench", "cache"], arguments, &["--"], command].concat()
}

fn refused(ran: &Ran, status: i32, error: &str) {
    assert_eq!(ran.status, Some(status), "{}", ran.stderr);
    assert!(ran.stderr.contains(error), "{}", ran.stderr);
}

#[test]
fn sleep_takes_as_long_as_it_says_and_is_blocked() {
    let _alone = alone();
    let place = Place::new();
    let started = std::time::Instant::now();
    let lines = json(
        &place,
        &bench(&["--rounds", "3", "--json"], &["sleep", "0.2"]),
    );
    let outside = started.elapsed().as_secs_f64();
    assert_eq!(
        (&lines[0]["type"], &lines[0]["kind"]),
        (&"header".into(), &"cache".into())
    );
    assert_eq!(
        (&lines[0]["schema"], &lines[0]["command"]),
        (&1.into(), &"bench cache".into())
    );
    assert_eq!(lines[0]["options"]["command"], "sleep 0.2");
    let summary = lines.last().unwrap();
    assert_eq!(summary["type"], "summary");
    assert_eq!(summary["samples"], lines.len() - 2, "{summary}");
    let hot = samples(&lines, "hot");
    assert_eq!(hot.len(), 3);
    let seconds: Vec<f64> = hot
        .iter()
        .map(|sample| figure(sample, "real_seconds"))
        .collect();
    // On a busy machine a run may take any time, but never less than it sleeps, nor all of them more than the bench.
    assert!(seconds.iter().all(|&run| run >= 0.2), "{seconds:?}");
    assert!(seconds.iter().sum::<f64>() < outside, "{seconds:?}");
    for sample in &hot {
        assert!(
            cpu(sample) / figure(sample, "real_seconds") < 0.05,
            "{sample}"
        );
    }
}

#[test]
fn a_spin_is_not_blocked() {
    let _alone = alone();
    let place = Place::new();
    let spin = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
    let arguments = bench(&["--rounds", "4", "--json"], &["sh", "-c", spin]);
    let hot = samples(&json(&place, &arguments), "hot");
    if hot[0]["run_delay_seconds"].is_null() {
        stook_testkit::skip!("the kernel does not count how long a thread waits for a processor");
        return;
    }
    // On a busy machine it waits for a processor, and that is not blocked either.
    let shares = hot.iter().map(|sample| {
        (cpu(sample) + figure(sample, "run_delay_seconds")) / figure(sample, "real_seconds")
    });
    let most = shares.fold(0.0, f64::max);
    assert!(most > 0.95, "{hot:?}");
}

#[test]
fn tables_warnings_and_a_legend_are_printed_and_samples_saved() {
    let _alone = alone();
    let Some(place) = place() else {
        return;
    };
    let arguments = bench(
        &["--rounds", "2", "--save", "s.jsonl", "--files", "data"],
        &["cat", "data"],
    );
    let text = place.stdout(&arguments);
    for part in [
        "state  runs  real s  user s   sys s  median s",
        "CPU  WAITED FOR CPU",
        "BLOCKED\n",
        "compared    ",
        "cold / hot",
        "pages in memory",
        "warning: only 2 of the 5 rounds that it takes to say anything of the spread\n",
        "hot: right after another run of the same command\n",
        "\nproof: 733 pages and the names of 1 file that the command opens",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let saved = std::fs::read_to_string(place.path("s.jsonl")).unwrap();
    let lines = json_lines(&saved);
    assert_eq!(lines[0]["options"]["files"], serde_json::json!(["data"]));
    let cold = &samples(&lines, "cold")[0];
    assert!(cold["proof"]["pages_share"].as_f64().unwrap() <= 0.01);
    refused(&place.run(&arguments), 1, "cannot create `s.jsonl`");
}

#[test]
fn an_ordinary_user_drops_file_by_file_and_is_told_so() {
    let _alone = alone();
    let Some(place) = place() else {
        return;
    };
    std::os::unix::fs::chown(place.root(), Some(65_534), None).ok();
    std::os::unix::fs::chown(place.path("data"), Some(65_534), None).ok();
    let arguments = bench(&["--rounds", "2", "--files", "data"], &["cat", "data"]);
    let ran = place.run_as_nobody(&arguments);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let text = ran.text();
    assert!(
        text.contains("cold?       fadvise            0.0 %          100.0 %"),
        "{text}"
    );
    for part in [
        "cold? / hot",
        "warning: cold?: only the data of known files was dropped",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(
        text.contains("names and inodes stay in memory, which only root may drop"),
        "{text}"
    );
    assert!(!text.contains("warm"), "{text}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let _alone = alone();
    let place = Place::new();
    let run = |arguments: &[&str]| place.run(&[&["bench", "cache"], arguments].concat());
    refused(
        &run(&["--rounds", "0", "--", "true"]),
        2,
        "invalid value `0` for `--rounds <N>`",
    );
    refused(
        &run(&["--rounds", "2"]),
        2,
        "required arguments were not provided: <CMD>",
    );
    refused(
        &run(&["--warm-hook", "true", "--", "true"]),
        2,
        "--cold-hook <CMD>",
    );
    refused(
        &run(&["--", "no-such-program"]),
        1,
        "cannot run `no-such-program`: no such file or directory",
    );
    let failing = run(&["--", "sh", "-c", "echo it broke >&2; exit 7"]);
    refused(
        &failing,
        1,
        "failed in the untimed run before round 1: exit status 7\n  it broke\n",
    );
    let hook = run(&["--cold-hook", "echo busy >&2; exit 32", "--", "true"]);
    refused(
        &hook,
        1,
        "`echo busy >&2; exit 32` failed before the untimed run: exit status 32\n  busy\n",
    );
    refused(
        &run(&["--watch", "/", "--", "true"]),
        1,
        "no process is found that serves `/`\nhint: ",
    );
    refused(
        &run(&["--watch", "999999999", "--", "true"]),
        1,
        "cannot watch `/proc/999999999`",
    );
}

#[test]
fn a_command_that_changes_its_files_and_a_watched_process_that_ends_stop_it() {
    let _alone = alone();
    let Some(place) = place() else {
        return;
    };
    let counting = ["sh", "-c", "n=$(wc -l < data); echo $n >> data"];
    let ran = place.run(&bench(&["--files", "data"], &counting));
    refused(
        &ran,
        1,
        "which `n=$(wc -l < data); echo $n >> data` reads, has changed since its first run\nhint: ",
    );
    let mut watched = std::process::Command::new("sleep")
        .arg("60")
        .spawn()
        .unwrap();
    let number = watched.id().to_string();
    let hook = format!("[ -e once ] && kill {number}; touch once");
    let arguments = [
        "bench",
        "cache",
        "--watch",
        &number,
        "--cold-hook",
        &hook,
        "--",
        "cat",
        "data",
    ];
    let ran = place.run(&arguments);
    watched.wait().unwrap();
    refused(
        &ran,
        1,
        &format!("cannot watch `/proc/{number}`: the process has ended"),
    );
}

#[test]
fn the_process_that_serves_a_mount_is_found_and_its_work_counted() {
    let _alone = alone();
    let Some(place) = place() else {
        return;
    };
    let mount = place.path("mount");
    std::fs::create_dir(&mount).unwrap();
    std::fs::create_dir(place.path("source")).unwrap();
    std::fs::write(place.path("source/file"), vec![1; 8_000_000]).unwrap();
    if let Some(why) = unavailable() {
        stook_testkit::skip!("{why}");
        return;
    }
    let options = Options::new(Duration::ZERO);
    let served = SlowFs::mount(&place.path("source"), &mount, &options).unwrap();
    let command = ["sh", "-c", "cat mount/file data"];
    let lines = json(
        &place,
        &bench(&["--rounds", "1", "--json", "--watch", "mount"], &command),
    );
    drop(served);
    let cold = &samples(&lines, "cold")[0];
    assert!(figure(cold, "served_seconds") > 0.0, "{cold}");
}
