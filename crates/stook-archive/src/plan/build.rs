//! `build_part`: the volume of one part, on any machine that sees the tree.

use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use stook_index::VolumeId;
use stook_pool::Jobs;
use stook_sys::{
    Context, Directory, Links, Owners, create_directory, exchange, open_file, utc_now,
};
use stook_timers::scope;

use super::block_file::{READ_BYTES, bad_file};
use super::blocks::PlanFileError;
use super::build_result::{BuildResult, rows_md5, write_result};
use super::damage::ONLY_VOLUME;
use super::install::{Earlier, NewResult, earlier, remove_building};
use super::member::{GroupPiece, Member};
use super::part::{PartHeader, PartReader};
use super::{Batch, OutputStream, VolumeSplitter, batches};
use crate::ArchiveError;
use crate::cause::Since;
use crate::commit_queue::{BuiltPart, Target};
use crate::compress::{Compressor, encoding_of};
use crate::folder::Folder;
use crate::mutex::lock;
use crate::observer::{CountingObserver, Observer};
use crate::pack::Packer;
use crate::session::pack_all;
use crate::survey::open_source;
use crate::writer::{VolumeWriter, WriterOptions};

/// How to build a part. How members are written is in the part.
#[derive(Debug, Clone)]
pub struct BuildOptions {
    /// How many workers.
    pub jobs: Jobs,
    /// What the plan was made with: a part cannot decide by itself that links are followed, which may lead out of the tree.
    pub links: Links,
}

impl Default for BuildOptions {
    fn default() -> Self {
        Self {
            jobs: Jobs::Adaptive,
            links: Links::Refuse,
        }
    }
}

/// What became of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildReport {
    /// The folder with the volume and its rows, for `commit`.
    pub built: PathBuf,
    /// Members written.
    pub members: u64,
    /// Bytes of content in them.
    pub bytes: u64,
    /// Length of the volume in bytes; 0 if nothing was written.
    pub volume_bytes: u64,
    /// Members that failed, each reported to the observer.
    pub failed: u64,
    /// Members that did not fit any more, because files have attributes that the plan did not know of.
    pub overflowed: u64,
}

/// Builds the volume of a part from the tree `source`, in the folder `destination`, which is made: it gets a folder
/// `built-000003` with the volume, its rows, and which members failed. All of it is durable then.
///
/// The destination must be on the file system of the archive, as the plan directory is, where the part lies. A part that
/// was built there already is not built again if all its members were written. If some failed, or the volume is not as long
/// as it was, the whole part is built again, and what was there before stays until that is durable, and for good if it has
/// more members. Several processes may build one part; one result stays.
///
/// Nothing in a part is trusted. Names lead nowhere but below the tree; without [`Links::Follow`] no symbolic link is
/// followed on the way, and a file that is not the one that was planned (another inode, size, kind or time) fails.
///
/// # Errors
/// `BadPlanFile` if the part is damaged or says what no stook writes; `OtherLinks` if it was planned with other
/// [`BuildOptions::links`]; `OtherPlan` or `OtherPart` if what was built before is of another plan or part; `Sys` if the source cannot be opened or the
/// destination not written; `Interrupted`. A member that fails is no error.
///
/// # Cost
/// That of a `create` of its members. Memory does not depend on their number.
pub fn build_part(
    part: &Path,
    source: &Path,
    destination: &Path,
    options: &BuildOptions,
    observer: &dyn Observer,
) -> Result<BuildReport, ArchiveError> {
    let observer = CountingObserver::new(observer);
    let file = BufReader::with_capacity(READ_BYTES, open_file(part)?);
    let reader = PartReader::new(file).map_err(bad_file(part))?;
    let header = reader.header;
    if header.links != options.links {
        return Err(ArchiveError::OtherLinks {
            path: part.to_owned(),
        });
    }
    let source = open_source(source)?;
    create_directory(destination)?;
    if let Earlier::Complete(report) = earlier(destination, &header)? {
        return Ok(report);
    }
    let now = utc_now();
    let process = std::process::id();
    let building = destination.join(format!(
        "building-{:06}-{process}-{}{:09}",
        header.number, now.seconds, now.nanoseconds
    ));
    create_directory(&building)?;
    let builder = Builder {
        part,
        source: &source,
        folder: Folder::new(&building),
        options,
        observer: &observer,
    };
    let installed = builder.build(reader).and_then(|result| {
        write_result(&building, &result)?;
        let new = NewResult {
            building: &building,
            destination,
            header: &header,
            result: &result,
        };
        new.install(exchange, &observer)
    });
    let removed = remove_building(&building);
    let report = installed?;
    removed?;
    Ok(report)
}

