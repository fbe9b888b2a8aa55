//! `check`: reads every byte of the volumes once and says what is not as it was written.
//!
//! ```text
//!   a volume   | member | member | ... | trailer |     every byte belongs to one of these:
//!                header: its own checksum, and what the index says
//!                content: the MD5 in the index          padding, trailer: zeros
//! ```
//! Headers that stook wrote carry a CRC of all their bytes. Those of other writers do not, so for a
//! volume of theirs the MD5 of the whole volume is taken in the same read, where the index has one.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::{ControlFlow, RangeInclusive};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};

use stook_index::{AsOf, Index, IndexError, Row, RowId, RowRef, Selection, Volume, VolumeId};
use stook_pool::{Output, Weight, ordered};
use stook_sys::metadata;
use stook_timers::scope;
use stook_tree::Pattern;
use stook_volume::{BLOCK, HeaderCheck, Member, RECORD, Segment};

use crate::ArchiveError;
use crate::batch::{ContentMd5, RowBatch, Volumes, Window, disagreement, for_each_batch};
use crate::extract::{is_match, require_matches};
use crate::folder::Folder;
use crate::hasher::VolumeHasher;
use crate::observer::{Damage, Observer, Tally};
use crate::plan::BATCH_BYTES;

/// How to check.
#[derive(Debug, Clone)]
pub struct CheckOptions {
    /// Check only these members; nothing means everything, with all that is between the members.
    pub patterns: Vec<Pattern>,
    /// Take the MD5 of every whole volume.
    pub whole_volumes: bool,
    /// Worker threads.
    pub jobs: usize,
}

impl Default for CheckOptions {
    fn default() -> Self {
        Self {
            patterns: Vec::new(),
            whole_volumes: false,
            jobs: stook_sys::available_cpus(),
        }
    }
}

/// What a `check` found.
#[derive(Debug, Clone, Default)]
pub struct CheckReport {
    /// Members checked.
    pub members: u64,
    /// Bytes of content in them.
    pub bytes: u64,
    /// Volumes read.
    pub volumes: u64,
    /// Volumes whose MD5 was taken and compared.
    pub volume_md5s: u64,
    /// Damages, each told to the observer.
    pub damages: u64,
}

/// Buffers that may wait for the MD5 of a volume.
const BUDGET_BYTES: usize = 64 << 20;

/// Members of a section at most.
const SECTION_ROWS: usize = 2048;

/// Checks an archive.
///
/// # Errors
/// `NoMatch` if a pattern matches nothing, `Index` if the index cannot be read, `Interrupted`. Damage is
/// no error: it is told to the observer and counted.
pub fn check(
    archive: &Path,
    options: &CheckOptions,
    observer: &dyn Observer,
) -> Result<CheckReport, ArchiveError> {
    let folder = Folder::new(archive);
    let mut index = folder.open_index()?;
    let checker = Checker {
        volumes: Volumes::new(&folder),
        observer: Tally::new(observer),
        members: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
    };
    let mut report = CheckReport::default();
    if options.patterns.is_empty() {
        check_volumes(&folder, &mut index, &checker, options, &mut report)?;
    } else {
        check_members(&folder, &mut index, &checker, options)?;
    }
    if observer.is_interrupted() {
        return Err(ArchiveError::Interrupted);
    }
    report.members = checker.members.into_inner();
    report.bytes = checker.bytes.into_inner();
    report.damages = checker.observer.damages();
    Ok(report)
}

fn check_members(
    folder: &Folder,
    index: &mut Index,
    checker: &Checker<'_>,
    options: &CheckOptions,
) -> Result<(), ArchiveError> {
    let matched: Vec<AtomicBool> = options
        .patterns
        .iter()
        .map(|_| AtomicBool::new(false))
        .collect();
    let matches = |row: &RowRef<'_>| is_match(&options.patterns, &matched, row.name);
    let selection = Selection::all_versions(index, AsOf::Now, &matches)?;
    require_matches(folder, &options.patterns, &matched)?;
    checker
        .observer
        .phase("check", Some(selection.len()), Some(selection.bytes()));
    let _scope = scope!("check");
    for_each_batch(index, &selection, options.jobs, |batch| {
        checker.check_batch(&batch);
    })
}

