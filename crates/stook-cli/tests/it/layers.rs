//! The rules of the workspace: who may depend on whom, which tests are run, what is generated and up to date.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use cargo_metadata::{DependencyKind, MetadataCommand, Package};

use crate::place::{Place, names};

/// Who may depend on a heavy package, or on one that opens a door: one owner, and the test kit where it must.
const OWNERS: [(&str, &[&str]); 24] = [
    ("clap", &["stook-cli"]),
    ("clap_complete", &["stook-cli"]),
    ("clap_mangen", &["stook-cli"]),
    ("indicatif", &["stook-cli"]),
    ("jiff", &["stook-cli"]),
    ("signal-hook", &["stook-cli", "stook-testkit"]),
    ("fuser", &["stook-mount", "stook-testkit"]),
    ("inferno", &["stook-bench"]),
    ("maud", &["stook-bench"]),
    ("tracing-subscriber", &["stook-cli", "stook-timers"]),
    ("fastrace", &["stook-timers"]),
    ("rusqlite", &["stook-index"]),
    ("libsqlite3-sys", &[]),
    ("rustix", &["stook-sys", "stook-testkit", "stook-timers"]),
    ("libc", &["stook-sys"]),
    ("crc32fast", &["stook-index", "stook-volume"]),
    ("zstd-safe", &["stook-volume"]),
    ("zstd-sys", &[]),
    ("quanta", &["stook-timers"]),
    ("md-5", &["stook-md5", "stook-store", "stook-testkit"]),
    ("object_store", &["stook-store"]),
    ("reqwest", &["stook-store"]),
    ("tokio", &["stook-store"]),
    ("anyhow", &[]),
];

/// The lowest layer, whose crates may use each other.
const FOUNDATION: u8 = 1;

/// The edges within a layer above it: mounts and exports are made of an open archive.
const WITHIN: [(&str, &str); 2] = [
    ("stook-mount", "stook-archive"),
    ("stook-export", "stook-archive"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn packages() -> Vec<Package> {
    let metadata = MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .no_deps()
        .other_options(["--offline".to_owned(), "--locked".to_owned()])
        .exec();
    metadata.unwrap().packages
}

/// Names of what a package depends on, of these kinds.
fn dependencies<'a>(
    package: &'a Package,
    kinds: &'a [DependencyKind],
) -> impl Iterator<Item = &'a str> {
    let of_kind = package
        .dependencies
        .iter()
        .filter(|dependency| kinds.contains(&dependency.kind));
    of_kind.map(|dependency| dependency.name.as_str())
}

const BUILT_IN: [DependencyKind; 2] = [DependencyKind::Normal, DependencyKind::Build];

/// One row of the table in ARCHITECTURE.md.
struct Rule {
    layer: u8,
    may_use: BTreeSet<String>,
}

fn rules() -> BTreeMap<String, Rule> {
    let text = read("ARCHITECTURE.md");
    let table = text
        .split_once("<!-- layers -->")
        .and_then(|(_, rest)| rest.split_once("<!-- /layers -->"))
        .expect("ARCHITECTURE.md has a table between the marks `layers`")
        .0;
    let rows = table
        .lines()
        .map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
    rows.filter(|cells| cells.len() > 3 && cells[1].starts_with("stook"))
        .map(|cells| {
            let layer = cells[2]
                .parse()
                .unwrap_or_else(|_| panic!("`{}` is no layer", cells[2]));
            let may_use = cells[3]
                .split_whitespace()
                .map(|name| format!("stook-{name}"))
                .collect();
            (cells[1].to_owned(), Rule { layer, may_use })
        })
        .collect()
}

