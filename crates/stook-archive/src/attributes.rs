//! What the index keeps of headers, so that `stat` needs no volume: from the headers that a run writes, and, where another
//! program has written them, from the volumes.

use std::ops::{ControlFlow, RangeInclusive};
use std::sync::{Arc, Mutex};

use stook_index::{
    Attributes, AttributesEncoder, Index, MemberKind, NewBlock, RowId, VolumeId, VolumeRows,
};
use stook_pool::Jobs;
use stook_timers::scope;
use stook_volume::{Dialect, Header, Kind, Member, decode};

use crate::ArchiveError;
use crate::archive::Archive;
use crate::folder::Folder;
use crate::memory::worker_pool;
use crate::observer::{CountingObserver, Observer, require_going_on};
use crate::plan::refuse_planned;
use crate::read::{LocalFolder, SkipBadPages, VolumeBytes, open_volume};

/// Rows whose headers are read side by side.
const ROWS: usize = 16_384;

/// Rows for one worker at a time.
const ROWS_OF_A_WORKER: usize = 128;

/// The header of a member that is on its way to a volume, as far as the index keeps it.
#[derive(Debug, Default)]
pub(crate) struct HeaderFacts {
    header: Header,
    is_sparse: bool,
    has_xattrs: bool,
    /// From the first block to the content.
    len: u64,
}

impl HeaderFacts {
    /// Keeps what counts of a header that was written in so many bytes.
    pub(crate) fn new(mut header: Header, len: usize, dialect: Dialect) -> Self {
        let xattrs = std::mem::take(&mut header.xattrs);
        let sparse = header.sparse.take();
        header.name = Vec::new();
        let is_whole = dialect == Dialect::Stook;
        Self {
            header,
            is_sparse: is_whole && sparse.is_some(),
            has_xattrs: is_whole && !xattrs.is_empty(),
            len: len as u64,
        }
    }

    /// The member became a further name of a file that is in the volume already.
    pub(crate) fn become_hard_link(&mut self, target: &[u8], len: usize) {
        self.header.kind = Kind::HardLink;
        self.header.target = target.to_vec();
        self.len = len as u64;
    }

    pub(crate) fn attributes(&self, offset: u64) -> Attributes<'_> {
        Attributes {
            is_sparse: self.is_sparse,
            has_xattrs: self.has_xattrs,
            ..attributes_of(&self.header, offset, offset + self.len)
        }
    }
}

fn attributes_of(header: &Header, offset: u64, content: u64) -> Attributes<'_> {
    Attributes {
        offset,
        content,
        kind: kind_of(header.kind),
        mode: header.mode,
        uid: header.uid,
        gid: header.gid,
        uname: &header.uname,
        gname: &header.gname,
        mtime: header.mtime,
        device: header.device,
        target: &header.target,
        link: header.link.as_deref(),
        is_sparse: header.sparse.is_some(),
        has_xattrs: !header.xattrs.is_empty(),
    }
}

/// Returns the attributes of a member as its volume has it.
pub(crate) fn attributes_of_member(member: &Member) -> Attributes<'_> {
    attributes_of(&member.header, member.offset, member.data_offset)
}

fn kind_of(kind: Kind) -> MemberKind {
    match kind {
        Kind::File => MemberKind::File,
        Kind::HardLink => MemberKind::HardLink,
        Kind::Symlink => MemberKind::Symlink,
        Kind::CharDevice => MemberKind::CharDevice,
        Kind::BlockDevice => MemberKind::BlockDevice,
        Kind::Directory => MemberKind::Directory,
        Kind::Fifo => MemberKind::Fifo,
    }
}

/// What [`fill_attributes`] did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AttributesReport {
    /// Volumes whose headers were read.
    pub volumes: u64,
    /// Members whose attributes are in the index now, and were not before.
    pub members: u64,
    /// Members whose attributes are not, because no header with their name is where the index says; reading them fails.
    pub unreadable: u64,
    /// Volumes that are not here, or cannot be opened.
    pub missing_volumes: u64,
}

/// Adds to the index of an archive what headers say of members, where it is missing: for rows that zstash wrote, or a stook
/// before format 2, and for blocks that are damaged. Nothing else in the index changes, ids of rows neither.
///
/// # Errors
/// `Index` if the index cannot be read or written, `Locked` if another process writes, `Planned`, `Interrupted`. What was done up to then
/// stays.
///
/// # Cost
/// A pass over all rows of the index for each volume, and a read of a few blocks for each member without attributes.
pub fn fill_attributes(
    archive: &mut Archive,
    jobs: Jobs,
    observer: &dyn Observer,
) -> Result<AttributesReport, ArchiveError> {
    archive.set_interrupt(observer)?;
    let folder = archive.folder();
    let observer = CountingObserver::new(observer);
    let _lock = folder.lock()?;
    let mut index = folder.open_index_to_write()?;
    refuse_planned(folder.path(), &index)?;
    let volumes = index.rows_by_volume()?;
    Filling {
        folder,
        jobs,
        observer: &observer,
    }
    .fill(&mut index, &volumes)
}

