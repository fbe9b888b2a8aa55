//! `--json` and `--dry-run`: the same facts as in the text, and the plan is what happens.

use std::collections::BTreeMap;
use std::time::{Duration, UNIX_EPOCH};

use insta::assert_snapshot;
use serde_json::{Value, json};
use stook_testkit::{Compare, Random, Tree, tree};

use crate::commands::{sample_tree, updated};
use crate::place::Place;

/// Returns the summary, which comes last.
fn last(lines: &[Value]) -> &Value {
    lines.last().unwrap()
}

/// A row of the index has no such time, its attributes have.
#[test]
fn a_time_beyond_the_year_9999_is_exact() {
    let place = Place::with(&sample_tree());
    let set_time = |seconds| {
        let time = UNIX_EPOCH + Duration::new(seconds, 5);
        let file = std::fs::File::options();
        let file = file.clone().write(true).open(place.path("src/a")).unwrap();
        file.set_modified(time).unwrap();
        file.metadata().unwrap().modified().unwrap() == time
    };
    if !set_time(300_000_000_000) {
        stook_testkit::skip!("the file system has no such times");
        return;
    }
    place.stderr(&["create", "src", "arc"]);
    let mtime = |arguments: &[&str]| {
        let rows = place.rows(arguments);
        rows.iter().find(|row| row["path"] == "a").unwrap()["mtime"].clone()
    };
    assert_eq!(mtime(&["list", "arc", "--json"]), "@300000000000.000000005");
    place.write("src/a", "another\n");
    set_time(300_000_000_001);
    assert_eq!(
        mtime(&["diff", "src", "arc", "--json"]),
        "@300000000001.000000005"
    );
}

#[test]
fn every_command_has_a_summary_with_the_facts_of_its_text() {
    let place = Place::with(&sample_tree());
    let summary = |arguments: &[&str]| last(&place.json(arguments)).clone();
    assert_eq!(
        summary(&["create", "src", "arc", "--json"]),
        json!({ "type": "summary", "entries": 6, "unchanged": 0, "metadata": 0, "members": 6, "bytes": 3017, "volumes": 1, "deleted": 0, "failed": 0, "dry_run": false })
    );
    place.write("src/a", "hello again\n");
    std::fs::remove_file(place.path("src/b")).unwrap();
    assert_eq!(
        summary(&["update", "src", "arc", "--json"]),
        json!({ "type": "summary", "entries": 5, "unchanged": 4, "metadata": 0, "members": 1, "bytes": 12, "volumes": 1, "deleted": 1, "failed": 0, "dry_run": false })
    );
    assert_eq!(
        summary(&["check", "arc", "--json"]),
        json!({ "type": "summary", "members": 7, "bytes": 3029, "volumes": 2, "volume_md5s": 0, "damages": 0, "failed": 0 })
    );
    assert_eq!(
        summary(&["extract", "arc", "--into", "out", "--json"]),
        json!({ "type": "summary", "members": 5, "written": 5, "bytes": 3012, "unchanged": 0, "failed": 0 })
    );
    assert_eq!(
        summary(&["reindex", "arc", "--json"]),
        json!({ "type": "summary", "volumes": 2, "members": 7, "bytes": 3029, "runs": 2, "damages": 0, "failed": 0 })
    );
}