fn check_volumes(
    folder: &Folder,
    index: &mut Index,
    checker: &Checker<'_>,
    options: &CheckOptions,
    report: &mut CheckReport,
) -> Result<(), ArchiveError> {
    let known = KnownVolumes::read(folder, index)?;
    checker
        .observer
        .phase("check", Some(known.rows), Some(known.bytes));
    let _scope = scope!("check");
    for volume in known.volumes.values() {
        if checker.observer.is_interrupted() {
            break;
        }
        let is_whole = checker.check_volume(index, volume, options)?;
        report.volumes += 1;
        report.volume_md5s += u64::from(is_whole);
    }
    for id in &known.strangers {
        checker.observer.noted(&format!(
            "{id} is not in the index; `stook reindex` would add it"
        ));
    }
    Ok(())
}

/// A volume that the index speaks of.
struct KnownVolume {
    id: VolumeId,
    /// Its rows in `tars`.
    records: Vec<Volume>,
    /// First and last row of a member in it; other volumes may have rows in between.
    rows: RangeInclusive<RowId>,
}

/// The volumes that the index speaks of, and those in the folder that it does not.
struct KnownVolumes {
    volumes: BTreeMap<VolumeId, KnownVolume>,
    strangers: Vec<VolumeId>,
    rows: u64,
    /// Bytes of content in all rows.
    bytes: u64,
}

impl KnownVolumes {
    fn read(folder: &Folder, index: &Index) -> Result<Self, ArchiveError> {
        let mut volumes = BTreeMap::new();
        for record in index.volume_records()? {
            known_volume(&mut volumes, record.id, RowId(i64::MAX))
                .records
                .push(record);
        }
        let (mut rows, mut bytes) = (0, 0);
        index.rows(|row| {
            rows += 1;
            bytes = u64::saturating_add(bytes, row.size);
            let volume = known_volume(&mut volumes, row.volume, row.id);
            volume.rows = (*volume.rows.start()).min(row.id)..=row.id;
            ControlFlow::Continue(())
        })?;
        let mut strangers = folder.volumes()?;
        strangers.retain(|id| !volumes.contains_key(id));
        Ok(Self {
            volumes,
            strangers,
            rows,
            bytes,
        })
    }
}

fn known_volume(
    volumes: &mut BTreeMap<VolumeId, KnownVolume>,
    id: VolumeId,
    first: RowId,
) -> &mut KnownVolume {
    volumes.entry(id).or_insert_with(|| KnownVolume {
        id,
        records: Vec::new(),
        rows: first..=RowId(0),
    })
}

/// A stretch of a volume: some members, from the first one up to where the next section begins.
struct Section {
    start: u64,
    end: u64,
    rows: Vec<Row>,
    is_last: bool,
}

/// Bytes that were checked, on their way to the MD5 of the volume.
struct Checked(Vec<u8>);

impl Weight for Checked {
    fn weight(&self) -> usize {
        self.0.len()
    }
}

struct Checker<'a> {
    volumes: Volumes<'a>,
    observer: Tally<'a>,
    members: AtomicU64,
    bytes: AtomicU64,
}

/// One volume while it is read.
struct Reading<'a> {
    checker: &'a Checker<'a>,
    id: VolumeId,
    file: &'a File,
    /// The volume is as long as the index says.
    has_its_length: bool,
}

