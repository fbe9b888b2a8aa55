//! `walk --summary`: every figure against Python's, and against trees of which all is known.

use insta::assert_snapshot;
use serde_json::{Value, json};
use stook_testkit::{Tree, file, sparse, tree};

use crate::place::{Place, python};

/// All figures but the advice, as the harness of the benchmarks takes them of its file sets.
const FIGURES: &str = r#"
import json, math, os, stat, sys
root = os.fsencode(sys.argv[1])
def extension(name):
    found = os.path.splitext(name)[1]
    return b"" if len(found) > 15 or found[1:].isdigit() or found == b"." else found
class Group:
    def __init__(self): self.sizes, self.on_disk, self.entries = [], 0, 0
    def add(self, facts): self.sizes.append(facts.st_size); self.on_disk += facts.st_blocks * 512
kinds = {"directories": 1, "links": 0, "others": 0}
everything, extensions, directories = Group(), {}, {}
for folder, folders, files in os.walk(root):
    here = directories.setdefault(folder, Group())
    here.entries += 1
    for name in folders + files:
        facts = os.lstat(os.path.join(folder, name))
        if stat.S_ISDIR(facts.st_mode):
            kinds["directories"] += 1
            continue
        here.entries += 1
        if stat.S_ISREG(facts.st_mode):
            group = extensions.setdefault(extension(name), Group())
            group.entries += 1
            for each in (everything, group, here): each.add(facts)
        else:
            kinds["links" if stat.S_ISLNK(facts.st_mode) else "others"] += 1
def text(key, name):
    try: return {key: name.decode()}
    except UnicodeDecodeError: return {key + "_hex": name.hex()}
def rows(key, groups, figure):
    some = [(name, group) for name, group in groups.items() if group.sizes]
    some.sort(key=lambda row: row[0])
    some.sort(key=lambda row: figure(row[1].sizes), reverse=True)
    return [{**text(key, name), "entries": g.entries, "files": len(g.sizes), "bytes": sum(g.sizes),
             "on_disk": g.on_disk, "mean": sum(g.sizes) / len(g.sizes)} for name, g in some[:10]]
def ranking(key, groups):
    return {"by_files": rows(key, groups, len), "by_bytes": rows(key, groups, sum)}
ordered = sorted(everything.sizes)
count = len(ordered)
mean = sum(ordered) / count
classes = {}
for size in ordered:
    digits = len(str(size)) if size else 0
    low, high = (10 ** (digits - 1), 10 ** digits - 1) if size else (0, 0)
    row = classes.setdefault(digits, {"from": low, "to": high, "files": 0, "bytes": 0})
    row["files"] += 1
    row["bytes"] += size
print(json.dumps({
    "type": "summary", "files": count, **kinds, "bytes": sum(ordered), "on_disk": everything.on_disk, "mean": mean,
    "stdev": math.sqrt(sum((size - mean) ** 2 for size in ordered) / count), "min": ordered[0],
    "median": ordered[count // 2], "max": ordered[-1], "failed": 0,
    "sizes": [classes[digits] for digits in sorted(classes)],
    "extensions": ranking("extension", extensions), "all_extensions": True,
    "largest_directories": ranking("path", directories)}))
"#;

fn summary(place: &Place, arguments: &[&str]) -> Value {
    let src = place.path("src");
    let walk = ["walk", src.to_str().unwrap(), "--summary", "--json"];
    let mut lines = place.json(&[&walk, arguments].concat());
    assert_eq!(lines.len(), 1);
    lines.remove(0)
}

/// Equal, but for the last digits of what is no whole number, and texts that only stand in for bytes.
fn assert_alike(found: &Value, expected: &Value, at: &str) {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => {
            for (key, value) in expected {
                assert_alike(&found[key], value, &format!("{at}.{key}"));
            }
        }
        (Value::Array(found), Value::Array(expected)) => {
            assert_eq!(found.len(), expected.len(), "{at}");
            for (number, (found, expected)) in found.iter().zip(expected).enumerate() {
                assert_alike(found, expected, &format!("{at}.{number}"));
            }
        }
        (Value::Number(one), Value::Number(other)) if one.is_f64() || other.is_f64() => {
            let (one, other) = (one.as_f64().unwrap(), other.as_f64().unwrap());
            assert!(
                (one - other).abs() <= 1e-12 * other.abs(),
                "{at}: {one} {other}"
            );
        }
        _ => assert_eq!(found, expected, "{at}"),
    }
}

