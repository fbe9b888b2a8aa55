//! The bytes of a segment and its parts; `docs/format.md` has them, too.

use rusqlite::Statement;
use rusqlite::types::ValueRef;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::{PART_ENTRIES, Source};
use crate::error::{IndexError, READ};
use crate::index::Index;
use crate::scan::is_unreadable;

/// Bytes of an entry, and of a checksum.
const WORD: usize = 8;

/// The hashes of the names of consecutive rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) id: i64,
    pub(crate) source: Source,
    /// The first row that it covers: the one behind the segment before, whether there is such a row or not.
    pub(crate) first_row: i64,
    /// The last row that it covers; there is such a row.
    pub(crate) last_row: i64,
    pub(crate) entries: u64,
    /// Its parts are this row of `stook_name_parts` and the following ones, as many as there are fences.
    pub(crate) first_part: i64,
    /// The first hash of each part.
    pub(crate) fences: Vec<u32>,
    pub(crate) anchor: u64,
}

/// Returns the hash that stands for a name.
pub(crate) fn hash_of(name: &[u8]) -> u32 {
    (xxh3_64(name) >> 32) as u32
}

/// Returns the entry of a row, `distance` behind the first one of its segment.
pub(crate) fn entry_of(hash: u32, distance: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(distance)
}

impl Segment {
    /// The columns in the order [`Segment::decode`] takes them.
    pub(crate) const COLUMNS: &str =
        "id, source, first_row, last_row, entries, first_part, fences, anchor, checksum";

    /// The longest distance between the first and the last row.
    pub(super) const LONGEST: i64 = u32::MAX as i64;

    pub(crate) fn decode(row: &rusqlite::Row<'_>) -> rusqlite::Result<Option<Self>> {
        let number = |column| match row.get_ref(column)? {
            ValueRef::Integer(number) => Ok(Some(number)),
            _ => Ok::<_, rusqlite::Error>(None),
        };
        let source = match row.get_ref(1)? {
            ValueRef::Text(name) => Source::ALL
                .into_iter()
                .find(|source| source.table().as_bytes() == name),
            _ => None,
        };
        let fences = match row.get_ref(6)? {
            ValueRef::Blob(bytes) if bytes.len().is_multiple_of(4) => Some(
                bytes
                    .as_chunks()
                    .0
                    .iter()
                    .map(|bytes| u32::from_le_bytes(*bytes))
                    .collect(),
            ),
            _ => None,
        };
        let values = (number(2)?, number(3)?, number(4)?, number(5)?, number(7)?);
        let (Some(id), Some(source), Some(fences), Some(checksum)) =
            (number(0)?, source, fences, number(8)?)
        else {
            return Ok(None);
        };
        let (Some(first_row), Some(last_row), Some(entries), Some(first_part), Some(anchor)) =
            values
        else {
            return Ok(None);
        };
        let segment = Self {
            id,
            source,
            first_row,
            last_row,
            entries: entries.cast_unsigned(),
            first_part,
            fences,
            anchor: anchor.cast_unsigned(),
        };
        Ok((segment.checksum() == checksum).then_some(segment))
    }

    /// Returns the checksum of all other columns.
    pub(super) fn checksum(&self) -> i64 {
        let numbers = [
            self.id,
            self.first_row,
            self.last_row,
            self.entries.cast_signed(),
            self.first_part,
            self.anchor.cast_signed(),
        ];
        let mut bytes = self.source.table().as_bytes().to_vec();
        bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        bytes.extend(self.fence_bytes());
        xxh3_64(&bytes).cast_signed()
    }

    pub(super) fn fence_bytes(&self) -> Vec<u8> {
        self.fences
            .iter()
            .flat_map(|hash| hash.to_le_bytes())
            .collect()
    }

    /// Returns the rows of `stook_name_parts` that it has.
    pub(crate) fn parts(&self) -> std::ops::Range<i64> {
        let count = i64::try_from(self.fences.len()).unwrap_or(i64::MAX);
        self.first_part..self.first_part.saturating_add(count)
    }

    /// Returns the parts that may have entries with this hash.
    pub(super) fn parts_with(&self, hash: u32) -> std::ops::Range<i64> {
        let begin = self.fences.partition_point(|&fence| fence < hash);
        let end = self.fences.partition_point(|&fence| fence <= hash);
        let id = |index: usize| self.first_part + i64::try_from(index).unwrap_or(i64::MAX);
        id(begin.saturating_sub(1))..id(end)
    }
}

/// The place of a part: its checksum is made with this, so that a part counts for no other segment, whatever ids are used
/// again after a damage.
#[derive(Debug, Clone, Copy)]
pub(super) struct PartPlace {
    pub(super) id: i64,
    pub(super) source: Source,
    pub(super) first_row: i64,
    pub(super) last_row: i64,
}

impl PartPlace {
    fn checksum(self, entries: &[u8]) -> u64 {
        let mut bytes = self.source.table().as_bytes().to_vec();
        let numbers = [self.id, self.first_row, self.last_row];
        bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        xxh3_64_with_seed(entries, xxh3_64(&bytes))
    }
}