struct Builder<'a> {
    part: &'a Path,
    source: &'a Directory,
    folder: Folder,
    options: &'a BuildOptions,
    observer: &'a CountingObserver<'a>,
}

impl Builder<'_> {
    fn build<R: Read + Send>(&self, reader: PartReader<R>) -> Result<BuildResult, ArchiveError> {
        let _scope = scope!("build part");
        let header = reader.header;
        self.observer.phase("build", None, None);
        let root = self.source.own_metadata().context("look at", self.part)?;
        let owners = Owners::default();
        let buffers = Arc::default();
        let compressor = header.zstd.map(Compressor::new);
        let packer = Packer {
            source: self.source,
            owners: &owners,
            observer: self.observer,
            buffers: &buffers,
            dialect: header.dialect,
            compressor: compressor.as_ref(),
            links: header.links,
            xattrs: header.xattrs,
            since: Since::Planned,
            compares_filesystems: root.filesystem == header.filesystem,
            has_noted: AtomicBool::new(false),
        };
        let target = Target::Part(BuiltPart::default());
        let options = writer_options(&header);
        let mut writer = VolumeWriter::new(&self.folder, target, options, self.observer, &buffers)?;
        let id = ONLY_VOLUME.stored_as(options.splitter.encoding);
        writer.expect([(id, 0)].into(), VolumeId::plain(1));
        let failure = Mutex::new(None);
        let members = PartMembers {
            reader,
            owners: &owners,
            piece: None,
            failure: &failure,
        };
        let stream = OutputStream::Volume(id);
        let batches = batches(members, stream, options.splitter.encoding)
            .chain(std::iter::once(Batch::end_of(stream)));
        let packed = pack_all(&packer, &mut writer, self.options.jobs, batches);
        if let Err(error) = &packed {
            writer.abandon(error);
        }
        let failed = lock(&failure).take();
        if let Some(error) = failed {
            return Err(bad_file(self.part)(error));
        }
        packed?;
        let written = writer.written;
        let built = writer.into_built().unwrap_or_default();
        let rows_md5 = match built.volume {
            Some(_) => rows_md5(self.folder.path(), self.observer)?,
            None => None,
        };
        Ok(BuildResult {
            plan: Some(header.plan),
            number: header.number,
            volume: built.volume,
            rows_md5,
            members: written.members,
            bytes: written.bytes,
            failed: self.observer.failures(),
            overflowed: built.overflowed,
        })
    }
}

fn writer_options(header: &PartHeader) -> WriterOptions {
    WriterOptions {
        splitter: VolumeSplitter {
            dialect: header.dialect,
            limit: header.limit,
            encoding: encoding_of(header.zstd),
        },
        takes_md5: header.takes_md5,
        read_only: header.read_only,
        // A part that is interrupted is built anew: rows leave memory when there are many, and for no other reason.
        checkpoint_bytes: u64::MAX,
        checkpoint_interval: Duration::MAX,
    }
}

/// The members of a part, in order, up to the first that cannot be read.
struct PartMembers<'a, R> {
    reader: PartReader<R>,
    owners: &'a Owners,
    /// A piece, and how many of its entries are out.
    piece: Option<(Arc<GroupPiece>, usize)>,
    failure: &'a Mutex<Option<PlanFileError>>,
}

impl<R: Read> Iterator for PartMembers<'_, R> {
    type Item = Member<'static>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((piece, done)) = &mut self.piece {
                if let Some(entry) = piece.group.entry(*done) {
                    *done += 1;
                    return Some(Member::of_part(Arc::clone(piece), entry));
                }
                self.piece = None;
            }
            if lock(self.failure).is_some() {
                return None;
            }
            match self.reader.next_piece(self.owners) {
                Ok(Some(piece)) => self.piece = Some((Arc::new(piece), 0)),
                Ok(None) => return None,
                Err(error) => {
                    *lock(self.failure) = Some(error);
                    return None;
                }
            }
        }
    }
}
