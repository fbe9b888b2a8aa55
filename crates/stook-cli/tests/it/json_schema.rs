//! `--json` line by line, one golden test for each command, and the page that describes the lines.

use std::collections::{BTreeMap, BTreeSet};

use insta::assert_snapshot;
use serde_json::{Value, json};
use stook_testkit::{Tree, tree};

use crate::bench_report::DAY;
use crate::bench_report::specimen::{cache, lines};
use crate::place::Place;
use crate::profile::printed as profiled;

/// 2020-09-13T12:26:40Z.
const TIME: i64 = 1_600_000_000;

fn small() -> Tree {
    tree! {
        "a" => file(b"hello").mode(0o644).mtime(TIME, 0),
        "d/b" => file(b"bytes").mtime(TIME, 250_000_000),
    }
}

fn archived() -> Place {
    let place = Place::with(&small());
    place.stderr(&["create", "src", "arc"]);
    place
}

/// Runs a command; the place, inodes and who runs it differ each time.
fn golden(place: &Place, arguments: &[&str]) -> String {
    let ran = place.run(&[arguments, &["--json"]].concat());
    let root = format!("{}/", place.root().display());
    let text = ran.text().replace(&root, "");
    let fields = [
        ("inode", "0"),
        ("uid", "0"),
        ("gid", "0"),
        ("user", "\"me\""),
        ("group", "\"us\""),
    ];
    let masked = |text, (field, value)| with_value(text, field, value);
    fields.into_iter().fold(text, masked)
}

/// Gives the first field of this name another value.
fn with_value(text: String, field: &str, value: &str) -> String {
    let field = format!("\"{field}\":");
    let Some((before, rest)) = text.split_once(&field) else {
        return text;
    };
    let (old, behind) = rest.split_once(',').unwrap();
    if old == "null" {
        return text;
    }
    format!("{before}{field}{value},{behind}")
}

