//! What is known of one entry, in one cache line.

use stook_index::{Attributes, Mtime, RowRef};
use stook_sys::Timestamp;

/// Offsets of content are multiples of it behind those of headers.
const BLOCK: u64 = 512;

/// An entry has a row.
pub(super) const HAS_ROW: u16 = 1;
/// Its row has an MD5.
pub(super) const HAS_MD5: u16 = 2;
/// Its row has a value that makes no sense.
pub(super) const IS_DAMAGED: u16 = 4;
/// Something about it does not fit in here.
pub(super) const HAS_EXTRA: u16 = 8;

/// There are no attributes in the index.
pub(super) const NO_ATTRIBUTES: u32 = u32::MAX;

/// A row, and what its attributes add.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts {
    pub(super) row: i64,
    pub(super) size: u64,
    pub(super) offset: u64,
    /// As the row has it.
    pub(super) mtime: Mtime,
    pub(super) md5: [u8; 16],
    /// Which of the attributes that many entries share; [`NO_ATTRIBUTES`] if none.
    pub(super) shared: u32,
    /// Which of the volumes.
    pub(super) volume: u32,
    /// What the exact time is behind `mtime`.
    nanoseconds: i32,
    /// Blocks from the header to the content; 0 if that is not known.
    header_blocks: u16,
    pub(super) flags: u16,
}

const _: () = assert!(size_of::<Facts>() == 64);

impl Facts {
    /// A directory that no row is about.
    pub(super) const IMPLIED: Self = Self {
        row: 0,
        size: 0,
        offset: 0,
        mtime: Mtime::MIN,
        md5: [0; 16],
        shared: NO_ATTRIBUTES,
        volume: 0,
        nanoseconds: 0,
        header_blocks: 0,
        flags: 0,
    };

    pub(super) fn of_row(row: &RowRef<'_>, volume: u32) -> Self {
        Self {
            row: row.id.0,
            size: row.size,
            offset: row.offset,
            mtime: row.mtime,
            md5: row.md5.unwrap_or_default(),
            volume,
            flags: HAS_ROW | if row.md5.is_some() { HAS_MD5 } else { 0 },
            ..Self::IMPLIED
        }
    }

    /// Adds what the index knows beyond the row. The time of a header that has whole seconds only, as old ones do, is not the
    /// better one.
    pub(super) fn add(&mut self, attributes: &Attributes<'_>, shared: u32) {
        self.shared = shared;
        let blocks = attributes.content.saturating_sub(attributes.offset) / BLOCK;
        self.header_blocks = u16::try_from(blocks).unwrap_or(0);
        if Mtime::from(attributes.mtime) == self.mtime {
            let exact = nanoseconds_of(attributes.mtime);
            let behind = exact - i128::from(self.mtime.0) * 1000;
            self.nanoseconds = i32::try_from(behind).unwrap_or(0);
        }
    }

    pub(super) fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// Returns the time of the last change, as exactly as it is known.
    pub(super) fn time(&self) -> Timestamp {
        let nanoseconds = i128::from(self.mtime.0) * 1000 + i128::from(self.nanoseconds);
        let seconds = nanoseconds.div_euclid(SECOND);
        Timestamp {
            seconds: i64::try_from(seconds).expect("a time in microseconds has fewer seconds"),
            nanoseconds: u32::try_from(nanoseconds.rem_euclid(SECOND)).expect("less than a second"),
        }
    }

    /// Returns where the content begins.
    pub(super) fn content(&self) -> Option<u64> {
        let header = u64::from(self.header_blocks) * BLOCK;
        (header > 0).then(|| self.offset.saturating_add(header))
    }
}

const SECOND: i128 = 1_000_000_000;

fn nanoseconds_of(time: Timestamp) -> i128 {
    i128::from(time.seconds) * SECOND + i128::from(time.nanoseconds)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use stook_index::{RowId, VolumeId};

    use super::*;

    fn row(mtime: Mtime) -> RowRef<'static> {
        RowRef {
            id: RowId(1),
            name: b"a",
            size: 1,
            mtime,
            md5: None,
            volume: VolumeId::plain(0),
            offset: 1024,
        }
    }

    fn time_of(mtime: Mtime, exact: Timestamp) -> Timestamp {
        let mut facts = Facts::of_row(&row(mtime), 0);
        let attributes = Attributes {
            offset: 1024,
            content: 2560,
            mtime: exact,
            ..Attributes::default()
        };
        facts.add(&attributes, 0);
        assert_eq!(facts.content(), Some(2560));
        facts.time()
    }

    proptest! {
        #[test]
        fn the_exact_time_comes_back(
            seconds in -62_135_596_800_i64..253_402_300_000, nanoseconds in 0_u32..1_000_000_000,
        ) {
            let exact = Timestamp { seconds, nanoseconds };
            prop_assert_eq!(time_of(Mtime::from(exact), exact), exact);
        }
    }

    #[test]
    fn a_time_in_whole_seconds_is_not_better_than_that_of_the_row() {
        let whole = Timestamp {
            seconds: 1_700_000_000,
            nanoseconds: 0,
        };
        let found = time_of(Mtime(1_700_000_000_250_000), whole);
        assert_eq!(
            (found.seconds, found.nanoseconds),
            (1_700_000_000, 250_000_000)
        );
        // A time that has no text in the index is the last one that has.
        let far = Timestamp {
            seconds: 400_000_000_000,
            nanoseconds: 0,
        };
        assert_eq!(time_of(Mtime::from(far), far).seconds, 253_402_300_799);
    }

    #[test]
    fn the_content_behind_a_huge_header_is_not_known() {
        let mut facts = Facts::of_row(&row(Mtime(0)), 0);
        let attributes = Attributes {
            offset: 1024,
            content: 1024 + (1 << 40),
            ..Attributes::default()
        };
        facts.add(&attributes, 0);
        assert_eq!(facts.content(), None);
    }
}
