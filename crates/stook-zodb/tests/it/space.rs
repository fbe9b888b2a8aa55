//! What takes the space, and who refers to whom.

use stook_zodb::{Amount, Dangling, Oid, References, analyze};

use crate::builder::{Builder, Content, Place, object, sample};

#[test]
fn space_is_counted_by_class_current_and_old() {
    let mut builder = Builder::new();
    let (small, large) = (object("A", &[]), object("B", &[1, 2, 3]));
    builder.commit(&[(0, &small), (1, &large), (2, &small)]);
    let first = builder.at(0);
    builder.commit(&[(0, &large), (1, &large)]);
    builder.transaction(
        b' ',
        &[(0, Content::Pointer(first)), (2, Content::Pointer(0))],
    );
    let found = analyze(&Place::new(&builder.bytes).open(), &()).unwrap();
    let (small, large) = (small.len() as u64, large.len() as u64);
    let amount = |records, bytes| Amount { records, bytes };
    let classes: Vec<_> = found
        .classes
        .iter()
        .map(|class| (class.class.as_str(), class.current, class.old))
        .collect();
    assert_eq!(
        classes,
        [
            ("module.B", amount(1, large), amount(2, 2 * large)),
            ("module.A", amount(1, 0), amount(2, 2 * small)),
            ("(gone)", amount(1, 0), amount(0, 0)),
        ]
    );
    assert_eq!(
        (found.current, found.old),
        (amount(3, large), amount(4, 2 * small + 2 * large))
    );
    assert_eq!(
        (found.largest[0].oid, found.largest[0].current_bytes),
        (Oid(1), large)
    );
    let most = &found.most_written[0];
    assert_eq!(
        (most.oid, most.all, most.class.as_str()),
        (Oid(1), amount(2, 2 * large), "module.B")
    );
    assert_eq!(
        found.days.iter().map(|day| day.transactions).sum::<u64>(),
        3
    );
    assert_eq!(
        found.days.iter().map(|day| day.bytes).sum::<u64>(),
        builder.end() - 4
    );
}

#[test]
fn a_long_record_has_its_class_though_it_is_not_read() {
    let mut builder = Builder::new();
    let long = [
        &b"\x80\x03cm\nLong\n.T\0\0\x30\0"[..],
        &vec![7; 0x30_0000],
        b".",
    ]
    .concat();
    let other = [
        &b"\x80\x03cm\nOther\n.(T\0\0\x10\0"[..],
        &vec![7; 0x10_0000],
        b"U\x08\0\0\0\0\0\0\0\0Qt.",
    ]
    .concat();
    builder.commit(&[(0, &long), (1, &other)]);
    let place = Place::new(&builder.bytes);
    let found = analyze(&place.open(), &()).unwrap();
    let names: Vec<_> = found
        .classes
        .iter()
        .map(|class| class.class.as_str())
        .collect();
    assert_eq!(names, ["m.Long", "m.Other"]);
    let references = References::read(&place.open(), &()).unwrap();
    assert_eq!(references.targets(Oid(1)), [Oid(0)]);
    assert_eq!(references.counts().damaged, 0);
}

#[test]
fn references_lead_from_the_root_to_every_object() {
    let mut builder = Builder::new();
    let objects = [
        object("R", &[1, 2, 2]),
        object("A", &[3, 3]),
        object("A", &[0]),
        object("A", &[4]),
        object("A", &[]),
    ];
    let objects: Vec<(u64, &[u8])> = (0..).zip(objects.iter().map(Vec::as_slice)).collect();
    builder.commit(&objects);
    let lost = object("A", &[1, 77]);
    builder.commit(&[(5, &lost)]);
    let found = References::read(&Place::new(&builder.bytes).open(), &()).unwrap();
    assert_eq!(
        found.path_from_root(Oid(4)),
        Some([0, 1, 3, 4].map(Oid).to_vec())
    );
    assert_eq!(found.path_from_root(Oid(0)), Some(vec![Oid(0)]));
    assert_eq!(found.path_from_root(Oid(5)), None);
    assert_eq!(found.path_from_root(Oid(77)), None);
    assert_eq!(found.referrers(Oid(1)), [Oid(0), Oid(5)]);
    assert_eq!(found.referrers(Oid(77)), [Oid(5)]);
    assert_eq!(found.targets(Oid(0)), [Oid(1), Oid(2)]);
    assert_eq!(
        found.dangling(),
        [Dangling {
            from: Oid(5),
            to: Oid(77)
        }]
    );
    assert_eq!((found.counts().strong, found.unreachable()), (6, 1));
}

#[test]
fn a_reference_to_an_object_that_is_gone_is_dangling() {
    let mut builder = Builder::new();
    let (root, leaf) = (object("R", &[1, 2]), object("A", &[]));
    builder.commit(&[(0, &root), (1, &leaf), (2, &leaf)]);
    let first = builder.at(2);
    builder.transaction(
        b' ',
        &[(1, Content::Pointer(0)), (2, Content::Pointer(first))],
    );
    let found = References::read(&Place::new(&builder.bytes).open(), &()).unwrap();
    assert_eq!(
        found.dangling(),
        [Dangling {
            from: Oid(0),
            to: Oid(1)
        }]
    );
    assert_eq!((found.counts().gone, found.counts().damaged), (1, 0));
}

#[test]
fn only_current_records_refer() {
    let found = References::read(&Place::new(&sample().bytes).open(), &()).unwrap();
    assert_eq!(found.targets(Oid(4)), [Oid(2)]);
    assert_eq!(found.counts().dangling, 0);
}