/// What breaks the table, in words.
fn broken_rules(
    rules: &BTreeMap<String, Rule>,
    edges: &BTreeMap<String, BTreeSet<String>>,
) -> Vec<String> {
    let mut broken = Vec::new();
    for (name, used) in edges {
        let Some(rule) = rules.get(name) else {
            broken.push(format!("{name} has no row in the table"));
            continue;
        };
        for other in used.difference(&rule.may_use) {
            broken.push(format!(
                "{name} uses {other}, which the table does not allow"
            ));
        }
        for other in rule.may_use.difference(used) {
            broken.push(format!("{name} may use {other}, but does not"));
        }
    }
    for (name, rule) in rules {
        if !edges.contains_key(name) {
            broken.push(format!("the table has a row for {name}, which is no crate"));
        }
        for other in &rule.may_use {
            let Some(below) = rules.get(other) else {
                continue;
            };
            let is_down = below.layer < rule.layer
                || (below.layer, rule.layer) == (FOUNDATION, FOUNDATION)
                || WITHIN.contains(&(name.as_str(), other.as_str()));
            if !is_down {
                broken.push(format!(
                    "{name} in layer {} may not use {other} in layer {}: dependencies point downwards",
                    rule.layer, below.layer
                ));
            }
        }
    }
    broken
}

#[test]
fn dependencies_are_those_of_the_table_in_architecture_md() {
    let edges: BTreeMap<String, BTreeSet<String>> = packages()
        .iter()
        .map(|package| {
            let used = dependencies(package, &BUILT_IN).filter(|name| name.starts_with("stook"));
            (
                package.name.to_string(),
                used.map(ToOwned::to_owned).collect(),
            )
        })
        .collect();
    assert!(edges.len() >= 9, "{edges:?}");
    assert_eq!(broken_rules(&rules(), &edges), [""; 0]);
}

#[test]
fn a_broken_layer_rule_is_told_in_words() {
    let rule = |layer, may_use: &[&str]| Rule {
        layer,
        may_use: may_use.iter().map(ToString::to_string).collect(),
    };
    let rules = BTreeMap::from([
        ("stook-a".to_owned(), rule(2, &["stook-b", "stook-c"])),
        ("stook-b".to_owned(), rule(2, &[])),
        ("stook-gone".to_owned(), rule(3, &[])),
    ]);
    let used = |names: &[&str]| {
        names
            .iter()
            .map(ToString::to_string)
            .collect::<BTreeSet<_>>()
    };
    let edges = BTreeMap::from([
        ("stook-a".to_owned(), used(&["stook-b"])),
        ("stook-b".to_owned(), used(&["stook-a"])),
        ("stook-new".to_owned(), used(&[])),
    ]);
    assert_eq!(
        broken_rules(&rules, &edges),
        [
            "stook-a may use stook-c, but does not",
            "stook-b uses stook-a, which the table does not allow",
            "stook-new has no row in the table",
            "stook-a in layer 2 may not use stook-b in layer 2: dependencies point downwards",
            "the table has a row for stook-gone, which is no crate",
        ]
    );
}

#[test]
fn test_support_stays_out_of_the_program() {
    for package in packages() {
        let built_in: Vec<&str> = dependencies(&package, &BUILT_IN).collect();
        assert!(
            !built_in.contains(&"stook-testkit"),
            "{} needs stook-testkit to build",
            package.name
        );
        if package.name == "stook-testkit" {
            let stooks: Vec<&&str> = built_in
                .iter()
                .filter(|name| name.starts_with("stook"))
                .collect();
            assert!(
                stooks.is_empty(),
                "the test kit leans on the code under test: {stooks:?}"
            );
        }
    }
}

#[test]
fn heavy_dependencies_have_one_owner() {
    let every = [
        DependencyKind::Normal,
        DependencyKind::Build,
        DependencyKind::Development,
    ];
    for package in packages() {
        for name in dependencies(&package, &every) {
            if let Some((_, owners)) = OWNERS.iter().find(|(heavy, _)| *heavy == name) {
                let is_owner = owners.contains(&package.name.as_str());
                assert!(
                    is_owner,
                    "{} depends on {name}, which belongs to {owners:?}",
                    package.name
                );
            }
        }
    }
}

