//! `walk` with conditions prints what Python selects by the same conditions, and refuses those that make no sense.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use insta::assert_snapshot;
use serde_json::{Value, json};
use stook_testkit::{Tree, file, tree};

use crate::bad_input::{archived, refused};
use crate::place::{Place, python};

/// Prints the selected paths in hexadecimal, and all modification times.
const SELECT: &str = r#"
import fnmatch, json, os, stat, sys
root, spec = os.fsencode(sys.argv[1]), json.loads(sys.argv[2])
LETTERS = {stat.S_IFREG: "f", stat.S_IFDIR: "d", stat.S_IFLNK: "l", stat.S_IFIFO: "p", stat.S_IFSOCK: "s",
           stat.S_IFCHR: "c", stat.S_IFBLK: "b"}
def matches(path, patterns):
    names = os.fsdecode(path).split("/")
    covered = ["/".join(names[:end]) for end in range(1, len(names) + 1)]
    return any(fnmatch.fnmatchcase(each, pattern) for pattern in patterns for each in covered)
def selects(path, facts):
    letter, below = LETTERS[stat.S_IFMT(facts.st_mode)], path[len(root) + 1:]
    return ((not spec["types"] or letter in spec["types"])
            and (spec["larger"] is None or letter == "f" and facts.st_size > spec["larger"])
            and (spec["newer"] is None or facts.st_mtime_ns > spec["newer"])
            and (not spec["include"] or matches(below, spec["include"]))
            and not matches(below, spec["exclude"]))
paths = [root]
for folder, folders, files in os.walk(root):
    paths += [os.path.join(folder, name) for name in folders + files]
facts = {path: os.lstat(path) for path in paths}
print(json.dumps({"paths": [path.hex() for path in paths if selects(path, facts[path])],
                  "times": sorted(facts[path].st_mtime_ns for path in paths)}))
"#;

fn selected(root: &Path, spec: &Value) -> Value {
    let arguments = [root.to_str().unwrap(), &spec.to_string()];
    serde_json::from_str(&python(SELECT, &arguments)).unwrap()
}

