//! The check: all damage, and nothing else.

use stook_zodb::{
    Checked, Damage, DamageKind, Oid, PickleError, Reason, Trust, Write, check, encode_index,
    reindex,
};

use crate::builder::{Builder, Content, Place, object, sample};

fn checked(place: &Place) -> (Checked, Vec<Damage>) {
    let mut damages = Vec::new();
    let checked = check(&place.open(), &(), &mut |damage| damages.push(*damage)).unwrap();
    assert_eq!(checked.damages, damages.len() as u64);
    (checked, damages)
}

fn damages(bytes: &[u8]) -> Vec<Damage> {
    checked(&Place::new(bytes)).1
}

fn changed(bytes: &[u8], at: u64, with: &[u8]) -> Vec<u8> {
    let (mut bytes, at) = (bytes.to_vec(), usize::try_from(at).unwrap());
    bytes[at..at + with.len()].copy_from_slice(with);
    bytes
}

#[test]
fn a_sound_database_has_no_damage() {
    let place = Place::new(&sample().bytes);
    let (found, damages) = checked(&place);
    assert_eq!(damages, []);
    assert_eq!(
        (
            found.transactions,
            found.records,
            found.objects,
            found.indexed
        ),
        (12, 24, 10, None)
    );
    reindex(&place.path(), Write::Save, Trust::Sane, &()).unwrap();
    let (found, damages) = checked(&place);
    assert_eq!((damages, found.indexed), (Vec::new(), Some(10)));
}

#[test]
fn a_swapped_pair_of_index_entries_is_found() {
    let mut builder = sample();
    let pickle = object("A", &[]);
    builder.commit(&[(20, &pickle)]);
    let place = Place::new(&builder.bytes);
    let mut index = reindex(&place.path(), Write::DryRun, Trust::Nothing, &())
        .unwrap()
        .scan
        .index;
    let (one, other) = (builder.at(1), builder.at(2));
    index.insert(Oid(1), other);
    index.insert(Oid(2), one);
    index.insert(Oid(99), 123);
    let mut bytes = Vec::new();
    encode_index(&index, builder.end(), &mut bytes).unwrap();
    std::fs::write(place.index_path(), bytes).unwrap();
    let kinds: Vec<_> = checked(&place)
        .1
        .into_iter()
        .map(|damage| (damage.oid.unwrap().0, damage.kind))
        .collect();
    let swapped = |oid, saved, actual| (oid, DamageKind::IndexEntry { saved, actual });
    let extra = (99, DamageKind::IndexExtra { saved: 123 });
    assert_eq!(
        kinds,
        [swapped(1, other, one), swapped(2, one, other), extra]
    );
}

#[test]
fn an_index_that_ends_before_the_file_is_compared_where_it_ends() {
    let mut builder = sample();
    let place = Place::new(&builder.bytes);
    reindex(&place.path(), Write::Save, Trust::Sane, &()).unwrap();
    let pickle = object("A", &[]);
    builder.commit(&[(1, &pickle), (77, &pickle)]);
    std::fs::write(place.path(), &builder.bytes).unwrap();
    let (found, damages) = checked(&place);
    assert_eq!((damages, found.indexed), (Vec::new(), Some(10)));
    // Where no transaction ends nothing can be compared.
    let index = stook_zodb::read_index(&place.index_path()).unwrap().index;
    let mut bytes = Vec::new();
    encode_index(&index, builder.end() - 1, &mut bytes).unwrap();
    std::fs::write(place.index_path(), bytes).unwrap();
    let kinds: Vec<_> = checked(&place).1.iter().map(|damage| damage.kind).collect();
    assert_eq!(kinds, [DamageKind::IndexPosition(builder.end() - 1)]);
}

