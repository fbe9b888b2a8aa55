//! Builds the index of a file by reading all headers, up to the first transaction that is anything but perfect.
//!
//! What comes then is left to the caller: ZODB's own reader can go on there, so that its warnings, truncations and errors
//! stay its own. An index is changed at once and not when a transaction is complete, which would need a list of its objects:
//! where a transaction turns out imperfect, its records are read again, and each says which record its object had before.

use crate::data_file::{DataFile, Reader};
use crate::error::ZodbError;
use crate::format::FIRST_TRANSACTION;
use crate::id::{Oid, Tid};
use crate::index::{GREATEST_POSITION, Index};
use crate::observer::{Observer, Progress};
use crate::record::{Visitor, visit_transaction};
use crate::transaction::{Halt, Imperfection, Reason, Transaction};

/// Records whose headers are read before the index takes them: time of both is measured apart.
const BATCH: usize = 64;

/// A transaction up to this length is in the window still when it is shown to a visitor.
const SHOWN_AGAIN: u64 = 24 << 10;

/// Where a scan begins, and what is known there.
#[derive(Debug, Default, Clone)]
pub struct Start {
    /// End of the last transaction that the index has; 0 and 4 are the beginning of the file.
    pub position: u64,
    /// Number of that transaction.
    pub last_tid: Tid,
    /// The index up to there.
    pub index: Index,
}

/// What a scan found.
#[derive(Debug)]
pub struct Scan {
    /// The objects in the perfect transactions.
    pub index: Index,
    /// Where they end.
    pub position: u64,
    /// Number of the last of them; that of the start if there is none.
    pub last_tid: Tid,
    /// How many there are, without those before the start.
    pub transactions: u64,
    /// How many records they have.
    pub records: u64,
    /// Why the scan ended.
    pub end: ScanEnd,
}

/// Why a scan ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanEnd {
    /// The file ends there.
    EndOfFile,
    /// A transaction that is not perfect.
    Imperfect(Imperfection),
    /// A transaction with the number that the caller named, or a later one.
    Stop,
    /// The observer wanted it.
    Interrupted,
}

/// Reads all transactions from a start on; those with the number `stop` and later ones are left out.
///
/// # Errors
/// [`ZodbError::Sys`] with "read"; [`ZodbError::Changed`] if the file was exchanged under the reader.
///
/// # Cost
/// One buffer of 256 KiB, and 8 bytes an object. Reads about as fast as the file can be copied.
pub fn scan(
    data: &DataFile,
    start: Start,
    stop: Option<Tid>,
    observer: &dyn Observer,
) -> Result<Scan, ZodbError> {
    scan_with(data, start, stop, observer, &mut ())
}

/// As [`scan`], and shows every transaction that is perfect to a visitor, when the index has it.
pub(crate) fn scan_with(
    data: &DataFile,
    start: Start,
    stop: Option<Tid>,
    observer: &dyn Observer,
    visitor: &mut impl Visitor,
) -> Result<Scan, ZodbError> {
    let mut scanner = Scanner::new(data, start, stop);
    if visitor.is_interested() {
        scanner.reader = Reader::new(data).keep_back(SHOWN_AGAIN);
    }
    let mut progress = Progress::new(observer, scanner.found.position);
    let mut records = 0;
    let end = loop {
        let step = scanner.step(visitor);
        let position = scanner.found.position;
        let is_interrupted = progress.reach(position, scanner.found.records - records);
        records = scanner.found.records;
        match step {
            Ok(None) if is_interrupted => break ScanEnd::Interrupted,
            Ok(None) => {}
            Ok(Some(end)) => break end,
            Err(Halt::Imperfect(imperfection)) => break ScanEnd::Imperfect(imperfection),
            Err(Halt::Error(error)) => return Err(error),
        }
    };
    progress.tell(scanner.found.position);
    scanner.found.end = end;
    Ok(scanner.found)
}

struct Scanner<'a> {
    reader: Reader<'a>,
    found: Scan,
    stop: Option<Tid>,
    batch: Vec<Entry>,
}

/// A record that the index does not have yet.
struct Entry {
    oid: Oid,
    position: u64,
    previous: u64,
}

