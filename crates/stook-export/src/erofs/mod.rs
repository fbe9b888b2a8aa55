//! An EROFS image that holds names and attributes only: contents stay in the volumes, which the kernel takes as further devices.
//!
//! ```text
//!   0      record: what the image was made of                              record.rs
//!   1024   super block, then a slot for each volume                        format.rs
//!          entries of directories, each from a new block on                directories.rs
//!          inodes: attributes, extended attributes, short targets,
//!            and of files where in which volume each chunk begins ──>      inodes.rs, content.rs, xattrs.rs
//!          targets of links too long for their inodes
//! ```
//! Blocks have 512 bytes, as in a tar, so each member begins at one. The image is written in one pass from front to back, except that
//! directories, which need the numbers of all inodes, are filled in afterwards; the room they take is known beforehand.
//!
//! Nothing verifies what is read through it. Inode numbers are places in the image: they change when the archive grows.
//!
//! # Source
//! Linux, `fs/erofs/erofs_fs.h`; <https://erofs.docs.kernel.org/en/latest/core_ondisk.html>.

mod content;
mod directories;
mod format;
mod inodes;
mod record;
#[cfg(test)]
mod tests;
mod writer;
mod xattrs;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use stook_archive::{Archive, AsOf, Catalogue, CatalogueOptions, EntryId, Observer, VolumeId};
use stook_timers::scope;

pub use record::{ImageRecord, ImageState, RecordedVolume};
pub(crate) use record::{read_record, state_of};
use writer::Writer;

use crate::ExportError;
use crate::new_file::{NewFile, require_not_of};
use crate::volumes::{recorded_sizes, sizes_in};

/// Whether the kernel that reads an image heeds access control lists.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AccessLists {
    /// It does, or who mounts the image sees to it.
    #[default]
    Heeded,
    /// It does not: files with a list are closed to their group, whose bits are the list's mask.
    Ignored,
}

/// What is in an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErofsReport {
    /// The state that it shows.
    pub state: ImageState,
    /// Files, directories and all else, the root included.
    pub inodes: u64,
    /// Bytes of the image.
    pub bytes: u64,
    /// The volumes, in the order in which the kernel needs them.
    pub volumes: Vec<VolumeId>,
    /// What is left out or not whole, each reported to the observer; of these, those that only an image cannot show.
    pub failed: u64,
    /// Among them, what a mount that is no image would show.
    pub unfit: u64,
}

/// Writes an image of a state of the archive. Its volumes must be in the archive's folder.
///
/// # Errors
/// As [`Archive::catalogue`]; `Compressed`, `Missing`, `VolumeSize`, `VolumeTooLong`, `TooManyVolumes`, `ImageTooLong`; `Sys`. What
/// the image cannot show is no error: it is reported and counted.
///
/// # Cost
/// That of the catalogue, and 4 bytes an entry; the image takes some 110 bytes an entry and its name. A read of a header for each
/// member with extended attributes or holes, and for each that the index has no attributes of.
pub fn export_erofs(
    archive: &mut Archive,
    image: &Path,
    as_of: AsOf,
    observer: &dyn Observer,
) -> Result<ErofsReport, ExportError> {
    require_not_of(archive.path(), image)?;
    let source = ImageSource::of(archive, as_of, observer)?;
    let mut file = NewFile::create(image)?;
    let partial = file.partial().to_owned();
    let report = source.write(&mut file.out, &partial, AccessLists::Heeded, observer)?;
    file.finish()?;
    Ok(report)
}

/// What an image is made of.
pub(crate) struct ImageSource {
    catalogue: Catalogue,
    state: ImageState,
    /// Bytes of each volume.
    volumes: BTreeMap<VolumeId, u64>,
}

impl ImageSource {
    pub(crate) fn of(
        archive: &mut Archive,
        as_of: AsOf,
        observer: &dyn Observer,
    ) -> Result<Self, ExportError> {
        let _scope = scope!("export.read");
        let state = state_of(archive, as_of)?;
        let recorded = recorded_sizes(archive)?;
        let options = CatalogueOptions {
            as_of,
            ..CatalogueOptions::default()
        };
        let catalogue = archive.catalogue(&options, observer)?;
        let volumes = sizes_in(archive.path(), &volumes_of(&catalogue), &recorded)?;
        format::require_addressable(&volumes)?;
        Ok(Self {
            catalogue,
            state,
            volumes,
        })
    }

    /// Returns the volumes and their bytes.
    pub(crate) fn volumes(&self) -> &BTreeMap<VolumeId, u64> {
        &self.volumes
    }

    /// Returns the state that is shown.
    pub(crate) fn state(&self) -> &ImageState {
        &self.state
    }

    pub(crate) fn write(
        &self,
        out: &mut BufWriter<File>,
        path: &Path,
        lists: AccessLists,
        observer: &dyn Observer,
    ) -> Result<ErofsReport, ExportError> {
        let _scope = scope!("export.image");
        observer.phase("image", Some(self.catalogue.len() as u64), None);
        Writer::new(self, (out, path), lists, observer).write()
    }
}

/// Returns the volumes that files lie in.
fn volumes_of(catalogue: &Catalogue) -> BTreeSet<VolumeId> {
    let mut volumes = BTreeSet::new();
    let mut last = None;
    for entry in entries(catalogue) {
        // A look at the row, not at its content: the index may not know where that begins.
        if let Some(volume) = catalogue.volume_of(entry)
            && last != Some(volume)
        {
            last = Some(volume);
            volumes.insert(volume);
        }
    }
    volumes
}

fn entries(catalogue: &Catalogue) -> impl Iterator<Item = EntryId> + use<'_> {
    (0..u32::MAX).map_while(|number| catalogue.entry(number))
}
