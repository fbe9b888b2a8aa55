//! `stook export refs`: what it says is what the volumes hold, and Python reads by it.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use stook_testkit::servers::Nginx;
use stook_testkit::{Kind, Tree, skip, tree};

use crate::place::Place;

fn archived(tree: &Tree) -> Place {
    let place = Place::with(tree);
    place.stderr(&["create", "src", "arc"]);
    place
}

/// Returns each reference of a file of them.
fn references(text: &str) -> BTreeMap<String, Value> {
    let mut whole: Value = serde_json::from_str(text).unwrap();
    assert_eq!(whole["version"], 1);
    serde_json::from_value(whole["refs"].take()).unwrap()
}

/// Reads what a reference stands for.
fn content(reference: &Value) -> Vec<u8> {
    if reference == "" {
        return Vec::new();
    }
    let number = |place: usize| usize::try_from(reference[place].as_u64().unwrap()).unwrap();
    let volume = fs::read(reference[0].as_str().unwrap()).unwrap();
    volume[number(1)..][..number(2)].to_vec()
}

#[test]
fn every_reference_is_the_content_of_its_file() {
    let place = Place::with(&Tree::random(3, 300));
    place.stderr(&["create", "src", "arc", "--volume-size", "200KB"]);
    let ran = place.run(&["export", "refs", "arc"]);
    let found = references(ran.text());
    let mut files = place.snapshot("src");
    files.retain(|_, facts| facts.kind == Kind::File);
    let mut compared = 0;
    for (path, reference) in &found {
        assert_eq!(
            content(reference),
            fs::read(place.path("src").join(path)).unwrap(),
            "{path}"
        );
        compared += 1;
    }
    let named = ran.stderr.matches("error: cannot refer to").count();
    assert!(compared > 100);
    assert_eq!(compared + named, files.len(), "{}", ran.stderr);
    assert_eq!(ran.status, Some(if named == 0 { 0 } else { 3 }));
}

#[test]
fn references_to_archives_of_zstash() {
    let fixtures = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../stook-archive/tests/fixtures/zstash"
    );
    let place = Place::new();
    for case in [
        "basic",
        "gnu-format",
        "hard-links",
        "no-tars-table",
        "volumes",
    ] {
        let archive = format!("{fixtures}/{case}/archive");
        let found = references(&place.stdout(&["export", "refs", &archive]));
        assert!(!found.is_empty());
        for (path, reference) in &found {
            let expected = place.run(&["cat", &archive, path]).stdout;
            assert_eq!(content(reference), expected, "{case}: {path}");
        }
    }
}

#[test]
fn what_a_reference_looks_like() {
    let place = archived(&tree! {
        "a" => file(b"content"), "d/empty" => file(b""), "d/link" => symlink("../a"), "d/\"x\"" => file(b"quoted"),
    });
    let text = place.stdout(&[
        "export",
        "refs",
        "arc",
        "a",
        "d",
        "--base",
        "s3://bucket/run/",
    ]);
    let line = text.lines().find(|line| line.starts_with("\"a\"")).unwrap();
    assert_eq!(
        line.trim_end_matches(','),
        "\"a\":[\"s3://bucket/run/000000.tar\",1536,7]"
    );
    let found = references(&text);
    assert_eq!(found["d/empty"], "");
    assert!(found.contains_key("d/\"x\"") && !found.contains_key("d/link"));
    let said = place.stderr(&["export", "refs", "arc", "--to", "refs.json"]);
    assert_eq!(
        said,
        "referred to 3 files, 13 B, in 1 volume; 1 without content\n"
    );
    assert_eq!(
        references(&fs::read_to_string(place.path("refs.json")).unwrap()).len(),
        3
    );
    assert_eq!(place.names(""), ["arc", "refs.json", "src"]);
}