/// Returns the bytes of a part: its entries, and a checksum.
pub(super) fn encode_part(place: PartPlace, entries: &[u64]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity((entries.len() + 1) * WORD);
    bytes.extend(entries.iter().flat_map(|entry| entry.to_le_bytes()));
    bytes.extend(place.checksum(&bytes).to_le_bytes());
    bytes
}

/// Returns the entries of a part, ascending; `None` if it is not as it was written.
fn decode_part(place: PartPlace, bytes: &[u8]) -> Option<Vec<u64>> {
    let (entries, checksum) = bytes.split_last_chunk::<WORD>()?;
    let is_sound = place.checksum(entries) == u64::from_le_bytes(*checksum);
    let (entries, []) = entries.as_chunks::<WORD>() else {
        return None;
    };
    (is_sound && entries.len() <= PART_ENTRIES).then(|| {
        entries
            .iter()
            .map(|entry| u64::from_le_bytes(*entry))
            .collect()
    })
}

/// Reads a part of a segment with the statement of [`part_statement`]; `None` if it is missing or damaged.
pub(crate) fn read_part(
    index: &Index,
    statement: &mut Statement<'_>,
    segment: &Segment,
    id: i64,
) -> Result<Option<Vec<u64>>, IndexError> {
    let place = PartPlace {
        id,
        source: segment.source,
        first_row: segment.first_row,
        last_row: segment.last_row,
    };
    let read = statement.query_row([id], |row| {
        Ok(match row.get_ref(0)? {
            ValueRef::Blob(bytes) => decode_part(place, bytes),
            _ => None,
        })
    });
    match read {
        Ok(entries) => Ok(entries),
        Err(rusqlite::Error::QueryReturnedNoRows) => Ok(None),
        Err(error) if is_unreadable(&error) => Ok(None),
        Err(error) => Err(index.fault(READ)(error)),
    }
}

/// Prepares the query for one part.
pub(crate) fn part_statement(index: &Index) -> Result<Statement<'_>, IndexError> {
    index
        .connection
        .prepare("SELECT entries FROM stook_name_parts WHERE id = ?1")
        .map_err(index.fault(READ))
}

/// Returns what tells whether the first row from `first` on and the row `last` are those that were indexed; `None` if the
/// last one is missing, or something cannot be read.
pub(super) fn anchor(
    index: &Index,
    source: Source,
    first: i64,
    last: i64,
) -> Result<Option<u64>, IndexError> {
    let mut bytes = Vec::new();
    for (condition, id) in [(">= ?1 ORDER BY 1 LIMIT 1", first), ("= ?1", last)] {
        let query = format!("{} {condition}", source.anchor_query());
        let read = index.connection.query_row(&query, [id], |row| {
            for column in 0..4 {
                match row.get_ref(column)? {
                    ValueRef::Integer(number) => bytes.extend(number.to_le_bytes()),
                    ValueRef::Text(text) | ValueRef::Blob(text) => {
                        bytes.extend((text.len() as u64).to_le_bytes());
                        bytes.extend(text);
                    }
                    ValueRef::Null => bytes.push(0),
                    ValueRef::Real(number) => bytes.extend(number.to_le_bytes()),
                }
            }
            Ok(())
        });
        match read {
            Ok(()) => {}
            Err(rusqlite::Error::QueryReturnedNoRows) => return Ok(None),
            Err(error) if is_unreadable(&error) => return Ok(None),
            Err(error) => return Err(index.fault(READ)(error)),
        }
    }
    Ok(Some(xxh3_64(&bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_read_back_and_a_flipped_bit_is_noticed() {
        let place = PartPlace {
            id: 3,
            source: Source::Files,
            first_row: 1,
            last_row: 100,
        };
        let entries: Vec<u64> = (0..100).map(|number| number * 7).collect();
        let bytes = encode_part(place, &entries);
        assert_eq!(decode_part(place, &bytes), Some(entries));
        for other in [
            PartPlace { id: 4, ..place },
            PartPlace {
                source: Source::Deleted,
                ..place
            },
            PartPlace {
                first_row: 2,
                ..place
            },
            PartPlace {
                last_row: 99,
                ..place
            },
        ] {
            assert_eq!(decode_part(other, &bytes), None, "{other:?}");
        }
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode_part(place, &flipped), None, "bit {bit}");
        }
        for len in 0..bytes.len() {
            assert_eq!(decode_part(place, &bytes[..len]), None);
        }
    }

    #[test]
    fn every_part_that_may_hold_a_hash_is_looked_into() {
        let segment = |fences: &[u32]| Segment {
            id: 1,
            source: Source::Files,
            first_row: 1,
            last_row: 9,
            entries: 9,
            first_part: 10,
            fences: fences.to_vec(),
            anchor: 0,
        };
        assert_eq!(segment(&[]).parts_with(5), 10..10);
        let one = segment(&[4]);
        assert_eq!(one.parts_with(5), 10..11);
        assert_eq!(one.parts_with(4), 10..11);
        assert!(one.parts_with(3).is_empty());
        let several = segment(&[1, 5, 5, 5, 9]);
        // The first 5 may stand at the end of the part before.
        assert_eq!(several.parts_with(5), 10..14);
        assert_eq!(several.parts_with(7), 13..14);
        assert_eq!(several.parts_with(9), 13..15);
        assert_eq!(several.parts_with(u32::MAX), 14..15);
    }
}
