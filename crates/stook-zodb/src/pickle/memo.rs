//! Values that a pickle refers to later, by number.

use super::value::Value;

/// Numbers that are kept: of a pickle with more, the rest is taken for nothing of interest.
const KEPT: usize = 1 << 20;

#[derive(Debug, Default)]
pub(super) struct Memo {
    values: Vec<Option<Value>>,
    /// One above the greatest number that was put, or the count of those beyond what is kept.
    len: usize,
}

impl Memo {
    pub(super) fn clear(&mut self) {
        self.values.clear();
        self.len = 0;
    }

    /// The next number, for pickles that do not say it.
    pub(super) fn next(&self) -> usize {
        self.len
    }

    #[inline]
    pub(super) fn put(&mut self, number: usize, value: Value) {
        self.len += 1;
        if number == self.values.len() && number < KEPT {
            self.values.push(Some(value));
        } else if number < KEPT {
            if number >= self.values.len() {
                self.values.resize(number + 1, None);
            }
            self.values[number] = Some(value);
        }
    }

    /// Returns a value; `None` if there is none of this number.
    #[inline]
    pub(super) fn get(&self, number: usize) -> Option<Value> {
        match self.values.get(number) {
            Some(value) => *value,
            // Beyond what is kept nothing is known.
            None if number >= KEPT && self.len >= KEPT / 2 => Some(Value::Other),
            None => None,
        }
    }
}
