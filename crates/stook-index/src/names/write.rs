//! Writing segments, in the transaction that adds the rows.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::{ControlFlow, Range, RangeInclusive};

use rusqlite::{Statement, params};

use super::segment::{PartPlace, anchor, encode_part, part_statement};
use super::{NameSegments, PART_ENTRIES, Segment, Source, Unusable, entry_of, hash_of, read_part};
use crate::error::{IndexError, READ, WRITE};
use crate::index::Index;
use crate::row::{Met, bytes};
use crate::scan::{Step, scan_ids};

/// Entries gathered before they are sorted and written: 8 MiB.
const SEGMENT_ENTRIES: usize = 1 << 20;

/// Indexes names of rows that are being added.
pub(crate) struct NameWriter<'i> {
    index: &'i Index,
    source: Source,
    /// Those that are there, and those of this transaction.
    segments: Vec<Segment>,
    entries: Vec<u64>,
    /// The first row that the next segment covers.
    first_row: i64,
    last_row: i64,
    /// A row has no name that can be read: it and those behind it are left to a scan.
    is_closed: bool,
}

impl<'i> NameWriter<'i> {
    /// Begins, and indexes the rows that another program has added since. Segments that cannot be used are replaced.
    ///
    /// # Cost
    /// A pass over the rows behind the last segment: all of them if stook has not written to the archive before.
    pub(crate) fn begin(index: &'i Index, source: Source) -> Result<Self, IndexError> {
        let (segments, is_closed) = match NameSegments::load(index, source)? {
            Ok(found) => (found.segments, false),
            Err(Unusable::RowsBefore) => (Vec::new(), true),
            Err(Unusable::Damaged | Unusable::OtherRows) => {
                remove_all(index)?;
                (Vec::new(), false)
            }
        };
        let covered = segments.last().map_or(0, |segment| segment.last_row);
        let mut writer = Self {
            index,
            source,
            segments,
            entries: Vec::new(),
            first_row: covered.saturating_add(1),
            last_row: covered,
            is_closed: is_closed || super::lookup::has_rows_before(index, source)?,
        };
        writer.add_stored()?;
        Ok(writer)
    }

    /// Indexes the name of a row; rows come in the order of their ids.
    ///
    /// # Errors
    /// `Sqlite` if a full segment cannot be written.
    pub(crate) fn add(&mut self, row: i64, name: &[u8]) -> Result<(), IndexError> {
        if self.is_closed {
            return Ok(());
        }
        if row.saturating_sub(self.first_row) > Segment::LONGEST
            || self.entries.len() >= SEGMENT_ENTRIES
        {
            self.write_segment()?;
            // Ids that nobody uses in between may be more than a segment can hold.
            if row.saturating_sub(self.first_row) > Segment::LONGEST {
                self.is_closed = true;
                return Ok(());
            }
        }
        let distance = u32::try_from(row - self.first_row).unwrap_or(u32::MAX);
        self.entries.push(entry_of(hash_of(name), distance));
        self.last_row = row;
        Ok(())
    }

    /// Writes what was added, and merges segments. Returns their number.
    ///
    /// # Errors
    /// `Sqlite` if it cannot be written.
    pub(crate) fn finish(mut self) -> Result<usize, IndexError> {
        self.write_segment()?;
        let merged_from = first_to_merge(&self.segments);
        if merged_from + 1 >= self.segments.len() {
            return Ok(self.segments.len());
        }
        if self.merge(merged_from)? {
            return Ok(merged_from + 1);
        }
        // A part is damaged: names are read once more from the rows.
        remove_all(self.index)?;
        let mut anew = Self::begin(self.index, self.source)?;
        anew.write_segment()?;
        Ok(anew.segments.len())
    }