impl<'a> Scanner<'a> {
    fn new(data: &'a DataFile, start: Start, stop: Option<Tid>) -> Self {
        let found = Scan {
            index: start.index,
            position: start.position.max(FIRST_TRANSACTION),
            last_tid: start.last_tid,
            transactions: 0,
            records: 0,
            end: ScanEnd::EndOfFile,
        };
        Self {
            reader: Reader::new(data),
            found,
            stop,
            batch: Vec::with_capacity(BATCH),
        }
    }

    /// Takes one transaction; returns why there is none.
    fn step(&mut self, visitor: &mut impl Visitor) -> Result<Option<ScanEnd>, Halt> {
        let position = self.found.position;
        if position == self.reader.size() {
            return Ok(Some(ScanEnd::EndOfFile));
        }
        let transaction = Transaction::read(&mut self.reader, position, self.found.last_tid)?;
        if self.stop.is_some_and(|stop| transaction.tid >= stop) {
            return Ok(Some(ScanEnd::Stop));
        }
        let mut records = 0;
        if !transaction.is_skipped() {
            records = self.take_records(&transaction)?;
        }
        if visitor.is_interested() {
            visit_transaction(&mut self.reader, position, visitor)?;
        }
        self.found.position = transaction.next();
        self.found.last_tid = transaction.tid;
        self.found.transactions += 1;
        self.found.records += records;
        Ok(None)
    }

    /// Takes all records of a transaction into the index, or none.
    fn take_records(&mut self, transaction: &Transaction) -> Result<u64, Halt> {
        let (mut position, mut records) = (transaction.records, 0);
        while position < transaction.end {
            let read = self.read_batch(transaction, position);
            let applied = read.and_then(|next| self.apply_batch(transaction).map(|()| next));
            match applied {
                Ok(next) => position = next,
                Err(halt) => return Err(self.undo(transaction, position, halt)),
            }
            records += self.batch.len() as u64;
        }
        match transaction.check_end(&mut self.reader) {
            Ok(()) => Ok(records),
            Err(halt) => Err(self.undo(transaction, position, halt)),
        }
    }

    /// Reads headers of records; returns where the next one is.
    fn read_batch(&mut self, transaction: &Transaction, mut position: u64) -> Result<u64, Halt> {
        let _scope = stook_timers::scope!("header");
        self.batch.clear();
        while position < transaction.end && self.batch.len() < BATCH {
            let (header, next) = transaction.record(&mut self.reader, position)?;
            let (oid, previous) = (header.oid, header.previous);
            self.batch.push(Entry {
                oid,
                position,
                previous,
            });
            position = next;
        }
        Ok(position)
    }

    /// Takes the batch into the index, all or nothing.
    fn apply_batch(&mut self, transaction: &Transaction) -> Result<(), Halt> {
        let _scope = stook_timers::scope!("index");
        for at in 0..self.batch.len() {
            let Entry {
                oid,
                position,
                previous,
            } = self.batch[at];
            let old = self.found.index.replace(oid, position);
            // An object may be stored twice in a transaction; both records then lead to the same one before.
            if old == previous
                || old >= transaction.position && self.previous_of(old)? == Some(previous)
            {
                continue;
            }
            self.found.index.replace(oid, old);
            for entry in self.batch[..at].iter().rev() {
                self.found.index.replace(entry.oid, entry.previous);
            }
            let reason = Reason::Previous {
                found: previous,
                expected: old,
            };
            return Err(transaction.wrong(position, reason));
        }
        Ok(())
    }

    /// Where the record at a position says that the one before it is.
    fn previous_of(&mut self, position: u64) -> Result<Option<u64>, ZodbError> {
        self.reader.number(position + 16)
    }

    /// Takes the records up to a position out of the index; returns the reason for it, or a worse one.
    fn undo(&mut self, transaction: &Transaction, until: u64, halt: Halt) -> Halt {
        let mut position = transaction.records;
        while position < until {
            match transaction.record(&mut self.reader, position) {
                Ok((header, next)) => {
                    self.found
                        .index
                        .replace(header.oid, header.previous.min(GREATEST_POSITION));
                    position = next;
                }
                Err(Halt::Error(error)) => return error.into(),
                Err(Halt::Imperfect(_)) => return self.reader.changed().into(),
            }
        }
        halt
    }
}
