//! Archives wherever they lie: in a folder, in a folder that lacks volumes, or in a store.

use std::path::Path;
use std::sync::Arc;

use stook_archive::{Archive, FetchedVolumes, Observer, OpenOptions, StoreOptions, StoredVolumes};
use stook_store::{Location, Silent, Store};
use stook_sys::{Context, display_path};

use crate::exit::CliError;
use crate::progress::{Reporter, asked_to_end};
use crate::store_settings::{cache, settings};

/// An archive that is open for reading, wherever it lies.
pub(crate) struct Opened {
    pub(crate) archive: Archive,
    /// What was fetched, of an archive in a store.
    volumes: Option<Arc<StoredVolumes>>,
}

impl Opened {
    /// Opens the archive that a path names, or a URL.
    pub(crate) fn new(archive: &Path) -> Result<Self, CliError> {
        match location(archive)? {
            Some(location) => Self::stored(&location),
            None => Self::local(archive),
        }
    }

    /// Volumes that are not in the folder are read from the store of the archive.
    fn local(path: &Path) -> Result<Self, CliError> {
        let mut archive = crate::options::open(path)?;
        let place = match archive.store_place()? {
            Some(place) if archive.lacks_volumes()? => place,
            _ => {
                return Ok(Self {
                    archive,
                    volumes: None,
                });
            }
        };
        let store = open(&place)?;
        let mut volumes = None;
        if store.abilities().has_ranges {
            let ranges = Arc::new(StoredVolumes::new(store, 0));
            archive.read_missing_from(Arc::clone(&ranges) as _);
            volumes = Some(ranges);
        } else {
            let options = StoreOptions::new(store, place);
            let fetched = FetchedVolumes::new(&archive, options, asked_to_end().into())?;
            archive.read_missing_from(Arc::new(fetched));
        }
        Ok(Self { archive, volumes })
    }

    fn stored(location: &Location) -> Result<Self, CliError> {
        let store = location.open(&settings()?)?;
        let options = OpenOptions {
            scratch: Some(std::env::temp_dir()),
            ..OpenOptions::default()
        };
        let opened = Archive::open_stored(&store, &cache()?, &options, &Silent)?;
        let (archive, volumes) = opened;
        Ok(Self {
            archive,
            volumes: Some(volumes),
        })
    }

    /// Says what was fetched, to who wants to know where the time went.
    pub(crate) fn report(&self, reporter: &Reporter) {
        let Some(volumes) = &self.volumes else { return };
        let fetched = volumes.fetched();
        if reporter.shows_phases() {
            reporter.noted(&format!(
                "fetched {} bytes of the index, {} bytes of volumes in {} requests",
                fetched.index, fetched.volumes, fetched.requests
            ));
        }
    }
}

/// Opens the store at a place that `--store` names, or an archive remembers.
pub(crate) fn open(text: &str) -> Result<Arc<dyn Store>, CliError> {
    let location = Location::parse(text).map_err(|error| CliError::Option {
        option: "--store",
        value: text.to_owned(),
        why: error.to_string(),
    })?;
    Ok(location.open(&settings()?)?)
}

/// Returns what an archive remembers a place by: a directory by its whole path, wherever the next command runs.
pub(crate) fn lasting_name(text: String) -> Result<String, CliError> {
    match Location::parse(&text) {
        Ok(Location::Directory(path)) => {
            let path = std::path::absolute(&path).context("resolve", &path)?;
            Ok(path.to_str().map_or(text, ToOwned::to_owned))
        }
        _ => Ok(text),
    }
}

/// Returns the store that an argument names; None if it is a path.
fn location(archive: &Path) -> Result<Option<Location>, CliError> {
    let Some(text) = archive.to_str().filter(|text| is_url(text)) else {
        return Ok(None);
    };
    match Location::parse(text) {
        // A directory is opened as such.
        Ok(Location::Directory(_)) => Ok(None),
        Ok(location) => Ok(Some(location)),
        Err(error) => Err(CliError::Option {
            option: "ARCHIVE",
            value: display_path(archive),
            why: error.to_string(),
        }),
    }
}

pub(crate) fn is_url(text: &str) -> bool {
    text.contains("://") || text.starts_with("hpss:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_told_from_paths() {
        for path in ["archive", "/a/b", "file:///a/b", "./http:/x"] {
            assert!(location(Path::new(path)).unwrap().is_none(), "{path}");
        }
        for url in ["http://host/a", "s3://bucket/a", "ssh://host/a", "hpss:/a"] {
            assert!(location(Path::new(url)).unwrap().is_some(), "{url}");
        }
        assert!(location(Path::new("ftp://host/a")).is_err());
    }
}