impl Checker<'_> {
    fn check_batch(&self, batch: &RowBatch) {
        let file = match self.volumes.get(batch.volume) {
            Ok(file) => file,
            Err(error) => {
                let what = stook_sys::cause(&error.source);
                return self.damaged(
                    batch.volume,
                    None,
                    None,
                    format!("cannot {} the volume: {what}", error.operation),
                );
            }
        };
        let reading = Reading {
            checker: self,
            id: batch.volume,
            file: &file,
            has_its_length: false,
        };
        match Window::of(batch, &file) {
            Ok(window) => {
                for row in &batch.rows {
                    reading.check_row(row, &window);
                }
            }
            Err(error) => {
                reading.unreadable(batch.rows.first().map_or(0, |row| row.offset), &error);
            }
        }
    }

    /// Returns true if the MD5 of the whole volume was taken.
    fn check_volume(
        &self,
        index: &mut Index,
        volume: &KnownVolume,
        options: &CheckOptions,
    ) -> Result<bool, ArchiveError> {
        let id = volume.id;
        let opened = self.volumes.get(id).map(|file| (metadata_len(&file), file));
        let (len, file) = match opened {
            Ok((Ok(len), file)) => (len, file),
            Ok((Err(error), _)) => {
                self.damaged(
                    id,
                    None,
                    None,
                    format!("cannot look at the volume: {}", stook_sys::cause(&error)),
                );
                return Ok(false);
            }
            Err(error) if error.is_not_found() => {
                self.damaged(id, None, None, "the volume is missing".to_owned());
                return Ok(false);
            }
            Err(error) => {
                self.damaged(
                    id,
                    None,
                    None,
                    format!(
                        "cannot open the volume: {}",
                        stook_sys::cause(&error.source)
                    ),
                );
                return Ok(false);
            }
        };
        let record = self.matching_record(id, &volume.records, len);
        let reading = Reading {
            checker: self,
            id,
            file: &file,
            has_its_length: record.is_some(),
        };
        let expected = record
            .and_then(|record| record.md5)
            .filter(|_| options.whole_volumes || reading.needs_md5());
        let hasher = expected
            .and_then(|_| VolumeHasher::start(None))
            .unwrap_or_else(VolumeHasher::none);
        reading.check_sections(index, volume, len, options.jobs, &hasher)?;
        let found = hasher.finish();
        if found.is_some() && found != expected && !self.observer.is_interrupted() {
            self.damaged(
                id,
                None,
                None,
                "the MD5 of the whole volume is not the one in the index".to_owned(),
            );
        }
        if options.whole_volumes && expected.is_none() {
            self.observer
                .noted(&format!("{id} has no MD5 in the index"));
        }
        Ok(expected.is_some())
    }

    /// Of several rows for one volume, as zstash may leave them, any one may be right.
    fn matching_record(&self, id: VolumeId, records: &[Volume], len: u64) -> Option<Volume> {
        let matching = records.iter().rev().find(|record| record.size == len);
        match (matching, records.last()) {
            (Some(matching), Some(newest)) if matching != newest => {
                self.observer.noted(&format!(
                    "{id} has several rows in `tars`, and the newest one is wrong"
                ));
            }
            (None, Some(newest)) => {
                let what = format!("the volume has {len} bytes, the index says {}", newest.size);
                self.damaged(id, None, None, what);
            }
            _ => {}
        }
        matching.copied()
    }

    fn damaged(&self, volume: VolumeId, offset: Option<u64>, member: Option<&[u8]>, what: String) {
        self.observer.damaged(&Damage {
            volume,
            offset,
            member: member.map(<[u8]>::to_vec),
            what,
        });
    }
}

fn metadata_len(file: &File) -> io::Result<u64> {
    Ok(metadata(file)?.size)
}