#[test]
fn all_figures_are_pythons() {
    let mut random = Tree::random(6, 3000);
    random.graft("odd", &Tree::odd_names());
    random.graft("hard", &Tree::hardlinks());
    random.graft("sparse", &Tree::sparse());
    for (number, size) in [0, 1, 999, 1000, 65_535, 65_536, 65_537].iter().enumerate() {
        random.insert(format!("edges/{number}.x{number}"), sparse(&[], *size));
        random.insert(format!("edges/{number}.0{number}"), sparse(&[], *size));
    }
    random.insert(b"bytes/a.\xff\xfe", file(b"a name that is not text"));
    for tree in [random, Tree::basic(), Tree::wide(301)] {
        let place = Place::with(&tree);
        let expected = python(FIGURES, &[place.path("src").to_str().unwrap()]);
        let mut expected: Value = serde_json::from_str(&expected).unwrap();
        let mut found = summary(&place, &[]);
        // Python has no row for a class without files.
        let classes = found["sizes"].as_array_mut().unwrap();
        classes.retain(|class| class["files"] != 0);
        let keys = |value: &Value| {
            value
                .as_object()
                .unwrap()
                .keys()
                .cloned()
                .collect::<Vec<_>>()
        };
        expected["advice"] = found["advice"].clone();
        assert_eq!(keys(&found), keys(&expected));
        assert_alike(&found, &expected, "");
    }
}

fn of_sizes(sizes: &[u64]) -> Place {
    let mut tree = Tree::new();
    for (number, &size) in sizes.iter().enumerate() {
        tree.insert(format!("{number}"), sparse(&[], size));
    }
    Place::with(&tree)
}

#[test]
fn sizes_of_which_all_is_known() {
    let tib: u64 = 1 << 40;
    for (sizes, expected) in [
        (
            &[2, 4, 4, 4, 5, 5, 7, 9][..],
            json!([40, 5.0, 2.0, 2, 5, 9]),
        ),
        (&[1, 2, 3], json!([6, 2.0, (2.0_f64 / 3.0).sqrt(), 1, 2, 3])),
        (&[10, 20], json!([30, 15.0, 5.0, 10, 20, 20])),
        (&[7], json!([7, 7.0, 0.0, 7, 7, 7])),
        (&[0, 0], json!([0, 0.0, 0.0, 0, 0, 0])),
        (
            &[4 * tib, 8 * tib, 8 * tib, 12 * tib],
            json!([
                32 * tib,
                8.0 * tib as f64,
                8.0_f64.sqrt() * tib as f64,
                4 * tib,
                8 * tib,
                12 * tib
            ]),
        ),
        (
            &[15 * tib, 15 * tib - 2],
            json!([
                30 * tib - 2,
                (15 * tib - 1) as f64,
                1.0,
                15 * tib - 2,
                15 * tib,
                15 * tib
            ]),
        ),
    ] {
        let found = summary(&of_sizes(sizes), &[]);
        let names = ["bytes", "mean", "stdev", "min", "median", "max"];
        let figures: Value = names.iter().map(|name| found[name].clone()).collect();
        assert_alike(&figures, &expected, &format!("{sizes:?}"));
    }
}

