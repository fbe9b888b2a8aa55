//! One volume while it is checked: cut into sections, each read once by a worker.

use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{SyncSender, sync_channel};

use stook_index::{Index, IndexError, Row, VolumeId};
use stook_pool::{Jobs, Output, Weight};
use stook_timers::scope;
use stook_volume::{BLOCK, HeaderCheck, Member, RECORD, decode};

use super::member::{MemberCheck, RestCheck};
use super::{CheckedVolume, Checker};
use crate::ArchiveError;
use crate::buffers::Buffers;
use crate::cause::Cause;
use crate::hasher::{VolumeHasher, wait_for};
use crate::memory::{budget_bytes, worker_pool};
use crate::observer::Observer;
use crate::read::{BATCH_BYTES, FramedVolume, LoadedRange, VolumeBytes, too_many_holes};
use crate::task::begin_in;

/// Sections that the index is read ahead.
const SECTIONS_AHEAD: usize = 16;

/// Members of a section at most.
const SECTION_ROWS: usize = 2048;

/// Bytes of a compressed file that are read at once for its MD5.
const SLICE_BYTES: usize = 1 << 20;

/// A part of a volume: some members, from the first one up to where the next section begins.
struct Section {
    start: u64,
    end: u64,
    rows: Vec<Row>,
    is_last: bool,
}

impl Weight for Section {
    fn weight(&self) -> usize {
        let len = (self.end - self.start).min(4 * BATCH_BYTES);
        usize::try_from(len).unwrap_or(usize::MAX)
    }
}

/// Bytes that were checked, on their way to the MD5 of the volume.
struct Checked(Vec<u8>);

impl Weight for Checked {
    fn weight(&self) -> usize {
        self.0.len()
    }
}

/// One volume while it is read.
pub(super) struct VolumeCheck<'a> {
    pub(super) checker: &'a Checker<'a>,
    pub(super) id: VolumeId,
    pub(super) volume: &'a dyn VolumeBytes,
    /// The volume is as long as the index says.
    pub(super) has_its_length: bool,
    /// The volume begins in stook's dialect, so every header must have its CRC.
    pub(super) is_stooks: bool,
}

