//! `stook bench update` with a store, and of an archive that exists.

use std::path::Path;

use serde_json::Value;
use stook_testkit::doubles::Double;
use stook_testkit::{Kind, Snapshot, tree};

use crate::place::{Place, Ran, Signal, json_lines, wait_until};

const STUDY: [&str; 9] = [
    "bench",
    "update",
    "--dirs",
    "a",
    "b",
    "c",
    "--repeats",
    "1",
    "--store",
];

/// zstash's front as a tool of its own: it takes places as zstash does.
const FRONT: [&str; 5] = [
    "front:create={stook} zstash create --hpss={hpss} --cache={archive} {source}",
    "front:update=cd {source} && {stook} zstash update --hpss={hpss} --cache={archive}",
    "front:extract=cd {into} && {stook} zstash extract --hpss={hpss} --cache={archive}",
    "front:dry-run=cd {source} && {stook} zstash update --dry-run --hpss=none --cache={archive}",
    "front:changes=cd {source} && {stook} zstash update --dry-run --hpss=none --cache={archive} | sed 1d",
];

fn place() -> Place {
    let place = Place::new();
    tree! {
        "a/same" => file(b"of a"), "a/d/x" => file([7; 5000]), "b/same" => file(b"longer, of b"),
        "c/y" => file(b"3"), "c/empty" => dir(),
    }
    .write(place.root())
    .unwrap();
    place
}

/// Runs the study with some variables; it must succeed.
fn run(place: &Place, arguments: &[&str], variables: &[(&str, &Path)]) -> Ran {
    let mut command = place.command(arguments);
    command.envs(variables.iter().copied());
    let ran = Ran::of(command.output().unwrap());
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    ran
}

fn samples(place: &Place, file: &str) -> Vec<Value> {
    let saved = std::fs::read_to_string(place.path(file)).unwrap();
    json_lines(&saved).split_off(1)
}

fn names_of_phases(sample: &Value) -> Vec<&str> {
    let phases = sample["phases"].as_array().unwrap().iter();
    phases
        .map(|phase| phase["name"].as_str().unwrap())
        .collect()
}

