//! Checks a database: every header, every length, every pointer, every pickle, and the saved index for every object.
//!
//! Goes on behind damage: a transaction whose lengths agree is passed whatever is in it; else the next one that can be
//! believed is searched byte by byte ([`search`]). So all damage is reported, with its position, in the order of the file.

mod compare;
mod search;

use std::fmt;

use crate::data_file::{DataFile, Reader};
use crate::error::{SavedIndexError, ZodbError};
use crate::format::{FIRST_TRANSACTION, Status};
use crate::id::{Oid, Tid};
use crate::index::Index;
use crate::observer::{Observer, Progress};
use crate::pickle::{Fault, PickleError};
use crate::record::{Data, PickleReader, Record, follow, is_encoded};
use crate::transaction::{Halt, Imperfection, Reason, Transaction};
use compare::IndexComparison;

/// Something that is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damage {
    /// Where it is in the file; 0 for a damaged index.
    pub position: u64,
    /// The object, where it is known.
    pub oid: Option<Oid>,
    /// What it is.
    pub kind: DamageKind,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.oid {
            Some(oid) => write!(f, "byte {}, object {oid}: {}", self.position, self.kind),
            None => write!(f, "byte {}: {}", self.position, self.kind),
        }
    }
}

/// What is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DamageKind {
    /// A transaction is not as it should be.
    #[error("{0}")]
    Transaction(Reason),
    /// Bytes that belong to no transaction.
    #[error("{len} bytes belong to no transaction")]
    Lost {
        /// How many.
        len: u64,
    },
    /// A record has the number of another transaction than the one that it is in.
    #[error("the record has the number {0}, which its transaction does not have")]
    RecordTid(Tid),
    /// A back pointer leads to no earlier record of the object.
    #[error("the back pointer leads to byte {0}, where no earlier record of the object is")]
    BackPointer(u64),
    /// The pickles of a record are not well formed.
    #[error("the pickle cannot be read: {0}")]
    Pickle(PickleError),
    /// The saved index leads to another record.
    #[error("the saved index leads to byte {saved}, and the current record is at byte {actual}")]
    IndexEntry {
        /// What the index says.
        saved: u64,
        /// Where the record is.
        actual: u64,
    },
    /// The saved index lacks an object.
    #[error("the saved index lacks it; its current record is at byte {actual}")]
    IndexMissing {
        /// Where the record is.
        actual: u64,
    },
    /// The saved index has an object that the file does not have.
    #[error("the saved index leads to byte {saved}, and the file has no such object")]
    IndexExtra {
        /// What the index says.
        saved: u64,
    },
    /// The saved index ends where no transaction ends.
    #[error("the saved index ends at byte {0}, where no transaction ends")]
    IndexPosition(u64),
    /// The saved index cannot be read.
    #[error("the saved index cannot be used: {0}")]
    Index(SavedIndexError),
}

/// What was checked and found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Checked {
    /// Transactions that were read.
    pub transactions: u64,
    /// Records that were read.
    pub records: u64,
    /// Objects of the file.
    pub objects: u64,
    /// Records that are compressed or encrypted: their pickles are not looked into.
    pub encoded: u64,
    /// Objects that were compared with the saved index; `None` if there is none.
    pub indexed: Option<u64>,
    /// How much damage there is.
    pub damages: u64,
    /// The database ends with a transaction that was never committed, or is cut off: ZODB removes it when it opens the
    /// database for writing. It is reported as damage, too.
    pub has_torn_end: bool,
}

/// Checks a database and its saved index, and tells of all damage.
///
/// # Errors
/// As [`scan`](crate::scan()); [`ZodbError::Interrupted`].
///
/// # Cost
/// One reading of the file, 8 bytes an object, and a few MB.
pub fn check(
    data: &DataFile,
    observer: &dyn Observer,
    on_damage: &mut dyn FnMut(&Damage),
) -> Result<Checked, ZodbError> {
    observer.phase("check", data.size());
    let mut checker = Checker::new(data, on_damage)?;
    let mut progress = Progress::new(observer, FIRST_TRANSACTION);
    while checker.position < data.size() {
        let before = checker.checked.records;
        checker.step()?;
        if progress.reach(checker.position, checker.checked.records - before) {
            return Err(ZodbError::Interrupted);
        }
    }
    progress.tell(checker.position);
    checker.finish()
}

struct Checker<'a> {
    reader: Reader<'a>,
    jumping: Reader<'a>,
    pickles: PickleReader,
    index: Index,
    position: u64,
    last_tid: Tid,
    comparison: IndexComparison,
    found: Found<'a>,
    checked: Checked,
}

/// Where damage is reported.
struct Found<'a> {
    on_damage: &'a mut dyn FnMut(&Damage),
    count: u64,
}

impl Found<'_> {
    fn tell(&mut self, position: u64, oid: Option<Oid>, kind: DamageKind) {
        self.count += 1;
        (self.on_damage)(&Damage {
            position,
            oid,
            kind,
        });
    }
}