    /// Indexes the rows that are stored and that no segment covers.
    fn add_stored(&mut self) -> Result<(), IndexError> {
        let (index, first) = (self.index, self.first_row);
        if self.is_closed {
            return Ok(());
        }
        let mut outcome = Ok(());
        match self.source {
            Source::Files => index.pass(first..=i64::MAX, &mut |met| {
                let name = match &met {
                    Met::Bad(row, bad) if bad.column != "name" && bad.column != "id" => {
                        Some((row.id.0, row.name))
                    }
                    Met::Row(row) => Some((row.id.0, row.name)),
                    Met::Bad(..) | Met::Unreadable(_) => None,
                };
                self.add_or_close(name, &mut outcome)
            }),
            Source::Deleted => each_deleted(index, first, &mut |row, name| {
                self.add_or_close(name.map(|name| (row, name)), &mut outcome)
            }),
        }?;
        outcome
    }

    fn add_or_close(
        &mut self,
        named: Option<(i64, &[u8])>,
        outcome: &mut Result<(), IndexError>,
    ) -> ControlFlow<()> {
        match named {
            Some((row, name)) => *outcome = self.add(row, name),
            None => self.is_closed = true,
        }
        if outcome.is_ok() && !self.is_closed {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    }

    fn write_segment(&mut self) -> Result<(), IndexError> {
        if self.entries.is_empty() {
            return Ok(());
        }
        self.entries.sort_unstable();
        let rows = self.first_row..=self.last_row;
        let mut parts = PartWriter::begin(self.index, self.source, rows)?;
        for &entry in &self.entries {
            parts.add(entry)?;
        }
        self.entries.clear();
        let segment = parts.finish()?;
        self.segments.push(segment);
        self.first_row = self.last_row.saturating_add(1);
        Ok(())
    }

    /// Merges the segments from one on; returns false if one of their parts is damaged.
    fn merge(&self, from: usize) -> Result<bool, IndexError> {
        let old = &self.segments[from..];
        let (Some(first), Some(last)) = (old.first(), old.last()) else {
            return Ok(true);
        };
        let rows = first.first_row..=last.last_row;
        let mut output = PartWriter::begin(self.index, self.source, rows)?;
        let mut statement = part_statement(self.index)?;
        let mut inputs: Vec<Input<'_>> = old
            .iter()
            .map(|segment| Input {
                segment,
                parts: segment.parts(),
                entries: Vec::new(),
                next: 0,
                shift: (segment.first_row - first.first_row).unsigned_abs(),
            })
            .collect();
        let mut heads = BinaryHeap::with_capacity(inputs.len());
        for (number, input) in inputs.iter_mut().enumerate() {
            match input.next(self.index, &mut statement)? {
                Next::Entry(entry) => heads.push(Reverse((entry, number))),
                Next::End => {}
                Next::Damaged => return Ok(false),
            }
        }
        while let Some(Reverse((entry, number))) = heads.pop() {
            output.add(entry)?;
            match inputs[number].next(self.index, &mut statement)? {
                Next::Entry(entry) => heads.push(Reverse((entry, number))),
                Next::End => {}
                Next::Damaged => return Ok(false),
            }
        }
        output.finish()?;
        for segment in old {
            remove_segment(self.index, segment).map_err(self.index.fault(WRITE))?;
        }
        Ok(true)
    }
}

/// Returns the first of the segments that are merged with the last one: each that is not longer than what is behind it.
fn first_to_merge(segments: &[Segment]) -> usize {
    let Some((last, before)) = segments.split_last() else {
        return 0;
    };
    let (mut first, mut entries) = (before.len(), last.entries);
    for segment in before.iter().rev() {
        let span = last.last_row.saturating_sub(segment.first_row);
        if segment.entries > entries || span > Segment::LONGEST {
            break;
        }
        entries += segment.entries;
        first -= 1;
    }
    first
}

/// The entries of a segment while it is merged.
struct Input<'s> {
    segment: &'s Segment,
    parts: Range<i64>,
    entries: Vec<u64>,
    next: usize,
    /// How far the first row of the segment is behind that of the merged one.
    shift: u64,
}

enum Next {
    Entry(u64),
    End,
    Damaged,
}

