//! What `list` shows of members besides their rows: what their headers say, whether or not the index has it.

use std::fs::{self, File};
use std::ops::ControlFlow;
use std::path::Path;

use stook_archive::{ArchiveError, AsOf, ListOptions, Observer, Row, Silent, list_with_attributes};
use stook_testkit::{Tree, tree};

use crate::attribute_blocks::{assert_same, is_stooks};
use crate::by_path::open;
use crate::fixtures::Case;
use crate::folder::{all_rows, newest_rows};
use crate::resuming::Stopper;
use crate::scene::Scene;

fn everything() -> ListOptions {
    ListOptions {
        patterns: Vec::new(),
        as_of: AsOf::Now,
        all_versions: true,
    }
}

/// Lists all rows, and compares attributes with headers; returns rows without attributes.
fn unknown(archive: &Path) -> Vec<Row> {
    let (mut unknown, mut rows) = (Vec::new(), Vec::new());
    let mut opened = open(archive).unwrap();
    let report = list_with_attributes(&mut opened, &everything(), &Silent, |row, attributes| {
        rows.push(row.to_row());
        let Some(found) = attributes else {
            unknown.push(row.to_row());
            return ControlFlow::Continue(());
        };
        let volume = File::open(archive.join(row.volume.to_string())).unwrap();
        let member = stook_volume::decode(&volume, row.offset).unwrap().unwrap();
        assert_eq!(
            (found.offset, &member.header.name[..]),
            (row.offset, row.name)
        );
        assert_same(found, &member, is_stooks(archive, row.volume));
        ControlFlow::Continue(())
    });
    let report = report.unwrap();
    assert_eq!((report.members, report.failed), (rows.len() as u64, 0));
    assert_eq!(rows, all_rows(archive));
    unknown
}

#[test]
fn attributes_come_from_the_index() {
    let scene = Scene::archived(&Tree::torture());
    scene.lay(&tree! {"later" => file(b"x"), "link to it" => hardlink("later")});
    scene.update();
    assert_eq!(unknown(&scene.archive()), []);
    // No volume is read.
    for volume in ["000000.tar", "000001.tar"] {
        fs::remove_file(scene.archive().join(volume)).unwrap();
    }
    let mut known = 0;
    let mut archive = open(&scene.archive()).unwrap();
    list_with_attributes(&mut archive, &everything(), &Silent, |_, attributes| {
        known += usize::from(attributes.is_some());
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(known, all_rows(&scene.archive()).len());
}

#[test]
fn of_rows_of_zstash_the_headers_are_read() {
    for case in [
        "basic",
        "duplicate-tars",
        "gnu-format",
        "hard-links",
        "no-tars-table",
        "odd-names",
        "volumes",
    ] {
        assert_eq!(unknown(&Case::new(case).archive()), [], "{case}");
    }
}

#[test]
fn a_volume_that_is_elsewhere_or_damaged_fails_no_list() {
    let case = Case::new("volumes");
    let archive = case.archive();
    let rows = all_rows(&archive);
    let volume = rows[0].volume;
    let path = archive.join(volume.to_string());
    let of_volume: Vec<Row> = rows
        .into_iter()
        .filter(|row| row.volume == volume)
        .collect();
    let bytes = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    assert_eq!(unknown(&archive), of_volume);
    // The second member in place of the first: its header is not shown as that of the row.
    let mut other = bytes.clone();
    let len = usize::try_from(of_volume[1].offset).unwrap();
    other.copy_within(len..2 * len, 0);
    fs::write(&path, &other).unwrap();
    assert_eq!(unknown(&archive), of_volume[..1]);
    fs::write(&path, &bytes).unwrap();
    assert_eq!(unknown(&archive), []);
}

#[test]
fn a_list_ends_where_its_reader_or_the_user_ends_it() {
    let scene = Scene::archived(&Tree::basic());
    assert!(newest_rows(&scene.archive()).len() > 1);
    let mut archive = open(&scene.archive()).unwrap();
    let mut shown = 0;
    list_with_attributes(&mut archive, &everything(), &Silent, |_, _| {
        shown += 1;
        ControlFlow::Break(())
    })
    .unwrap();
    assert_eq!(shown, 1);
    let stopped: &dyn Observer = &Stopper::after(0);
    let ended = list_with_attributes(&mut archive, &everything(), stopped, |_, _| {
        ControlFlow::Continue(())
    });
    assert!(matches!(ended, Err(ArchiveError::Interrupted)), "{ended:?}");
}