/// What opens an index, and where that may be written: SQLite drops its locks when another descriptor of the file is closed,
/// and an operation that opens an index of its own may see another state than the one that called it.
const OPENERS: [(&str, &[&str]); 4] = [
    ("Connection::open", &["crates/stook-index/src/"]),
    (
        "Index::open",
        &[
            "crates/stook-index/src/",
            "crates/stook-archive/src/archive.rs",
        ],
    ),
    (
        "Index::create",
        &[
            "crates/stook-index/src/",
            "crates/stook-archive/src/archive.rs",
        ],
    ),
    // It writes a new index beside one that may be unusable.
    (
        "Rebuild::new",
        &[
            "crates/stook-index/src/",
            "crates/stook-archive/src/reindex",
        ],
    ),
];

/// Files outside of `stook-index` that may name the index: none opens it as a database.
const NAMING_THE_INDEX: [&str; 10] = [
    "crates/stook-archive/src/folder.rs",
    "crates/stook-archive/src/observer.rs",
    // Refuses a member that would replace it.
    "crates/stook-archive/src/extract/own_folder.rs",
    // Reads its first page where there are no volumes beside it.
    "crates/stook-tree/src/archive.rs",
    "crates/stook-cli/src/options.rs",
    "crates/stook-cli/src/zstash/settings.rs",
    // Copies it, so that a dry run finds the same one each time.
    "crates/stook-bench/src/update/archived.rs",
    // A listing of HPSS, in a test.
    "crates/stook-store/src/hsi/words.rs",
    "crates/stook-testkit/src/tree/named.rs",
    // Refuses to write over it.
    "crates/stook-export/src/new_file.rs",
];

/// The source of all crates: paths from the root, and texts.
fn sources() -> Vec<(String, String)> {
    let mut files = Vec::new();
    for krate in names(&root().join("crates")) {
        files_below(&root().join("crates").join(krate).join("src"), &mut files);
    }
    let is_source = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "rs");
    files.retain(is_source);
    assert!(files.len() > 100);
    let with_text = |path: PathBuf| {
        let name = path.strip_prefix(root()).unwrap().to_str().unwrap();
        (name.to_owned(), std::fs::read_to_string(&path).unwrap())
    };
    files.into_iter().map(with_text).collect()
}

#[test]
fn an_index_is_opened_in_one_place() {
    let sources = sources();
    for (call, places) in OPENERS {
        let callers = sources.iter().filter(|(_, text)| text.contains(call));
        let callers: Vec<&str> = callers.map(|(path, _)| path.as_str()).collect();
        assert!(!callers.is_empty(), "nothing calls {call} any more");
        for path in callers {
            let is_allowed = places.iter().any(|place| path.starts_with(place));
            assert!(
                is_allowed,
                "{path} calls {call}, which belongs to {places:?}"
            );
        }
    }
}

#[test]
fn few_files_outside_of_its_crate_name_the_index() {
    // A name in quotes: comments, messages and help may say `index.db`.
    let is_named = |text: &str| text.contains("\"index.db");
    let mut found: Vec<String> = sources()
        .into_iter()
        .filter(|(path, text)| !path.starts_with("crates/stook-index/") && is_named(text))
        .map(|(path, _)| path)
        .collect();
    let mut allowed = NAMING_THE_INDEX.map(ToOwned::to_owned).to_vec();
    allowed.sort();
    found.sort();
    assert_eq!(found, allowed);
}

#[test]
fn every_test_file_is_listed_in_its_main_rs() {
    for krate in names(&root().join("crates")) {
        let folder = format!("crates/{krate}/tests");
        let beside = names(&root().join(&folder));
        let binaries: Vec<&String> = beside.iter().filter(|name| name.ends_with(".rs")).collect();
        assert!(
            binaries.is_empty(),
            "{folder}: one binary, it/main.rs, not {binaries:?}"
        );
        let files = names(&root().join(&folder).join("it"));
        if files.is_empty() {
            continue;
        }
        let main = read(&format!("{folder}/it/main.rs"));
        for file in files.iter().filter(|name| *name != "main.rs") {
            let module = file.strip_suffix(".rs").unwrap_or(file);
            let is_listed = main.lines().any(|line| line == format!("mod {module};"));
            assert!(
                is_listed,
                "{folder}/it/{file} is not in main.rs and is never run"
            );
        }
    }
}

