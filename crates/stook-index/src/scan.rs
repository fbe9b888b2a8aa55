//! Reading a table past what is damaged in it.
//!
//! ```text
//!   ids   1 ... 40 | 41 ....... 80 | 81 ... 120
//!         page       damaged page    page
//!   the scan ends with an error at 41; 81 is found by doubling and halving; the scan goes on there
//! ```
//! A pass always comes to an end, whatever the pages of a foreign file point to: it goes on behind
//! the greatest id it has seen, and a row that is not behind the one before counts as damage.

use std::ops::{ControlFlow, RangeInclusive};
use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{ErrorCode, Statement};

use crate::damage::{IndexFault, UnreadableRows};
use crate::error::{IndexError, READ};
use crate::index::fault_at;

/// What a pass over a table meets.
pub(crate) enum Step<'r, 's> {
    /// A row and its id.
    Row(i64, &'r rusqlite::Row<'s>),
    /// Rows that SQLite cannot read, before the next row that it can.
    Unreadable(UnreadableRows),
}

/// Shows the rows with these ids to `visit`, ascending, until it breaks off or fails. The query has the id in
/// its first column, the bounds as its two parameters, and the order of the ids.
///
/// # Errors
/// Those of `visit`, and what SQLite reports of anything but damage.
pub(crate) fn scan_ids(
    path: &Path,
    statement: &mut Statement<'_>,
    ids: RangeInclusive<i64>,
    mut visit: impl FnMut(Step<'_, '_>) -> Result<ControlFlow<()>, IndexError>,
) -> Result<(), IndexError> {
    let (first, last) = ids.into_inner();
    let mut next = Some(first);
    while let Some(from) = next.filter(|&from| from <= last) {
        let Some(cause) = scan_part(path, statement, &mut next, last, &mut visit)? else {
            return Ok(());
        };
        let Some(at) = next else { break };
        // The same place may be read the second time, but not for ever.
        let probed = if at == from {
            at.checked_add(1)
        } else {
            Some(at)
        };
        let readable = match probed {
            Some(probed) => {
                first_readable(statement, probed, last).map_err(fault_at(READ, path))?
            }
            None => None,
        };
        let end = readable.map_or(last, |id| id.saturating_sub(1));
        if end >= at {
            let ids = if at < 1 && end >= 1 {
                1..=end
            } else {
                at..=end
            };
            if visit(Step::Unreadable(UnreadableRows { ids, cause }))?.is_break() {
                return Ok(());
            }
        }
        next = readable;
    }
    Ok(())
}

/// Goes on to the end, or to what cannot be read, and returns the cause then. `next` is the first id not shown.
fn scan_part(
    path: &Path,
    statement: &mut Statement<'_>,
    next: &mut Option<i64>,
    last: i64,
    visit: &mut impl FnMut(Step<'_, '_>) -> Result<ControlFlow<()>, IndexError>,
) -> Result<Option<IndexFault>, IndexError> {
    let mut rows = statement
        .query([*next, Some(last)])
        .map_err(fault_at(READ, path))?;
    loop {
        let row = match rows.next() {
            Ok(Some(row)) => row,
            Ok(None) => return Ok(None),
            Err(error) if is_unreadable(&error) => return Ok(Some(error.into())),
            Err(error) => return Err(fault_at(READ, path)(error)),
        };
        let id = match row.get_ref(0).map_err(fault_at(READ, path))? {
            ValueRef::Integer(id) if next.is_some_and(|next| id >= next) => id,
            _ => return Ok(Some("the ids of rows do not ascend".into())),
        };
        *next = id.checked_add(1);
        if visit(Step::Row(id, row))?.is_break() || next.is_none() {
            return Ok(None);
        }
    }
}

/// Returns the first id from which on rows can be read, `None` if there is none.
fn first_readable(
    statement: &mut Statement<'_>,
    from: i64,
    last: i64,
) -> rusqlite::Result<Option<i64>> {
    let mut is_readable = |id: i64| {
        let mut rows = statement.query([id, last])?;
        match rows.next() {
            Ok(None) => Ok(true),
            Ok(Some(row)) => Ok(row.get::<_, i64>(0).is_ok_and(|found| found >= id)),
            Err(error) if is_unreadable(&error) => Ok(false),
            Err(error) => Err(error),
        }
    };
    if from > last {
        return Ok(None);
    }
    if is_readable(from)? {
        return Ok(Some(from));
    }
    let (mut unreadable, mut distance) = (from, 1_i128);
    let mut readable = loop {
        let id = i128::from(from).saturating_add(distance).min(last.into());
        let id = i64::try_from(id).unwrap_or(last);
        if is_readable(id)? {
            break id;
        }
        if id == last {
            return Ok(None);
        }
        unreadable = id;
        distance *= 2;
    };
    while unreadable.saturating_add(1) < readable {
        let middle = unreadable.midpoint(readable);
        if is_readable(middle)? {
            readable = middle;
        } else {
            unreadable = middle;
        }
    }
    Ok(Some(readable))
}

/// Returns true for damage of the file, or of the disk below it; what lies elsewhere may well be read.
pub(crate) fn is_unreadable(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::SystemIoFailure)
    )
}
