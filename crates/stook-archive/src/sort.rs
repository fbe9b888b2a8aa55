//! Sorting millions of items, with an end to it: one call of the standard library cannot be interrupted, and takes
//! seconds where items are compared by long paths.

use std::cmp::Ordering;

/// Items that are sorted in one call: some 50 ms where each comparison looks at a path.
const AT_ONCE: usize = 1 << 18;

/// Sorts, as `sort_unstable_by`. Stops in no particular order once `is_interrupted` returns true.
///
/// # Cost
/// Nothing more up to 262,144 items; then one pass for each time that these are doubled.
pub(crate) fn sort_until<T>(
    items: &mut [T],
    compare: &impl Fn(&T, &T) -> Ordering,
    is_interrupted: &dyn Fn() -> bool,
) {
    // The smaller half waits, so that at most one entry for each bit of the length does.
    let mut waiting = vec![items];
    while let Some(part) = waiting.pop() {
        if is_interrupted() {
            return;
        }
        if part.len() <= AT_ONCE {
            part.sort_unstable_by(compare);
            continue;
        }
        let middle = part.len() / 2;
        let (low, _, high) = part.select_nth_unstable_by(middle, compare);
        waiting.extend([high, low]);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use stook_testkit::Random;

    use super::*;

    fn numbers(count: usize) -> Vec<u64> {
        let mut random = Random::new(9);
        (0..count).map(|_| random.below(count as u64)).collect()
    }

    #[test]
    fn items_are_in_order_whatever_their_number() {
        for count in [0, 1, 1000, AT_ONCE, AT_ONCE + 1, 5 * AT_ONCE + 3] {
            let mut sorted = numbers(count);
            let mut expected = sorted.clone();
            sort_until(&mut sorted, &u64::cmp, &|| false);
            expected.sort_unstable();
            assert!(sorted == expected, "{count} items");
        }
    }

    #[test]
    fn it_asks_often_and_ends_at_once() {
        let asked = Cell::new(0);
        let mut items = numbers(8 * AT_ONCE);
        sort_until(&mut items, &u64::cmp, &|| {
            asked.set(asked.get() + 1);
            asked.get() == 4
        });
        assert_eq!(asked.get(), 4);
        assert!(!items.is_sorted());
    }
}
