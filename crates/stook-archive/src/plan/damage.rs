//! What is wrong with what was built of a part.

use std::path::{Path, PathBuf};

use stook_index::{IndexError, VolumeId};
use stook_sys::exists;

use super::blocks::PlanFileError;
use super::build_result::rows_md5;
use super::commit_log::AssignedVolume;
use crate::ArchiveError;
use crate::folder::Folder;
use crate::observer::Observer;

/// The number of a volume that is built: no byte of it depends on it.
pub(crate) const ONLY_VOLUME: VolumeId = VolumeId::plain(0);

/// A part whose volume cannot be committed: it is to be built again.
#[derive(Debug, thiserror::Error)]
#[error("what was built of it is damaged: {damage}")]
pub struct DamagedPart {
    /// The file of the part.
    pub part: PathBuf,
    /// What is wrong.
    #[source]
    pub damage: BuiltDamage,
}

/// What is wrong with what was built of a part.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuiltDamage {
    /// The volume is not there.
    #[error("its volume is missing")]
    VolumeMissing,
    /// The volume is longer or shorter than when it was built.
    #[error("its volume has {found} bytes, {built} were built")]
    VolumeResized {
        /// Bytes of the file.
        found: u64,
        /// Bytes that were written.
        built: u64,
    },
    /// A byte of the volume has changed.
    #[error("its volume does not have the MD5 that it was built with")]
    WrongMd5,
    /// Its rows and attributes are not there.
    #[error("its rows are missing")]
    RowsMissing,
    /// A byte of its rows or attributes has changed.
    #[error("its rows do not have the MD5 that they were built with")]
    RowsChanged,
    /// A journal, which would change its rows when they are opened.
    #[error("its rows have a journal")]
    RowsWithJournal,
    /// A row of a member that is not in the part, or of other facts.
    #[error("it has a row that was not planned")]
    ForeignRow,
    /// Rows are missing.
    #[error("it has {found} rows, {built} were built")]
    OtherRows {
        /// Rows that were read.
        found: u64,
        /// Members that were written.
        built: u64,
    },
    /// The rows cannot be read.
    #[error("its rows cannot be read: {0}")]
    Rows(#[source] IndexError),
    /// What became of its members cannot be read.
    #[error("its result cannot be read: {0}")]
    Result(#[source] PlanFileError),
}

/// Compares the length of a built volume with that of its file.
pub(crate) fn volume_damage(built: &Path, len: u64) -> Result<Option<BuiltDamage>, ArchiveError> {
    length_damage(&Folder::new(built).partial(ONLY_VOLUME), len)
}

fn length_damage(volume: &Path, len: u64) -> Result<Option<BuiltDamage>, ArchiveError> {
    let file = exists(volume)?;
    Ok(match file.map(|metadata| metadata.size) {
        None => Some(BuiltDamage::VolumeMissing),
        Some(found) if found != len => Some(BuiltDamage::VolumeResized { found, built: len }),
        Some(_) => None,
    })
}

/// Compares the rows and attributes of a built volume with the MD5 that they were built with.
pub(crate) fn rows_damage(
    built: &Path,
    md5: Option<[u8; 16]>,
    observer: &dyn Observer,
) -> Result<Option<BuiltDamage>, ArchiveError> {
    let rows = Folder::new(built).staging(ONLY_VOLUME);
    for suffix in ["-journal", "-wal"] {
        let mut journal = rows.clone().into_os_string();
        journal.push(suffix);
        if exists(Path::new(&journal))?.is_some() {
            return Ok(Some(BuiltDamage::RowsWithJournal));
        }
    }
    Ok(match rows_md5(built, observer)? {
        None => Some(BuiltDamage::RowsMissing),
        found if found != md5 => Some(BuiltDamage::RowsChanged),
        Some(_) => None,
    })
}

/// Returns what is wrong with a volume that a commit has decided on, and that may have begun to move into the archive.
pub(crate) fn assigned_damage(
    folder: &Folder,
    taken: &Path,
    volume: &AssignedVolume,
    observer: &dyn Observer,
) -> Result<Option<BuiltDamage>, ArchiveError> {
    let (id, built) = (volume.id, volume.built.len);
    let mut damage = volume_damage(taken, built)?;
    for moved in [folder.partial(id), folder.volume(id)] {
        if matches!(damage, Some(BuiltDamage::VolumeMissing)) {
            damage = length_damage(&moved, built)?;
        }
    }
    let is_moved = exists(&Folder::new(taken).staging(ONLY_VOLUME))?.is_none()
        && exists(&folder.staging(id))?.is_some();
    if damage.is_some() || is_moved {
        return Ok(damage);
    }
    rows_damage(taken, Some(volume.rows_md5), observer)
}
