//! What is checked while bytes come by slice by slice: the content of members, and what follows the last.

use stook_index::Row;
use stook_volume::{Member, Segment};

use crate::cause::Cause;
use crate::observer::Observer;
use crate::read::{ContentMd5, Interrupted, check_row, segments_of};

/// Bytes after the last member, as they come by.
pub(super) struct RestCheck {
    start: u64,
    /// The first byte that is not zero.
    pub(super) first_other: Option<u64>,
}

impl RestCheck {
    pub(super) fn new(start: u64) -> Self {
        Self {
            start,
            first_other: None,
        }
    }

    pub(super) fn take(&mut self, offset: u64, bytes: &[u8]) {
        if let Some((start, bytes)) = overlap(offset, bytes, self.start, u64::MAX) {
            let found = bytes.iter().position(|&byte| byte != 0);
            self.first_other = self.first_other.or(found.map(|at| start + at as u64));
        }
    }
}

/// The content and the padding of one member, as its bytes come by.
pub(super) struct MemberCheck<'a> {
    pub(super) row: &'a Row,
    pub(super) member: Member,
    segments: Vec<Segment>,
    /// None if the content is not hashed.
    md5: Option<ContentMd5<'a>>,
    /// The MD5 of the content, where it was taken elsewhere.
    known_md5: Option<[u8; 16]>,
    has_dirty_padding: bool,
}

impl<'a> MemberCheck<'a> {
    pub(super) fn new(row: &'a Row, member: Member, observer: &'a dyn Observer) -> Self {
        let segments = segments_of(&member).into_owned();
        Self {
            md5: Some(ContentMd5::new(&row.name, member.header.size, observer)),
            row,
            member,
            segments,
            known_md5: None,
            has_dirty_padding: false,
        }
    }

    /// Takes the MD5 of all the content; what comes by then is only the padding behind it.
    pub(super) fn know(&mut self, md5: [u8; 16]) {
        self.known_md5 = Some(md5);
    }

    /// Leaves the content as it is: only its padding is looked at.
    pub(super) fn do_not_hash(&mut self) {
        self.md5 = None;
    }

    pub(super) fn is_verified(&self) -> bool {
        self.md5.is_some() || self.known_md5.is_some()
    }

    pub(super) fn take(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Interrupted> {
        let mut stored = self.member.data_offset;
        for segment in &self.segments {
            let held = overlap(offset, bytes, stored, stored + segment.len);
            if let Some(((start, bytes), md5)) = held.zip(self.md5.as_mut()) {
                md5.update(segment.offset + (start - stored), bytes)?;
            }
            stored += segment.len;
        }
        if let Some((_, padding)) = overlap(offset, bytes, stored, self.member.end) {
            self.has_dirty_padding |= padding.iter().any(|&byte| byte != 0);
        }
        Ok(())
    }

    /// Returns what is wrong with the member, once all its bytes have come by.
    pub(super) fn finish(self) -> Result<Option<Cause>, Interrupted> {
        if let Err(different) = check_row(self.row, &self.member) {
            return Ok(Some(different));
        }
        if let Some(expected) = self.row.md5 {
            let found = match (self.known_md5, self.md5) {
                (Some(known), _) => Some(known),
                (None, Some(md5)) => Some(md5.finish()?),
                (None, None) => None,
            };
            if found.is_some_and(|found| found != expected) {
                return Ok(Some(Cause::WrongMd5));
            }
        }
        Ok(self.has_dirty_padding.then_some(Cause::DirtyPadding))
    }
}

/// Returns the part of `bytes`, which stand at `offset`, that lies between `start` and `end`.
fn overlap(offset: u64, bytes: &[u8], start: u64, end: u64) -> Option<(u64, &[u8])> {
    let from = start.max(offset);
    let to = end.min(offset + bytes.len() as u64);
    if from >= to {
        return None;
    }
    let at = |position: u64| usize::try_from(position - offset).ok();
    Some((from, bytes.get(at(from)?..at(to)?)?))
}
