//! The scan: what is indexed, and where it stops.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use stook_zodb::{Observer, Oid, Reason, Scan, ScanEnd, Start, Tid, scan};

use crate::builder::{Builder, Content, Place, object, sample};

fn scanned(bytes: &[u8]) -> Scan {
    scan(&Place::new(bytes).open(), Start::default(), None, &()).unwrap()
}

fn indexed(scan: &Scan) -> BTreeMap<u64, u64> {
    scan.index
        .iter()
        .map(|(oid, position)| (oid.0, position))
        .collect()
}

/// The index of a scan that stopped at the transaction of this number, counted from 0.
fn stopped(builder: &Builder, bytes: &[u8], number: usize) -> Reason {
    let found = scanned(bytes);
    let ScanEnd::Imperfect(imperfection) = found.end else {
        panic!("{:?}", found.end)
    };
    let start = builder.transactions[number];
    assert_eq!(
        (imperfection.transaction, found.position),
        (start, start),
        "{imperfection}"
    );
    let before = scanned(&bytes[..usize::try_from(start).unwrap()]);
    assert_eq!(before.end, ScanEnd::EndOfFile);
    assert_eq!(
        (indexed(&found), found.last_tid),
        (indexed(&before), before.last_tid)
    );
    imperfection.reason
}

#[test]
fn a_perfect_file_is_indexed_to_its_end() {
    let builder = sample();
    let found = scanned(&builder.bytes);
    assert_eq!(found.end, ScanEnd::EndOfFile);
    assert_eq!(
        (found.position, found.last_tid),
        (builder.end(), Tid(builder.tid))
    );
    assert_eq!((found.transactions, found.records), (12, 24));
    assert_eq!(indexed(&found), builder.index);
}

#[test]
fn a_file_without_transactions_is_perfect() {
    let found = scanned(b"FS30");
    assert_eq!(
        (found.end, found.position, found.last_tid),
        (ScanEnd::EndOfFile, 4, Tid(0))
    );
    assert!(found.index.is_empty());
}

#[test]
fn a_file_cut_off_anywhere_in_its_last_transactions_is_indexed_up_to_them() {
    let builder = sample();
    let from = usize::try_from(builder.transactions[10]).unwrap();
    for len in from + 1..builder.bytes.len() {
        let number = if len as u64 <= builder.transactions[11] {
            10
        } else {
            11
        };
        if len as u64 == builder.transactions[11] {
            continue;
        }
        let reason = stopped(&builder, &builder.bytes[..len], number);
        assert!(
            matches!(reason, Reason::CutOff | Reason::BeyondEnd { .. }),
            "{len}: {reason}"
        );
    }
}

#[test]
fn a_flipped_bit_in_a_header_stops_there_or_changes_what_no_header_tells() {
    let builder = sample();
    let (from, to) = (builder.transactions[11], builder.end());
    for at in from..to {
        for bit in 0..8 {
            let mut bytes = builder.bytes.clone();
            bytes[usize::try_from(at).unwrap()] ^= 1 << bit;
            let found = scanned(&bytes);
            match found.end {
                ScanEnd::Imperfect(imperfection) => {
                    assert_eq!(imperfection.transaction, from, "{at} {bit}");
                }
                end => assert_eq!(
                    (end, found.position),
                    (ScanEnd::EndOfFile, to),
                    "{at} {bit}"
                ),
            }
        }
    }
}

#[test]
fn every_imperfection_has_its_reason() {
    let builder = sample();
    let start = usize::try_from(builder.transactions[5]).unwrap();
    let record = start + 23 + 8;
    let case = |at: usize, with: &[u8]| {
        let mut bytes = builder.bytes.clone();
        bytes[at..at + with.len()].copy_from_slice(with);
        stopped(&builder, &bytes, 5)
    };
    assert!(matches!(case(start, &[0; 8]), Reason::TidOrder { .. }));
    assert_eq!(case(start + 16, b"c"), Reason::Unfinished);
    assert_eq!(case(start + 16, b"\x80"), Reason::Status(0x80));
    assert_eq!(
        case(start + 8, &3_u64.to_be_bytes()),
        Reason::TooShort { length: 3 }
    );
    for length in [
        u64::MAX,
        u64::MAX - 7,
        u64::MAX - start as u64,
        1 << 63,
        1 << 40,
    ] {
        assert_eq!(
            case(start + 8, &length.to_be_bytes()),
            Reason::BeyondEnd { length }
        );
    }
    for length in [
        u64::MAX,
        u64::MAX - 42,
        u64::MAX - record as u64 - 41,
        1 << 40,
    ] {
        assert_eq!(
            case(record + 34, &length.to_be_bytes()),
            Reason::RecordTooLong
        );
    }
    assert_eq!(case(record + 33, &[1]), Reason::Version(1));
    assert_eq!(
        case(record + 24, &7_u64.to_be_bytes()),
        Reason::RecordTransaction { found: 7 }
    );
    let reason = case(record + 16, &9_u64.to_be_bytes());
    assert!(matches!(reason, Reason::Previous { found: 9, .. }));
    let end = usize::try_from(builder.transactions[6]).unwrap() - 8;
    assert!(matches!(
        case(end, &[0; 8]),
        Reason::LengthsDiffer { redundant: 0, .. }
    ));
}