impl Reading<'_> {
    /// Headers without a CRC can hide a flipped bit; the first member tells who wrote the volume.
    fn needs_md5(&self) -> bool {
        let first = Window::read(self.file, 0, 4 * BLOCK)
            .and_then(|window| window.member(0).map_err(io::Error::other));
        !first.is_ok_and(|member| member.checksum == HeaderCheck::Verified)
    }

    fn check_sections(
        &self,
        index: &mut Index,
        volume: &KnownVolume,
        len: u64,
        jobs: usize,
        hasher: &VolumeHasher,
    ) -> Result<(), ArchiveError> {
        let (sender, receiver) = sync_channel(jobs * 2);
        std::thread::scope(|scope| {
            let producer = scope.spawn(move || send_sections(index, volume, len, &sender));
            let work = |section: Section, output: &mut Output<'_, Checked>| {
                let _scope = scope!("section");
                self.check_section(&section, hasher.is_running().then_some(output));
            };
            ordered(
                jobs,
                BUDGET_BYTES,
                receiver.into_iter(),
                work,
                |Checked(bytes)| {
                    hasher.update(bytes);
                    Ok::<(), ArchiveError>(())
                },
            )?;
            producer
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            Ok(())
        })
    }

    fn check_section(&self, section: &Section, output: Option<&mut Output<'_, Checked>>) {
        if self.checker.observer.is_interrupted() {
            return;
        }
        if section.end - section.start > 4 * BATCH_BYTES {
            return self.check_large(section, output);
        }
        match Window::read(self.file, section.start, section.end - section.start) {
            Ok(window) => {
                let end = self.check_rows(section, &window);
                self.check_rest(section, end, window.bytes());
                if let Some(output) = output {
                    output.send(Checked(window.into_bytes()));
                }
            }
            Err(error) => self.unreadable(section.start, &error),
        }
    }

    /// A section with a large member: its bytes are read once, slice by slice.
    fn check_large(&self, section: &Section, mut output: Option<&mut Output<'_, Checked>>) {
        let mut slices = Vec::new();
        for row in &section.rows {
            match Window::read(self.file, row.offset, 64 << 10)
                .and_then(|window| window.member(row.offset).map_err(io::Error::other))
            {
                Ok(member) => slices.push(MemberCheck::new(row, member)),
                Err(error) => self.row_damaged(row, stook_sys::cause(&error)),
            }
        }
        let mut rest = RestCheck::new(section.rows.first().map_or(section.start, |_| u64::MAX));
        if let Some(last) = slices.last() {
            rest = RestCheck::new(last.member.end);
        }
        let mut position = section.start;
        while position < section.end {
            let len = (section.end - position).min(BATCH_BYTES);
            let window = match Window::read(self.file, position, len) {
                Ok(window) => window,
                Err(error) => return self.unreadable(position, &error),
            };
            for slice in &mut slices {
                slice.take(position, window.bytes());
            }
            rest.take(position, window.bytes());
            if let Some(output) = &mut output {
                output.send(Checked(window.into_bytes()));
            }
            position += len;
        }
        let end = self.finish_members(section, slices);
        self.judge_rest(section, end, rest.first_other);
    }

    fn finish_members(&self, section: &Section, members: Vec<MemberCheck<'_>>) -> Option<u64> {
        let mut expected = Some(section.start);
        for check in members {
            self.judge_place(check.row, expected);
            expected = Some(check.member.end);
            self.judge(check);
        }
        expected
    }

    /// Checks the members of a section; returns where the last one ends, if that is known.
    fn check_rows(&self, section: &Section, window: &Window<'_>) -> Option<u64> {
        let mut expected = Some(section.start);
        for row in &section.rows {
            self.judge_place(row, expected);
            expected = self.check_row(row, window);
        }
        expected
    }

    /// Checks one member; returns where it ends.
    fn check_row(&self, row: &Row, window: &Window<'_>) -> Option<u64> {
        let member = match window.member(row.offset) {
            Ok(member) => member,
            Err(what) => {
                self.row_damaged(row, what);
                return None;
            }
        };
        let end = member.end;
        let mut check = MemberCheck::new(row, member);
        let content = check.member.data_offset..end;
        let result = window.stretch(content.start, content.end, |offset, bytes| {
            check.take(offset, bytes);
        });
        match result {
            Ok(()) => self.judge(check),
            Err(error) => self.row_damaged(row, stook_sys::cause(&error)),
        }
        Some(end)
    }

    fn judge_place(&self, row: &Row, expected: Option<u64>) {
        match expected {
            Some(expected) if expected < row.offset => self.stray(expected, row.offset),
            Some(expected) if expected > row.offset => {
                self.row_damaged(row, "it overlaps the member before".to_owned());
            }
            _ => {}
        }
    }

    fn judge(&self, check: MemberCheck<'_>) {
        let row = check.row;
        self.checker.members.fetch_add(1, Ordering::Relaxed);
        self.checker.bytes.fetch_add(row.size, Ordering::Relaxed);
        self.checker.observer.advanced(1, row.size);
        match check.verdict() {
            Some(what) => self.row_damaged(row, what),
            None => self.checker.observer.done(&row.name),
        }
    }

    /// What follows the last member of a section: nothing, or the trailer.
    fn check_rest(&self, section: &Section, end: Option<u64>, bytes: &[u8]) {
        let mut rest = RestCheck::new(end.unwrap_or(section.end));
        rest.take(section.start, bytes);
        self.judge_rest(section, end, rest.first_other);
    }

    fn judge_rest(&self, section: &Section, end: Option<u64>, first_other: Option<u64>) {
        let Some(end) = end else { return };
        if end > section.end {
            let what = "the volume ends, or the next member begins, before the last member does";
            return self
                .checker
                .damaged(self.id, Some(section.end), None, what.to_owned());
        }
        if !section.is_last {
            if end < section.end {
                self.stray(end, section.end);
            }
            return;
        }
        if let Some(offset) = first_other {
            let what = "after the last member there is something other than zeros";
            return self
                .checker
                .damaged(self.id, Some(offset), None, what.to_owned());
        }
        // A volume of zstash with a file that shrank is no whole number of records.
        let is_whole = self.has_its_length || section.end.is_multiple_of(RECORD);
        if section.end - end < 2 * BLOCK || !is_whole {
            let what = format!(
                "the volume is cut off: {} bytes follow the last member",
                section.end - end
            );
            self.checker.damaged(self.id, Some(end), None, what);
        }
    }

    fn stray(&self, start: u64, end: u64) {
        // A row may claim a place far behind the end of the volume.
        let end = metadata_len(self.file).map_or(end, |len| end.min(len));
        if end <= start {
            return;
        }
        let what = format!(
            "{} bytes belong to no member that the index knows",
            end - start
        );
        self.checker.damaged(self.id, Some(start), None, what);
    }

    fn row_damaged(&self, row: &Row, what: String) {
        self.checker
            .damaged(self.id, Some(row.offset), Some(&row.name), what);
    }

    fn unreadable(&self, offset: u64, error: &io::Error) {
        self.checker.damaged(
            self.id,
            Some(offset),
            None,
            format!("cannot read: {}", stook_sys::cause(error)),
        );
    }
}