#[test]
fn rows_differences_and_runs_say_what_the_text_says() {
    let place = updated();
    let differences: Vec<(String, String)> = place
        .rows(&["diff", "src", "arc", "--json"])
        .iter()
        .map(|line| (text(&line["change"]), text(&line["path"])))
        .collect();
    let shown: Vec<String> = differences
        .iter()
        .map(|(change, path)| format!("{change:<8} {path}\n"))
        .collect();
    assert_eq!(shown.concat(), place.stdout(&["diff", "src", "arc"]));
    place.stderr(&["update", "src", "arc"]);
    let rows = place.rows(&["list", "arc", "--json", "--all"]);
    let shown: Vec<String> = rows
        .iter()
        .map(|row| {
            let md5 = row["md5"].as_str().unwrap_or("-");
            let (size, offset) = (
                row["size"].as_u64().unwrap(),
                row["offset"].as_u64().unwrap(),
            );
            let mut mtime = text(&row["mtime"]).replace('T', " ").replace('Z', "");
            if mtime.contains('.') {
                // JSON has no zeros at the end; the list has microseconds.
                mtime = format!("{mtime:0<26}");
            }
            let volume = text(&row["volume"]);
            let owner = format!("{}/{}", text(&row["user"]), text(&row["group"]));
            let target = row["target"].as_str().map(|target| format!(" -> {target}"));
            format!(
                "{} {owner:<17} {size:>12} {mtime:<26} {md5:<32} {volume} {offset:>12} {}{}\n",
                type_and_mode(row),
                text(&row["path"]),
                target.unwrap_or_default()
            )
        })
        .collect();
    assert_eq!(
        shown.concat(),
        place.stdout(&["list", "arc", "-l", "--all"])
    );
    let ids: Vec<u64> = rows.iter().map(|row| row["id"].as_u64().unwrap()).collect();
    assert_eq!(ids, (1..=rows.len() as u64).collect::<Vec<_>>());
    let runs = place.rows(&["list", "arc", "--runs", "--json"]);
    assert_eq!(runs.len(), 2);
    assert_eq!(
        (&runs[0]["command"], &runs[0]["added"]),
        (&json!("create"), &json!(6))
    );
    assert_eq!(
        (&runs[1]["run"], &runs[1]["failed"]),
        (&json!(2), &json!(0))
    );
    assert!(text(&runs[0]["started"]) <= text(&runs[0]["finished"]));
}