impl Input<'_> {
    fn next(&mut self, index: &Index, statement: &mut Statement<'_>) -> Result<Next, IndexError> {
        while self.next == self.entries.len() {
            let Some(part) = self.parts.next() else {
                return Ok(Next::End);
            };
            let Some(entries) = read_part(index, statement, self.segment, part)? else {
                return Ok(Next::Damaged);
            };
            (self.entries, self.next) = (entries, 0);
        }
        let entry = self.entries[self.next];
        self.next += 1;
        let distance = (entry & 0xffff_ffff) + self.shift;
        Ok(match u32::try_from(distance) {
            Ok(_) => Next::Entry(entry + self.shift),
            Err(_) => Next::Damaged,
        })
    }
}

/// Writes the parts of one segment.
struct PartWriter<'i> {
    index: &'i Index,
    insert: Statement<'i>,
    source: Source,
    rows: RangeInclusive<i64>,
    first_part: i64,
    entries: Vec<u64>,
    count: u64,
    fences: Vec<u32>,
}

impl<'i> PartWriter<'i> {
    fn begin(
        index: &'i Index,
        source: Source,
        rows: RangeInclusive<i64>,
    ) -> Result<Self, IndexError> {
        let connection = &index.connection;
        let last: i64 = connection
            .query_row(
                "SELECT coalesce(max(id), 0) FROM stook_name_parts",
                [],
                |row| row.get(0),
            )
            .map_err(index.fault(READ))?;
        let insert = connection.prepare("INSERT INTO stook_name_parts VALUES (?1, ?2)");
        Ok(Self {
            index,
            insert: insert.map_err(index.fault(WRITE))?,
            source,
            rows,
            first_part: last + 1,
            entries: Vec::with_capacity(PART_ENTRIES),
            count: 0,
            fences: Vec::new(),
        })
    }

    fn add(&mut self, entry: u64) -> Result<(), IndexError> {
        self.entries.push(entry);
        self.count += 1;
        if self.entries.len() == PART_ENTRIES {
            self.write_part()?;
        }
        Ok(())
    }