/// Bytes after the last member, as they come by.
struct RestCheck {
    start: u64,
    first_other: Option<u64>,
}

impl RestCheck {
    fn new(start: u64) -> Self {
        Self {
            start,
            first_other: None,
        }
    }

    fn take(&mut self, offset: u64, bytes: &[u8]) {
        if let Some((start, bytes)) = overlap(offset, bytes, self.start, u64::MAX) {
            let found = bytes.iter().position(|&byte| byte != 0);
            self.first_other = self.first_other.or(found.map(|at| start + at as u64));
        }
    }
}

/// The content and the padding of one member, as its bytes come by.
struct MemberCheck<'a> {
    row: &'a Row,
    member: Member,
    segments: Vec<Segment>,
    md5: ContentMd5,
    has_dirty_padding: bool,
}

impl<'a> MemberCheck<'a> {
    fn new(row: &'a Row, member: Member) -> Self {
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
            has_dirty_padding: false,
        }
    }

    fn take(&mut self, offset: u64, bytes: &[u8]) {
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

    fn verdict(self) -> Option<String> {
        if let Some(what) = disagreement(self.row, &self.member) {
            return Some(what);
        }
        if self
            .row
            .md5
            .is_some_and(|expected| self.md5.finish(self.member.header.size) != expected)
        {
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

/// Sends the rows of a volume in sections that together cover it from its first byte to its last.
fn send_sections(
    index: &Index,
    volume: &KnownVolume,
    len: u64,
    sender: &SyncSender<Section>,
) -> Result<(), IndexError> {
    let mut section = Section {
        start: 0,
        end: len,
        rows: Vec::new(),
        is_last: true,
    };
    let mut is_wanted = true;
    index.rows_of_volume(volume.id, volume.rows.clone(), |row| {
        let is_full =
            row.offset - section.start >= BATCH_BYTES || section.rows.len() >= SECTION_ROWS;
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
    // Nobody left to take it means nobody wants it.
    let _ = sender.send(section);
    Ok(())
}
