//! Members on their way into parts, one volume each.

use std::cell::Cell;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use stook_sys::{
    Context, FileId, FileKind, Links, Owners, create_new_file, open_file, remove_file,
    sync_directory,
};
use stook_volume::{Dialect, Kind, header_len, member_len, trailer_len};

use super::VolumeSplitter;
use super::block_file::{READ_BYTES, bad_file};
use super::directory::PlanDirectory;
use super::member::{Member, PlannedMember, content_len, header_of};
use super::part::{PartHeader, PartReader, PartTotals, PartWriter};
use crate::ArchiveError;
use crate::compress::encoding_of;

/// The members of one volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedPart {
    /// Its file.
    pub path: PathBuf,
    /// Members in it.
    pub members: u64,
    /// Bytes of content in them.
    pub bytes: u64,
    /// Length of the volume in bytes, as far as metadata shows it: attributes make a member longer, holes shorter.
    pub volume_bytes: u64,
    /// True if all its members failed in a part before.
    pub is_retry: bool,
}

impl PlannedPart {
    /// Returns what is in a part, which is read to its end.
    pub(crate) fn read(path: &Path) -> Result<Self, ArchiveError> {
        let file = BufReader::with_capacity(READ_BYTES, open_file(path)?);
        let read = || {
            let mut reader = PartReader::new(file)?;
            let owners = Owners::default();
            while reader.next_piece(&owners)?.is_some() {}
            Ok((reader.header, reader.totals().unwrap_or_default()))
        };
        let (header, totals) = read().map_err(bad_file(path))?;
        Ok(Self {
            path: path.to_owned(),
            members: totals.members,
            bytes: totals.bytes,
            volume_bytes: totals.len + trailer_len(totals.len),
            is_retry: header.is_retry,
        })
    }
}

/// Numbers of parts, ascending, for all writers of one plan.
#[derive(Debug, Clone)]
pub(crate) struct PartNumbers(Rc<Cell<u32>>);

impl PartNumbers {
    pub(crate) fn from(first: u32) -> Self {
        Self(Rc::new(Cell::new(first)))
    }

    /// Returns the number that the next part gets.
    pub(crate) fn next(&self) -> u32 {
        self.0.get()
    }

    fn take(&self) -> u32 {
        let number = self.0.get();
        self.0.set(number.saturating_add(1));
        number
    }
}

/// Writes members into parts, one volume each.
pub(crate) struct PartsWriter<'o> {
    directory: PlanDirectory,
    header: PartHeader,
    numbers: PartNumbers,
    owners: &'o Owners,
    open: Option<OpenPart<'o>>,
    finished: Vec<PlannedPart>,
}

struct OpenPart<'o> {
    path: PathBuf,
    writer: PartWriter<'o, BufWriter<File>>,
    /// In zstash's dialect: first names of files that the volume holds, for hard links.
    names: HashMap<FileId, Vec<u8>>,
}

impl<'o> PartsWriter<'o> {
    pub(crate) fn new(
        directory: &PlanDirectory,
        header: PartHeader,
        numbers: PartNumbers,
        owners: &'o Owners,
    ) -> Self {
        Self {
            directory: directory.clone(),
            header,
            numbers,
            owners,
            open: None,
            finished: Vec::new(),
        }
    }

    /// Adds the next member, to the part that it fits in.
    pub(crate) fn add(&mut self, member: &Member<'_>) -> Result<(), ArchiveError> {
        let planned = member.planned();
        let dialect = self.header.dialect;
        let splitter = VolumeSplitter {
            dialect,
            limit: self.header.limit,
            encoding: encoding_of(self.header.zstd),
        };
        let header = header_of(&planned, self.owners, dialect);
        let len = member_len(&header, dialect);
        let content = content_len(&planned.metadata);
        let mut part = match self.open.take() {
            Some(part) if splitter.fits(part.writer.totals.len, len, content) => part,
            full => {
                self.close(full)?;
                self.begin()?
            }
        };
        let len = part
            .len_as_link(&planned, &self.header, self.owners)
            .unwrap_or(len);
        part.writer
            .add(member, &planned, len)
            .context("write", &part.path)?;
        self.open = Some(part);
        Ok(())
    }

    fn begin(&mut self) -> Result<OpenPart<'o>, ArchiveError> {
        let number = self.numbers.take();
        let path = self.directory.part(number);
        let header = PartHeader {
            number,
            ..self.header
        };
        // One that was written before a kill says nothing.
        remove_file(&path)?;
        let file = BufWriter::new(create_new_file(&path)?);
        let writer = PartWriter::new(file, &header, self.owners).context("write", &path)?;
        Ok(OpenPart {
            path,
            writer,
            names: HashMap::new(),
        })
    }

    fn close(&mut self, part: Option<OpenPart<'o>>) -> Result<(), ArchiveError> {
        let Some(OpenPart { path, writer, .. }) = part else {
            return Ok(());
        };
        let PartTotals {
            members,
            bytes,
            len,
        } = writer.totals;
        let file = writer.finish().context("write", &path)?;
        file.get_ref().sync_all().context("sync", &path)?;
        self.finished.push(PlannedPart {
            path,
            members,
            bytes,
            volume_bytes: len + trailer_len(len),
            is_retry: self.header.is_retry,
        });
        Ok(())
    }

    /// Returns the parts, which are durable.
    pub(crate) fn finish(mut self) -> Result<Vec<PlannedPart>, ArchiveError> {
        let open = self.open.take();
        self.close(open)?;
        sync_directory(self.directory.path())?;
        Ok(self.finished)
    }
}

impl OpenPart<'_> {
    /// zstash writes the second name of a file in a volume with the header of a hard link, and the content after it.
    fn len_as_link(
        &mut self,
        planned: &PlannedMember<'_>,
        part: &PartHeader,
        owners: &Owners,
    ) -> Option<u64> {
        let metadata = &planned.metadata;
        let can_be_link = part.dialect == Dialect::Zstash
            && part.links == Links::Refuse
            && metadata.kind == FileKind::File
            && metadata.links > 1;
        if !can_be_link {
            return None;
        }
        let mut header = header_of(planned, owners, part.dialect);
        let first = self.names.entry(metadata.identity());
        let std::collections::hash_map::Entry::Occupied(first) = first else {
            first.insert_entry(planned.path.clone());
            return None;
        };
        let len = member_len(&header, part.dialect) - header_len(&header, part.dialect);
        header.kind = Kind::HardLink;
        header.target.clone_from(first.get());
        Some(len + header_len(&header, part.dialect))
    }
}