/// As [`fill_attributes`], for volumes of which the index has no attributes at all: what a write looks for.
pub(crate) fn fill_new_volumes(
    folder: &Folder,
    index: &mut Index,
    jobs: Jobs,
    observer: &CountingObserver<'_>,
) -> Result<AttributesReport, ArchiveError> {
    let _scope = scope!("fill attributes");
    let volumes = index.volumes_without_attributes()?;
    Filling {
        folder,
        jobs,
        observer,
    }
    .fill(index, &volumes)
}

struct Filling<'a> {
    folder: &'a Folder,
    jobs: Jobs,
    observer: &'a CountingObserver<'a>,
}

/// A row without attributes.
struct Wanted {
    name: Vec<u8>,
    offset: u64,
    /// Members with attributes lie between this one and the one before.
    is_apart: bool,
}

impl Filling<'_> {
    fn fill(
        &self,
        index: &mut Index,
        volumes: &VolumeRows,
    ) -> Result<AttributesReport, ArchiveError> {
        let mut report = AttributesReport::default();
        if volumes.is_empty() {
            return Ok(report);
        }
        self.observer.phase("attributes", None, None);
        for (&volume, ids) in volumes {
            self.fill_volume(index, volume, ids, &mut report)?;
        }
        Ok(report)
    }

    fn fill_volume(
        &self,
        index: &mut Index,
        volume: VolumeId,
        ids: &RangeInclusive<RowId>,
        report: &mut AttributesReport,
    ) -> Result<(), ArchiveError> {
        require_going_on(self.observer)?;
        // zstash may have moved it to tape.
        let store = LocalFolder::new(self.folder.path());
        let frames = index.frames_of_volume(volume)?;
        let Ok(bytes) = open_volume(&store, volume, frames, &Arc::default()) else {
            report.missing_volumes += 1;
            return Ok(());
        };
        let mut encoder = AttributesEncoder::default();
        let mut wanted = Vec::new();
        let gaps = index.rows_without_attributes(volume, ids, |row, is_apart| {
            wanted.push(Wanted {
                name: row.name.to_vec(),
                offset: row.offset,
                is_apart,
            });
            if wanted.len() == ROWS {
                self.read(&*bytes, &std::mem::take(&mut wanted), &mut encoder);
            }
            if self.observer.is_interrupted() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })?;
        self.read(&*bytes, &wanted, &mut encoder);
        require_going_on(self.observer)?;
        let blocks = encoder.take();
        if gaps.is_empty() {
            return Ok(());
        }
        let members = blocks.iter().map(NewBlock::entries).sum();
        report.volumes += 1;
        report.members += members;
        report.unreadable += gaps.members.saturating_sub(members);
        index.fill_attributes(volume, &gaps, &blocks)?;
        Ok(())
    }

    /// Reads the headers of rows, side by side, and adds them in order.
    fn read(&self, bytes: &dyn VolumeBytes, wanted: &[Wanted], encoder: &mut AttributesEncoder) {
        let chunks: Vec<(usize, &[Wanted])> = wanted.chunks(ROWS_OF_A_WORKER).enumerate().collect();
        let found = Mutex::new(Vec::with_capacity(chunks.len()));
        let is_interrupted = || self.observer.is_interrupted();
        let pool = worker_pool("attributes", self.jobs).until(&is_interrupted);
        pool.for_each(chunks.into_iter(), |(place, chunk)| {
            let members: Vec<Option<Member>> =
                chunk.iter().map(|row| self.member(bytes, row)).collect();
            stook_sys::lock(&found).push((place, members));
        });
        let mut found = stook_sys::lock(&found);
        found.sort_unstable_by_key(|(place, _)| *place);
        let members = found.iter().flat_map(|(_, members)| members);
        for (row, member) in wanted.iter().zip(members) {
            if row.is_apart {
                encoder.end_block();
            }
            match member {
                Some(member) => encoder.push(&attributes_of_member(member)),
                // No block may have a row between its members that it does not know.
                None => encoder.end_block(),
            }
        }
    }

    fn member(&self, bytes: &dyn VolumeBytes, row: &Wanted) -> Option<Member> {
        let reading = SkipBadPages::new(bytes, self.observer);
        let member = decode(&reading, row.offset).ok().flatten()?;
        self.observer.advanced(1, 0);
        (member.header.name == row.name).then_some(member)
    }
}