#[test]
fn an_imperfect_transaction_with_many_records_leaves_no_trace() {
    let mut builder = Builder::new();
    let pickle = object("A", &[]);
    let objects: Vec<(u64, &[u8])> = (0..300).map(|oid| (oid, &pickle[..])).collect();
    builder.commit(&objects);
    let mut again: Vec<(u64, &[u8])> = (100..400).map(|oid| (oid, &pickle[..])).collect();
    again.push((100, &pickle));
    builder.commit(&again);
    let len = builder.bytes.len();
    for at in [len - 1, len - 9 - pickle.len() - 20] {
        let mut bytes = builder.bytes.clone();
        bytes[at] ^= 0x55;
        stopped(&builder, &bytes, 1);
    }
    assert_eq!(indexed(&scanned(&builder.bytes)), builder.index);
}

#[test]
fn a_tail_that_is_there_twice_and_zeros_are_not_indexed() {
    let mut builder = sample();
    let tail = builder.bytes[usize::try_from(builder.transactions[11]).unwrap()..].to_vec();
    builder.transactions.push(builder.end());
    let twice = [&builder.bytes[..], &tail].concat();
    assert!(matches!(
        stopped(&builder, &twice, 12),
        Reason::TidOrder { .. }
    ));
    let zeros = [&builder.bytes[..], &[0; 4096]].concat();
    stopped(&builder, &zeros, 12);
}

#[test]
fn undone_and_packed_transactions_are_as_zodb_has_them() {
    let mut builder = Builder::new();
    let pickle = object("A", &[]);
    builder.transaction(b'p', &[(0, Content::Pickle(&pickle))]);
    let first = builder.at(0);
    builder.commit(&[(0, &pickle)]);
    builder.transaction(
        b'u',
        &[(0, Content::Pickle(&pickle)), (7, Content::Pickle(&pickle))],
    );
    builder.transaction(b' ', &[(0, Content::Pointer(first))]);
    builder.transaction(b' ', &[]);
    let found = scanned(&builder.bytes);
    assert_eq!(
        (found.end, found.transactions, found.records),
        (ScanEnd::EndOfFile, 5, 3)
    );
    assert_eq!(indexed(&found), builder.index);
}

#[test]
fn a_scan_goes_on_from_where_another_ended() {
    let builder = sample();
    let place = Place::new(&builder.bytes);
    for (number, position) in builder.transactions.iter().enumerate() {
        let tid = Tid(0x0340_0000_0000_0000 + ((number as u64 + 1) << 32));
        let before = scan(&place.open(), Start::default(), Some(tid), &()).unwrap();
        assert_eq!(before.position, *position);
        assert_eq!(before.end, ScanEnd::Stop);
        let start = Start {
            position: before.position,
            last_tid: before.last_tid,
            index: before.index,
        };
        let rest = scan(&place.open(), start, None, &()).unwrap();
        assert_eq!(
            (rest.end, indexed(&rest)),
            (ScanEnd::EndOfFile, builder.index.clone())
        );
    }
}

struct Impatient(AtomicU64);

impl Observer for Impatient {
    fn advanced(&self, records: u64, _bytes: u64) {
        self.0.fetch_add(records, Ordering::Relaxed);
    }

    fn is_interrupted(&self) -> bool {
        true
    }
}

#[test]
fn a_long_scan_can_be_ended() {
    let mut builder = Builder::new();
    let pickle = [&b"cm\nC\n.T\0\0\x30\0"[..], &vec![0; 0x30_0000], b"."].concat();
    (0..6).for_each(|oid| {
        builder.commit(&[(oid, &pickle)]);
    });
    let observer = Impatient(AtomicU64::new(0));
    let found = scan(
        &Place::new(&builder.bytes).open(),
        Start::default(),
        None,
        &observer,
    )
    .unwrap();
    assert_eq!((found.end, found.records), (ScanEnd::Interrupted, 2));
    assert_eq!(observer.0.into_inner(), 2);
    assert_eq!(found.index.get(Oid(1)), Some(builder.at(1)));
}
