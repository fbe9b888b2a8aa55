//! The volumes of an archive: where others find them, and whether they are as long as the index says.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use stook_archive::{Archive, VolumeId};
use stook_sys::look_at;

use crate::ExportError;

/// Where other programs find volumes.
#[derive(Debug, Clone)]
pub enum Places {
    /// In a folder of this machine.
    Folder(PathBuf),
    /// At a URL, to which a slash and the name of the volume are added.
    Url(String),
}

impl Places {
    /// Returns what the names of volumes are added to.
    pub(crate) fn prefix(&self) -> Result<String, ExportError> {
        let text = match self {
            Self::Url(url) => Some(url.as_str()),
            Self::Folder(path) => path.to_str(),
        };
        match (text, self) {
            (Some(text), _) => Ok(format!("{}/", text.trim_end_matches('/'))),
            (None, Self::Folder(path)) => Err(ExportError::NotText { path: path.clone() }),
            (None, Self::Url(_)) => unreachable!("a URL is text"),
        }
    }
}

/// Returns the bytes of each volume that the index has a record of. The last record counts: zstash leaves several.
pub(crate) fn recorded_sizes(archive: &Archive) -> Result<BTreeMap<VolumeId, u64>, ExportError> {
    let records = archive.volume_records()?.unwrap_or_default();
    let sizes = records.into_iter();
    Ok(sizes.map(|(_, volume)| (volume.id, volume.size)).collect())
}

/// Returns the bytes of volumes as they are in a folder.
///
/// # Errors
/// `Compressed`, `Missing`, `VolumeSize`.
pub(crate) fn sizes_in(
    folder: &Path,
    volumes: &BTreeSet<VolumeId>,
    recorded: &BTreeMap<VolumeId, u64>,
) -> Result<BTreeMap<VolumeId, u64>, ExportError> {
    require_plain(volumes)?;
    let mut sizes = BTreeMap::new();
    let mut missing = Vec::new();
    for &volume in volumes {
        match look_at(&folder.join(volume.to_string())) {
            Ok(facts) => {
                sizes.insert(volume, facts.size);
            }
            Err(error) if error.is_not_found() => missing.push(volume),
            Err(error) => return Err(error.into()),
        }
    }
    if !missing.is_empty() {
        return Err(ExportError::Missing {
            path: folder.to_owned(),
            volumes: missing,
        });
    }
    for (&volume, &found) in &sizes {
        let recorded = recorded.get(&volume).copied();
        if recorded.is_some_and(|recorded| recorded != found) {
            return Err(ExportError::VolumeSize {
                volume,
                found,
                recorded,
            });
        }
    }
    Ok(sizes)
}

fn require_plain(volumes: &BTreeSet<VolumeId>) -> Result<(), ExportError> {
    let compressed = volumes.iter().filter(|volume| volume.is_compressed());
    let volumes: Vec<VolumeId> = compressed.copied().collect();
    if volumes.is_empty() {
        return Ok(());
    }
    Err(ExportError::Compressed { volumes })
}
