//! References: which bytes of which volume are the content of a file, for Python's fsspec.
//!
//! ```text
//!   JSON       {"version": 1, "refs": {"a/b": ["/archive/000000.tar", 1536, 4096], ...}}     any files            json.rs
//!   Parquet    a folder: .zmetadata, and for each array of Zarr refs.0.parq, refs.1.parq, ... 10,000 chunks each  parquet.rs, zarr.rs
//! ```
//! JSON is read as a whole before the first file can be. The Parquet form is read as chunks are asked for, so it is for arrays
//! of millions of chunks; it knows nothing but arrays, because fsspec finds a chunk by its number.
//!
//! # Source
//! <https://fsspec.github.io/kerchunk/spec.html>; `fsspec/implementations/reference.py`, `LazyReferenceMapper`.

mod json;
mod parquet;
mod zarr;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;

use stook_archive::{
    Archive, ArchiveError, Attributes, Cause, Failure, ListOptions, MemberKind, Observer, RowRef,
    VolumeId, clean_path, list_with_attributes,
};
use stook_timers::scope;

use crate::volumes::{Places, recorded_sizes, sizes_in};
use crate::{ExportError, Refusal};

/// What to refer to, and where others find it.
#[derive(Debug, Clone)]
pub struct RefsOptions {
    /// Which members of which state.
    pub list: ListOptions,
    /// A directory of the archive: only files below it count, by their paths below it. Empty for all.
    pub below: Vec<u8>,
    /// Where the volumes are.
    pub places: Places,
}

/// Where references go.
pub enum Target<'a> {
    /// JSON, into a stream.
    Stream(&'a mut dyn Write),
    /// Into a file or a folder.
    Path(&'a Path, Format),
}

/// The form of references.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One file.
    Json,
    /// A folder, for arrays of Zarr's format 2.
    Parquet,
}

/// What was referred to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RefsReport {
    /// Files.
    pub members: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Volumes that they lie in.
    pub volumes: u64,
    /// Links, fifos and devices, which have no content.
    pub without_content: u64,
    /// What could not be referred to, each reported to the observer.
    pub failed: u64,
}

/// A piece of a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    volume: VolumeId,
    offset: u64,
    len: u64,
}

/// Writes references to the selected files, in the order they were archived.
///
/// # Errors
/// As [`list_with_attributes`]; `Compressed` if all volumes are; `Missing` or `VolumeSize` if the folder has not the volumes that
/// the index has; of the Parquet form `NoArray`, `BadZarr`. What cannot be referred to is no error: it is reported and counted.
///
/// # Cost
/// As [`list_with_attributes`]. JSON takes no memory, the Parquet form 40 bytes a chunk.
pub fn export_refs(
    archive: &mut Archive,
    options: &RefsOptions,
    target: Target<'_>,
    observer: &dyn Observer,
) -> Result<RefsReport, ExportError> {
    let _scope = scope!("export.refs");
    observer.phase("references", None, None);
    let prefix = options.places.prefix()?;
    let mut found = Found::new(archive, options, observer)?;
    match target {
        Target::Stream(out) => json::write(archive, &prefix, &mut found, out)?,
        Target::Path(path, Format::Json) => json::write_file(archive, &prefix, &mut found, path)?,
        Target::Path(path, Format::Parquet) => parquet::write(archive, &prefix, &mut found, path)?,
    }
    Ok(found.report)
}

/// What a pass over the members has found, and what it goes by.
struct Found<'a> {
    list: &'a ListOptions,
    below: &'a [u8],
    places: &'a Places,
    sizes: BTreeMap<VolumeId, u64>,
    volumes: BTreeSet<VolumeId>,
    observer: &'a dyn Observer,
    report: RefsReport,
}

impl<'a> Found<'a> {
    fn new(
        archive: &Archive,
        options: &'a RefsOptions,
        observer: &'a dyn Observer,
    ) -> Result<Self, ExportError> {
        let sizes = recorded_sizes(archive)?;
        if !sizes.is_empty() && sizes.keys().all(|volume| volume.is_compressed()) {
            return Err(ExportError::Compressed {
                volumes: sizes.into_keys().collect(),
            });
        }
        Ok(Self {
            list: &options.list,
            below: &options.below,
            places: &options.places,
            sizes,
            volumes: BTreeSet::new(),
            observer,
            report: RefsReport::default(),
        })
    }