impl VolumeCheck<'_> {
    pub(super) fn check_sections(
        &self,
        index: &mut Index,
        volume: &CheckedVolume,
        len: u64,
        jobs: Jobs,
        hasher: &VolumeHasher,
    ) -> Result<(), ArchiveError> {
        let is_interrupted = || self.checker.observer.is_interrupted();
        let pool = worker_pool("check", jobs).until(&is_interrupted);
        let (sender, receiver) = sync_channel(SECTIONS_AHEAD);
        let work = |section: Section, output: &mut Output<'_, Checked>| {
            let _scope = scope!("section");
            self.check_section(&section, hasher.is_running().then_some(output));
        };
        let consume = |Checked(bytes)| {
            hasher.update(bytes);
            Ok::<(), ArchiveError>(())
        };
        if volume.most_rows() < SECTIONS_AHEAD as u64 {
            // There is at most one section more than rows, so all find room before anyone takes them.
            send_sections(index, volume, (self.volume, len), &sender)?;
            drop(sender);
            let sections: Vec<Section> = receiver.into_iter().collect();
            let pool = pool.at_most(sections.len());
            return pool.ordered(budget_bytes(), sections.into_iter(), work, consume);
        }
        std::thread::scope(|scope| {
            let producer = begin_in(scope, move || {
                send_sections(index, volume, (self.volume, len), &sender)
            })?;
            pool.ordered(budget_bytes(), receiver.into_iter(), work, consume)?;
            producer
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            Ok(())
        })
    }

    fn buffers(&self) -> &Buffers {
        &self.checker.volumes.buffers
    }

    fn check_section(&self, section: &Section, output: Option<&mut Output<'_, Checked>>) {
        if section.end - section.start > 4 * BATCH_BYTES {
            return self.check_large(section, output);
        }
        let len = section.end - section.start;
        match LoadedRange::read(self.volume, self.buffers(), section.start, len) {
            Ok(loaded) => {
                let end = self.check_rows(section, &loaded);
                self.check_rest(section, end, loaded.bytes());
                if let Some(output) = output {
                    output.send(Checked(loaded.into_bytes()));
                }
            }
            Err(error) => self.unreadable(&section.rows, section.start, &error),
        }
    }

    /// A section with a large member: its bytes are read once, slice by slice.
    fn check_large(&self, section: &Section, mut output: Option<&mut Output<'_, Checked>>) {
        let mut members = Vec::new();
        for row in &section.rows {
            match self.header_of(row) {
                Ok(member) => members.push(self.check_of(row, member)),
                Err(cause) => self.row_damaged(row, cause),
            }
        }
        let mut rest = RestCheck::new(section.rows.first().map_or(section.start, |_| u64::MAX));
        if let Some(last) = members.last() {
            rest = RestCheck::new(last.member.end);
        }
        let mut position = section.start;
        while position < section.end && !self.checker.observer.is_interrupted() {
            let len = (section.end - position).min(BATCH_BYTES);
            let loaded = match LoadedRange::read(self.volume, self.buffers(), position, len) {
                Ok(loaded) => loaded,
                Err(error) => return self.unreadable(&section.rows, position, &error),
            };
            let mut taken = members
                .iter_mut()
                .map(|member| member.take(position, loaded.bytes()));
            if taken.any(|taken| taken.is_err()) {
                return;
            }
            rest.take(position, loaded.bytes());
            if let Some(output) = &mut output {
                output.send(Checked(loaded.into_bytes()));
            }
            position += len;
        }
        if self.checker.observer.is_interrupted() {
            return;
        }
        let end = self.finish_members(section, members);
        self.report_rest(section, end, rest.first_other);
    }

    fn header_of(&self, row: &Row) -> Result<Member, Cause> {
        let member = decode(self.volume, row.offset)?;
        member.ok_or(Cause::NoMember)
    }

    fn finish_members(&self, section: &Section, members: Vec<MemberCheck<'_>>) -> Option<u64> {
        let mut expected = Some(section.start);
        for check in members {
            self.check_place(check.row, expected);
            expected = Some(check.member.end);
            self.report(check);
        }
        expected
    }

    /// Checks the members of a section; returns where the last one ends, if that is known.
    fn check_rows(&self, section: &Section, loaded: &LoadedRange<'_>) -> Option<u64> {
        let mut expected = Some(section.start);
        for (row, found) in read_members(&section.rows, loaded) {
            self.check_place(row, expected);
            expected = self.check_member(row, found, loaded);
        }
        expected
    }

    /// Checks one member; returns where it ends.
    pub(super) fn check_member(
        &self,
        row: &Row,
        found: Result<ReadMember, Cause>,
        loaded: &LoadedRange<'_>,
    ) -> Option<u64> {
        let ReadMember { member, md5 } = match found {
            Ok(found) => found,
            Err(cause) => {
                self.row_damaged(row, cause);
                return None;
            }
        };
        let end = member.end;
        let mut check = self.check_of(row, member);
        let mut content = check.member.data_offset..end;
        if let Some(md5) = md5 {
            content.start += check.member.data_len;
            check.know(md5);
        }
        let len = content.end.saturating_sub(content.start);
        let result = loaded.slices(content.start, len, |offset, bytes| {
            check.take(offset, bytes).map_err(io::Error::from)
        });
        match result {
            Ok(()) => self.report(check),
            Err(_) if self.checker.observer.is_interrupted() => {}
            Err(error) => self.row_damaged(row, error.into()),
        }
        Some(end)
    }

    /// Begins the check of a member, unless it claims so many holes that its content is not verified.
    fn check_of<'r>(&'r self, row: &'r Row, member: Member) -> MemberCheck<'r> {
        let why = too_many_holes(&member, self.checker.max_hole_bytes);
        let mut check = MemberCheck::new(row, member, &self.checker.observer);
        if let Some(why) = why {
            check.do_not_hash();
            self.checker.not_verified(self.id, &row.name, why);
        }
        check
    }

    fn check_place(&self, row: &Row, expected: Option<u64>) {
        match expected {
            Some(expected) if expected < row.offset => self.stray(expected, row.offset),
            Some(expected) if expected > row.offset => {
                self.row_damaged(row, Cause::Overlap);
            }
            _ => {}
        }
    }

    /// Reports what is wrong with a member.
    fn report(&self, check: MemberCheck<'_>) {
        let row = check.row;
        let is_crc_lost = self.is_stooks && check.member.checksum == HeaderCheck::Absent;
        let is_verified = check.is_verified();
        let Ok(damage) = check.finish() else {
            // Nobody waits for it any more.
            return;
        };
        self.checker.observer.advanced(1, row.size);
        if is_verified {
            self.checker.members.fetch_add(1, Ordering::Relaxed);
            self.checker.bytes.fetch_add(row.size, Ordering::Relaxed);
        }
        if is_crc_lost {
            self.row_damaged(row, Cause::NoHeaderCrc);
        }
        match damage {
            Some(cause) => self.row_damaged(row, cause),
            None if is_verified => self.checker.observer.done(&row.name),
            None => {}
        }
    }

    /// What follows the last member of a section: nothing, or the trailer.
    fn check_rest(&self, section: &Section, end: Option<u64>, bytes: &[u8]) {
        let mut rest = RestCheck::new(end.unwrap_or(section.end));
        rest.take(section.start, bytes);
        self.report_rest(section, end, rest.first_other);
    }

    fn report_rest(&self, section: &Section, end: Option<u64>, first_other: Option<u64>) {
        let Some(end) = end else { return };
        if end > section.end {
            return self.damaged(section.end, Cause::EndsEarly);
        }
        if !section.is_last {
            if end < section.end {
                self.stray(end, section.end);
            }
            return;
        }
        if let Some(offset) = first_other {
            return self.damaged(offset, Cause::NotZeros);
        }
        // A volume of zstash with a file that shrank is no whole number of records.
        let is_whole = self.has_its_length || section.end.is_multiple_of(RECORD);
        if section.end - end < 2 * BLOCK || !is_whole {
            self.damaged(end, Cause::CutOff(section.end - end));
        }
    }

    fn stray(&self, start: u64, end: u64) {
        // A row may claim a place far behind the end of the volume.
        let end = self.volume.len().map_or(end, |len| end.min(len));
        if end <= start {
            return;
        }
        self.damaged(start, Cause::Stray(end - start));
    }

    fn damaged(&self, offset: u64, cause: Cause) {
        self.checker.damaged(self.id, Some(offset), None, cause);
    }

    fn row_damaged(&self, row: &Row, cause: Cause) {
        self.checker
            .damaged(self.id, Some(row.offset), Some(&row.name), cause);
    }

    /// Names every member of a frame that is damaged; of other bytes the place.
    pub(super) fn unreadable(&self, rows: &[Row], offset: u64, error: &io::Error) {
        let cause = Cause::unreadable(error);
        if rows.is_empty() || !matches!(cause, Cause::BadFrame { .. }) {
            return self.damaged(offset, cause);
        }
        for row in rows {
            self.row_damaged(row, cause.clone());
        }
    }

    /// Checks a compressed volume: what says where its frames lie, and the MD5 of its file, if one is wanted, while `members`
    /// checks what is in them. Returns the MD5.
    pub(super) fn check_framed(
        &self,
        volume: &FramedVolume,
        hasher: VolumeHasher,
        members: impl FnOnce() -> Result<(), ArchiveError>,
    ) -> Result<Option<[u8; 16]>, ArchiveError> {
        match volume.seek_table_fault() {
            Ok(None) => {}
            Ok(Some(fault)) => self.checker.damaged(self.id, None, None, fault.into()),
            Err(error) => self
                .checker
                .damaged(self.id, None, None, Cause::unreadable(&error)),
        }
        std::thread::scope(|scope| {
            let whole = begin_in(scope, || self.hash_file(&**volume.file(), hasher))?;
            members()?;
            let md5 = whole.join();
            Ok(md5.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })
    }

    /// None if no MD5 is wanted, or the volume cannot be read to its end: the members in it say so.
    fn hash_file(&self, file: &dyn VolumeBytes, hasher: VolumeHasher) -> Option<[u8; 16]> {
        let mut offset = 0;
        while hasher.is_running() && !self.checker.observer.is_interrupted() {
            let mut bytes = self.buffers().take(SLICE_BYTES);
            let count = file.append_at(&mut bytes, SLICE_BYTES, offset).ok()?;
            if count == 0 {
                return wait_for(hasher.finish());
            }
            offset += count as u64;
            hasher.update(bytes);
        }
        None
    }
}