    fn write_part(&mut self) -> Result<(), IndexError> {
        let Some(first) = self.entries.first() else {
            return Ok(());
        };
        let id = self.first_part + i64::try_from(self.fences.len()).unwrap_or(i64::MAX);
        self.fences.push((first >> 32) as u32);
        let place = PartPlace {
            id,
            source: self.source,
            first_row: *self.rows.start(),
            last_row: *self.rows.end(),
        };
        self.insert
            .execute(params![id, encode_part(place, &self.entries)])
            .map_err(self.index.fault(WRITE))?;
        self.entries.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<Segment, IndexError> {
        self.write_part()?;
        let (index, source) = (self.index, self.source);
        let (first_row, last_row) = self.rows.into_inner();
        let mut segment = Segment {
            id: 0,
            source,
            first_row,
            last_row,
            entries: self.count,
            first_part: self.first_part,
            fences: self.fences,
            anchor: anchor(index, source, first_row, last_row)?.unwrap_or(0),
        };
        let query = "SELECT coalesce(max(id), 0) + 1 FROM stook_name_segments";
        segment.id = index
            .connection
            .query_row(query, [], |row| row.get(0))
            .map_err(index.fault(READ))?;
        let values = params![
            segment.id,
            source.table(),
            first_row,
            last_row,
            segment.entries.cast_signed(),
            segment.first_part,
            segment.fence_bytes(),
            segment.anchor.cast_signed(),
            segment.checksum()
        ];
        let insert = "INSERT INTO stook_name_segments VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
        index
            .connection
            .execute(insert, values)
            .map_err(index.fault(WRITE))?;
        Ok(segment)
    }
}

fn remove_segment(index: &Index, segment: &Segment) -> rusqlite::Result<()> {
    let parts = segment.parts();
    let remove = "DELETE FROM stook_name_parts WHERE id >= ?1 AND id < ?2";
    index.connection.execute(remove, [parts.start, parts.end])?;
    let remove = "DELETE FROM stook_name_segments WHERE id = ?1";
    index.connection.execute(remove, [segment.id]).map(drop)
}

/// Removes all segments of all tables: of a damaged one it cannot be told which parts are its own.
fn remove_all(index: &Index) -> Result<(), IndexError> {
    index
        .connection
        .execute_batch(
            "DELETE FROM stook_name_segments WHERE true; DELETE FROM stook_name_parts WHERE true;",
        )
        .map_err(index.fault(WRITE))
}

/// Receives a row of `stook_deleted`, and its real name if that can be read.
type VisitDeleted<'v> = dyn FnMut(i64, Option<&[u8]>) -> ControlFlow<()> + 'v;

/// Shows the rows of `stook_deleted` from one on, with their real names as far as they can be read.
fn each_deleted(index: &Index, first: i64, visit: &mut VisitDeleted<'_>) -> Result<(), IndexError> {
    let query =
        "SELECT rowid, name, raw FROM stook_deleted WHERE rowid BETWEEN ?1 AND ?2 ORDER BY rowid";
    let mut statement = index.connection.prepare(query).map_err(index.fault(READ))?;
    scan_ids(&index.path, &mut statement, first..=i64::MAX, |step| {
        let (id, row) = match step {
            Step::Row(id, row) => (id, row),
            Step::Unreadable(_) => return Ok(visit(i64::MAX, None)),
        };
        let column = |column| row.get_ref(column).map_err(index.fault(READ));
        Ok(visit(id, bytes(column(2)?).or(bytes(column(1)?))))
    })
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::types::Config;

    fn segment(first_row: i64, last_row: i64, entries: u64) -> Segment {
        Segment {
            id: 1,
            source: Source::Files,
            first_row,
            last_row,
            entries,
            first_part: 1,
            fences: Vec::new(),
            anchor: 0,
        }
    }

    #[test]
    fn a_segment_is_merged_with_those_that_are_not_longer() {
        let of_lengths = |lengths: &[u64]| {
            let mut next = 1;
            let mut segments = Vec::new();
            for &length in lengths {
                let end = next + length.cast_signed();
                segments.push(segment(next, end - 1, length));
                next = end;
            }
            first_to_merge(&segments)
        };
        assert_eq!(of_lengths(&[]), 0);
        assert_eq!(of_lengths(&[5]), 0);
        assert_eq!(of_lengths(&[5, 4]), 1);
        assert_eq!(of_lengths(&[5, 5]), 0);
        assert_eq!(of_lengths(&[100, 8, 4, 4]), 1);
        assert_eq!(of_lengths(&[1000, 1000, 1000]), 0);
        let far = segment(Segment::LONGEST - 1, Segment::LONGEST + 1, 3);
        assert_eq!(first_to_merge(&[segment(1, 3, 3), far]), 0);
        let too_far = segment(Segment::LONGEST, Segment::LONGEST + 2, 3);
        assert_eq!(first_to_merge(&[segment(1, 3, 3), too_far]), 1);
    }

    /// What a `create` of the standard file set pays for name lookup.
    #[test]
    #[ignore = "a measurement"]
    fn indexing_a_million_names_takes_a_fraction_of_a_second() {
        let folder = tempfile::tempdir().unwrap();
        let config = Config {
            hpss: "none".into(),
            maxsize: 1,
            path: b"/src".to_vec(),
        };
        let index = Index::create(folder.path().join("index.db"), &config).unwrap();
        let row = "INSERT INTO files (id, name) VALUES (?1, 'name')";
        for id in [1, 1 << 20, (1 << 20) + 1, 1_290_284] {
            index.connection.execute(row, [id]).unwrap();
        }
        let names: Vec<String> = (0..1_290_284)
            .map(|number| format!("some/directory/of/{}/file-number-{number}.nc", number / 50))
            .collect();
        let transaction = index.begin().unwrap();
        let mut writer = NameWriter::begin(&index, Source::Files).unwrap();
        writer.entries.clear();
        (writer.first_row, writer.last_row) = (1, 0);
        let begin = Instant::now();
        for (row, name) in (1..).zip(&names) {
            writer.add(row, name.as_bytes()).unwrap();
        }
        let segments = writer.finish().unwrap();
        let written = begin.elapsed();
        transaction.commit().unwrap();
        let elapsed = begin.elapsed();
        assert!(
            elapsed.as_secs() < 10,
            "{written:?}, {elapsed:?}, {segments} segments"
        );
    }
}