#[test]
fn docs_commands_md_is_what_the_program_says() {
    let reference = Place::new().stdout(&["reference"]);
    let is_current = read("docs/commands.md") == reference;
    assert!(
        is_current,
        "docs/commands.md is not what `stook reference` prints: `make docs` writes it anew"
    );
}

/// Commands in the order of `--help`.
fn commands() -> Vec<String> {
    let reference = Place::new().stdout(&["reference"]);
    let commands = reference
        .lines()
        .filter_map(|line| line.strip_prefix("## stook "));
    commands.map(ToOwned::to_owned).collect()
}

#[test]
fn every_command_has_a_man_page() {
    let place = Place::new();
    assert_eq!(place.stdout(&["man", "man/of/stook"]), "");
    let mut expected: Vec<String> = commands()
        .iter()
        .map(|command| format!("stook-{}.1", command.replace(' ', "-")))
        .collect();
    expected.push("stook.1".to_owned());
    expected.sort();
    assert!(expected.len() > 8);
    assert_eq!(place.names("man/of/stook"), expected);
    for name in expected {
        let page = std::fs::read_to_string(place.path("man/of/stook").join(&name)).unwrap();
        let title = name.strip_suffix(".1").unwrap();
        assert!(page.contains(&format!(".TH {title} 1")), "{page}");
        assert!(page.contains(".SH SYNOPSIS") && page.len() > 400, "{page}");
    }
}

#[test]
fn completions_know_every_command() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = place.stdout(&["completions", shell]);
        for command in commands() {
            for word in command.split(' ') {
                assert!(script.contains(word), "{shell} does not know {command}");
            }
        }
        assert!(script.contains("volume-size"), "{shell}");
    }
}

#[test]
fn commands_in_the_readme_are_targets_of_the_makefile() {
    let (readme, makefile) = (read("README.md"), read("Makefile"));
    let targets: BTreeSet<&str> = makefile
        .lines()
        .filter(|line| line.contains(": ") || line.ends_with(':'))
        .filter_map(|line| line.split(':').next())
        .collect();
    let words: Vec<&str> = readme
        .split(|c: char| c.is_whitespace() || c == '`')
        .collect();
    let named = words
        .windows(2)
        .filter(|pair| pair[0] == "make")
        .map(|pair| pair[1]);
    let named: BTreeSet<&str> = named.collect();
    assert!(
        named.contains("demo") && named.contains("test"),
        "{named:?}"
    );
    let missing: Vec<&&str> = named.difference(&targets).collect();
    assert!(missing.is_empty(), "no targets: {missing:?}");
}

/// All files of the repository but those that are built.
fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for name in names(folder) {
        let path = folder.join(&name);
        let metadata = std::fs::symlink_metadata(&path).unwrap();
        if metadata.is_dir() && ![".git", "target", "__pycache__"].contains(&name.as_str()) {
            files_below(&path, found);
        } else if metadata.is_file() {
            found.push(path);
        }
    }
}

/// Whether a path stands in some bytes, not as the end of another path or address.
fn mentions(bytes: &[u8], path: &[u8]) -> bool {
    let is_start = |at: usize| {
        let before = at.checked_sub(1).map_or(b' ', |before| bytes[before]);
        !(before.is_ascii_alphanumeric() || b"/._~-".contains(&before))
    };
    bytes
        .windows(path.len())
        .enumerate()
        .any(|(at, window)| window == path && is_start(at))
}

#[test]
fn no_file_names_a_place_on_this_machine() {
    let home = std::env::var("HOME").unwrap_or_default();
    let here = root().to_str().unwrap().to_owned();
    let places = [here, format!("{home}/")].map(String::into_bytes);
    let mut files = Vec::new();
    files_below(&root(), &mut files);
    assert!(files.len() > 100);
    for path in files {
        let bytes = std::fs::read(&path).unwrap();
        for place in places.iter().filter(|place| place.len() > 1) {
            let place_text = String::from_utf8_lossy(place);
            assert!(
                !mentions(&bytes, place),
                "{} mentions {place_text}",
                path.display()
            );
        }
    }
}

