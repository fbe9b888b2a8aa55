//! Rows of small numbers, one for each slot, packed: the graph of references in memory.
//!
//! ```text
//!   starts   8 bytes a slot: where its row begins, 0 for an object without references
//!   bytes    count, then the differences of the sorted targets, as numbers of 7 bits a byte; in blocks of 1 MiB
//! ```
//! Rows come in the order of the file and not of the slots. A reference takes 2 to 3 bytes in place of 4.

/// Bytes of a block; blocks are never moved, as a vector that grows would be.
const BLOCK: usize = 1 << 20;

#[derive(Debug)]
pub(super) struct Rows {
    starts: Vec<u64>,
    blocks: Vec<Vec<u8>>,
    /// Number of targets in all rows.
    pub(super) targets: u64,
}

impl Rows {
    pub(super) fn new(slots: usize) -> Self {
        Self {
            starts: vec![0; slots],
            // The first byte is nobody's: a row cannot begin at 0.
            blocks: vec![vec![0]],
            targets: 0,
        }
    }

    /// Sets the targets of a slot, which are sorted, and empties them.
    pub(super) fn set(&mut self, slot: u32, targets: &mut Vec<u32>) {
        targets.sort_unstable();
        targets.dedup();
        if targets.is_empty() {
            return;
        }
        self.targets += targets.len() as u64;
        self.starts[slot as usize] = self.len();
        self.put(targets.len() as u64);
        let mut last = 0;
        for target in targets.drain(..) {
            self.put(u64::from(target - last));
            last = target;
        }
    }

    /// Returns the targets of a slot, in order.
    pub(super) fn get(&self, slot: u32) -> Row<'_> {
        let start = self.starts[slot as usize];
        let mut row = Row {
            rows: self,
            at: start,
            left: 0,
            last: 0,
        };
        if start != 0 {
            row.left = row.number();
        }
        row
    }

    fn len(&self) -> u64 {
        let last = self.blocks.last().map_or(0, Vec::len);
        ((self.blocks.len() - 1) * BLOCK + last) as u64
    }

    fn put(&mut self, mut number: u64) {
        loop {
            let low = u8::try_from(number & 0x7f).expect("7 bits");
            number >>= 7;
            self.put_byte(if number == 0 { low } else { low | 0x80 });
            if number == 0 {
                return;
            }
        }
    }

    fn put_byte(&mut self, byte: u8) {
        if self.blocks.last().is_none_or(|block| block.len() == BLOCK) {
            self.blocks.push(Vec::with_capacity(BLOCK));
        }
        if let Some(block) = self.blocks.last_mut() {
            block.push(byte);
        }
    }
}

/// The targets of one slot.
pub(super) struct Row<'a> {
    rows: &'a Rows,
    at: u64,
    left: u64,
    last: u32,
}

impl Row<'_> {
    fn number(&mut self) -> u64 {
        let (mut number, mut shift) = (0, 0);
        loop {
            let at = usize::try_from(self.at).expect("an offset in memory");
            let byte = self.rows.blocks[at / BLOCK][at % BLOCK];
            self.at += 1;
            number |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return number;
            }
        }
    }
}

impl Iterator for Row<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        self.left = self.left.checked_sub(1)?;
        let difference = u32::try_from(self.number()).expect("slots are numbers of 32 bits");
        self.last += difference;
        Some(self.last)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn rows_come_back_sorted_and_once(rows in proptest::collection::vec(proptest::collection::vec(any::<u32>(), 0..9), 1..50)) {
            let mut packed = Rows::new(rows.len());
            for (slot, targets) in (0..).zip(&rows).collect::<Vec<_>>().into_iter().rev() {
                packed.set(slot, &mut targets.clone());
            }
            for (slot, targets) in (0..).zip(&rows) {
                let mut expected = targets.clone();
                expected.sort_unstable();
                expected.dedup();
                prop_assert_eq!(packed.get(slot).collect::<Vec<_>>(), expected);
            }
        }
    }

    #[test]
    fn rows_go_on_over_blocks() {
        let mut packed = Rows::new(1000);
        let targets: Vec<u32> = (0..2000)
            .map(|number| number * 1_000_003 % 4_000_000_000)
            .collect();
        (0..1000).for_each(|slot| packed.set(slot, &mut targets.clone()));
        assert!(packed.blocks.len() > 3);
        assert!((0..1000).all(|slot| packed.get(slot).eq(packed.get(0))));
    }
}
