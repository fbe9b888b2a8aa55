//! Reading segments: which there are, whether they can be used, and which rows a hash leads to.

use super::segment::{anchor, part_statement};
use super::{Segment, Source, read_part};
use crate::error::{IndexError, READ};
use crate::index::Index;
use crate::scan::is_unreadable;

/// Why the segments of a table are not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// A segment is not as it was written, or one is missing between others.
    Damaged,
    /// A row that was indexed is gone, or another one has its id.
    OtherRows,
    /// There are rows before the first segment: ids below 1, which no archive has.
    RowsBefore,
}

/// The segments of one table, in the order of its rows.
#[derive(Debug)]
pub(crate) struct NameSegments {
    pub(crate) segments: Vec<Segment>,
}

impl NameSegments {
    /// Reads the segments of a table; none at all if none were written.
    ///
    /// # Cost
    /// Two lookups of rows a segment.
    pub(crate) fn load(
        index: &Index,
        source: Source,
    ) -> Result<Result<Self, Unusable>, IndexError> {
        let Some(all) = all_segments(index)? else {
            return Ok(Err(Unusable::Damaged));
        };
        let mut segments = Vec::new();
        for segment in all {
            match segment {
                // Whose it was cannot be told.
                None => return Ok(Err(Unusable::Damaged)),
                Some(segment) if segment.source == source => segments.push(segment),
                Some(_) => {}
            }
        }
        segments.sort_unstable_by_key(|segment| segment.first_row);
        let mut next = 1;
        for segment in &segments {
            if segment.first_row != next || segment.last_row < next {
                return Ok(Err(Unusable::Damaged));
            }
            next = segment.last_row.saturating_add(1);
            let anchor = anchor(index, source, segment.first_row, segment.last_row)?;
            if anchor != Some(segment.anchor) {
                return Ok(Err(Unusable::OtherRows));
            }
        }
        if !segments.is_empty() && has_rows_before(index, source)? {
            return Ok(Err(Unusable::RowsBefore));
        }
        Ok(Ok(Self { segments }))
    }

    /// Returns the last row that is covered.
    pub(crate) fn covered(&self) -> Option<i64> {
        self.segments.last().map(|segment| segment.last_row)
    }

    /// Returns the rows up to `last_row` whose names have this hash, the greatest first; `None` if a part is damaged.
    ///
    /// # Cost
    /// One part of each segment is read, unless thousands of versions of a name fill several.
    pub(crate) fn rows_with(
        &self,
        index: &Index,
        hash: u32,
        last_row: i64,
    ) -> Result<Option<Vec<i64>>, IndexError> {
        let mut rows = Vec::new();
        if self.segments.is_empty() {
            return Ok(Some(rows));
        }
        let mut statement = match part_statement(index) {
            Err(IndexError::Sqlite { source, .. }) if is_unreadable(&source) => return Ok(None),
            other => other?,
        };
        for segment in &self.segments {
            for part in segment.parts_with(hash) {
                let Some(entries) = read_part(index, &mut statement, segment, part)? else {
                    return Ok(None);
                };
                let first = entries.partition_point(|entry| entry >> 32 < u64::from(hash));
                let of_hash = entries[first..]
                    .iter()
                    .take_while(|&entry| entry >> 32 == u64::from(hash));
                rows.extend(
                    of_hash.map(|entry| segment.first_row + (entry & 0xffff_ffff).cast_signed()),
                );
            }
        }
        rows.retain(|&row| row <= last_row);
        rows.sort_unstable_by(|a, b| b.cmp(a));
        Ok(Some(rows))
    }
}

/// Returns all segments, `None` for each that is damaged; or `None` if their table cannot be read.
fn all_segments(index: &Index) -> Result<Option<Vec<Option<Segment>>>, IndexError> {
    if !index.has_table("stook_name_segments")? || !index.has_table("stook_name_parts")? {
        return Ok(Some(Vec::new()));
    }
    let read = || {
        let query = format!("SELECT {} FROM stook_name_segments", Segment::COLUMNS);
        let mut statement = index.connection.prepare(&query)?;
        let rows = statement.query_map([], Segment::decode)?;
        rows.collect::<rusqlite::Result<Vec<_>>>()
    };
    match read() {
        Ok(segments) => Ok(Some(segments)),
        Err(error) if is_unreadable(&error) => Ok(None),
        Err(error) => Err(index.fault(READ)(error)),
    }
}

pub(super) fn has_rows_before(index: &Index, source: Source) -> Result<bool, IndexError> {
    let id = match source {
        Source::Files => "id",
        Source::Deleted => "rowid",
    };
    let query = format!(
        "SELECT EXISTS (SELECT 1 FROM {} WHERE {id} < 1)",
        source.table()
    );
    match index.connection.query_row(&query, [], |row| row.get(0)) {
        Ok(found) => Ok(found),
        Err(error) if is_unreadable(&error) => Ok(true),
        Err(error) => Err(index.fault(READ)(error)),
    }
}
