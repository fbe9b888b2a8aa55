//! Databases that ZODB made: the same index byte for byte, the same references and classes, and no damage.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use stook_testkit::{TempDir, skip};
use stook_zodb::{DataFile, Oid, References, ScanEnd, Start, analyze, check, encode_index, scan};

/// A Python that has ZODB: of the test tools, or the one on the path.
fn python() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    let own = cache.map(|cache| cache.join("stook/test-tools/bin/python"));
    let candidates = own.into_iter().chain([PathBuf::from("python3")]);
    let has_zodb = |python: &PathBuf| {
        let asked = Command::new(python)
            .args(["-c", "import ZODB, ZODB.scripts.analyze"])
            .output();
        asked.is_ok_and(|output| output.status.success())
    };
    candidates.into_iter().find(has_zodb)
}

#[test]
fn zodb_and_we_find_the_same() {
    let Some(python) = python() else {
        skip!("there is no Python with ZODB (pip install ZODB)");
        return;
    };
    let folder = TempDir::new().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/zodb_databases.py");
    let output = Command::new(python)
        .arg(script)
        .arg(folder.path())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let lines: Vec<Value> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 5);
    for line in lines {
        let name = line["name"].as_str().unwrap();
        compare(&folder.join(format!("{name}.fs")), &line);
    }
}

fn compare(path: &Path, expected: &Value) {
    let name = &expected["name"];
    let data = DataFile::open(path).unwrap();
    let found = scan(&data, Start::default(), None, &()).unwrap();
    assert_eq!(found.end, ScanEnd::EndOfFile, "{name}");
    let mut bytes = Vec::new();
    encode_index(&found.index, found.position, &mut bytes).unwrap();
    let saved = std::fs::read(format!("{}.index", path.display())).unwrap();
    assert!(bytes == saved, "{name}: the index is another one");
    let checked = check(&data, &(), &mut |damage| panic!("{name}: {damage}")).unwrap();
    assert_eq!(checked.indexed, Some(found.index.len() as u64));
    assert_eq!(
        checked.records,
        expected["records"].as_u64().unwrap(),
        "{name}"
    );
    let references = References::read(&data, &()).unwrap();
    let counts = references.counts();
    assert_eq!(
        counts.strong,
        expected["references"].as_u64().unwrap(),
        "{name}: {counts:?}"
    );
    assert_eq!(
        (counts.dangling, counts.damaged, counts.unknown),
        (0, 0, 0),
        "{name}"
    );
    for pair in expected["first"].as_array().unwrap() {
        let [from, to] = [0, 1].map(|at| Oid(pair[at].as_u64().unwrap()));
        assert!(
            references.targets(from).contains(&to),
            "{name}: {from} {to}"
        );
    }
    let analysis = analyze(&data, &()).unwrap();
    let mut classes: Vec<&str> = analysis
        .classes
        .iter()
        .map(|class| class.class.as_str())
        .collect();
    classes.sort_unstable();
    assert_eq!(serde_json::json!(classes), expected["classes"], "{name}");
    assert_eq!(
        analysis.current.records,
        expected["objects"].as_u64().unwrap(),
        "{name}"
    );
}
