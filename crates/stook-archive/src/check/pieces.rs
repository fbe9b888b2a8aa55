//! What is checked while bytes come by in pieces: the content of members, and what follows the last.

use stook_index::Row;
use stook_volume::{Member, Segment};

use crate::batch::{ContentMd5, disagreement};

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
    md5: ContentMd5,
    /// The MD5 of the content, where it was taken elsewhere.
    known_md5: Option<[u8; 16]>,
    has_dirty_padding: bool,
}

impl<'a> MemberCheck<'a> {
    pub(super) fn new(row: &'a Row, member: Member) -> Self {
        let whole = vec![Segment {
            offset: 0,
            len: member.data_len,
        }];
        let segments = member.header.sparse.clone().unwrap_or(whole);
        Self {
            row,
            member,
            segments,
            md5: ContentMd5::new(),
            known_md5: None,
            has_dirty_padding: false,
        }
    }

    /// Takes the MD5 of all the content; what comes by then is only the padding behind it.
    pub(super) fn know(&mut self, md5: [u8; 16]) {
        self.known_md5 = Some(md5);
    }

    pub(super) fn take(&mut self, offset: u64, bytes: &[u8]) {
        let mut stored = self.member.data_offset;
        for segment in &self.segments {
            if let Some((start, bytes)) = overlap(offset, bytes, stored, stored + segment.len) {
                self.md5.update(segment.offset + (start - stored), bytes);
            }
            stored += segment.len;
        }
        if let Some((_, padding)) = overlap(offset, bytes, stored, self.member.end) {
            self.has_dirty_padding |= padding.iter().any(|&byte| byte != 0);
        }
    }

    pub(super) fn verdict(self) -> Option<String> {
        if let Some(what) = disagreement(self.row, &self.member) {
            return Some(what);
        }
        let Self { md5, known_md5, .. } = self;
        let size = self.member.header.size;
        let found = || known_md5.unwrap_or_else(|| md5.finish(size));
        if self.row.md5.is_some_and(|expected| found() != expected) {
            return Some("its content does not have the MD5 in the index".to_owned());
        }
        self.has_dirty_padding
            .then(|| "its padding is not zeros".to_owned())
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