#[test]
fn twelve_cases_are_measured_with_a_directory_as_the_store() {
    let place = place();
    std::fs::create_dir(place.path("store")).unwrap();
    place.write("store/theirs", "stays");
    let results = [
        "store",
        "--tool",
        "stook",
        "--save",
        "all.jsonl",
        "--csv",
        "all.csv",
        "--figures",
        "figures",
    ];
    let ran = run(&place, &[&STUDY[..], &results].concat(), &[]);
    assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
    assert_eq!(place.names("store"), ["theirs"]);
    let samples = samples(&place, "all.jsonl");
    let of_store = |sample: &&Value| sample["labels"]["store"] == "directory";
    assert_eq!(samples.len(), 2 * 6 * 5);
    assert_eq!(samples.iter().filter(of_store).count(), 6 * 5);
    let created = samples.iter().find(of_store).unwrap();
    assert_eq!(names_of_phases(created), ["survey", "archive", "send"]);
    let (building, sending) = (&created["building_seconds"], &created["sending_seconds"]);
    let real = created["real_seconds"].as_f64().unwrap();
    for part in [building, sending] {
        let part = part.as_f64().unwrap();
        assert!(part > 0.0 && part < real, "{created}");
    }
    assert_eq!(samples[0].get("sending_seconds"), None);
    let text = ran.text();
    for line in [
        "stook (directory)    12 of 12  6 of 6",
        "building s  sending s",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let csv = std::fs::read_to_string(place.path("all.csv")).unwrap();
    assert_eq!(csv.matches(",directory,create,").count(), 6);
    assert_eq!(
        place.names("figures"),
        ["memory.svg", "sending.svg", "time.svg"]
    );
    let page = place.run(&["bench", "report", "all.jsonl", "-o", "page.html"]);
    assert_eq!(page.status, Some(0), "{}", page.stderr);
    let page = std::fs::read_to_string(place.path("page.html")).unwrap();
    assert!(page.contains("Building and sending") && page.contains("Phases"));
}

#[test]
fn hpss_is_left_without_files_and_what_stays_is_said() {
    let (place, hsi) = (place(), Double::hsi());
    let program = hsi.program();
    let tools = ["--tool", FRONT[0], "--tool", FRONT[1], "--tool", FRONT[2]];
    let store = [
        "hpss:/home/u/user/study",
        "--tool",
        "stook",
        "--save",
        "all.jsonl",
    ];
    let arguments = [&STUDY[..], &store, &tools].concat();
    let ran = run(&place, &arguments, &[("STOOK_HSI", &program)]);
    let stays = "stay in `hpss:/home/u/user/study`: only files can be deleted there\n";
    assert!(ran.stderr.contains(stays), "{}", ran.stderr);
    let samples = samples(&place, "all.jsonl");
    let of = |tool: &str| {
        let is_it = |sample: &&Value| {
            sample["labels"]["store"] == "hpss" && sample["labels"]["tool"] == tool
        };
        samples.iter().filter(is_it).count()
    };
    assert_eq!((of("stook"), of("front")), (6 * 5, 6 * 3));
    let counters = hsi.counters();
    assert!(counters.bytes_in > 0 && counters.bytes_out > 0);
    assert_eq!(hsi_files(&hsi), (Vec::new(), 2 * 6));
}

/// Returns the files that the double holds, and the number of its folders that runs were sent to.
fn hsi_files(hsi: &Double) -> (Vec<String>, usize) {
    let held = Snapshot::take(&hsi.folder().join("data")).unwrap();
    let shown = |path: &[u8]| String::from_utf8_lossy(path).into_owned();
    let of = |kind: Kind| {
        let entries = held.entries();
        entries
            .filter(move |(_, facts)| facts.kind == kind)
            .map(|(path, _)| shown(path))
    };
    let is_run = |path: &String| path.contains("study/stook-bench-");
    (
        of(Kind::File).collect(),
        of(Kind::Directory).filter(is_run).count(),
    )
}

#[test]
fn what_was_sent_is_deleted_also_when_the_user_ends_the_study() {
    let (place, hsi) = (place(), Double::hsi());
    // Only where volumes were sent there are none left here.
    let extract = "stook:extract=test -e {archive}/000000.tar || sleep 60";
    let store = [
        "hpss:/home/u/user/study",
        "--tool",
        "stook",
        "--tool",
        extract,
    ];
    let mut command = place.command(&[&STUDY[..], &store].concat());
    let mut child = command.env("STOOK_HSI", hsi.program()).spawn().unwrap();
    let signal = Signal::ready(&child, "INT");
    let extracts = || {
        let names = place.names(".");
        let work = names.iter().find(|name| name.starts_with("stook-bench-"));
        work.is_some_and(|work| place.path(&format!("{work}/1/extract_seq")).exists())
    };
    assert!(wait_until(&mut child, extracts), "it ended too soon");
    assert!(!hsi_files(&hsi).0.is_empty());
    signal.send();
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!(ran.status, Some(130), "{}", ran.stderr);
    assert_eq!(hsi_files(&hsi), (Vec::new(), 1));
    assert_eq!(place.names("."), ["a", "b", "c"]);
}

#[test]
fn an_archive_goes_through_globus_as_well() {
    const LOCAL: &str = "11111111-1111-1111-1111-111111111111";
    const REMOTE: &str = "22222222-2222-2222-2222-222222222222";
    let (place, globus) = (place(), Double::globus());
    globus.add_endpoint(LOCAL, Some(Path::new("/")));
    globus.add_endpoint(REMOTE, None);
    let ini = format!("[local]\nglobus_endpoint_uuid = {LOCAL}\n");
    place.write(".zstash.ini", ini);
    let url = format!("globus://{REMOTE}/study");
    let store = [&*url, "--tool", "stook", "--save", "all.jsonl"];
    let variables = [("STOOK_GLOBUS", &*globus.program()), ("HOME", place.root())];
    run(&place, &[&STUDY[..], &store].concat(), &variables);
    let samples = samples(&place, "all.jsonl");
    let sent = |sample: &&Value| sample["sending_seconds"].is_f64();
    assert_eq!(samples.iter().filter(sent).count(), 6 * 2);
    let study = globus.endpoint_path(REMOTE, "/study");
    let folders = crate::place::names(&study);
    assert_eq!(folders.len(), 6);
    for folder in folders {
        assert_eq!(crate::place::names(&study.join(&folder)), [""; 0]);
    }
}

#[test]
fn a_store_that_cannot_be_used_is_told_before_the_study() {
    let place = place();
    let refused = |store: &str, status: i32, expected: &str| {
        let ran = place.run(&[&STUDY[..], &[store, "--tool", "stook"]].concat());
        assert_eq!(ran.status, Some(status), "{}", ran.stderr);
        assert!(ran.stderr.starts_with(expected), "{}", ran.stderr);
        assert_eq!(place.names("."), ["a", "b", "c"]);
    };
    refused(
        "gone",
        1,
        "error: cannot open `gone`: no such file or directory\n",
    );
    refused(
        "ftp://host/path",
        2,
        "error: cannot use `ftp://host/path` for --store: ",
    );
    refused("http://127.0.0.1:9/x", 1, "error: ");
}

/// A simulation of two large files, of which one has 1 GiB, and some small ones, which takes no room, with its archive.
fn simulation() -> Place {
    let place = Place::with(&tree! {
        "run/h0.nc" => sparse(&[(0, b"CDF")], 1 << 30), "run/h1.nc" => sparse(&[], 1 << 20),
        "rest/r" => file(b"restart"), "rest/link" => symlink("r"), "rest/empty" => dir(),
    });
    place.stderr(&["create", "src", "arc"]);
    place.write("src/rest/new", "new");
    tree! { "init/i0.nc" => sparse(&[], 2 << 40), "init/deep/x" => file(b"x") }
        .write(place.root())
        .unwrap();
    place
}

const ARCHIVED: [&str; 10] = [
    "bench",
    "update",
    "--archive",
    "arc",
    "--source",
    "src",
    "--repeats",
    "2",
    "--save",
    "all.jsonl",
];

#[test]
fn dry_runs_of_an_archive_are_compared_and_change_nothing() {
    let place = simulation();
    let look = || {
        let times = ["src", "src/run", "src/run/h0.nc"].map(|name| modified(&place.path(name)));
        (place.snapshot("arc"), place.snapshot("src/rest"), times)
    };
    let before = look();
    let tools = [
        "--add", "init", "--tool", "stook", "--tool", FRONT[3], "--tool", FRONT[4],
    ];
    let ran = run(&place, &[&ARCHIVED[..], &tools].concat(), &[]);
    let text = ran.text();
    for line in [
        "as expected  trees   lists  in order of stook  sorted\n",
        "stook            -  3 of 3             3 of 3",
        "front            -  3 of 3",
        "arc -> source\n",
        "arc -> added\n",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let samples = samples(&place, "all.jsonl");
    assert_eq!(samples.len(), 2 * 3 * 2);
    assert_eq!(names_of_phases(&samples[0]), ["survey"]);
    assert!(samples[0]["peak_bytes"].is_u64());
    let added = samples
        .iter()
        .find(|sample| sample["labels"]["update"] == "added");
    let (files, bytes) = (&added.unwrap()["files"], &added.unwrap()["bytes"]);
    assert_eq!(
        (files.as_u64(), bytes.as_u64()),
        (Some(6), Some((1 << 30) + (1 << 20) + (2 << 40) + 11))
    );
    let after = look();
    let everything = stook_testkit::Compare::everything();
    assert_eq!(before.0.difference(&after.0, &everything), [""; 0]);
    assert_eq!(before.1.difference(&after.1, &everything), [""; 0]);
    assert_eq!(before.2, after.2);
    assert_eq!(place.names("."), ["all.jsonl", "arc", "init", "src"]);
}

fn modified(path: &Path) -> std::time::SystemTime {
    std::fs::metadata(path).unwrap().modified().unwrap()
}

#[test]
fn a_list_of_other_names_is_told_and_profile_lines_are_kept() {
    let place = simulation();
    let profile = "wrong:dry-run=echo 'DEBUG: PROFILE: File gathering completed: 0.25 seconds' >&2";
    let tools = [
        "--tool",
        "stook",
        "--tool",
        profile,
        "--tool",
        "wrong:changes=echo run/h0.nc",
    ];
    let ran = place.run(&[&ARCHIVED[..], &tools].concat());
    assert_eq!(ran.status, Some(3), "{}", ran.stderr);
    let warning = "warning: source, wrong: the list is not the list of stook: 1 missing, 1 extra, 0 changed, such as `rest/new`\n";
    assert!(ran.stderr.contains(warning), "{}", ran.stderr);
    let samples = samples(&place, "all.jsonl");
    let phases = &samples
        .iter()
        .find(|it| it["labels"]["tool"] == "wrong")
        .unwrap()["phases"];
    let expected = serde_json::json!([{"name": "File gathering completed", "seconds": 0.25}]);
    assert_eq!(*phases, expected);
}

#[test]
fn an_archive_that_cannot_be_studied_is_told() {
    let place = simulation();
    let refused = |arguments: &[&str], status: i32, expected: &str| {
        let ran = place.run(&[&["bench", "update"], arguments].concat());
        assert_eq!(ran.status, Some(status), "{}", ran.stderr);
        assert!(ran.stderr.starts_with(expected), "{}", ran.stderr);
    };
    refused(&["--archive", "arc"], 2, "error: ");
    refused(
        &[
            "--archive",
            "arc",
            "--source",
            "src",
            "--dirs",
            "a",
            "b",
            "c",
        ],
        2,
        "error: ",
    );
    refused(
        &["--archive", "arc", "--source", "src", "--tool", "tar"],
        2,
        "error: the tool `tar` has no command for dry-run\n",
    );
    refused(
        &["--archive", "arc", "--source", "src", "--add", "src/rest"],
        1,
        "error: `src/rest` and `src` are not two trees: one holds the other\n",
    );
    place.copy("arc", "src/inner");
    refused(
        &["--archive", "src/inner", "--source", "src"],
        1,
        "error: `src/inner` is in `src`, and would be found as new files\n",
    );
    place.write("arc/index.db-journal", "x");
    refused(
        &["--archive", "arc", "--source", "src"],
        1,
        "error: `arc` is being written, or has `index.db-journal` of a run that was killed\n",
    );
}