impl<'a> Checker<'a> {
    fn new(data: &'a DataFile, on_damage: &'a mut dyn FnMut(&Damage)) -> Result<Self, ZodbError> {
        let mut found = Found {
            on_damage,
            count: 0,
        };
        Ok(Self {
            reader: Reader::new(data),
            jumping: Reader::jumping(data),
            pickles: PickleReader::default(),
            index: Index::new(),
            position: FIRST_TRANSACTION,
            last_tid: Tid(0),
            comparison: IndexComparison::open(data.path(), &mut found)?,
            found,
            checked: Checked::default(),
        })
    }

    fn finish(mut self) -> Result<Checked, ZodbError> {
        self.comparison
            .reach(self.position, &self.index, &mut self.found)?;
        self.comparison.finish(&mut self.found);
        self.checked.objects = self.index.len() as u64;
        self.checked.indexed = self.comparison.compared();
        self.checked.damages = self.found.count;
        Ok(self.checked)
    }

    /// Checks one transaction, or passes damage.
    fn step(&mut self) -> Result<(), ZodbError> {
        self.comparison
            .reach(self.position, &self.index, &mut self.found)?;
        let start = self.position;
        match self.transaction(start) {
            Ok(next) => self.position = next,
            Err(Halt::Error(error)) => return Err(error),
            Err(Halt::Imperfect(imperfection)) => self.pass(imperfection)?,
        }
        Ok(())
    }

    /// Tells of damage that hides where records are, and goes on behind it.
    fn pass(&mut self, imperfection: Imperfection) -> Result<(), ZodbError> {
        let Imperfection {
            transaction: start,
            position,
            reason,
        } = imperfection;
        self.found
            .tell(position, None, DamageKind::Transaction(reason));
        let next = match search::end_of(&mut self.jumping, start)? {
            Some(end) => end,
            None => {
                let next = search::next_transaction(
                    &mut self.reader,
                    &mut self.jumping,
                    start + 1,
                    self.last_tid,
                )?;
                self.checked.has_torn_end = next.is_none();
                let next = next.unwrap_or(self.reader.size());
                self.found
                    .tell(start, None, DamageKind::Lost { len: next - start });
                next
            }
        };
        self.position = next;
        Ok(())
    }

    fn transaction(&mut self, position: u64) -> Result<u64, Halt> {
        let transaction = Transaction::read(&mut self.reader, position, Tid(0))?;
        if transaction.tid <= self.last_tid {
            let previous = self.last_tid;
            self.found.tell(
                position,
                None,
                DamageKind::Transaction(Reason::TidOrder { previous }),
            );
        }
        self.last_tid = self.last_tid.max(transaction.tid);
        self.checked.transactions += 1;
        let mut at = transaction.records;
        while at < transaction.end && !transaction.is_skipped() {
            let (header, next) = transaction.record(&mut self.reader, at)?;
            self.record(
                &transaction,
                Record {
                    position: at,
                    header,
                },
            )?;
            self.checked.records += 1;
            at = next;
        }
        transaction.check_end(&mut self.reader)?;
        Ok(transaction.next())
    }

    fn record(&mut self, transaction: &Transaction, record: Record) -> Result<(), ZodbError> {
        let (oid, position) = (record.header.oid, record.position);
        if record.header.tid != transaction.tid {
            self.found.tell(
                position,
                Some(oid),
                DamageKind::RecordTid(record.header.tid),
            );
        }
        self.check_previous(transaction, record)?;
        if record.header.is_pointer() {
            if let Data::Astray { pointer } = follow(&mut self.jumping, record)? {
                self.found
                    .tell(position, Some(oid), DamageKind::BackPointer(pointer));
            }
            return Ok(());
        }
        match self
            .pickles
            .references(&mut self.reader, record, &mut |_| {})
        {
            Ok(()) => Ok(()),
            Err(Fault::Error(error)) => Err(*error),
            Err(Fault::Pickle(error)) => self.tell_pickle(record, error),
        }
    }

    fn tell_pickle(&mut self, record: Record, error: PickleError) -> Result<(), ZodbError> {
        if is_encoded(&mut self.reader, record)? {
            self.checked.encoded += 1;
            return Ok(());
        }
        self.found.tell(
            record.position,
            Some(record.header.oid),
            DamageKind::Pickle(error),
        );
        Ok(())
    }

    /// The chain of an object's records; a pack cuts it off.
    fn check_previous(
        &mut self,
        transaction: &Transaction,
        record: Record,
    ) -> Result<(), ZodbError> {
        let (oid, found) = (record.header.oid, record.header.previous);
        let mut expected = self.index.replace(oid, record.position);
        if expected >= transaction.position {
            // The object is twice in this transaction; both lead to the same one before.
            expected = self.jumping.number(expected + 16)?.unwrap_or(0);
        }
        let is_cut = found == 0 && transaction.status == Status::Packed;
        if found != expected && !is_cut {
            let kind = DamageKind::Transaction(Reason::Previous { found, expected });
            self.found.tell(record.position, Some(oid), kind);
        }
        Ok(())
    }
}
