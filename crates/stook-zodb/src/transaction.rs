//! One transaction after the other, believed only as far as it is perfect.

use std::fmt;

use crate::data_file::Reader;
use crate::error::ZodbError;
use crate::format::{
    POINTER, RECORD_HEADER, RecordHeader, Status, TRANSACTION_HEADER, TransactionHeader,
};
use crate::id::Tid;

/// The first thing in a file that is not as it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Imperfection {
    /// Where its transaction begins; ZODB's own reader can go on there.
    pub transaction: u64,
    /// Where it is.
    pub position: u64,
    /// What it is.
    pub reason: Reason,
}

impl fmt::Display for Imperfection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            transaction,
            position,
            reason,
        } = self;
        write!(f, "transaction at byte {transaction}: {reason}")?;
        if position != transaction {
            write!(f, " (at byte {position})")?;
        }
        Ok(())
    }
}

/// What is wrong with a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// The file ends within the header or the length at the end.
    #[error("the file ends within it")]
    CutOff,
    /// It says that it ends behind the end of the file.
    #[error("it has {length} bytes by its header, more than the file")]
    BeyondEnd {
        /// Its length, as the header has it.
        length: u64,
    },
    /// It was written, but not committed.
    #[error("it was never committed")]
    Unfinished,
    /// Its status byte is none.
    #[error("its status is 0x{0:02x}")]
    Status(u8),
    /// It does not come behind the one before it.
    #[error("its number is not above {previous}, that of the transaction before it")]
    TidOrder {
        /// Number of the transaction before it.
        previous: Tid,
    },
    /// It is shorter than its header and texts.
    #[error("it has {length} bytes by its header, less than the header itself")]
    TooShort {
        /// Its length, as the header has it.
        length: u64,
    },
    /// The length at its end is another one than in its header.
    #[error("its length is {length} in the header and {redundant} at the end")]
    LengthsDiffer {
        /// As its header has it.
        length: u64,
        /// As its end has it.
        redundant: u64,
    },
    /// A record ends behind the end of the transaction.
    #[error("a record does not end within the transaction")]
    RecordTooLong,
    /// A record names another place for its transaction.
    #[error("a record belongs to a transaction at byte {found}")]
    RecordTransaction {
        /// What it says.
        found: u64,
    },
    /// A record of an object version, which no longer exist.
    #[error("a record has the name of a version, of {0} bytes")]
    Version(u16),
    /// A record does not lead to the one before it of the same object.
    #[error("the previous record of the object is at byte {expected}, and the record says {found}")]
    Previous {
        /// What the record says.
        found: u64,
        /// Where it is, 0 for nowhere.
        expected: u64,
    },
}

/// Why a transaction was not read to its end.
#[derive(Debug)]
pub(crate) enum Halt {
    Error(ZodbError),
    Imperfect(Imperfection),
}

impl From<ZodbError> for Halt {
    fn from(error: ZodbError) -> Self {
        Self::Error(error)
    }
}

/// A transaction whose header is sound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Transaction {
    pub(crate) position: u64,
    pub(crate) tid: Tid,
    pub(crate) status: Status,
    /// Where its records begin.
    pub(crate) records: u64,
    /// Where they end, and the second length begins.
    pub(crate) end: u64,
}

impl Transaction {
    /// Reads a header; `last` is the number of the transaction before it.
    pub(crate) fn read(reader: &mut Reader<'_>, position: u64, last: Tid) -> Result<Self, Halt> {
        let wrong = |reason| {
            Err(Halt::Imperfect(Imperfection {
                transaction: position,
                position,
                reason,
            }))
        };
        let Some(bytes) = reader.array::<TRANSACTION_HEADER>(position)? else {
            return wrong(Reason::CutOff);
        };
        let header = TransactionHeader::decode(&bytes);
        let length = header.length;
        let end = position.checked_add(length);
        let is_within = |end: &u64| {
            reader
                .size()
                .checked_sub(POINTER)
                .is_some_and(|most| *end <= most)
        };
        let Some(end) = end.filter(is_within) else {
            return wrong(Reason::BeyondEnd { length });
        };
        match header.status {
            Status::Unfinished => return wrong(Reason::Unfinished),
            Status::Unknown(byte) => return wrong(Reason::Status(byte)),
            Status::Normal | Status::Packed | Status::Undone => {}
        }
        if length < header.header_len {
            return wrong(Reason::TooShort { length });
        }
        if header.tid <= last {
            return wrong(Reason::TidOrder { previous: last });
        }
        let records = position + header.header_len;
        let (tid, status) = (header.tid, header.status);
        Ok(Self {
            position,
            tid,
            status,
            records,
            end,
        })
    }

    /// Where the next transaction begins.
    pub(crate) fn next(&self) -> u64 {
        self.end + POINTER
    }

    /// Reads the header of a record that begins before the end.
    #[inline]
    pub(crate) fn record(
        &self,
        reader: &mut Reader<'_>,
        position: u64,
    ) -> Result<(RecordHeader, u64), Halt> {
        if self.end - position < RECORD_HEADER as u64 {
            return Err(self.wrong(position, Reason::RecordTooLong));
        }
        let Some(bytes) = reader.array::<RECORD_HEADER>(position)? else {
            return Err(self.wrong(position, Reason::CutOff));
        };
        let header = RecordHeader::decode(&bytes);
        if header.version_len != 0 {
            return Err(self.wrong(position, Reason::Version(header.version_len)));
        }
        let next = header
            .record_len()
            .and_then(|len| position.checked_add(len));
        let Some(next) = next.filter(|next| *next <= self.end) else {
            return Err(self.wrong(position, Reason::RecordTooLong));
        };
        if header.transaction != self.position {
            let found = header.transaction;
            return Err(self.wrong(position, Reason::RecordTransaction { found }));
        }
        Ok((header, next))
    }

    /// Compares the length at the end with that in the header.
    pub(crate) fn check_end(&self, reader: &mut Reader<'_>) -> Result<(), Halt> {
        let length = self.end - self.position;
        match reader.number(self.end)? {
            Some(redundant) if redundant == length => Ok(()),
            Some(redundant) => {
                Err(self.wrong(self.end, Reason::LengthsDiffer { length, redundant }))
            }
            None => Err(self.wrong(self.end, Reason::CutOff)),
        }
    }

    /// Returns true if readers pass over its records.
    pub(crate) fn is_skipped(&self) -> bool {
        self.status == Status::Undone
    }

    pub(crate) fn wrong(&self, position: u64, reason: Reason) -> Halt {
        Halt::Imperfect(Imperfection {
            transaction: self.position,
            position,
            reason,
        })
    }
}
