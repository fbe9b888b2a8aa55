//! Whether a saved index may belong to a file: ZODB's own test, so that both decide alike.
//!
//! Only the last transaction with records is looked at, and five of its records: an index passes that is wrong elsewhere.
//! [`crate::check()`] compares every object.

use crate::data_file::{DataFile, Reader};
use crate::error::ZodbError;
use crate::format::{FIRST_TRANSACTION, POINTER};
use crate::id::Tid;
use crate::index::Index;
use crate::transaction::{Halt, Transaction};

/// A file that ends before it has too little to be tested; ZODB reads it from the beginning.
const SHORTEST: u64 = 100;

/// Records that are compared.
const RECORDS: usize = 5;

/// Returns the number of the last transaction before `position` if the index may be that of the file up to there.
///
/// # Errors
/// [`ZodbError::Sys`] with "read".
///
/// # Cost
/// A few reads; more where many transactions at the end have no records.
///
/// # Source
/// The rules of `FileStorage._check_sanity` in ZODB 6.
pub fn is_sane(data: &DataFile, index: &Index, position: u64) -> Result<Option<Tid>, ZodbError> {
    if position < SHORTEST || data.size() < position {
        return Ok(None);
    }
    let mut reader = Reader::jumping(data);
    let (mut end, mut last) = (position, None);
    loop {
        let transaction = match transaction_before(&mut reader, end) {
            Ok(Some(transaction)) => transaction,
            Ok(None) | Err(Halt::Imperfect(_)) => return Ok(None),
            Err(Halt::Error(error)) => return Err(error),
        };
        last = last.or(Some(transaction.tid));
        if transaction.is_skipped() || transaction.records == transaction.end {
            end = transaction.position;
            continue;
        }
        return match agrees(&mut reader, &transaction, index) {
            Ok(true) => Ok(last),
            Ok(false) | Err(Halt::Imperfect(_)) => Ok(None),
            Err(Halt::Error(error)) => Err(error),
        };
    }
}

fn transaction_before(reader: &mut Reader<'_>, end: u64) -> Result<Option<Transaction>, Halt> {
    let Some(length_at) = end.checked_sub(POINTER) else {
        return Ok(None);
    };
    let Some(length) = reader.number(length_at)? else {
        return Ok(None);
    };
    let position = length_at
        .checked_sub(length)
        .filter(|position| *position >= FIRST_TRANSACTION);
    let Some(position) = position else {
        return Ok(None);
    };
    let transaction = Transaction::read(reader, position, Tid(0))?;
    Ok((transaction.end == length_at).then_some(transaction))
}

fn agrees(reader: &mut Reader<'_>, transaction: &Transaction, index: &Index) -> Result<bool, Halt> {
    let mut position = transaction.records;
    for _ in 0..RECORDS {
        if position >= transaction.end {
            break;
        }
        let (header, next) = transaction.record(reader, position)?;
        if index.get(header.oid) != Some(position) {
            return Ok(false);
        }
        position = next;
    }
    Ok(true)
}