/// As `ls -l` has them.
fn type_and_mode(row: &Value) -> String {
    let mode = u32::from_str_radix(row["mode"].as_str().unwrap(), 8).unwrap();
    let letters = "rwxrwxrwx".chars().zip((0..9).rev());
    let letters = letters.map(|(letter, bit)| if mode >> bit & 1 == 1 { letter } else { '-' });
    let kind = match row["kind"].as_str().unwrap() {
        "file" => '-',
        "directory" => 'd',
        "symlink" => 'l',
        other => panic!("{other}"),
    };
    std::iter::once(kind).chain(letters).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

#[test]
fn failures_skips_and_damage_are_objects_of_their_own() {
    let place = Place::with(&tree! { "a" => file(b"content"), "s" => socket() });
    let lines = place.json(&["create", "src", "arc", "--json"]);
    assert_eq!(
        lines[0],
        json!({ "type": "skipped", "path": "s", "cause": "it is a socket" })
    );
    place.sql(
        "arc/index.db",
        "update files set md5 = '00000000000000000000000000000000'",
    );
    let ran = place.run(&["check", "arc", "--json"]);
    assert_eq!(ran.status, Some(4));
    assert_snapshot!(ran.text(), @r#"
    {"type":"header","schema":1,"stook":"0.1.0","command":"check"}
    {"type":"damage","path":"a","volume":"000000.tar","offset":0,"cause":"its content does not have the MD5 in the index","errno":null}
    {"type":"summary","members":1,"bytes":7,"volumes":1,"volume_md5s":0,"damages":1,"failed":0}
    "#);
    let ran = place.run(&["extract", "arc", "--into", "out", "--json"]);
    assert_eq!(ran.status, Some(3));
    assert_snapshot!(ran.text(), @r#"
    {"type":"header","schema":1,"stook":"0.1.0","command":"extract"}
    {"type":"failure","path":"a","operation":"extract","cause":"its content does not have the MD5 in the index","errno":null}
    {"type":"summary","members":1,"written":0,"bytes":0,"unchanged":0,"failed":1}
    "#);
}

/// Some hundred files of many sizes, with attributes of names and kinds that a plan must get right.
fn many_kinds(seed: u64) -> Tree {
    let mut random = Random::new(seed);
    let mut tree = Tree::basic();
    tree.graft("links", &Tree::links());
    tree.graft("hard", &Tree::hardlinks());
    for number in 0..300_u64 {
        let len = random.index(20_000);
        let name = "n".repeat(1 + random.index(120));
        tree.insert(
            format!("many/{}/{number}{name}", number % 7),
            stook_testkit::file(random.bytes(len)),
        );
    }
    tree
}

/// Volumes as a plan or the files on disk tell them: name and length.
fn planned(lines: &[Value]) -> BTreeMap<String, u64> {
    lines
        .iter()
        .filter(|line| line["type"] == "volume")
        .map(|line| (text(&line["volume"]), line["bytes"].as_u64().unwrap()))
        .collect()
}

fn written(place: &Place) -> BTreeMap<String, u64> {
    let volumes = place
        .names("arc")
        .into_iter()
        .filter(|name| name.ends_with(".tar"));
    volumes
        .map(|name| {
            let len = std::fs::metadata(place.path("arc").join(&name))
                .unwrap()
                .len();
            (name, len)
        })
        .collect()
}

#[test]
fn a_dry_run_writes_nothing_and_tells_what_will_be_written() {
    for compat in [&[][..], &["--compat", "zstash"]] {
        let place = Place::with(&many_kinds(11));
        let create = [&["create", "src", "arc", "--volume-size", "400kB"], compat].concat();
        let before = place.snapshot(".");
        let plan = place.json(&[&create[..], &["--dry-run", "--json"]].concat());
        let plan_text = place.stdout(&[&create[..], &["--dry-run"]].concat());
        let changes = before.difference(&place.snapshot("."), &Compare::everything());
        assert_eq!(changes, [""; 0]);
        assert!(planned(&plan).len() > 4, "{plan:?}");
        assert_eq!(plan_text.lines().count(), plan.len());
        let done = place.json(&[&create[..], &["--json"]].concat());
        assert_eq!(planned(&plan), written(&place), "{compat:?}");
        assert_plan_held(last(&plan), last(&done));
    }
}

fn assert_plan_held(plan: &Value, done: &Value) {
    assert_eq!(
        (&plan["type"], &plan["dry_run"]),
        (&json!("summary"), &json!(true))
    );
    for fact in ["members", "bytes", "volumes", "deleted"] {
        assert_eq!(plan[fact], done[fact], "{fact}");
    }
}

#[test]
fn a_dry_update_writes_nothing_and_tells_what_will_be_written() {
    let place = Place::with(&many_kinds(12));
    place.stderr(&["create", "src", "arc", "--volume-size", "600kB"]);
    let first = written(&place);
    for number in 0..40 {
        place.write(&format!("src/many/changed{number}"), vec![number; 30_000]);
    }
    std::fs::remove_dir_all(place.path("src/many/3")).unwrap();
    let before = place.snapshot(".");
    let plan = place.json(&["update", "src", "arc", "--dry-run", "--json"]);
    let changes = before.difference(&place.snapshot("."), &Compare::everything());
    assert_eq!(changes, [""; 0]);
    let done = place.json(&["update", "src", "arc", "--json"]);
    assert_plan_held(last(&plan), last(&done));
    assert!(last(&done)["deleted"].as_u64().unwrap() > 40, "{done:?}");
    let mut new = written(&place);
    new.retain(|name, _| !first.contains_key(name));
    assert_eq!(planned(&plan), new);
}

#[test]
fn a_plan_reads_like_this() {
    let place = Place::with(&sample_tree());
    assert_snapshot!(place.stdout(&["create", "src", "arc", "--dry-run", "--volume-size", "10KiB"]), @r"
    000000.tar             4 entries            10,240 bytes
    000001.tar             2 entries            10,240 bytes
    would archive 6 entries, 3.0 kB, in 2 volumes
    ");
    assert!(!place.path("arc").exists());
    place.stderr(&["create", "src", "arc"]);
    assert_snapshot!(place.stdout(&["update", "src", "arc", "--dry-run"]), @"would archive 0 entries, 0 B, in 0 volumes");
}
