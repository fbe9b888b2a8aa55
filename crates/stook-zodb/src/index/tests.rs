use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// Numbers as databases have them: most from 0 on, some far off, and the greatest.
fn oids() -> impl Strategy<Value = u64> {
    prop_oneof![
        6 => 0..3000_u64,
        2 => (0..64_u64).prop_map(|number| (65_536 + number * 700) * 1024 + number),
        1 => any::<u64>(),
        1 => Just(0xeeee_eeee_eeee_eeee),
    ]
}

fn agree(index: &Index, model: &BTreeMap<u64, u64>) {
    assert_eq!(index.len(), model.len());
    let found: Vec<_> = index
        .iter()
        .map(|(oid, position)| (oid.0, position))
        .collect();
    assert_eq!(
        found,
        model
            .iter()
            .map(|(oid, at)| (*oid, *at))
            .collect::<Vec<_>>()
    );
    assert_eq!(
        index.greatest().map(|oid| oid.0),
        model.keys().next_back().copied()
    );
    let numbering = Numbering::new(index).unwrap();
    for oid in model.keys().map(|oid| Oid(*oid)) {
        let slot = numbering.slot(index, oid).unwrap();
        assert!((slot as usize) < numbering.slots());
        assert_eq!(numbering.oid(index, slot), Some(oid));
    }
}

proptest! {
    #[test]
    fn an_index_is_a_map(changes in proptest::collection::vec((oids(), 0..=GREATEST_POSITION), 0..2500)) {
        let (mut index, mut model) = (Index::new(), BTreeMap::new());
        for (oid, position) in changes {
            let old = match position {
                0 => model.remove(&oid),
                _ => model.insert(oid, position),
            };
            prop_assert_eq!(index.get(Oid(oid)), old);
            prop_assert_eq!(index.replace(Oid(oid), position), old.unwrap_or(0));
        }
        agree(&index, &model);
    }
}

#[test]
fn chunks_that_lay_apart_come_near_when_those_between_are_there() {
    let (mut index, mut model) = (Index::new(), BTreeMap::new());
    let gap = 65_536 + 3 * GAP;
    for chunk in [gap, 65_535, 65_536, 65_536 + GAP, gap - GAP, gap + 1] {
        index.insert(Oid(chunk * 1024 + 5), chunk);
        model.insert(chunk * 1024 + 5, chunk);
        agree(&index, &model);
    }
    assert!(index.far.is_empty());
}

#[test]
fn eight_bytes_an_object_are_enough() {
    let mut index = Index::new();
    for oid in 0..200_000 {
        index.insert(Oid(oid), oid + 4);
    }
    let heap: usize = index.near.iter().map(heap_of).sum();
    assert!(heap < 200_000 * 8, "{heap}");
    // As after a pack: every third object is left.
    let mut index = Index::new();
    for oid in (0..600_000).step_by(3) {
        index.insert(Oid(oid), oid + 4);
    }
    let heap: usize = index.near.iter().map(heap_of).sum();
    assert!(heap < 200_000 * 10, "{heap}");
}

fn heap_of(chunk: &Chunk) -> usize {
    match chunk {
        Chunk::Sparse(entries) => entries.capacity() * 8,
        Chunk::Dense(_) => CHUNK * 6,
    }
}