/// Crates whose texts any program may show: what advises a user of the command line does not belong there.
const SILENT: [&str; 11] = [
    "archive", "bench", "export", "index", "md5", "pool", "sys", "timers", "tree", "volume", "zodb",
];

/// Returns the string literals of Rust code, without those in comments. Tests at the end of a file are left out.
fn literals(code: &str) -> Vec<String> {
    let code = code.split("\nmod tests {").next().unwrap_or_default();
    let (mut found, mut rest) = (Vec::new(), code);
    while let Some(next) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if let Some(inner) = rest.strip_prefix('"') {
            let mut is_escaped = false;
            let end = inner.find(|letter| {
                let ends = letter == '"' && !is_escaped;
                is_escaped = letter == '\\' && !is_escaped;
                ends
            });
            let end = end.unwrap_or(inner.len());
            found.push(inner[..end].to_owned());
            (end + 2).min(rest.len())
        } else if rest.starts_with("'\"'") || rest.starts_with("'\\\"'") {
            rest[1..].find('\'').unwrap_or(0) + 2
        } else {
            next.len_utf8()
        };
        rest = &rest[skipped..];
    }
    found
}

/// The words of the command lines that `stook-bench` runs.
const WORDS: [&str; 21] = [
    "&&", "|", ">&2", "+2", "none", "diff", "tail", ".", "cd", "check", "create", "extract",
    "list", "perf", "record", "strace", "tar", "update", "walk", "zstash", "ls",
];

/// Returns true if all is options, places to be filled in, and words of command lines.
fn is_command_line(text: &str) -> bool {
    let is_argument = |word: &str| word.starts_with(['-', '{']) || word.contains('=');
    let mut words = text.split(' ');
    words.all(|word| WORDS.contains(&word) || is_argument(word))
}

/// Returns true for a sentence with an option or a command of stook in it; command lines and their arguments are no sentences.
fn names_an_option(text: &str) -> bool {
    if is_command_line(text) {
        return false;
    }
    let is_option = |(at, _): (usize, &str)| {
        let before = text[..at].chars().next_back();
        let is_variable = text[..at].ends_with("var(");
        let is_apart = !is_variable && before.is_none_or(|before| " `(".contains(before));
        let after = text[at + 2..].chars().next();
        is_apart && after.is_some_and(|after| after.is_ascii_lowercase())
    };
    let has_option = text.contains(' ') && text.match_indices("--").any(is_option);
    has_option || text.contains("`stook ")
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let files = paths.flat_map(|path| match path.is_dir() {
        true => rust_files(&path),
        false => vec![path],
    });
    files
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect()
}

#[test]
fn texts_of_libraries_name_no_options() {
    let sample = "// `--no` --no\nlet a = ('\"', \"use `--a\\\" b`\", \"-- c\", \"--d\", \"`stook e`\", \"tar --f {g}\");";
    let texts = literals(sample);
    let named: Vec<_> = texts.iter().filter(|text| names_an_option(text)).collect();
    assert_eq!(named, ["use `--a\\\" b`", "`stook e`"]);
    for sentence in [
        "tar took 3 ms; give --rounds",
        "walk {tree} again with --jobs",
        "{stook} needs --files",
    ] {
        assert!(names_an_option(sentence), "{sentence}");
    }
    let mut offences = Vec::new();
    for name in SILENT {
        for path in rust_files(&root().join(format!("crates/stook-{name}/src"))) {
            if path.ends_with("tests.rs") {
                continue;
            }
            let code = std::fs::read_to_string(&path).unwrap();
            let texts = literals(&code).into_iter();
            let named = texts.filter(|text| names_an_option(text));
            offences.extend(named.map(|text| format!("{}: {text}", path.display())));
        }
    }
    assert_eq!(offences, [""; 0]);
}
