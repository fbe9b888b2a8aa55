//! The segments of name lookup: sound in themselves, and the names of the rows that they cover.

use std::collections::BTreeSet;

use super::Check;
use crate::damage::{IndexDamage, IndexFault};
use crate::error::{IndexError, READ};
use crate::names::{Segment, Source, entry_of, hash_of, part_statement, read_part};
use crate::scan::is_unreadable;

const SEGMENTS: &str = "stook_name_segments";
const PARTS: &str = "stook_name_parts";

/// The segments, each with the sum of the entries that the rows it covers should have; `None` if the name of one of these
/// cannot be read.
#[derive(Debug, Default)]
pub(super) struct ExpectedNames {
    segments: Vec<(Segment, Option<u64>)>,
    /// Where the last row was found: rows come in order.
    last: usize,
}

impl ExpectedNames {
    /// Notes the name of a row. Rows of a table come in the order of their ids.
    pub(super) fn note(&mut self, source: Source, row: i64, name: Option<&[u8]>) {
        let covers = |segment: &Segment| {
            segment.source == source && (segment.first_row..=segment.last_row).contains(&row)
        };
        if !self.segments.get(self.last).is_some_and(|at| covers(&at.0)) {
            let Some(found) = self.segments.iter().position(|at| covers(&at.0)) else {
                return;
            };
            self.last = found;
        }
        let (segment, sum) = &mut self.segments[self.last];
        let distance = u32::try_from(row - segment.first_row).ok();
        let entry = name
            .zip(distance)
            .map(|(name, distance)| entry_of(hash_of(name), distance));
        *sum = sum
            .zip(entry)
            .map(|(sum, entry)| sum.wrapping_add(scrambled(entry)));
    }
}

/// Spreads the bits of an entry, so that sums of different entries differ: the finalizer of splitmix64.
fn scrambled(entry: u64) -> u64 {
    let mixed = (entry ^ entry >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

impl Check<'_> {
    /// Reads the segments, and tells those that are not as they were written.
    pub(super) fn name_segments(&mut self) -> Result<ExpectedNames, IndexError> {
        let mut found = ExpectedNames::default();
        self.each(SEGMENTS, Segment::COLUMNS, |check, id, row| {
            match Segment::decode(row).map_err(check.index.fault(READ))? {
                Some(segment) => found.segments.push((segment, Some(0))),
                None => check.tell(IndexDamage::value(SEGMENTS, id, "checksum", BAD_CHECKSUM)),
            }
            Ok(())
        })?;
        found
            .segments
            .sort_unstable_by_key(|(segment, _)| (segment.source.table(), segment.first_row));
        for source in Source::ALL {
            let mut next = 1;
            let of_source = found.segments.iter();
            for (segment, _) in of_source.filter(|(segment, _)| segment.source == source) {
                if segment.first_row != next {
                    let what = "its rows do not follow those of the segment before";
                    self.tell(IndexDamage::value(SEGMENTS, segment.id, "first_row", what));
                }
                next = segment.last_row.saturating_add(1);
            }
        }
        Ok(found)
    }

    /// Compares the segments with the rows that were noted.
    pub(super) fn names(&mut self, expected: &ExpectedNames) -> Result<(), IndexError> {
        let mut used = BTreeSet::new();
        for (segment, sum) in &expected.segments {
            used.extend(segment.parts());
            let Some((entries, found)) = self.entries_of(segment)? else {
                continue;
            };
            let what = if entries != segment.entries {
                IndexFault::Wrong("it does not have as many entries as it says")
            } else if sum.is_some_and(|sum| sum != found) && !self.has_unknown_rows {
                IndexFault::OtherNames {
                    table: segment.source.table(),
                    rows: segment.first_row..=segment.last_row,
                }
            } else {
                continue;
            };
            self.tell(IndexDamage::value(SEGMENTS, segment.id, "entries", what));
        }
        self.each(PARTS, "id", |check, id, _| {
            if !used.contains(&id) {
                check.tell(IndexDamage::value(PARTS, id, "id", "no segment has it"));
            }
            Ok(())
        })
    }

    /// Returns the number and the sum of the entries of a segment; `None` if a part is damaged, which is reported.
    fn entries_of(&mut self, segment: &Segment) -> Result<Option<(u64, u64)>, IndexError> {
        let (mut count, mut sum, mut last) = (0_u64, 0_u64, 0);
        let mut statement = match part_statement(self.index) {
            Err(IndexError::Sqlite { source, .. }) if is_unreadable(&source) => return Ok(None),
            other => other?,
        };
        for (id, fence) in segment.parts().zip(&segment.fences) {
            let Some(entries) = read_part(self.index, &mut statement, segment, id)? else {
                self.tell(IndexDamage::value(PARTS, id, "entries", BAD_CHECKSUM));
                return Ok(None);
            };
            let is_sorted =
                entries.is_sorted() && entries.first().is_none_or(|&first| first >= last);
            let is_fenced = entries.first().map(|first| first >> 32) == Some(u64::from(*fence));
            if !is_sorted || !is_fenced {
                let what = "its entries are not in order";
                self.tell(IndexDamage::value(PARTS, id, "entries", what));
                return Ok(None);
            }
            last = entries.last().copied().unwrap_or(last);
            count += entries.len() as u64;
            let scrambled = entries.iter().map(|&entry| scrambled(entry));
            sum = scrambled.fold(sum, u64::wrapping_add);
        }
        Ok(Some((count, sum)))
    }
}

const BAD_CHECKSUM: &str = "it does not have its checksum: it is not as it was written";
