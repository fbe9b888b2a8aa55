//! Storage where every operation waits: as many workers as that asks for, and the same results.

use std::path::Path;
use std::time::Duration;

use stook_testkit::slowfs::{Options, SlowFs, unavailable};
use stook_testkit::{Tree, file};

use crate::place::Place;

/// Enough files for the pool to grow: a second's work for 4 workers.
fn many_files() -> Tree {
    let mut tree = Tree::new();
    for number in 0..1500_usize {
        let path = format!("d{:02}/f{number:04}", number / 40);
        tree.insert(path, file(vec![b'x'; number * 7 % 5000]));
    }
    tree
}

fn mount(place: &Place, source: &str, name: &str) -> Option<SlowFs> {
    if let Some(why) = unavailable() {
        stook_testkit::skip!("{why}");
        return None;
    }
    std::fs::create_dir_all(place.path(source)).unwrap();
    std::fs::create_dir(place.path(name)).unwrap();
    let options = Options::new(Duration::from_millis(2));
    Some(SlowFs::mount(&place.path(source), &place.path(name), &options).unwrap())
}

/// The greatest number of workers that a report of timings shows.
fn most_workers(report: &Path) -> u64 {
    let text = std::fs::read_to_string(report).unwrap();
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    let gauges = report["gauges"].as_array().unwrap().iter();
    let samples = gauges.flat_map(|gauge| gauge["samples"].as_array().unwrap());
    samples
        .map(|sample| sample[1].as_u64().unwrap())
        .max()
        .unwrap()
}

#[test]
fn slow_storage_gets_many_workers_and_the_same_archive() {
    let place = Place::with(&many_files());
    let Some(slow) = mount(&place, "src", "slow") else {
        return;
    };
    let timed = ["--timings=json", "--timings-to", "timings.json"];
    place.stderr(&[&["create", "slow", "there"][..], &timed].concat());
    let most = most_workers(&place.path("timings.json"));
    assert!(most >= 16, "{most} workers");
    drop(slow);
    place.stderr(&["create", "src", "here"]);
    let volume = |archive: &str| std::fs::read(place.path(archive).join("000000.tar")).unwrap();
    assert!(volume("here") == volume("there"), "the volumes differ");
}

#[test]
fn an_extraction_to_slow_storage_gets_many_workers_too() {
    let place = Place::with(&many_files());
    place.stderr(&["create", "src", "arc"]);
    let Some(slow) = mount(&place, "out", "slow") else {
        return;
    };
    let timed = ["--timings=json", "--timings-to", "timings.json"];
    place.stderr(&[&["extract", "arc", "--into", "slow"][..], &timed].concat());
    let most = most_workers(&place.path("timings.json"));
    assert!(most >= 16, "{most} workers");
    drop(slow);
    place.assert_same_tree("src", "out");
}