#[test]
fn a_tree_without_files_has_no_sizes() {
    let place = Place::with(&tree! { "d/" => dir(), "l" => symlink("d") });
    let found = summary(&place, &[]);
    for (key, value) in [("files", 0), ("directories", 2), ("links", 1), ("bytes", 0)] {
        assert_eq!(found[key], value);
    }
    for key in ["mean", "stdev", "min", "median", "max"] {
        assert_eq!(found[key], Value::Null);
    }
    for key in ["sizes", "advice"] {
        assert_eq!(found[key], json!([]));
    }
    assert_snapshot!(place.stdout(&["walk", "src", "--summary"]), @r"
    files                          0
    directories                    2
    links                          1
    others                         0
    bytes                          0  0 B
    on disk                        0  0 B
    mean                           -
    stdev                          -
    min                            -
    median                         -
    max                            -

    no directory would gain from being archived
    ");
}

#[test]
fn a_summary_reads_like_this() {
    let mut tree = tree! { "README" => file(b""), "link" => symlink("README"), "pipe" => fifo() };
    for run in ["a", "b"] {
        for number in 0..1200 {
            tree.insert(format!("runs/{run}/{number}.nc"), sparse(&[], 3000));
        }
    }
    tree.insert("films/film.mp4", sparse(&[], 7_000_000_000));
    for number in 0..12 {
        tree.insert(
            format!("films/{number}.x{number}"),
            sparse(&[], 20_000 + number),
        );
    }
    let place = Place::with(&tree);
    assert_snapshot!(place.stdout(&["walk", "src", "--summary"]), @r"
    files                      2,414
    directories                    5
    links                          1
    others                         1
    bytes              7,007,440,066  7.0 GB
    on disk                        0  0 B
    mean                 2,902,833.5
    stdev              142,442,387.4
    min                            0
    median                     3,000
    max                7,000,000,000

    files  share   bytes  share  size
        1   <1 %     0 B    0 %  empty
        0    0 %     0 B    0 %  below 10 B
        0    0 %     0 B    0 %  below 100 B
        0    0 %     0 B    0 %  below 1 kB
    2,400   99 %  7.2 MB   <1 %  below 10 kB
       12   <1 %  240 kB   <1 %  below 100 kB
        0    0 %     0 B    0 %  below 1 MB
        0    0 %     0 B    0 %  below 10 MB
        0    0 %     0 B    0 %  below 100 MB
        0    0 %     0 B    0 %  below 1 GB
        1   <1 %  7.0 GB  >99 %  below 10 GB

    files  share    bytes  share  on disk     mean  extension, most files
    2,400   99 %   7.2 MB   <1 %      0 B   3.0 kB  .nc
        1   <1 %      0 B    0 %      0 B      0 B  (none)
        1   <1 %   7.0 GB  >99 %      0 B   7.0 GB  .mp4
        1   <1 %  20.0 kB   <1 %      0 B  20.0 kB  .x0
        1   <1 %  20.0 kB   <1 %      0 B  20.0 kB  .x1
        1   <1 %  20.0 kB   <1 %      0 B  20.0 kB  .x10
        1   <1 %  20.0 kB   <1 %      0 B  20.0 kB  .x11
        1   <1 %  20.0 kB   <1 %      0 B  20.0 kB  .x2
        1   <1 %  20.0 kB   <1 %      0 B  20.0 kB  .x3
        1   <1 %  20.0 kB   <1 %      0 B  20.0 kB  .x4

    files  share    bytes  share  on disk     mean  extension, most bytes
        1   <1 %   7.0 GB  >99 %      0 B   7.0 GB  .mp4
    2,400   99 %   7.2 MB   <1 %      0 B   3.0 kB  .nc
        1   <1 %  20.0 kB   <1 %      0 B  20.0 kB  .x11
        1   <1 %  20.0 kB   <1 %      0 B  20.0 kB  .x10
        1   <1 %  20.0 kB   <1 %      0 B  20.0 kB  .x9
        1   <1 %  20.0 kB   <1 %      0 B  20.0 kB  .x8
        1   <1 %  20.0 kB   <1 %      0 B  20.0 kB  .x7
        1   <1 %  20.0 kB   <1 %      0 B  20.0 kB  .x6
        1   <1 %  20.0 kB   <1 %      0 B  20.0 kB  .x5
        1   <1 %  20.0 kB   <1 %      0 B  20.0 kB  .x4

    files  share   bytes  share  on disk    mean  directly in, most files
    1,200   50 %  3.6 MB   <1 %      0 B  3.0 kB  src/runs/a
    1,200   50 %  3.6 MB   <1 %      0 B  3.0 kB  src/runs/b
       13    1 %  7.0 GB  >99 %      0 B  538 MB  src/films
        1   <1 %     0 B    0 %      0 B     0 B  src

    files  share   bytes  share  on disk    mean  would gain from being archived
    1,200   50 %  3.6 MB   <1 %      0 B  3.0 kB  src/runs/a
    1,200   50 %  3.6 MB   <1 %      0 B  3.0 kB  src/runs/b
    archived, 2,402 inodes would be 6: `stook create`, then `stook remove --archived-in`
    ");
    let advice = &summary(&place, &[])["advice"];
    let subtree = |name: &str| {
        json!({
            "path": place.path("src").join(name).to_str().unwrap(), "entries": 1201, "files": 1200, "bytes": 3_600_000,
            "on_disk": 0, "mean": 3000.0,
        })
    };
    assert_eq!(advice, &json!([subtree("runs/a"), subtree("runs/b")]));
}

#[test]
fn figures_of_a_petabyte_are_under_each_other() {
    let printed = of_sizes(&[15 << 40; 80]).stdout(&["walk", "src", "--summary"]);
    assert_snapshot!(printed.split("\n\n").next().unwrap(), @r"
    files                          80
    directories                     1
    links                           0
    others                          0
    bytes       1,319,413,953,331,200  1.3 PB
    on disk                         0  0 B
    mean         16,492,674,416,640.0
    stdev                         0.0
    min            16,492,674,416,640
    median         16,492,674,416,640
    max            16,492,674,416,640
    ");
}

#[test]
fn more_subtrees_than_are_shown() {
    let mut tree = tree! { "film.mp4" => sparse(&[], 7 << 40) };
    for run in 0..12 {
        for number in 0..1000 {
            tree.insert(format!("{run:02}/{number}"), sparse(&[], 0));
        }
    }
    let place = Place::with(&tree);
    let printed = place.stdout(&["walk", "src", "--summary"]);
    let advice = printed.split("would gain").nth(1).unwrap();
    assert_eq!(advice.matches(" src/").count(), 10, "{advice}");
    let ends_with = "and 2 more\narchived, 12,012 inodes would be 36: ";
    assert!(advice.contains(ends_with), "{advice}");
    assert_eq!(summary(&place, &[])["advice"].as_array().unwrap().len(), 12);
}

#[test]
fn conditions_apply_to_what_is_counted() {
    let place = Place::with(&tree! {
        "a.nc" => file(b"12345"),
        "a.txt" => file(b"1"),
        "d/b.nc" => file(b"1234567890"),
        "d/tmp/c.nc" => file(b"1"),
        "link" => symlink("a.nc"),
    });
    let counted = |conditions: &[&str]| {
        let found = summary(&place, conditions);
        let names = ["files", "directories", "links", "bytes"];
        names.map(|name| found[name].as_u64().unwrap())
    };
    assert_eq!(counted(&[]), [4, 3, 1, 17]);
    assert_eq!(counted(&["--type", "f"]), [4, 0, 0, 17]);
    assert_eq!(counted(&["--type", "d,l"]), [0, 3, 1, 0]);
    assert_eq!(counted(&["--larger-than", "1"]), [2, 0, 0, 15]);
    assert_eq!(counted(&["--include", "*.nc"]), [3, 0, 0, 16]);
    assert_eq!(counted(&["--exclude", "d/"]), [2, 1, 1, 6]);
    assert_eq!(counted(&["--newer-than", "2999-01-01"]), [0, 0, 0, 0]);
}

#[test]
fn every_name_of_a_file_counts() {
    let place = Place::with(&tree! { "a" => file(b"12345"), "b" => hardlink("a") });
    let found = summary(&place, &[]);
    assert_eq!((&found["files"], &found["bytes"]), (&2.into(), &10.into()));
}

#[test]
fn any_number_of_workers_gives_the_same_summary() {
    let mut tree = Tree::random(7, 2000);
    for directory in 0..40 {
        for number in 0..30 {
            tree.insert(
                format!("ties/{directory}/{number}.e{directory}"),
                sparse(&[], 100),
            );
        }
    }
    tree.graft("wide", &Tree::wide(1000));
    let place = Place::with(&tree);
    let walk = ["walk", "src", "--summary", "--jobs"];
    let print = |jobs, json: &[&str]| place.stdout(&[&walk[..], &[jobs], json].concat());
    let (text, json) = (print("1", &[]), print("1", &["--json"]));
    for jobs in ["2", "7", "64"] {
        assert_eq!(print(jobs, &[]), text);
        assert_eq!(print(jobs, &["--json"]), json);
    }
}

#[test]
fn what_could_not_be_looked_at_is_named_and_counted() {
    let place = Place::with(&tree! {
        "closed/inside" => file(b"unseen"),
        "open/file" => file(b"seen"),
    });
    let set_mode = |name: &str, mode| {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(place.path(name), mode).unwrap();
    };
    set_mode(".", 0o777);
    set_mode("src/closed", 0);
    let ran = place.run_as_nobody(&["walk", "src", "--summary"]);
    let json = place.run_as_nobody(&["walk", "src", "--summary", "--json"]);
    set_mode("src/closed", 0o755);
    assert_eq!((ran.status, json.status), (Some(3), Some(3)));
    assert_eq!(
        ran.stderr,
        "error: cannot open `src/closed`: permission denied\n"
    );
    assert!(
        ran.text()
            .contains("\nfailed                         1  could not be looked at\n"),
        "{}",
        ran.text()
    );
    let lines = crate::place::json_lines(json.text());
    assert_eq!(
        (&lines[0]["type"], &lines[0]["path"]),
        (&"failure".into(), &"src/closed".into())
    );
    let found = &lines[1];
    assert_eq!(
        (&found["failed"], &found["files"], &found["directories"]),
        (&1.into(), &1.into(), &3.into())
    );
    assert_eq!(lines.len(), 2);
}
