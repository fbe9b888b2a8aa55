//! Archives wherever they lie: in a folder, in a folder that lacks volumes, or in a store.

use std::path::Path;
use std::sync::Arc;

use stook_archive::{Archive, FetchedVolumes, Observer, OpenOptions, StoreOptions, StoredPlace};
use stook_mount::{CacheOptions, CachedVolumes, VolumeIdentity};
use stook_store::{Location, Silent, Store};
use stook_sys::{Context, display_path};

use crate::args::StoreCacheArgs;
use crate::exit::CliError;
use crate::options::size_option;
use crate::progress::{Reporter, asked_to_end};
use crate::size::{self, Bare};
use crate::store_settings::{cache, settings};

/// An archive that is open for reading, wherever it lies.
pub(crate) struct Opened {
    pub(crate) archive: Archive,
    /// What was fetched, of an archive in a store.
    fetched: Option<Fetched>,
}

struct Fetched {
    index_bytes: u64,
    volumes: Arc<CachedVolumes>,
}

impl Opened {
    /// Opens the archive that a path names, or a URL.
    pub(crate) fn new(archive: &Path, args: &StoreCacheArgs) -> Result<Self, CliError> {
        let options = cache_options(args)?;
        match location(archive)? {
            Some(location) => Self::stored(&location, &options),
            None => Self::local(archive, &options),
        }
    }

    /// Volumes that are not in the folder are read from the store of the archive.
    fn local(path: &Path, options: &CacheOptions) -> Result<Self, CliError> {
        let mut archive = crate::options::open(path)?;
        let place = match archive.store_place()? {
            Some(place) if archive.lacks_volumes()? => place,
            _ => {
                return Ok(Self {
                    archive,
                    fetched: None,
                });
            }
        };
        let store = open(&place)?;
        let mut fetched = None;
        if store.abilities().has_ranges {
            let volumes = cached(&archive, store, options)?;
            archive.read_missing_from(Arc::clone(&volumes) as _);
            fetched = Some(Fetched {
                index_bytes: 0,
                volumes,
            });
        } else {
            let options = StoreOptions::new(store, place);
            let fetched = FetchedVolumes::new(&archive, options, asked_to_end().into())?;
            archive.read_missing_from(Arc::new(fetched));
        }
        Ok(Self { archive, fetched })
    }

    fn stored(location: &Location, options: &CacheOptions) -> Result<Self, CliError> {
        let store = location.open(&settings()?)?;
        let open_options = OpenOptions {
            scratch: Some(std::env::temp_dir()),
            ..OpenOptions::default()
        };
        let place = StoredPlace {
            stores: std::slice::from_ref(&store),
            cache: &cache()?,
            is_offline: options.is_offline,
        };
        let (mut archive, index_bytes) = Archive::open_fetched(&place, &open_options, &Silent)?;
        let volumes = cached(&archive, store, options)?;
        archive.read_volumes_from(Arc::clone(&volumes) as _);
        let fetched = Some(Fetched {
            index_bytes,
            volumes,
        });
        Ok(Self { archive, fetched })
    }

    /// Says what was fetched, to who wants to know where the time went.
    pub(crate) fn report(&self, reporter: &Reporter) {
        let Some(fetched) = &self.fetched else { return };
        let stats = fetched.volumes.stats();
        if reporter.shows_phases() {
            reporter.noted(&format!(
                "fetched {} bytes of the index, {} bytes of volumes in {} requests",
                fetched.index_bytes, stats.store_bytes, stats.fetches
            ));
        }
    }
}

/// Returns the volumes of an archive in a store, read through the cache.
fn cached(
    archive: &Archive,
    store: Arc<dyn Store>,
    options: &CacheOptions,
) -> Result<Arc<CachedVolumes>, CliError> {
    let records = VolumeIdentity::of_archive(archive)?;
    let volumes = CachedVolumes::new(vec![store], records, options)?;
    Ok(Arc::new(volumes))
}

fn cache_options(args: &StoreCacheArgs) -> Result<CacheOptions, CliError> {
    let defaults = CacheOptions::for_commands();
    let size = size_option("--cache-size", args.cache_size.as_deref(), |text| {
        size::parse(text, Bare::Bytes)
    })?;
    Ok(CacheOptions {
        directory: args.cache.clone(),
        disk_bytes: size.unwrap_or(defaults.disk_bytes),
        is_offline: args.offline,
        ..defaults
    })
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
