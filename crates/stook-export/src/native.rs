//! A native mount: an image made from the index, in a private folder, and mounted by the kernel at once.
//!
//! The image loses its name as soon as it is mounted, so nothing stays behind, and nobody can change it. One that lies
//! anywhere is mounted only if the superuser names it, and only if it fits the archive as it is.

use std::ffi::OsString;
use std::fs::File;
use std::io::BufWriter;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use stook_archive::{Archive, AsOf, Observer, VolumeId};
use stook_sys::{
    Directory, ErofsMount, SysError, TemporaryNames, create_directory, create_new_file,
    erofs_heeds_access_lists, is_no_block_device, is_root, is_unknown_file_system, kernel_release,
    look_at, private_directory, remove_file,
};

use crate::erofs::{AccessLists, ImageSource, read_record, state_of};
use crate::error::BadImage;
use crate::volumes::recorded_sizes;
use crate::{ErofsReport, ExportError};

/// How to mount natively.
#[derive(Debug, Clone)]
pub struct NativeMount {
    /// The state to show.
    pub as_of: AsOf,
    /// A private folder for the image, made if it is missing; not in memory, where the kernel cannot read an image.
    pub folder: PathBuf,
    /// An image of the archive that is there already; `None` to make one.
    pub image: Option<PathBuf>,
    /// Whether programs in it may not be run.
    pub no_exec: bool,
}

/// Requires a kernel that has EROFS, and the superuser.
///
/// # Errors
/// `NotRoot`, `NoErofs`.
pub fn require_native() -> Result<(), ExportError> {
    if !is_root() {
        return Err(ExportError::NotRoot);
    }
    access_lists().map(|_| ())
}

/// Returns whether the kernel heeds access control lists of an image.
///
/// # Errors
/// `NoErofs`.
pub fn access_lists() -> Result<AccessLists, ExportError> {
    match erofs_heeds_access_lists() {
        Ok(true) => Ok(AccessLists::Heeded),
        Ok(false) => Ok(AccessLists::Ignored),
        Err(error) if is_unknown_file_system(&error.source) => Err(ExportError::NoErofs {
            kernel: kernel_release(),
        }),
        Err(error) => Err(error.into()),
    }
}

/// Mounts a state of an archive on a directory, read-only, without set-id bits and devices. It needs no process: `umount` ends it.
/// Nothing is mounted unless every file can be shown that another mount would show.
///
/// # Errors
/// As [`export_erofs`](crate::export_erofs) and [`require_native`]; `Incomplete`, `Image`, `NoPlainFiles`; `Sys`.
pub fn mount_native(
    archive: &mut Archive,
    point: &Path,
    options: &NativeMount,
    observer: &dyn Observer,
) -> Result<(), ExportError> {
    require_native()?;
    // By its descriptor: paths of more than 255 bytes the kernel does not take, and the archive may be renamed meanwhile.
    let folder = Directory::open(archive.path())?;
    let mount = |image: &Path, volumes: Vec<OsString>| {
        let mount = ErofsMount {
            image,
            folder: &folder,
            devices: &volumes,
            no_exec: options.no_exec,
        };
        mount
            .mount_on(point)
            .map_err(|error| of_mount(error, image))
    };
    if let Some(image) = &options.image {
        let volumes = fitting_volumes(archive, image, options.as_of)?;
        return mount(image, volumes);
    }
    let source = ImageSource::of(archive, options.as_of, observer)?;
    let mut image = PrivateFile::create(&options.folder)?;
    let report = source.write(&mut image.out, &image.path, access_lists()?, observer)?;
    require_complete(&report)?;
    mount(&image.path, names_of(&report.volumes))
}

fn names_of(volumes: &[VolumeId]) -> Vec<OsString> {
    let names = volumes.iter().map(ToString::to_string);
    names.map(OsString::from).collect()
}

fn require_complete(report: &ErofsReport) -> Result<(), ExportError> {
    match report.unfit {
        0 => Ok(()),
        files => Err(ExportError::Incomplete { files }),
    }
}

fn of_mount(error: SysError, image: &Path) -> ExportError {
    if is_no_block_device(&error.source) {
        return ExportError::NoPlainFiles {
            kernel: kernel_release(),
            path: image.parent().unwrap_or(image).to_owned(),
        };
    }
    error.into()
}

/// Returns the volumes of an image that fits an archive.
fn fitting_volumes(
    archive: &Archive,
    image: &Path,
    as_of: AsOf,
) -> Result<Vec<OsString>, ExportError> {
    let bad = |why| ExportError::Image {
        path: image.to_owned(),
        why,
    };
    let record = read_record(image)?;
    let state = state_of(archive, as_of)?;
    if record.state != state {
        return Err(bad(BadImage::OtherState {
            image: record.state,
            archive: state,
        }));
    }
    let sizes = recorded_sizes(archive)?;
    let mut volumes = Vec::with_capacity(record.volumes.len());
    for recorded in &record.volumes {
        // Only names of volumes: nothing else is opened.
        let volume = recorded.name.parse::<VolumeId>().ok();
        let volume = volume.filter(|id| sizes.is_empty() || sizes.contains_key(id));
        let volume = volume.ok_or_else(|| bad(BadImage::OtherVolumes))?;
        let found = look_at(&archive.path().join(&recorded.name))?.size;
        let indexed = sizes.get(&volume).copied().unwrap_or(found);
        if found != recorded.bytes || indexed != recorded.bytes {
            return Err(bad(BadImage::OtherVolume {
                volume: recorded.name.clone(),
                recorded: recorded.bytes,
                found,
            }));
        }
        volumes.push(OsString::from(&recorded.name));
    }
    Ok(volumes)
}

/// A file in a private folder, which goes with the value.
struct PrivateFile {
    path: PathBuf,
    out: BufWriter<File>,
}

impl PrivateFile {
    fn create(folder: &Path) -> Result<Self, SysError> {
        if let Some(above) = folder.parent() {
            create_directory(above)?;
        }
        private_directory(folder)?;
        let name = TemporaryNames::new("erofs").next(look_at(folder)?.identity().1);
        let path = folder.join(std::ffi::OsStr::from_bytes(&name));
        let file = create_new_file(&path)?;
        Ok(Self {
            path,
            out: BufWriter::with_capacity(1 << 20, file),
        })
    }
}

impl Drop for PrivateFile {
    fn drop(&mut self) {
        // The kernel has it open if it is mounted; and if it is not, why that is so is the error that counts.
        let _ = remove_file(&self.path);
    }
}
