//! Numbers in few bytes: one at a time, and many of one kind.
//!
//! A *varint* has seven bits in each byte, the lowest first; all bytes but the last have the high bit set. A *column* of n
//! numbers is their least one as a varint, a byte with a width in bits, and for each number what it is above the least one,
//! in so many bits, one behind the other from the lowest bit of the first byte. So any number is found without those
//! before it, which a list of varints does not give, and equal numbers take no room.

/// Appends a number.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(0x80 | low_byte(number));
        number >>= 7;
    }
    out.push(low_byte(number));
}

fn low_byte(number: u64) -> u8 {
    number.to_le_bytes()[0]
}

/// Appends bytes behind their number.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends a column.
pub(crate) fn put_column(out: &mut Vec<u8>, numbers: &[u64]) {
    let least = numbers.iter().copied().min().unwrap_or(0);
    let greatest = numbers.iter().copied().max().unwrap_or(0);
    let width = u64::BITS - (greatest - least).leading_zeros();
    put_varint(out, least);
    out.push(low_byte(width.into()));
    let (mut bits, mut held) = (0_u128, 0);
    for number in numbers {
        bits |= u128::from(number - least) << held;
        held += width;
        while held >= 8 {
            out.push(bits.to_le_bytes()[0]);
            bits >>= 8;
            held -= 8;
        }
    }
    if held > 0 {
        out.push(bits.to_le_bytes()[0]);
    }
}

/// Reads what the functions above appended; each read is `None` past the end of the bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Returns a reader of `bytes` from `at` on.
    pub(crate) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    /// Returns how far it has read.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        let byte = self.bytes.get(self.at).copied()?;
        self.at += 1;
        Some(byte)
    }

    /// Returns a number; `None` also if it has more than 64 bits.
    pub(crate) fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..70).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                return None;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    /// Returns the bytes behind their number.
    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = usize::try_from(self.varint()?).ok()?;
        self.slice(len)
    }

    fn slice(&mut self, len: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(len)?;
        let bytes = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(bytes)
    }

    /// Returns a column of so many numbers.
    pub(crate) fn column(&mut self, count: usize) -> Option<Column> {
        let (least, width) = (self.varint()?, self.byte()?);
        let start = self.at;
        let bits = count.checked_mul(width.into())?;
        self.slice(bits.div_ceil(8))?;
        (width <= 64).then_some(Column {
            least,
            width: width.into(),
            start,
        })
    }
}

/// Where a column lies in the bytes it was read from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    least: u64,
    width: u32,
    start: usize,
}

impl Column {
    /// Returns a number of the column, which must have been read from these bytes; what is behind its end is invalid.
    pub(crate) fn get(&self, bytes: &[u8], index: usize) -> u64 {
        if self.width == 0 {
            return self.least;
        }
        let bit = index * self.width as usize;
        let bits = load(bytes, self.start + bit / 8) >> (bit % 8);
        let mask = u64::MAX >> (u64::BITS - self.width);
        self.least.wrapping_add(low_half(bits) & mask)
    }
}

/// Returns the sixteen bytes from `at` on, with zeros behind the last.
fn load(bytes: &[u8], at: usize) -> u128 {
    let rest = bytes.get(at..).unwrap_or_default();
    if let Some(all) = rest.first_chunk() {
        return u128::from_le_bytes(*all);
    }
    let mut all = [0; 16];
    all[..rest.len()].copy_from_slice(rest);
    u128::from_le_bytes(all)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the upper half belongs to other numbers"
)]
fn low_half(bits: u128) -> u64 {
    bits as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn number() -> impl Strategy<Value = u64> {
        (any::<u64>(), 0_u32..64).prop_map(|(number, shift)| number >> shift)
    }

    proptest! {
        #[test]
        fn numbers_come_back(numbers in prop::collection::vec(number(), 0..20)) {
            let mut bytes = Vec::new();
            for &number in &numbers {
                put_varint(&mut bytes, number);
            }
            let mut reader = Reader::new(&bytes, 0);
            for &number in &numbers {
                prop_assert_eq!(reader.varint(), Some(number));
            }
            prop_assert!(reader.is_at_end());
        }

        #[test]
        fn columns_come_back_in_any_order(
            numbers in prop::collection::vec(number(), 0..70),
            base in number(),
            shift in 0_u32..64,
        ) {
            let numbers: Vec<u64> = numbers.iter().map(|&n| (n >> shift).saturating_add(base)).collect();
            let mut bytes = b"before".to_vec();
            put_column(&mut bytes, &numbers);
            let mut reader = Reader::new(&bytes, 6);
            let column = reader.column(numbers.len()).unwrap();
            prop_assert!(reader.is_at_end());
            for (index, &number) in numbers.iter().enumerate().rev() {
                prop_assert_eq!(column.get(&bytes, index), number);
            }
        }
    }

    #[test]
    fn a_number_past_64_bits_is_none() {
        let mut most = vec![0xff; 9];
        most.push(1);
        assert_eq!(Reader::new(&most, 0).varint(), Some(u64::MAX));
        for wrong in [
            &[0xff; 11][..],
            &[0x80; 3],
            b"",
            &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2],
        ] {
            assert_eq!(Reader::new(wrong, 0).varint(), None, "{wrong:x?}");
        }
    }

    #[test]
    fn a_column_needs_all_its_bytes() {
        let mut bytes = Vec::new();
        put_column(&mut bytes, &[5, 300, 7]);
        for len in 0..bytes.len() {
            assert!(Reader::new(&bytes[..len], 0).column(3).is_none(), "{len}");
        }
        let too_wide = [0, 65, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert!(Reader::new(&too_wide, 0).column(1).is_none());
        assert!(Reader::new(&[0, 64], 0).column(usize::MAX).is_none());
    }
}