/// A member as it was read, with the MD5 of its content if that was taken together with others.
pub(super) struct ReadMember {
    member: Member,
    md5: Option<[u8; 16]>,
}

/// Reads the members of some rows.
pub(super) fn read_members<'r>(
    rows: &'r [Row],
    loaded: &LoadedRange<'_>,
) -> impl Iterator<Item = (&'r Row, Result<ReadMember, Cause>)> + use<'r> {
    let members = rows.iter().map(|row| loaded.member(row.offset));
    let members: Vec<Result<Member, Cause>> = members.collect();
    let md5s = loaded.md5s(members.iter().map(|member| member.as_ref().ok()));
    let found = members.into_iter().zip(md5s);
    let found = found.map(|(member, md5)| member.map(|member| ReadMember { member, md5 }));
    rows.iter().zip(found)
}

/// Sends the rows of a volume in sections that together cover it from its first byte to its last.
fn send_sections(
    index: &Index,
    volume: &CheckedVolume,
    (bytes, len): (&dyn VolumeBytes, u64),
    sender: &SyncSender<Section>,
) -> Result<(), IndexError> {
    let begins_frame = |offset| {
        bytes
            .frame_at(offset)
            .is_some_and(|frame| frame.start == offset)
    };
    let is_compressed = bytes.as_framed().is_some();
    let mut section = Section {
        start: 0,
        end: len,
        rows: Vec::new(),
        is_last: true,
    };
    let mut is_wanted = true;
    index.rows_of_volume(volume.id, volume.rows.clone(), |row| {
        let is_full = if is_compressed {
            // So that a damaged frame is that of its members alone.
            begins_frame(row.offset)
        } else {
            row.offset - section.start >= BATCH_BYTES || section.rows.len() >= SECTION_ROWS
        };
        // A row past the end cannot begin a section; its own check names it.
        if is_full && !section.rows.is_empty() && row.offset > section.start && row.offset < len {
            let next = Section {
                start: row.offset,
                end: len,
                rows: Vec::new(),
                is_last: true,
            };
            let full = std::mem::replace(&mut section, next);
            is_wanted = sender
                .send(Section {
                    end: row.offset,
                    is_last: false,
                    ..full
                })
                .is_ok();
        }
        section.rows.push(row.to_row());
        if is_wanted {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    })?;
    let last = len.checked_sub(1).and_then(|last| bytes.frame_at(last));
    if let Some(frame) = last
        && section
            .rows
            .last()
            .is_some_and(|row| row.offset < frame.start)
        && section.start < frame.start
    {
        // The end marker is in a frame of its own.
        let next = Section {
            start: frame.start,
            end: len,
            rows: Vec::new(),
            is_last: true,
        };
        let members = std::mem::replace(&mut section, next);
        let _ = sender.send(Section {
            end: frame.start,
            is_last: false,
            ..members
        });
    }
    // Nobody left to take it means nobody wants it.
    let _ = sender.send(section);
    Ok(())
}
