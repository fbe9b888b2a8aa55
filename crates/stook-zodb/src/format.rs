//! The headers of a `Data.fs`, as bytes and as numbers.
//!
//! ```text
//!   "FS30" transaction*                            all numbers big-endian
//!
//!   transaction   tid 8 | length 8 | status 1 | user_len 2 | description_len 2 | extension_len 2     23 bytes
//!                 user, description, extension, records
//!                 length 8, again: the file can be walked backwards
//!   record        oid 8 | tid 8 | previous 8 | transaction 8 | version_len 2 | pickle_len 8          42 bytes
//!                 the pickles, or, where pickle_len is 0, a back pointer of 8 bytes
//! ```
//! `length` counts from the first byte of the transaction to the second `length`. Nothing here reads a file, and
//! nothing is believed: lengths may be anything up to 2^64, so every sum is checked.

use crate::id::{Oid, Tid};

/// What every file begins with.
pub(crate) const MAGIC: [u8; 4] = *b"FS30";

/// Bytes of `MAGIC`: where the first transaction begins.
pub const FIRST_TRANSACTION: u64 = 4;

/// Bytes of a transaction's header, without its texts.
pub(crate) const TRANSACTION_HEADER: usize = 23;

/// Bytes of a record's header.
pub(crate) const RECORD_HEADER: usize = 42;

/// Bytes of a back pointer, and of the length at the end of a transaction.
pub(crate) const POINTER: u64 = 8;

/// What a transaction's status byte says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// Committed.
    Normal,
    /// Committed, and packed since.
    Packed,
    /// Undone in a way that no longer exists: readers skip it.
    Undone,
    /// Written, but never committed.
    Unfinished,
    /// Any other byte.
    Unknown(u8),
}

impl Status {
    fn of(byte: u8) -> Self {
        match byte {
            b' ' => Self::Normal,
            b'p' => Self::Packed,
            b'u' => Self::Undone,
            b'c' => Self::Unfinished,
            other => Self::Unknown(other),
        }
    }
}

/// The header of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TransactionHeader {
    pub(crate) tid: Tid,
    /// From its first byte to the second length.
    pub(crate) length: u64,
    pub(crate) status: Status,
    /// Bytes up to the first record: this header and the three texts behind it.
    pub(crate) header_len: u64,
}

impl TransactionHeader {
    pub(crate) fn decode(bytes: &[u8; TRANSACTION_HEADER]) -> Self {
        let texts = u64::from(u16_at(bytes, 17))
            + u64::from(u16_at(bytes, 19))
            + u64::from(u16_at(bytes, 21));
        Self {
            tid: Tid(u64_at(bytes, 0)),
            length: u64_at(bytes, 8),
            status: Status::of(bytes[16]),
            header_len: TRANSACTION_HEADER as u64 + texts,
        }
    }
}

/// The header of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordHeader {
    pub(crate) oid: Oid,
    pub(crate) tid: Tid,
    /// Where the previous record of the object is, 0 for none.
    pub(crate) previous: u64,
    /// Where its transaction begins.
    pub(crate) transaction: u64,
    /// 0 but in files of a time when objects had versions.
    pub(crate) version_len: u16,
    /// 0 for a record that is a back pointer.
    pub(crate) pickle_len: u64,
}

impl RecordHeader {
    pub(crate) fn decode(bytes: &[u8; RECORD_HEADER]) -> Self {
        Self {
            oid: Oid(u64_at(bytes, 0)),
            tid: Tid(u64_at(bytes, 8)),
            previous: u64_at(bytes, 16),
            transaction: u64_at(bytes, 24),
            version_len: u16_at(bytes, 32),
            pickle_len: u64_at(bytes, 34),
        }
    }

    /// Returns the bytes of the whole record; `None` if they are more than a number of 64 bits can say.
    pub(crate) fn record_len(&self) -> Option<u64> {
        let data = if self.is_pointer() {
            POINTER
        } else {
            self.pickle_len
        };
        data.checked_add(RECORD_HEADER as u64)
    }

    /// Returns true if the record has no pickles of its own, but a back pointer.
    pub(crate) fn is_pointer(&self) -> bool {
        self.pickle_len == 0
    }
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let part = bytes[at..at + 8].try_into();
    u64::from_be_bytes(part.expect("the slice has 8 bytes"))
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_where_their_fields_are() {
        let bytes: [u8; TRANSACTION_HEADER] = std::array::from_fn(|at| u8::try_from(at).unwrap());
        let header = TransactionHeader::decode(&bytes);
        assert_eq!(header.tid.0, 0x0001_0203_0405_0607);
        assert_eq!(header.length, 0x0809_0a0b_0c0d_0e0f);
        assert_eq!(header.status, Status::Unknown(16));
        assert_eq!(header.header_len, 23 + 0x1112 + 0x1314 + 0x1516);
        let bytes: [u8; RECORD_HEADER] = std::array::from_fn(|at| u8::try_from(at).unwrap());
        let header = RecordHeader::decode(&bytes);
        assert_eq!(header.previous, 0x1011_1213_1415_1617);
        assert_eq!(header.transaction, 0x1819_1a1b_1c1d_1e1f);
        assert_eq!(
            (header.version_len, header.pickle_len),
            (0x2021, 0x2223_2425_2627_2829)
        );
    }

    #[test]
    fn a_length_near_the_greatest_number_is_no_length() {
        let mut bytes = [0xff; RECORD_HEADER];
        assert_eq!(RecordHeader::decode(&bytes).record_len(), None);
        bytes[34..].fill(0);
        assert_eq!(RecordHeader::decode(&bytes).record_len(), Some(50));
        bytes[41] = 1;
        assert_eq!(RecordHeader::decode(&bytes).record_len(), Some(43));
    }
}