    /// Shows each file, with its path and its piece of a volume, to `visit`; what has none is reported.
    fn each(
        &mut self,
        archive: &mut Archive,
        mut visit: impl FnMut(&mut Self, &RowRef<'_>, &str, Piece) -> Result<(), ExportError>,
    ) -> Result<(), ExportError> {
        let (list, observer) = (self.list, self.observer);
        let mut outcome = Ok(());
        let listed = list_with_attributes(archive, list, observer, |row, attributes| {
            if row.md5.is_none() {
                let is_directory =
                    attributes.is_some_and(|known| known.kind == MemberKind::Directory);
                self.report.without_content += u64::from(!is_directory);
                return ControlFlow::Continue(());
            }
            let named = match path_below(row.name, self.below) {
                Ok(Some(path)) => text_of(path),
                Ok(None) => return ControlFlow::Continue(()),
                Err(cause) => Err(cause),
            };
            let piece = self.piece(&row, attributes);
            outcome = match (named, piece) {
                (Ok(path), Ok(piece)) => visit(self, &row, &path, piece),
                (Err(cause), _) | (_, Err(cause)) => {
                    self.fail(row.name, cause);
                    Ok(())
                }
            };
            match outcome {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        })?;
        self.report.failed += listed.failed;
        outcome
    }

    fn piece(&self, row: &RowRef<'_>, attributes: Option<&Attributes<'_>>) -> Result<Piece, Cause> {
        let volume = row.volume;
        if volume.is_compressed() {
            return Err(refused(Refusal::Compressed(volume)));
        }
        let attributes = attributes.ok_or_else(|| refused(Refusal::Unknown))?;
        if attributes.is_sparse {
            return Err(refused(Refusal::Sparse));
        }
        let end = attributes.content.checked_add(row.size);
        let volume_bytes = self.sizes.get(&volume).copied().unwrap_or(u64::MAX);
        if end.is_none_or(|end| end > volume_bytes) {
            return Err(refused(Refusal::BehindVolume(volume)));
        }
        Ok(Piece {
            volume,
            offset: attributes.content,
            len: row.size,
        })
    }

    /// Counts a file that is referred to.
    fn count(&mut self, piece: Piece) {
        self.volumes.insert(piece.volume);
        self.report.members += 1;
        self.report.bytes += piece.len;
        self.observer.advanced(1, piece.len);
    }

    /// Counts a file that is copied into the references.
    fn count_inlined(&mut self, piece: Piece) {
        self.report.members += 1;
        self.report.bytes += piece.len;
    }

    fn fail(&mut self, path: &[u8], cause: Cause) {
        self.report.failed += 1;
        self.observer.failed(&Failure {
            operation: "refer to",
            path: path.to_vec(),
            cause,
        });
    }

    /// Requires that the volumes are where they are said to be, as far as this machine can tell.
    fn require_volumes(&mut self) -> Result<(), ExportError> {
        self.report.volumes = self.volumes.len() as u64;
        if let Places::Folder(folder) = self.places {
            sizes_in(folder, &self.volumes, &self.sizes)?;
        }
        Ok(())
    }

    fn require_going_on(&self) -> Result<(), ExportError> {
        if self.observer.is_interrupted() {
            return Err(ArchiveError::Interrupted.into());
        }
        Ok(())
    }
}

fn refused(refusal: Refusal) -> Cause {
    Cause::Refused(std::sync::Arc::new(refusal))
}

/// Returns the path that a name stands for, as one below a directory; `None` if it is not below that.
///
/// # Errors
/// Why `extract` would refuse it.
fn path_below(name: &[u8], directory: &[u8]) -> Result<Option<Vec<u8>>, Cause> {
    let path = clean_path(name)?;
    if directory.is_empty() {
        return Ok(Some(path));
    }
    let rest = path.strip_prefix(directory);
    let rest = rest.and_then(|rest| rest.strip_prefix(b"/"));
    Ok(rest.map(<[u8]>::to_vec))
}

fn text_of(path: Vec<u8>) -> Result<String, Cause> {
    let text = String::from_utf8(path).ok();
    text.ok_or_else(|| refused(Refusal::NotText))
}
