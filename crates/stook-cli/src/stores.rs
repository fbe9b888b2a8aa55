//! Archives wherever they lie: in a folder, in a folder that lacks volumes, or in a store.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use stook_archive::{
    Archive, FetchedVolumes, Observer, OpenOptions, StoreOptions, StoredVolumes, status,
};
use stook_store::{Location, Silent, Store};
use stook_sys::{Context, display_path};

use crate::args::{FetchArgs, StoreArgs};
use crate::exit::CliError;
use crate::progress::{Reporter, asked_to_end};
use crate::store_settings::{cache, settings};
use crate::transfer::spool_bytes;

/// A store, and the place that the archive remembers.
type NamedStore = (Arc<dyn Store>, String);

/// An archive that is open for reading, wherever it lies.
pub(crate) struct Opened {
    pub(crate) archive: Archive,
    /// What was fetched, of an archive in a store.
    volumes: Option<Arc<StoredVolumes>>,
}

impl Opened {
    /// Opens the archive that a path names, or a URL.
    pub(crate) fn new(archive: &Path) -> Result<Self, CliError> {
        Self::from_store(archive, &StoreArgs::default())
    }

    /// As [`Opened::new`], with the store that was named for what the folder lacks.
    pub(crate) fn from_store(archive: &Path, store: &StoreArgs) -> Result<Self, CliError> {
        Self::open(archive, store, None)
    }

    /// As [`Opened::from_store`]; volumes that are fetched whole take no more room than `--spool-size` says.
    pub(crate) fn within(archive: &Path, fetch: &FetchArgs) -> Result<Self, CliError> {
        let spool_bytes = spool_bytes(fetch.spool_size.as_deref())?;
        Self::open(archive, &fetch.place, spool_bytes)
    }

    fn open(archive: &Path, store: &StoreArgs, spool_bytes: Option<u64>) -> Result<Self, CliError> {
        match location(archive)? {
            Some(location) => Self::stored(&location),
            None => Self::local(archive, store, spool_bytes),
        }
    }

    /// Opens an archive of which whatever it holds will be removed elsewhere: volumes that are not in the folder, but were
    /// read back in the store and are there unchanged, count as checked.
    pub(crate) fn to_rely_on(path: &Path) -> Result<Archive, CliError> {
        let (mut archive, store) = Self::with_store(path, &StoreArgs::default())?;
        if let Some(store) = store {
            let status = status(&archive, Some(&*store.0))?;
            let there = status.volumes.iter();
            let there = there.filter(|volume| volume.local.is_none() && volume.is_read_back);
            archive.rely_on(there.map(|volume| volume.volume).collect());
            Self::attach(&mut archive, store, None)?;
        }
        Ok(archive)
    }

    /// Volumes that are not in the folder are read from the store of the archive.
    fn local(path: &Path, store: &StoreArgs, spool_bytes: Option<u64>) -> Result<Self, CliError> {
        let (mut archive, store) = Self::with_store(path, store)?;
        let volumes = match store {
            Some(store) => Self::attach(&mut archive, store, spool_bytes)?,
            None => None,
        };
        Ok(Self { archive, volumes })
    }

    /// Returns the archive in a folder, and its store with its name if that is needed for volumes that are not there.
    fn with_store(
        path: &Path,
        store: &StoreArgs,
    ) -> Result<(Archive, Option<NamedStore>), CliError> {
        let archive = crate::options::open(path)?;
        let place = match &store.store {
            Some(typed) if is_none(typed) => None,
            Some(typed) => Some(typed.clone()),
            None => archive.store_place()?,
        };
        let store = match place {
            Some(place) if archive.lacks_volumes()? => Some((open(&place)?, place)),
            _ => None,
        };
        Ok((archive, store))
    }

    /// Has the archive read from its store what is not in its folder; returns what counts the bytes, if there is such a thing.
    fn attach(
        archive: &mut Archive,
        (store, place): NamedStore,
        spool_bytes: Option<u64>,
    ) -> Result<Option<Arc<StoredVolumes>>, CliError> {
        if store.abilities().has_ranges {
            let ranges = Arc::new(StoredVolumes::new(store, 0));
            archive.read_missing_from(Arc::clone(&ranges) as _);
            return Ok(Some(ranges));
        }
        let options = StoreOptions {
            spool_bytes,
            ..StoreOptions::new(store, place)
        };
        let fetched = FetchedVolumes::new(archive, options, asked_to_end().into())?;
        archive.read_missing_from(Arc::new(fetched));
        Ok(None)
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
    Ok(location_of(text)?.open(&settings()?)?)
}

/// Returns true for what stands for no store.
pub(crate) fn is_none(typed: &str) -> bool {
    typed.eq_ignore_ascii_case("none")
}

/// Returns the place that `--store` names.
pub(crate) fn location_of(text: &str) -> Result<Location, CliError> {
    Location::parse(text).map_err(|error| CliError::Option {
        option: "--store",
        value: text.to_owned(),
        why: error.to_string(),
    })
}

/// Returns what an archive remembers a place by: a directory by its whole path, wherever the next command runs; nothing by a
/// password.
pub(crate) fn lasting_name(location: Location) -> Result<String, CliError> {
    let Location::Directory(path) = location else {
        return Ok(location.without_login().to_string());
    };
    let whole = std::path::absolute(&path).context("resolve", &path)?;
    // Without a slash at its end.
    let whole: PathBuf = whole.components().collect();
    match whole.to_str() {
        Some(text) => Ok(text.to_owned()),
        None => Err(CliError::Option {
            option: "--store",
            value: display_path(&path),
            why: "the path of a store is text in UTF-8".to_owned(),
        }),
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

fn is_url(text: &str) -> bool {
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
