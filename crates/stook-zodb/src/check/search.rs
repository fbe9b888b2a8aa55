//! Finds the next transaction behind damage.

use crate::data_file::Reader;
use crate::error::ZodbError;
use crate::format::{POINTER, Status, TRANSACTION_HEADER, TransactionHeader};
use crate::id::Tid;
use crate::transaction::{Halt, Transaction};

/// Bytes looked through at a time.
const STEP: u64 = 64 << 10;

/// Returns where a damaged transaction ends, if the length in its header is also found at its end.
pub(super) fn end_of(reader: &mut Reader<'_>, position: u64) -> Result<Option<u64>, ZodbError> {
    let Some(bytes) = reader.array::<TRANSACTION_HEADER>(position)? else {
        return Ok(None);
    };
    let length = TransactionHeader::decode(&bytes).length;
    let Some(end) = position
        .checked_add(length)
        .filter(|_| length >= TRANSACTION_HEADER as u64)
    else {
        return Ok(None);
    };
    let redundant = reader.number(end)?;
    Ok((redundant == Some(length)).then_some(end.saturating_add(POINTER)))
}

/// Returns where the next transaction begins that can be believed: its number is above the last one, its lengths agree, and
/// its first record says that it belongs to it.
///
/// # Cost
/// Reads every byte once; where the length in a header could be one, the length at the end as well.
pub(super) fn next_transaction(
    reader: &mut Reader<'_>,
    jumping: &mut Reader<'_>,
    from: u64,
    last: Tid,
) -> Result<Option<u64>, ZodbError> {
    let size = reader.size();
    let header = TRANSACTION_HEADER as u64;
    let mut start = from;
    while start.saturating_add(header) <= size {
        let len = (STEP + header).min(size - start);
        let Some(bytes) = reader.bytes(start, len)? else {
            return Ok(None);
        };
        for (at, window) in (start..).zip(bytes.windows(TRANSACTION_HEADER)) {
            if may_begin(window, size - at, last) && is_believable(jumping, at, last)? {
                return Ok(Some(at));
            }
        }
        start += len - header + 1;
    }
    Ok(None)
}

/// A quick look at the bytes alone.
fn may_begin(window: &[u8], left: u64, last: Tid) -> bool {
    if !matches!(window[16], b' ' | b'p' | b'u') {
        return false;
    }
    let Ok(bytes) = window.try_into() else {
        return false;
    };
    let header = TransactionHeader::decode(bytes);
    !matches!(header.status, Status::Unknown(_) | Status::Unfinished)
        && header.tid > last
        && header.length >= header.header_len
        && header.length <= left
}

fn is_believable(reader: &mut Reader<'_>, position: u64, last: Tid) -> Result<bool, ZodbError> {
    let looked = look(reader, position, last);
    match looked {
        Ok(()) => Ok(true),
        Err(Halt::Imperfect(_)) => Ok(false),
        Err(Halt::Error(error)) => Err(error),
    }
}

fn look(reader: &mut Reader<'_>, position: u64, last: Tid) -> Result<(), Halt> {
    let transaction = Transaction::read(reader, position, last)?;
    transaction.check_end(reader)?;
    if transaction.records < transaction.end && !transaction.is_skipped() {
        transaction.record(reader, transaction.records)?;
    }
    Ok(())
}