#[test]
fn what_has_no_place_in_a_volume_is_named() {
    let place = archived(&tree! {
        "a" => file([1; 1000]), "holes" => sparse(&[(0, b"begin"), (1 << 20, b"end")], 2 << 20),
    });
    let ran = place.run(&["export", "refs", "arc"]);
    assert_eq!(ran.status, Some(3));
    assert!(
        ran.stderr.contains("cannot refer to `holes`: it is sparse"),
        "{}",
        ran.stderr
    );
    assert_eq!(
        references(ran.text()).into_keys().collect::<Vec<_>>(),
        ["a"]
    );

    place.stderr(&["create", "--zstd", "src", "compressed"]);
    let ran = place.run(&["export", "refs", "compressed"]);
    assert_eq!((ran.status, ran.text()), (Some(1), ""));
    assert!(
        ran.stderr.contains("000000.tar.zst: compressed volumes"),
        "{}",
        ran.stderr
    );
    for (arguments, text) in [
        (&["refs", "arc", "none"][..], "none"),
        (
            &["refs", "arc", "--to", "arc/index.db"],
            "it is a part of the archive",
        ),
        (
            &["refs", "arc", "--to", "arc/00000a.tar"],
            "it is a part of the archive",
        ),
        (
            &["refs", "arc", "--to", "r.parquet"],
            "no array of Zarr format 2 is selected",
        ),
        (
            &["refs", "arc", "--format", "parquet"],
            "which `--to` names",
        ),
        (&["refs", "arc", "--base", "x", "--to", "no/where"], "no"),
    ] {
        let ran = place.run(&[&["export"], arguments].concat());
        assert!(
            matches!(ran.status, Some(1 | 2)),
            "{arguments:?}: {}",
            ran.stderr
        );
        assert!(ran.stderr.contains(text), "{arguments:?}: {}", ran.stderr);
    }
    // A volume that is shorter than the index says is found before somebody reads zeros.
    place.set_mode("arc/000000.tar", 0o644);
    let volume = fs::OpenOptions::new()
        .write(true)
        .open(place.path("arc/000000.tar"))
        .unwrap();
    volume.set_len(1024).unwrap();
    let ran = place.run(&["export", "refs", "arc", "--to", "refs.json"]);
    assert_eq!(ran.status, Some(4), "{}", ran.stderr);
    assert!(!place.path("refs.json").exists());
}

/// A Python that has what `.ci/test-tools --install` installs.
fn python() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    let own = cache.map(|cache| cache.join("stook/test-tools/bin/python3"));
    let own = own.filter(|path| path.is_file());
    let python = own.unwrap_or_else(|| "python3".into());
    let found = Command::new(&python)
        .args(["-c", "import fsspec, zarr, xarray, fastparquet, aiohttp"])
        .output();
    if !found.is_ok_and(|found| found.status.success()) {
        skip!("python3 has not all of fsspec, zarr, xarray, fastparquet and aiohttp");
        return None;
    }
    Some(python)
}

fn run_python(python: &PathBuf, place: &Place, script: &str, arguments: &[&str]) {
    let ran = Command::new(python)
        .args(["-W", "ignore", "-c", script])
        .args(arguments)
        .current_dir(place.root())
        .output()
        .unwrap();
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
}

/// Makes stores of both formats, with many chunks, some missing, and a scalar.
const MAKE: &str = r#"
import numpy as np, xarray as xr, zarr
for version, name in ((2, "src/v2.zarr"), (3, "src/v3.zarr")):
    data = xr.Dataset(
        {"t": (("y", "x"), np.arange(120.0 * 200).reshape(120, 200)), "s": ((), 7)},
        coords={"y": np.arange(120), "x": np.arange(200)}, attrs={"title": "made for a test"},
    )
    data.to_zarr(name, zarr_format=version, encoding={"t": {"chunks": (10, 20)}}, consolidated=False)
    more = zarr.open_group(name, mode="a").create_group("more")
    gaps = more.create_array("gaps", shape=(100, 100), chunks=(10, 10), dtype="f4", fill_value=-1)
    gaps[50:70, 20:30] = 5