#[test]
fn create() {
    let place = Place::with(&small());
    assert_snapshot!(golden(&place, &["create", "src", "arc", "--dry-run"]), @r#"
    {"type":"header","schema":1,"stook":"0.1.0","command":"create"}
    {"type":"volume","volume":"000000.tar","members":3,"bytes":10240}
    {"type":"summary","entries":3,"unchanged":0,"metadata":0,"members":3,"bytes":10,"volumes":1,"deleted":0,"failed":0,"dry_run":true}
    "#);
    assert_snapshot!(golden(&place, &["create", "src", "arc"]), @r#"
    {"type":"header","schema":1,"stook":"0.1.0","command":"create"}
    {"type":"summary","entries":3,"unchanged":0,"metadata":0,"members":3,"bytes":10,"volumes":1,"deleted":0,"failed":0,"dry_run":false}
    "#);
}

#[test]
fn diff_and_update() {
    let place = archived();
    std::fs::remove_file(place.path("src/a")).unwrap();
    assert_snapshot!(golden(&place, &["diff", "src", "arc"]), @r#"
    {"type":"header","schema":1,"stook":"0.1.0","command":"diff"}
    {"type":"difference","path":"a","change":"deleted","size":null,"mtime":null,"archived_size":null,"archived_mtime":null}
    {"type":"summary","entries":2,"new":0,"changed":0,"metadata":0,"deleted":1,"unchanged":2,"failed":0}
    "#);
    assert_snapshot!(golden(&place, &["update", "src", "arc"]), @r#"
    {"type":"header","schema":1,"stook":"0.1.0","command":"update"}
    {"type":"summary","entries":2,"unchanged":2,"metadata":0,"members":0,"bytes":0,"volumes":0,"deleted":1,"failed":0,"dry_run":false}
    "#);
}

#[test]
fn a_changed_mode() {
    let place = archived();
    place.set_mode("src/a", 0o600);
    assert_snapshot!(golden(&place, &["diff", "src", "arc"]), @r#"
    {"type":"header","schema":1,"stook":"0.1.0","command":"diff"}
    {"type":"difference","path":"a","change":"metadata","size":5,"mtime":"2020-09-13T12:26:40Z","archived_size":null,"archived_mtime":null,"mode":"600","uid":null,"gid":null,"archived_mode":"644","archived_uid":null,"archived_gid":null}
    {"type":"summary","entries":3,"new":0,"changed":0,"metadata":1,"deleted":0,"unchanged":2,"failed":0}
    "#);
    assert_snapshot!(golden(&place, &["update", "src", "arc"]), @r#"
    {"type":"header","schema":1,"stook":"0.1.0","command":"update"}
    {"type":"note","text":"only mode or owner of an entry changed","hint":"`--metadata` archives them again"}
    {"type":"summary","entries":3,"unchanged":2,"metadata":1,"members":0,"bytes":0,"volumes":0,"deleted":0,"failed":0,"dry_run":false}
    "#);
    assert_snapshot!(golden(&place, &["update", "src", "arc", "--metadata"]), @r#"
    {"type":"header","schema":1,"stook":"0.1.0","command":"update"}
    {"type":"summary","entries":3,"unchanged":2,"metadata":0,"members":1,"bytes":5,"volumes":1,"deleted":0,"failed":0,"dry_run":false}
    "#);
}

#[test]
fn check() {
    assert_snapshot!(golden(&archived(), &["check", "arc"]), @r#"
    {"type":"header","schema":1,"stook":"0.1.0","command":"check"}
    {"type":"summary","members":3,"bytes":10,"volumes":1,"volume_md5s":0,"damages":0,"failed":0}
    "#);
}

#[test]
fn exports() {
    let place = archived();
    assert_snapshot!(golden(&place, &["export", "refs", "arc", "--to", "refs.json"]), @r#"
    {"type":"header","schema":1,"stook":"0.1.0","command":"export refs"}
    {"type":"summary","members":2,"bytes":10,"volumes":1,"without_content":0,"failed":0}
    "#);
    assert_snapshot!(golden(&place, &["export", "erofs", "arc", "image"]), @r#"
    {"type":"header","schema":1,"stook":"0.1.0","command":"export erofs"}
    {"type":"summary","inodes":4,"bytes":3072,"volumes":["000000.tar"],"run":1,"last_id":3,"failed":0}
    "#);
}

#[test]
fn list() {
    assert_snapshot!(golden(&archived(), &["list", "arc", "a"]), @r#"
    {"type":"header","schema":1,"stook":"0.1.0","command":"list"}
    {"type":"member","path":"a","id":1,"size":5,"mtime":"2020-09-13T12:26:40Z","md5":"5d41402abc4b2a76b9719d911017c592","volume":"000000.tar","offset":0,"kind":"file","mode":"644","uid":0,"gid":0,"user":"me","group":"us","target":null}
    {"type":"summary","members":1,"failed":0}
    "#);
}

#[test]
fn extract() {
    assert_snapshot!(golden(&archived(), &["extract", "arc", "--into", "out"]), @r#"
    {"type":"header","schema":1,"stook":"0.1.0","command":"extract"}
    {"type":"summary","members":3,"written":3,"bytes":10,"unchanged":0,"failed":0}
    "#);
}

#[test]
fn reindex() {
    assert_snapshot!(golden(&archived(), &["reindex", "arc"]), @r#"
    {"type":"header","schema":1,"stook":"0.1.0","command":"reindex"}
    {"type":"summary","volumes":1,"members":3,"bytes":10,"runs":1,"damages":0,"failed":0}
    "#);
}

#[test]
fn walk() {
    let place = Place::with(&small());
    assert_snapshot!(golden(&place, &["walk", "src", "--include", "a"]), @r#"
    {"type":"header","schema":1,"stook":"0.1.0","command":"walk"}
    {"type":"entry","path":"src/a","kind":"file","size":5,"mtime":"2020-09-13T12:26:40Z","inode":0,"mode":"644","links":1}
    {"type":"summary","entries":1,"failed":0}
    "#);
}

#[test]
fn copy() {
    let place = Place::with(&small());
    assert_snapshot!(golden(&place, &["copy", "src/a", "b", "--dry-run"]), @r#"
    {"type":"header","schema":1,"stook":"0.1.0","command":"copy"}
    {"type":"would-copy","path":"src/a"}
    {"type":"summary","entries":1,"directories":0,"bytes":5,"unchanged":0,"verified":null,"failed":0,"dry_run":true}
    "#);
}

#[test]
fn remove() {
    let place = Place::with(&small());
    assert_snapshot!(golden(&place, &["remove", "src/a", "--dry-run"]), @r#"
    {"type":"header","schema":1,"stook":"0.1.0","command":"remove"}
    {"type":"would-remove","path":"src/a"}
    {"type":"summary","entries":1,"directories":0,"failed":0,"dry_run":true}
    "#);
}

#[test]
fn bench_fileset() {
    let arguments = ["bench", "fileset", "set", "--files", "300", "--dry-run"];
    let text = golden(&Place::new(), &arguments);
    let text = ["mean", "stdev"]
        .into_iter()
        .fold(text, |text, field| with_value(text, field, "0.5"));
    assert_snapshot!(text, @r#"
    {"type":"header","schema":1,"stook":"0.1.0","command":"bench fileset"}
    {"type":"summary","format":"arc","seed":7,"bytes":1665689,"files":300,"directories":9,"mean":0.5,"stdev":0.5,"min":21,"median":1691,"max":91921}
    "#);
}

#[test]
fn plan() {
    let place = Place::with(&small());
    assert_snapshot!(golden(&place, &["plan", "src", "arc"]), @r#"
    {"type":"header","schema":1,"stook":"0.1.0","command":"plan"}
    {"type":"part","path":"arc/stook.plan/part-000000","members":3,"bytes":10,"volume_bytes":10240,"retry":false}
    {"type":"summary","entries":3,"unchanged":0,"metadata":0,"members":3,"bytes":10,"parts":1,"deleted":0,"failed":0,"reserved":true,"dry_run":false}
    "#);
    std::fs::create_dir(place.path("none")).unwrap();
    assert_snapshot!(golden(&place, &["plan", "none", "other"]), @r#"
    {"type":"header","schema":1,"stook":"0.1.0","command":"plan"}
    {"type":"summary","entries":0,"unchanged":0,"metadata":0,"members":0,"bytes":0,"parts":0,"deleted":0,"failed":0,"reserved":false,"dry_run":false}
    "#);
}

#[test]
fn bench_report() {
    let place = Place::new();
    place.write("cache.jsonl", lines(&cache(3, false, DAY, 2)));
    let arguments = [
        "bench",
        "report",
        "cache.jsonl",
        "-o",
        "a.html",
        "--figures",
        "f",
    ];
    // The page grows with what is on it.
    let text = with_value(golden(&place, &arguments), "bytes", "1000");
    assert_snapshot!(text, @r#"
    {"type":"header","schema":1,"stook":"0.1.0","command":"bench report"}
    {"type":"summary","runs":1,"bytes":1000,"figures":1}
    "#);
}

#[test]
fn build_and_commit() {
    let place = Place::with(&small());
    place.stderr(&["plan", "src", "arc"]);
    let part = "arc/stook.plan/part-000000";
    std::fs::rename(place.path("src/a"), place.path("away")).unwrap();
    assert_snapshot!(golden(&place, &["build", part, "src"]), @r#"
    {"type":"header","schema":1,"stook":"0.1.0","command":"build"}
    {"type":"failure","path":"a","operation":"open","cause":"no such file or directory","errno":2}
    {"type":"summary","path":"arc/stook.plan/built-000000","members":2,"bytes":5,"volume_bytes":10240,"overflowed":0,"failed":1}
    "#);
    assert_snapshot!(golden(&place, &["commit", "arc"]), @r#"
    {"type":"header","schema":1,"stook":"0.1.0","command":"commit"}
    {"type":"part","path":"arc/stook.plan/part-000001","members":1,"bytes":5,"volume_bytes":10240,"retry":true}
    {"type":"summary","members":2,"bytes":5,"volumes":1,"deleted":0,"parts":1,"failed":0,"already_committed":false,"foreign":[]}
    "#);
    assert_snapshot!(golden(&place, &["commit", "arc"]), @r#"
    {"type":"header","schema":1,"stook":"0.1.0","command":"commit"}
    {"type":"error","text":"cannot commit: a part is not built, the first is `arc/stook.plan/part-000001`","hint":"`stook build arc/stook.plan/part-000001 SOURCE` tries again what failed, in vain if it changed after it was planned; `stook commit arc --record-failures` leaves it to the next update, `--abandon` gives the plan up","status":1}
    "#);
    assert_snapshot!(golden(&place, &["commit", "arc", "--record-failures"]), @r#"
    {"type":"header","schema":1,"stook":"0.1.0","command":"commit"}
    {"type":"summary","members":0,"bytes":0,"volumes":0,"deleted":0,"parts":0,"failed":1,"already_committed":false,"foreign":[]}
    "#);
}

#[test]
fn abandon() {
    let place = Place::with(&small());
    place.stderr(&["plan", "src", "arc"]);
    place.stderr(&["build", "arc/stook.plan/part-000000", "src"]);
    assert_snapshot!(golden(&place, &["commit", "arc", "--abandon"]), @r#"
    {"type":"header","schema":1,"stook":"0.1.0","command":"commit"}
    {"type":"summary","parts":1,"built":1,"members":3,"bytes":10,"archive_removed":true,"foreign":[]}
    "#);
}

#[test]
fn an_error_is_the_last_line_and_has_the_status() {
    let place = archived();
    let ran = place.run(&["list", "arc", "--as-of", "7", "--json"]);
    assert_eq!(ran.status, Some(1));
    assert_snapshot!(ran.text(), @r#"
    {"type":"header","schema":1,"stook":"0.1.0","command":"list"}
    {"type":"error","text":"cannot go back to run 7 in `arc`: it has no such run","hint":"`stook list --runs arc` shows the runs","status":1}
    "#);
    let ran = place.run(&["list", "arc", "--as-of", "never", "--json"]);
    assert_eq!(ran.status, Some(2));
    assert!(ran.text().ends_with("\"hint\":null,\"status\":2}\n"));
}

/// Returns the types that the page has a section for, each with the names in backticks there.
fn documented() -> BTreeMap<String, BTreeSet<String>> {
    let page = include_str!("../../../../docs/json.md");
    let mut types = BTreeMap::new();
    for section in page.split("\n### `").skip(1) {
        let section = section.split("\n## ").next().unwrap();
        let (name, text) = section.split_once('`').unwrap();
        let quoted = text.split('`').skip(1).step_by(2).map(ToOwned::to_owned);
        types.insert(name.to_owned(), quoted.collect());
    }
    types
}

/// Two sides that do nothing.
fn pair_spec() -> String {
    let side = |name| json!({"name": name, "command": ["true"], "evidence": ["echo", "1"]});
    json!({"sides": [side("a"), side("b")], "rounds": 1, "state": "as-left"}).to_string()
}

/// What commands about stores print, and a plan that is given up.
fn stores_and_plan(print: &mut impl FnMut(&str)) {
    print("plan src given-up");
    print("commit given-up --abandon");
    print("push arc --store store --keep-volumes");
    print("status arc");
    print("pull pulled --store store");
}

/// What writes views of an archive.
const EXPORTS: [&str; 2] = ["export refs arc --to refs.json", "export erofs arc image"];

/// Lines about databases, a sound one and one that is cut off.
fn databases(place: &Place, print: &mut impl FnMut(&str)) {
    let database = crate::zodb::database();
    place.write("broken.fs", &database[..database.len() - 9]);
    place.write("Data.fs", database);
    print("zodb reindex Data.fs");
    print("zodb analyze Data.fs");
    print("zodb references Data.fs --to 0x1");
    print("zodb check broken.fs");
}

/// Many kinds of lines, from every command.
fn printed() -> Vec<Value> {
    let place = Place::with(&small());
    place.write("src/bad", "flipped");
    place.write("spec.json", pair_spec());
    let mut lines = Vec::new();
    let mut print = |line: &str| {
        let arguments: Vec<&str> = line.split(' ').collect();
        let ran = place.run(&[&arguments[..], &["--json"]].concat());
        let parsed = ran.text().lines().map(serde_json::from_str);
        let parsed: Vec<Value> = parsed.collect::<Result<_, _>>().unwrap();
        let (first, last) = (&parsed[0]["type"], &parsed[parsed.len() - 1]["type"]);
        assert_eq!(first, "header", "{line}");
        assert!(last == "summary" || last == "error", "{line}: {last}");
        lines.extend(parsed);
    };
    ["create src arc --dry-run", "create src arc -v"]
        .into_iter()
        .for_each(&mut print);
    print("plan src planned");
    let mut parts = place.names("planned/stook.plan").into_iter();
    let part = parts.find(|name| name.starts_with("part-")).unwrap();
    print(&format!("build planned/stook.plan/{part} src"));
    print("commit planned");
    stores_and_plan(&mut print);
    place.write("src/late", "not archived");
    place.set_mode("src/a", 0o600);
    std::fs::create_dir(place.path("a-target")).unwrap();
    let before = [
        "list arc",
        "list arc --runs",
        "diff src arc --exclude none",
        "copy src b --dry-run",
        "copy src b --verify --syscalls -v",
        "remove b --dry-run --syscalls -v",
        "remove b --archived-in arc",
        "walk src",
        "walk src --summary -v",
        "bench fileset set --files 3 --dry-run",
        "bench fs a-target --work . --files 5 --rounds 1 --phases stat --tools single",
        "bench pair spec.json",
        "bench pair none.json",
        "list none",
    ];
    before.into_iter().chain(EXPORTS).for_each(&mut print);
    databases(&place, &mut print);
    place.sql(
        "arc/index.db",
        "update files set md5 = '00000000000000000000000000000000' where name = 'bad'",
    );
    std::os::unix::net::UnixListener::bind(place.path("src/socket")).unwrap();
    let after = [
        "check arc",
        "extract arc --into out",
        "update src arc",
        "reindex arc",
        "reindex arc --attributes",
    ];
    after.into_iter().for_each(&mut print);
    place.sql(
        "arc/index.db",
        "update files set mtime = 'x' where name = 'a'",
    );
    print("check arc");
    for arguments in [
        &["--json", "--out", "out", "--", "true"][..],
        &[
            "--json",
            "--lines",
            "__main__:f",
            "--",
            "python3",
            "shop.py",
        ],
    ] {
        let text = profiled(arguments).unwrap_or_default();
        lines.extend(
            text.lines()
                .map(|line| serde_json::from_str::<Value>(line).unwrap()),
        );
    }
    lines
}

#[test]
fn the_page_describes_every_line_and_every_field() {
    let documented = documented();
    let mut types = BTreeSet::new();
    for line in printed() {
        let name = line["type"].as_str().unwrap().to_owned();
        let fields = &documented.get(&name).unwrap_or_else(|| panic!("{line}"));
        for field in line.as_object().unwrap().keys() {
            let is_known = matches!(&**field, "type" | "path_hex") || fields.contains(field);
            assert!(is_known, "`{field}` of {line}");
        }
        types.insert(name);
    }
    let missing: Vec<_> = documented
        .keys()
        .filter(|name| !types.contains(*name))
        .collect();
    // Not everybody may record with perf.
    let may_miss = ["times", "stacks", "function", "place"];
    let must_be_there = |name: &&&String| !may_miss.contains(&name.as_str());
    assert_eq!(missing.iter().find(must_be_there), None);
}

#[test]
fn commands_whose_output_is_a_file_print_no_json() {
    let place = archived();
    let ran = place.run(&["cat", "arc", "a", "--json"]);
    assert_eq!(ran.text(), "hello");
    let ran = place.run(&["cat", "arc", "none", "--json"]);
    assert_eq!((ran.status, ran.text()), (Some(1), ""));
    assert!(ran.stderr.contains("none"), "{}", ran.stderr);
}
