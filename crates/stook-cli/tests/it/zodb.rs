//! `stook zodb`: what it says, what it writes, and with which status it ends.

use crate::place::Place;

/// A transaction of one object with a pickle, at the end of a database.
fn commit(bytes: &mut Vec<u8>, number: u64, oid: u64, previous: u64, state: &[u8]) {
    let start = bytes.len() as u64;
    let pickle = [b"\x80\x03cmodule\nThing\n.", state].concat();
    let length = 23 + 42 + pickle.len() as u64;
    let tid = (0x0340_0000 + number) << 32;
    for number in [tid, length] {
        bytes.extend(number.to_be_bytes());
    }
    bytes.extend(b" \0\0\0\0\0\0");
    for number in [oid, tid, previous, start] {
        bytes.extend(number.to_be_bytes());
    }
    bytes.extend([0, 0]);
    bytes.extend((pickle.len() as u64).to_be_bytes());
    bytes.extend(pickle);
    bytes.extend(length.to_be_bytes());
}

/// The root, which refers to object 1 and to one that is not there, and object 1.
pub(crate) fn database() -> Vec<u8> {
    let mut bytes = b"FS30".to_vec();
    let root = b"](U\x08\0\0\0\0\0\0\0\x01QU\x08\0\0\0\0\0\0\0\x63Qe.";
    commit(&mut bytes, 1, 0, 0, root);
    commit(&mut bytes, 2, 1, 0, b"N.");
    let again = 4 + 23;
    commit(&mut bytes, 3, 0, again, root);
    bytes
}

fn place() -> Place {
    let place = Place::new();
    place.write("Data.fs", database());
    place
}

#[test]
fn an_index_is_made_once() {
    let place = place();
    let dry = place.stderr(&["zodb", "reindex", "Data.fs", "--dry-run"]);
    assert!(
        dry.contains("the index was missing; would index 2 objects"),
        "{dry}"
    );
    let made = place.stderr(&["zodb", "reindex", "Data.fs"]);
    assert!(
        made.contains(
            "the index was missing; indexed 2 objects (3 transactions and 3 records read)"
        ),
        "{made}"
    );
    let again = place.stderr(&["zodb", "reindex", "Data.fs"]);
    assert!(
        again.contains("the index was current; left as it is"),
        "{again}"
    );
    let forced = place.stderr(&["zodb", "reindex", "Data.fs", "--force"]);
    assert!(
        forced.contains("the index was current; indexed 2 objects"),
        "{forced}"
    );
    assert_eq!(std::fs::read(place.path("Data.fs")).unwrap(), database());
}

#[test]
fn what_lies_before_an_imperfect_transaction_is_indexed_with_status_4() {
    let place = place();
    let bytes = database();
    place.write("Data.fs", &bytes[..bytes.len() - 9]);
    let ran = place.run(&["zodb", "reindex", "Data.fs"]);
    assert_eq!(ran.status, Some(4));
    assert!(
        ran.stderr.contains("more than the file") && ran.stderr.contains("`stook zodb check`"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr.contains("indexed 2 objects (2 transactions"),
        "{}",
        ran.stderr
    );
    assert_eq!(
        std::fs::read(place.path("Data.fs")).unwrap().len(),
        bytes.len() - 9
    );
    let ran = place.run(&["zodb", "check", "Data.fs"]);
    assert_eq!(ran.status, Some(4));
    assert!(ran.text().contains("more than the file"), "{}", ran.text());
}

#[test]
fn a_sound_database_has_status_0_and_a_wrong_index_4() {
    let place = place();
    place.stderr(&["zodb", "reindex", "Data.fs"]);
    let sound = place.stderr(&["zodb", "check", "Data.fs"]);
    assert!(sound.contains("no damage"), "{sound}");
    let mut index = std::fs::read(place.path("Data.fs.index")).unwrap();
    let at = index.len() - 7;
    index[at] ^= 1;
    place.write("Data.fs.index", index);
    let ran = place.run(&["zodb", "check", "Data.fs"]);
    assert_eq!(ran.status, Some(4));
    assert!(
        ran.text().contains("object 0x1: the saved index leads to"),
        "{}",
        ran.text()
    );
}

#[test]
fn space_and_references_are_shown() {
    let place = place();
    let space = place.stdout(&["zodb", "analyze", "Data.fs"]);
    assert!(
        space.contains("module.Thing") && space.contains("largest objects"),
        "{space}"
    );
    let ran = place.run(&["zodb", "references", "Data.fs", "--to", "1"]);
    assert_eq!(ran.status, Some(4));
    assert_eq!(
        ran.text(),
        "dangling 0x0 0x63\nrefers 0x0 0x1\npath 0x0 0x1\n"
    );
}

#[test]
fn other_files_and_locked_databases_are_refused() {
    let place = place();
    place.write("other", b"nothing");
    let ran = place.run(&["zodb", "reindex", "other"]);
    assert_eq!(ran.status, Some(1));
    assert!(
        ran.stderr.contains("`other` is no Data.fs"),
        "{}",
        ran.stderr
    );
    let _lock = stook_zodb::DatabaseLock::acquire(&place.path("Data.fs")).unwrap();
    let ran = place.run(&["zodb", "reindex", "Data.fs"]);
    assert_eq!(ran.status, Some(1));
    assert!(
        ran.stderr.contains("is locked") && ran.stderr.contains("--dry-run"),
        "{}",
        ran.stderr
    );
    assert!(!place.path("Data.fs.index").exists());
}
