//! The saved index: read, judged and written.

use std::os::unix::fs::PermissionsExt;

use stook_zodb::{
    DatabaseLock, Index, IndexState, Oid, SavedIndexError, ScanEnd, Trust, Write, ZodbError,
    decode_index, encode_index, read_index, reindex,
};

use crate::builder::{Place, object, sample};

fn encoded(index: &Index, position: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_index(index, position, &mut bytes).unwrap();
    bytes
}

fn index_of(entries: &[(u64, u64)]) -> Index {
    let mut index = Index::new();
    entries
        .iter()
        .for_each(|(oid, position)| index.insert(Oid(*oid), *position));
    index
}

fn refused(bytes: &[u8]) -> SavedIndexError {
    match decode_index(bytes, "Data.fs.index".as_ref()) {
        Err(ZodbError::SavedIndex { cause, .. }) => cause,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_encoded_is_decoded() {
    let many: Vec<(u64, u64)> = (0..70_000).map(|oid| (oid * 3, oid + 10)).collect();
    let apart: Vec<(u64, u64)> = (0..5000)
        .map(|number| (number << 40 | number, number + 4))
        .collect();
    for (entries, position) in [
        (&[][..], 4),
        (&[(u64::MAX, 255)], 256),
        (&many, 1 << 31),
        (&apart, (1 << 47) + 1),
    ] {
        let index = index_of(entries);
        let saved = decode_index(&encoded(&index, position), "x".as_ref()).unwrap();
        assert_eq!(saved.position, position);
        assert!(saved.index.iter().eq(index.iter()) && saved.index.len() == index.len());
    }
}

#[test]
fn positions_are_written_as_short_as_python_does() {
    let cases: [(u64, &[u8]); 8] = [
        (4, b"\x80\x03K\x04."),
        (255, b"\x80\x03K\xff."),
        (256, b"\x80\x03M\0\x01."),
        (65_536, b"\x80\x03J\0\0\x01\0."),
        (0x7fff_ffff, b"\x80\x03J\xff\xff\xff\x7f."),
        (0x8000_0000, b"\x80\x03\x8a\x05\0\0\0\x80\0."),
        (0x7f_ffff_ffff, b"\x80\x03\x8a\x05\xff\xff\xff\xff\x7f."),
        (0x80_0000_0000, b"\x80\x03\x8a\x06\0\0\0\0\x80\0."),
    ];
    for (position, expected) in cases {
        assert!(
            encoded(&Index::new(), position).starts_with(expected),
            "{position}"
        );
    }
}

#[test]
fn an_index_is_not_believed() {
    let index = index_of(&[(1, 100), (2, 200), (0x1_0000, 300)]);
    let good = encoded(&index, 400);
    for len in 0..good.len() {
        assert!(
            matches!(refused(&good[..len]), SavedIndexError::CutOff { .. }),
            "{len}"
        );
    }
    assert_eq!(
        refused(&encoded(&index, 300)),
        SavedIndexError::Position { position: 300 }
    );
    assert_eq!(refused(b"\x80\x02}q\x01."), SavedIndexError::OldFormat);
    assert_eq!(refused(b"(dp0\n."), SavedIndexError::OldFormat);
    let unsorted = b"\x80\x03K\xff.\x80\x03C\x06\0\0\0\0\0\0C\x10\0\x02\0\x01\0\0\0\0\0\x20\0\0\0\0\0\x20\x86.\x80\x03N.";
    assert!(matches!(refused(unsorted), SavedIndexError::Order { .. }));
    let lying = b"\x80\x03K\xff.\x80\x03C\x06\0\0\0\0\0\0B\xf8\xff\xff\xff";
    assert!(matches!(refused(lying), SavedIndexError::Format { .. }));
    // Any byte changed: an error or another index, and never a panic.
    for at in 0..good.len() {
        let mut bytes = good.clone();
        bytes[at] ^= 0x41;
        let _ = decode_index(&bytes, "x".as_ref());
    }
}

#[test]
fn a_missing_index_is_written_with_mode_and_nothing_else_stays() {
    let builder = sample();
    let place = Place::new(&builder.bytes);
    std::fs::set_permissions(place.path(), PermissionsExt::from_mode(0o640)).unwrap();
    let dry = reindex(&place.path(), Write::DryRun, Trust::Sane, &()).unwrap();
    assert_eq!((dry.before, dry.written), (IndexState::Missing, None));
    assert_eq!(place.names(), ["Data.fs"]);
    let done = reindex(&place.path(), Write::Save, Trust::Sane, &()).unwrap();
    assert_eq!(
        done.written,
        Some(std::fs::metadata(place.index_path()).unwrap().len())
    );
    assert_eq!(place.names(), ["Data.fs", "Data.fs.index", "Data.fs.lock"]);
    let mode = std::fs::metadata(place.index_path())
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o640);
    assert_eq!(
        read_index(&place.index_path()).unwrap().position,
        builder.end()
    );
    assert_eq!(std::fs::read(place.path()).unwrap(), builder.bytes);
}

#[test]
fn a_stale_index_is_gone_on_from_and_a_current_one_left_alone() {
    let mut builder = sample();
    let pickle = object("A", &[]);
    // Two records of one object at the end make ZODB throw a good index away; one behind them does not.
    builder.commit(&[(1, &pickle)]);
    let place = Place::new(&builder.bytes);
    reindex(&place.path(), Write::Save, Trust::Sane, &()).unwrap();
    let saved = std::fs::read(place.index_path()).unwrap();
    let again = reindex(&place.path(), Write::Save, Trust::Sane, &()).unwrap();
    assert_eq!(
        (again.before, again.written, again.scan.records),
        (IndexState::Current, None, 0)
    );
    let position = builder.end();
    builder.commit(&[(11, &pickle)]);
    std::fs::write(place.path(), &builder.bytes).unwrap();
    let done = reindex(&place.path(), Write::Save, Trust::Sane, &()).unwrap();
    assert_eq!(
        (done.before, done.from),
        (IndexState::Stale { position }, position)
    );
    assert_eq!(
        (done.scan.records, done.scan.index.len()),
        (1, builder.index.len())
    );
    assert_ne!(std::fs::read(place.index_path()).unwrap(), saved);
    let forced = reindex(&place.path(), Write::DryRun, Trust::Nothing, &()).unwrap();
    assert!(forced.scan.index.iter().eq(done.scan.index.iter()));
}

#[test]
fn an_insane_or_unreadable_index_is_built_anew() {
    let mut builder = sample();
    let pickle = object("A", &[]);
    builder.commit(&[(1, &pickle)]);
    let place = Place::new(&builder.bytes);
    let insane = encoded(&index_of(&[(1, 100)]), builder.end());
    for (bytes, state) in [
        (&insane[..], IndexState::Insane),
        (
            b"\x80\x03K",
            IndexState::Unreadable(SavedIndexError::CutOff { offset: 3 }),
        ),
    ] {
        std::fs::write(place.index_path(), bytes).unwrap();
        let done = reindex(&place.path(), Write::Save, Trust::Sane, &()).unwrap();
        assert_eq!(done.before, state);
        assert_eq!(
            read_index(&place.index_path()).unwrap().index.len(),
            builder.index.len()
        );
    }
}

#[test]
fn what_lies_before_an_imperfect_transaction_is_saved_and_the_file_not_cut() {
    let builder = sample();
    let cut = &builder.bytes[..builder.bytes.len() - 5];
    let place = Place::new(cut);
    let done = reindex(&place.path(), Write::Save, Trust::Sane, &()).unwrap();
    assert!(matches!(done.scan.end, ScanEnd::Imperfect(_)));
    assert_eq!(
        read_index(&place.index_path()).unwrap().position,
        builder.transactions[11]
    );
    assert_eq!(std::fs::read(place.path()).unwrap(), cut);
}

#[test]
fn a_database_that_is_open_elsewhere_is_left_alone() {
    let place = Place::new(&sample().bytes);
    let lock = DatabaseLock::acquire(&place.path()).unwrap();
    let Err(ZodbError::Locked { holder, .. }) =
        reindex(&place.path(), Write::Save, Trust::Sane, &())
    else {
        panic!("it was written")
    };
    assert_eq!(holder, Some(std::process::id().to_string()));
    assert!(reindex(&place.path(), Write::DryRun, Trust::Sane, &()).is_ok());
    drop(lock);
    reindex(&place.path(), Write::Save, Trust::Sane, &()).unwrap();
}

#[test]
fn what_is_no_database_gets_no_lock_file() {
    for bytes in [&b""[..], b"FS21 and more"] {
        let place = Place::new(bytes);
        let refused = reindex(&place.path(), Write::Save, Trust::Sane, &());
        assert!(matches!(refused, Err(ZodbError::NotDataFs { .. })));
        assert_eq!(place.names(), ["Data.fs"]);
    }
}