# More chunks than one file of references has, and the last ones are missing.
import json, os
os.makedirs("src/v2.zarr/more/long")
json.dump({"zarr_format": 2, "shape": [10050], "chunks": [1], "dtype": "|u1", "compressor": None, "fill_value": 9, "filters": None, "order": "C"}, open("src/v2.zarr/more/long/.zarray", "w"))
for n in range(10040):
    open(f"src/v2.zarr/more/long/{n}", "wb").write(bytes([n % 7]))
open("src/note.txt", "w").write("a whole file\n")
"#;

const READ: &str = r#"
import sys, fsspec, numpy as np, xarray as xr, zarr
fo, stores = sys.argv[1], sys.argv[2:]
fs = fsspec.filesystem("reference", fo=fo, skip_instance_cache=True)
if "v3.zarr" in stores:
    assert fs.cat("note.txt") == b"a whole file\n"
    assert fs.open("note.txt").read(7) == b"a whole"
    assert fs.info("note.txt")["size"] == 13
    assert sorted(fs.find(""))[0] == "note.txt"
for store in stores:
    group = zarr.open_group(zarr.storage.FsspecStore(
        fsspec.filesystem("reference", fo=fo, asynchronous=True, remote_options={"asynchronous": True}, skip_instance_cache=True),
        path=store, read_only=True), mode="r")
    assert float(group["t"][:].sum()) == float(np.arange(120.0 * 200).sum())
    assert int(group["s"][()]) == 7
    assert float(group["more/gaps"][:].sum()) == 5 * 200 - (100 * 100 - 200)
    if store == "v2.zarr":
        assert group["more/long"][9990:].tolist() == [n % 7 for n in range(9990, 10040)] + [9] * 10
    data = xr.open_zarr(group.store, consolidated=False)
    assert data.attrs["title"] == "made for a test"
    assert float(data["t"].sel(y=3, x=7)) == 607
"#;

const READ_PARQUET: &str = r#"
import sys, numpy as np, xarray as xr, zarr
options = {"fo": sys.argv[1], "remote_protocol": "file"}
group = zarr.open_group("reference://", storage_options=options, mode="r", zarr_format=2)
assert float(group["t"][:].sum()) == float(np.arange(120.0 * 200).sum())
assert int(group["s"][()]) == 7
assert float(group["more/gaps"][:].sum()) == 5 * 200 - (100 * 100 - 200)
assert group["more/long"][9990:].tolist() == [n % 7 for n in range(9990, 10040)] + [9] * 10
data = xr.open_zarr("reference://", storage_options=options, consolidated=False, zarr_format=2)
assert data.attrs["title"] == "made for a test"
assert float(data["t"].sel(y=3, x=7)) == 607
"#;

#[test]
fn python_reads_files_and_arrays_by_references() {
    let Some(python) = python() else { return };
    let place = Place::with(&Tree::new());
    run_python(&python, &place, MAKE, &[]);
    place.stderr(&["create", "src", "arc", "--volume-size", "4MB"]);
    assert!(place.names("arc").len() > 3);
    place.stderr(&["export", "refs", "arc", "--to", "refs.json"]);
    run_python(&python, &place, READ, &["refs.json", "v2.zarr", "v3.zarr"]);
    let parquet = ["--below", "v2.zarr/", "--to", "refs.parquet"];
    let said = place.stderr(&[&["export", "refs", "arc"][..], &parquet].concat());
    assert!(said.starts_with("referred to 10,1"), "{said}");
    run_python(&python, &place, READ_PARQUET, &["refs.parquet"]);
    // Over HTTP, where the volumes lie on a server.
    let Some(nginx) = Nginx::start("").unwrap() else {
        return skip!("nginx is not installed");
    };
    fs::create_dir_all(nginx.root()).unwrap();
    for name in place.names("arc") {
        fs::copy(place.path("arc").join(&name), nginx.root().join(&name)).unwrap();
    }
    let base = nginx.url();
    place.stderr(&[
        "export",
        "refs",
        "arc",
        "--base",
        &base,
        "--to",
        "http.json",
    ]);
    run_python(&python, &place, READ, &["http.json", "v2.zarr", "v3.zarr"]);
}
