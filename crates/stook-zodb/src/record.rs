//! Records one after the other, and the pickles that belong to each.

use crate::data_file::{DataFile, Reader};
use crate::error::ZodbError;
use crate::format::{FIRST_TRANSACTION, RECORD_HEADER, RecordHeader};
use crate::id::Tid;
use crate::observer::{Observer, Progress};
use crate::pickle::{Fault, PickleError, Reference, Slice, Walker, Windowed};
use crate::transaction::{Halt, Transaction};

/// Records up to this length are read as a whole; strings in longer ones are passed without reading them.
const WHOLE: u64 = 64 << 10;

/// Bytes in which the name of the class is nearly always found.
const HEAD: u64 = 2048;

/// What a first byte says that no pickle begins with: the record is compressed or encrypted, by `zc.zlibstorage` say.
const ENCODED: u8 = b'.';

/// A record and where it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record {
    pub(crate) position: u64,
    pub(crate) header: RecordHeader,
}

impl Record {
    /// Where its pickles or its back pointer begin.
    pub(crate) fn data(&self) -> u64 {
        self.position + RECORD_HEADER as u64
    }

    /// Returns the record whose header is at a position, if the file has one there.
    pub(crate) fn read(reader: &mut Reader<'_>, position: u64) -> Result<Option<Self>, ZodbError> {
        let bytes = reader.array::<RECORD_HEADER>(position)?;
        let header = bytes.map(|bytes| RecordHeader::decode(&bytes));
        Ok(header.map(|header| Self { position, header }))
    }
}

/// What a record leads to.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Data {
    /// This record, which has pickles.
    Pickles(Record),
    /// Nothing: the creation of the object was undone.
    Gone,
    /// A place where no record of the object can be.
    Astray {
        /// The back pointer.
        pointer: u64,
    },
}

/// Follows back pointers to the pickles of a record.
pub(crate) fn follow(reader: &mut Reader<'_>, record: Record) -> Result<Data, ZodbError> {
    let mut at = record;
    while at.header.is_pointer() {
        let pointer = match reader.number(at.data())? {
            Some(0) => return Ok(Data::Gone),
            Some(pointer) => pointer,
            None => return Ok(Data::Astray { pointer: 0 }),
        };
        // Always backwards, so this ends.
        let is_before = (FIRST_TRANSACTION..at.position).contains(&pointer);
        let found = if is_before {
            Record::read(reader, pointer)?
        } else {
            None
        };
        let is_like = |found: &Record| {
            found.header.oid == record.header.oid && found.header.transaction < pointer
        };
        match found.filter(is_like) {
            Some(found) => at = found,
            None => return Ok(Data::Astray { pointer }),
        }
    }
    Ok(Data::Pickles(at))
}

/// Goes through pickles of records.
#[derive(Debug, Default)]
pub(crate) struct PickleReader {
    walker: Walker,
}

impl PickleReader {
    /// Puts the class of a record with pickles into the buffer, as `module.name`; leaves it empty if it has no such form.
    pub(crate) fn class(
        &mut self,
        reader: &mut Reader<'_>,
        record: Record,
        name: &mut Vec<u8>,
    ) -> Result<(), ZodbError> {
        let len = record.header.pickle_len;
        let head = reader
            .bytes(record.data(), len.min(HEAD))?
            .unwrap_or_default();
        let read = self.walker.class(&mut Slice::new(head), name);
        let read = match read {
            Err(Fault::Pickle(PickleError::CutOff)) if len > HEAD => self
                .walker
                .class(&mut Windowed::new(reader, record.data(), len), name),
            read => read,
        };
        match read {
            Err(Fault::Error(error)) => Err(*error),
            Err(Fault::Pickle(_)) => {
                name.clear();
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Calls `found` for every reference in a record with pickles.
    ///
    /// # Errors
    /// [`Fault::Pickle`] if they are not well formed, or something follows them.
    pub(crate) fn references(
        &mut self,
        reader: &mut Reader<'_>,
        record: Record,
        found: &mut impl FnMut(Reference),
    ) -> Result<(), Fault> {
        let (at, len) = (record.data(), record.header.pickle_len);
        let walked = if len <= WHOLE {
            let bytes = reader.bytes(at, len)?.ok_or(PickleError::CutOff)?;
            self.walker.references(&mut Slice::new(bytes), found)?
        } else {
            self.walker
                .references(&mut Windowed::new(reader, at, len), found)?
        };
        match len - walked {
            0 => Ok(()),
            rest => Err(PickleError::Trailing(rest).into()),
        }
    }
}

/// Returns true if the data of a record is no pickle on purpose.
pub(crate) fn is_encoded(reader: &mut Reader<'_>, record: Record) -> Result<bool, ZodbError> {
    Ok(reader.array(record.data())? == Some([ENCODED]))
}

/// Sees the records of perfect transactions.
pub(crate) trait Visitor {
    /// Returns false if nothing is to be shown.
    fn is_interested(&self) -> bool {
        true
    }

    /// A transaction begins, also one whose records are skipped.
    fn transaction(&mut self, _transaction: &Transaction) {}

    /// A record comes; the reader's window may be moved.
    fn record(&mut self, reader: &mut Reader<'_>, record: Record) -> Result<(), ZodbError>;
}

/// Wants to see nothing.
impl Visitor for () {
    fn is_interested(&self) -> bool {
        false
    }

    fn record(&mut self, _: &mut Reader<'_>, _: Record) -> Result<(), ZodbError> {
        Ok(())
    }
}

/// Shows all records up to `end`, where a scan has found all transactions perfect.
///
/// # Errors
/// [`ZodbError::Changed`] if they are no longer; [`ZodbError::Interrupted`]; what the visitor returns.
pub(crate) fn visit_records(
    data: &DataFile,
    end: u64,
    observer: &dyn Observer,
    visitor: &mut impl Visitor,
) -> Result<(), ZodbError> {
    let mut reader = Reader::new(data);
    let mut position = FIRST_TRANSACTION;
    let mut progress = Progress::new(observer, position);
    while position < end {
        let visited = visit_transaction(&mut reader, position, visitor);
        let (next, records) = visited.map_err(|halt| match halt {
            Halt::Error(error) => error,
            Halt::Imperfect(_) => reader.changed(),
        })?;
        position = next;
        if progress.reach(position, records) {
            return Err(ZodbError::Interrupted);
        }
    }
    progress.tell(position);
    Ok(())
}

/// Shows one transaction; returns where the next one begins, and the number of records.
pub(crate) fn visit_transaction(
    reader: &mut Reader<'_>,
    position: u64,
    visitor: &mut impl Visitor,
) -> Result<(u64, u64), Halt> {
    let transaction = Transaction::read(reader, position, Tid(0))?;
    visitor.transaction(&transaction);
    let (mut at, mut records) = (transaction.records, 0);
    while at < transaction.end && !transaction.is_skipped() {
        let (header, next) = transaction.record(reader, at)?;
        let record = Record {
            position: at,
            header,
        };
        visitor.record(reader, record)?;
        (at, records) = (next, records + 1);
    }
    Ok((transaction.next(), records))
}