#[test]
fn damage_is_found_behind_damage() {
    let builder = sample();
    let [second, fifth, eighth] = [2, 5, 8].map(|number| builder.transactions[number]);
    // A length that is wrong, a transaction of zeros, and a pickle that is none.
    let bytes = changed(&builder.bytes, second + 8, &[0xff; 8]);
    let zeros = vec![0; usize::try_from(builder.transactions[6] - fifth).unwrap()];
    let bytes = changed(&bytes, fifth, &zeros);
    let bytes = changed(&bytes, eighth + 31 + 42, &[0xff]);
    let found = damages(&bytes);
    let has = |position, wanted: fn(&DamageKind) -> bool| {
        let mut here = found.iter().filter(|damage| damage.position == position);
        here.any(|damage| wanted(&damage.kind))
    };
    assert!(has(second, |kind| matches!(
        kind,
        DamageKind::Transaction(Reason::BeyondEnd { .. })
    )));
    assert!(has(fifth, |kind| matches!(
        kind,
        DamageKind::Transaction(_)
    )));
    let no_operation =
        |kind: &DamageKind| *kind == DamageKind::Pickle(PickleError::Operation(0xff));
    assert!(has(eighth + 31, no_operation));
    let lost = found
        .iter()
        .filter(|damage| matches!(damage.kind, DamageKind::Lost { .. }));
    let lost: Vec<u64> = lost.map(|damage| damage.position).collect();
    assert_eq!(lost, [second, fifth]);
}

#[test]
fn a_record_that_is_damaged_hides_no_other_transaction() {
    let builder = sample();
    let start = builder.transactions[3];
    let bytes = changed(&builder.bytes, start + 31 + 34, &[0xff; 8]);
    let found = damages(&bytes);
    assert_eq!(
        found[0].kind,
        DamageKind::Transaction(Reason::RecordTooLong)
    );
    assert!(
        !found
            .iter()
            .any(|damage| matches!(damage.kind, DamageKind::Lost { .. })),
        "{found:?}"
    );
}

#[test]
fn chains_and_pointers_are_followed() {
    let mut builder = Builder::new();
    let pickle = object("A", &[]);
    builder.commit(&[(0, &pickle), (1, &pickle)]);
    let (first, other) = (builder.at(0), builder.at(1));
    builder.commit(&[(0, &pickle)]);
    builder.transaction(
        b' ',
        &[(0, Content::Pointer(first)), (1, Content::Pointer(0))],
    );
    assert_eq!(damages(&builder.bytes), []);
    let pointer = builder.at(0);
    for astray in [other, first + 1, pointer, u64::MAX, 3] {
        let found = damages(&changed(
            &builder.bytes,
            pointer + 42,
            &astray.to_be_bytes(),
        ));
        assert_eq!(found.len(), 1, "{astray}: {found:?}");
        assert_eq!(
            (found[0].position, found[0].kind),
            (pointer, DamageKind::BackPointer(astray))
        );
    }
    let found = damages(&changed(&builder.bytes, pointer + 8, &[9; 8]));
    assert!(matches!(found[0].kind, DamageKind::RecordTid(_)));
    let found = damages(&changed(&builder.bytes, pointer + 16, &first.to_be_bytes()));
    assert!(
        matches!(
            found[0].kind,
            DamageKind::Transaction(Reason::Previous { .. })
        ),
        "{found:?}"
    );
}

#[test]
fn compressed_records_are_counted_and_no_damage() {
    let mut builder = Builder::new();
    builder.commit(&[(0, b".zx\x9c\x03\0\0\0\0\x01")]);
    let (found, damages) = checked(&Place::new(&builder.bytes));
    assert_eq!((damages, found.encoded), (Vec::new(), 1));
}

#[test]
fn a_torn_end_is_told() {
    let builder = sample();
    let (found, damages) = checked(&Place::new(&builder.bytes[..builder.bytes.len() - 3]));
    assert!(found.has_torn_end && damages.len() == 2, "{damages:?}");
}

#[test]
fn any_flipped_bit_of_a_header_ends_the_check_in_order() {
    let builder = sample();
    for at in (4..builder.end()).step_by(7) {
        let byte = builder.bytes[usize::try_from(at).unwrap()];
        let _ = damages(&changed(&builder.bytes, at, &[byte ^ 0x81]));
    }
}