/// What Python selects by nothing; other conditions take the place of these.
fn anything() -> Value {
    json!({ "types": [], "larger": null, "newer": null, "include": [], "exclude": [] })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn assert_selected(place: &Place, conditions: &[&str], spec: Value) -> usize {
    let root = place.path("src");
    let mut whole_spec = anything();
    let Value::Object(spec) = spec else { panic!() };
    whole_spec.as_object_mut().unwrap().extend(spec);
    let selected = selected(&root, &whole_spec);
    let expected: BTreeSet<String> = serde_json::from_value(selected["paths"].clone()).unwrap();
    let walk = ["walk", root.to_str().unwrap(), "-0"];
    // With the size every file is looked at, without it only what must be.
    for format in ["{path}", "{path}/{size}"] {
        let ran = place.run(&[&walk, conditions, &["--format", format]].concat());
        assert_eq!((ran.status, ran.stderr.as_str()), (Some(0), ""));
        let mut lines: Vec<&[u8]> = ran.stdout.split(|&byte| byte == 0).collect();
        assert_eq!(lines.pop(), Some(&b""[..]));
        if format.ends_with("{size}") {
            for line in &mut lines {
                let slash = line.iter().rposition(|&byte| byte == b'/').unwrap();
                *line = &line[..slash];
            }
        }
        let printed: BTreeSet<String> = lines.iter().map(|line| hex(line)).collect();
        assert_eq!(printed, expected, "{conditions:?}");
        assert_eq!(printed.len(), lines.len(), "{conditions:?}");
    }
    expected.len()
}

fn many_kinds() -> Place {
    let mut tree = Tree::random(5, 1500);
    tree.graft("basic", &Tree::basic());
    tree.graft("links", &Tree::links());
    tree.graft("odd", &Tree::odd_names());
    tree.graft("sparse", &Tree::sparse());
    Place::with(&tree)
}

#[test]
fn every_condition_selects_what_python_selects() {
    let place = many_kinds();
    let found = selected(&place.path("src"), &anything());
    let times = found["times"].as_array().unwrap();
    let time = times[times.len() / 2].as_i64().unwrap();
    let written = python(
        "import datetime, sys\nseconds, ns = divmod(int(sys.argv[1]), 10**9)\n\
         epoch = datetime.datetime(1970, 1, 1)\n\
         print((epoch + datetime.timedelta(seconds=seconds)).isoformat() + f'.{ns:09}', end='')",
        &[&time.to_string()],
    );
    let all = found["paths"].as_array().unwrap().len();
    for (conditions, spec) in [
        (&["--type", "f"][..], json!({ "types": ["f"] })),
        (&["--type", "d,l"], json!({ "types": ["d", "l"] })),
        (
            &["--type", "p", "--type", "s"],
            json!({ "types": ["p", "s"] }),
        ),
        (&["--larger-than", "0"], json!({ "larger": 0 })),
        (&["--larger-than", "1kB"], json!({ "larger": 1000 })),
        (&["--larger-than", "1KiB"], json!({ "larger": 1024 })),
        (&["--newer-than", &written], json!({ "newer": time })),
        (&["--include", "*.txt"], json!({ "include": ["*.txt"] })),
        (
            &[
                "--type",
                "f",
                "--larger-than",
                "100",
                "--newer-than",
                &written,
                "--exclude",
                "*e*",
            ],
            json!({ "types": ["f"], "larger": 100, "newer": time, "exclude": ["*e*"] }),
        ),
        (
            &["--type", "f,d", "--include", "*a*", "--exclude", "basic/*"],
            json!({ "types": ["f", "d"], "include": ["*a*"], "exclude": ["basic/*"] }),
        ),
    ] {
        let selected = assert_selected(&place, conditions, spec);
        assert!(selected < all, "{conditions:?}");
    }
    assert_selected(&place, &["--type", "c,b"], json!({ "types": ["c", "b"] }));
    assert_selected(
        &place,
        &["--type", "d", "--larger-than", "1"],
        json!({ "types": ["d"], "larger": 1 }),
    );
}

#[test]
fn limits_are_strict() {
    let place = Place::with(&tree! {
        "nine" => file(b"123456789").mtime(1_600_000_000, 5),
        "ten" => file(b"1234567890").mtime(1_600_000_000, 6),
        "link" => symlink("123456789012345").mtime(0, 0),
    });
    let walk = |condition: &[&str]| place.stdout(&[&["walk", "src"], condition].concat());
    assert_eq!(walk(&["--larger-than", "9"]), "src/ten\n");
    assert_eq!(walk(&["--larger-than", "10"]), "");
    let newer = [
        "--type",
        "f",
        "--newer-than",
        "2020-09-13T12:26:40.000000005",
    ];
    assert_eq!(walk(&newer), "src/ten\n");
    let mtime = walk(&["--include", "nine", "--format", "@{mtime}"]);
    let newer = ["--type", "f", "--newer-than", mtime.trim_end()];
    assert_eq!(walk(&newer), "src/ten\n");
    assert_eq!(
        walk(&["--type", "f", "--newer-than", "file:src/nine"]),
        "src/ten\n"
    );
    assert_eq!(walk(&["--type", "f", "--newer-than", "file:src/ten"]), "");
}

#[test]
fn ages_are_counted_from_now() {
    let place = Place::with(&tree! { "hour" => file(b""), "day" => file(b""), "old" => file(b"") });
    for (name, minutes) in [("hour", 50), ("day", 23 * 60), ("old", 14 * 24 * 60 - 10)] {
        let time = SystemTime::now() - Duration::from_secs(minutes * 60);
        let file = File::options()
            .write(true)
            .open(place.path("src").join(name));
        file.unwrap().set_modified(time).unwrap();
    }
    for (age, files) in [
        ("60s", 0),
        ("49min", 0),
        ("1h", 1),
        ("1d", 2),
        ("13d", 2),
        ("2w", 3),
    ] {
        let printed = place.stdout(&["walk", "src", "--type", "f", "--newer-than", age]);
        assert_eq!(printed.lines().count(), files, "{age}");
    }
}

#[test]
fn what_name_and_type_rule_out_is_not_looked_at() {
    let mut tree = Tree::new();
    for number in 0..300 {
        let ending = if number % 100 == 0 { "nc" } else { "txt" };
        tree.insert(format!("flat/{number}.{ending}"), file(b"1"));
        tree.insert(format!("d{}/{number}.txt", number % 10), file(b"1"));
    }
    let place = Place::with(&tree);
    let stats = |conditions: &[&str]| {
        let strace = [
            "-f",
            "-o",
            "trace",
            "-e",
            "trace=statx",
            env!("CARGO_BIN_EXE_stook"),
        ];
        let walk = ["walk", "src", "--format", "{size}"];
        let arguments = [&strace[..], &walk, conditions].concat();
        let mut command = place.command_of(Path::new("strace"), &arguments);
        let traced = command
            .output()
            .ok()
            .filter(|output| output.status.success())?;
        let lines = String::from_utf8(traced.stdout).unwrap().lines().count();
        let trace = std::fs::read_to_string(place.path("trace")).unwrap();
        Some((lines, trace.matches("statx(").count()))
    };
    if Command::new("strace").arg("-V").output().is_err() {
        stook_testkit::skip!("strace is not installed");
        return;
    }
    let (Some(all), Some(some)) = (stats(&[]), stats(&["--include", "*.nc"])) else {
        stook_testkit::skip!("strace cannot trace here");
        return;
    };
    assert_eq!((all.0, some.0), (612, 3));
    assert_eq!(all.1 - some.1, 597);
    let (lines, large) = stats(&["--type", "l"]).unwrap();
    assert_eq!((lines, all.1 - large), (0, 600));
}

#[test]
fn conditions_that_make_no_sense_are_refused() {
    let place = archived();
    let refused = |condition: &[&str]| refused(&place, &[&["walk", "src"], condition].concat());
    assert_snapshot!(refused(&["--type", "x"]), @r"
    status 2
    error: invalid value `x` for `--type <TYPE,..>` [possible values: f, d, l, p, s, c, b]
    hint: `--help` shows the options
    ");
    assert_snapshot!(refused(&["--type", "fd"]), @r"
    status 2
    error: invalid value `fd` for `--type <TYPE,..>` [possible values: f, d, l, p, s, c, b]
    hint: a similar value exists: `f`
    ");
    assert_snapshot!(refused(&["--type", "f,"]), @r"
    status 2
    error: a value is required for `--type <TYPE,..>` but none was supplied [possible values: f, d, l, p, s, c, b]
    hint: `--help` shows the options
    ");
    assert_snapshot!(refused(&["--larger-than", "big"]), @r"
    status 2
    error: cannot use `big` for --larger-than: it is not a size such as 4GiB, 4G or 500MB
    ");
    assert_snapshot!(refused(&["--larger-than", "99999999PB"]), @r"
    status 2
    error: cannot use `99999999PB` for --larger-than: it is too large
    ");
    assert_snapshot!(refused(&["--newer-than", "yesterday"]), @r"
    status 2
    error: cannot use `yesterday` for --newer-than: it is neither a time such as 2026-11-21T18:30 or @1795285800, nor an age such as 2d, nor file:PATH
    ");
    assert_snapshot!(refused(&["--newer-than", "5m"]), @r"
    status 2
    error: cannot use `5m` for --newer-than: `m` is not a unit of time; use s, min, h, d, w
    ");
    assert_snapshot!(refused(&["--newer-than", "2026-11-21T18:30[Europe/Berlin]"]), @r"
    status 2
    error: cannot use `2026-11-21T18:30[Europe/Berlin]` for --newer-than: it is neither a time such as 2026-11-21T18:30 or @1795285800, nor an age such as 2d, nor file:PATH
    ");
    assert_snapshot!(refused(&["--newer-than", "99999999999999w"]), @r"
    status 2
    error: cannot use `99999999999999w` for --newer-than: it is too long ago
    ");
    assert_snapshot!(refused(&["--newer-than", "file:none"]), @r"
    status 1
    error: cannot look at `none`: no such file or directory
    ");
    assert_snapshot!(refused(&["--summary", "-0"]), @r"
    status 2
    error: the argument `--summary` cannot be used with `--null`
    hint: `--help` shows the options
    ");
    assert_snapshot!(refused(&["--summary", "--format", "{path}"]), @r"
    status 2
    error: the argument `--summary` cannot be used with `--format <FORMAT>`
    hint: `--help` shows the options
    ");
}

#[test]
fn options_conflict_on_both_sides_of_the_command() {
    let place = archived();
    let nul = refused(&place, &["walk", "src", "-0", "--json"]);
    assert_snapshot!(nul, @r"
    status 2
    error: the argument `--null` cannot be used with `--json`
    hint: `--help` shows the options
    ");
    for arguments in [
        &["walk", "src", "--json", "--null"][..],
        &["--json", "walk", "src", "-0"],
        &["list", "arc", "-0", "--json"],
        &["--json", "list", "-0", "arc"],
    ] {
        assert_eq!(refused(&place, arguments), nul, "{arguments:?}");
    }
    let format = refused(&place, &["walk", "src", "--format", "x", "--json"]);
    assert_snapshot!(format, @r"
    status 2
    error: the argument `--format` cannot be used with `--json`
    hint: `--help` shows the options
    ");
    assert_eq!(
        refused(&place, &["--json", "walk", "src", "--format", "x"]),
        format
    );
    let verbose = refused(&place, &["list", "arc", "-q", "-v"]);
    assert_eq!(refused(&place, &["-q", "list", "arc", "-v"]), verbose);
}
