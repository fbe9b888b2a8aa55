//! Archives wherever they lie: in a folder, in a folder that lacks volumes, or in a store.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use stook_archive::{
    Archive, FetchedVolumes, Observer, OpenOptions, StoreOptions, StoredPlace, status,
};
use stook_mount::{CacheOptions, CachedVolumes, VolumeIdentity};
use stook_store::{Location, Settings, Silent, Store, StoreCause};
use stook_sys::{Context, display_path};

use crate::args::{FetchArgs, SourceArgs, StoreCacheArgs};
use crate::exit::CliError;
use crate::options::size_option;
use crate::progress::{Reporter, asked_to_end};
use crate::size::{self, Bare};
use crate::store_settings::{cache, settings};
use crate::transfer::spool_bytes;

/// A store, and the place that the archive remembers.
type NamedStore = (Arc<dyn Store>, String);

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

/// How volumes that are not in the folder are read.
struct ReadOptions {
    cache: CacheOptions,
    /// Other stores with the same volumes.
    mirrors: Vec<Arc<dyn Store>>,
    /// What volumes that are fetched whole may take.
    spool_bytes: Option<u64>,
}

impl Opened {
    /// Opens the archive that a path names, or a URL.
    pub(crate) fn new(archive: &Path, source: &SourceArgs) -> Result<Self, CliError> {
        Self::open(archive, source, CacheOptions::for_commands(), None)
    }

    /// As [`Opened::new`], for a server that reads whatever it is asked for.
    pub(crate) fn to_serve(archive: &Path, source: &SourceArgs) -> Result<Self, CliError> {
        Self::open(archive, source, CacheOptions::default(), None)
    }

    /// Returns what volumes in a store are read through.
    pub(crate) fn volumes(&self) -> Option<Arc<CachedVolumes>> {
        let fetched = self.fetched.as_ref()?;
        Some(Arc::clone(&fetched.volumes))
    }

    /// As [`Opened::new`]; volumes that are fetched whole take no more room than `--spool-size` says.
    pub(crate) fn within(archive: &Path, fetch: &FetchArgs) -> Result<Self, CliError> {
        let spool_bytes = spool_bytes(fetch.spool_size.as_deref())?;
        let cache = CacheOptions::for_commands();
        Self::open(archive, &fetch.source, cache, spool_bytes)
    }

    fn open(
        archive: &Path,
        source: &SourceArgs,
        cache: CacheOptions,
        spool_bytes: Option<u64>,
    ) -> Result<Self, CliError> {
        let options = ReadOptions {
            cache: cache_options(&source.cache, cache)?,
            mirrors: mirrors(&source.mirrors)?,
            spool_bytes,
        };
        match location(archive)? {
            Some(location) => Self::stored(&location, options),
            None => Self::local(archive, source, options),
        }
    }

    /// Opens an archive of which whatever it holds will be removed elsewhere: volumes that are not in the folder, but were
    /// read back in the store and are there unchanged, count as checked.
    pub(crate) fn to_rely_on(path: &Path) -> Result<Archive, CliError> {
        let (mut archive, store) = Self::with_store(path, None)?;
        if let Some(store) = store {
            let status = status(&archive, Some(&*store.0))?;
            let there = status.volumes.iter();
            let there = there.filter(|volume| volume.local.is_none() && volume.is_read_back);
            archive.rely_on(there.map(|volume| volume.volume).collect());
            let options = ReadOptions {
                cache: CacheOptions::for_commands(),
                mirrors: Vec::new(),
                spool_bytes: None,
            };
            Self::attach(&mut archive, store, options)?;
        }
        Ok(archive)
    }

    /// Volumes that are not in the folder are read from the store of the archive.
    fn local(path: &Path, source: &SourceArgs, options: ReadOptions) -> Result<Self, CliError> {
        let (mut archive, store) = Self::with_store(path, source.place.store.as_deref())?;
        let fetched = match store {
            Some(store) => Self::attach(&mut archive, store, options)?,
            None => None,
        };
        Ok(Self { archive, fetched })
    }

    /// Returns the archive in a folder, and its store with its name if that is needed for volumes that are not there.
    fn with_store(
        path: &Path,
        typed: Option<&str>,
    ) -> Result<(Archive, Option<NamedStore>), CliError> {
        let archive = crate::options::open(path)?;
        let place = match typed {
            Some(typed) if is_none(typed) => None,
            Some(typed) => Some(typed.to_owned()),
            None => archive.store_place()?,
        };
        let store = match place {
            Some(place) if archive.lacks_volumes()? => {
                Some((location_of(&place)?.open(&reading()?)?, place))
            }
            _ => None,
        };
        Ok((archive, store))
    }

    /// Has the archive read from its store what is not in its folder; returns what counts the bytes, if there is such a thing.
    fn attach(
        archive: &mut Archive,
        (store, place): NamedStore,
        options: ReadOptions,
    ) -> Result<Option<Fetched>, CliError> {
        if store.abilities().has_ranges {
            let volumes = cached(archive, all(store, options.mirrors), &options.cache)?;
            archive.read_missing_from(Arc::clone(&volumes) as _);
            return Ok(Some(Fetched {
                index_bytes: 0,
                volumes,
            }));
        }
        let options = StoreOptions {
            spool_bytes: options.spool_bytes,
            ..StoreOptions::new(store, place)
        };
        let fetched = FetchedVolumes::new(archive, options, asked_to_end().into())?;
        archive.read_missing_from(Arc::new(fetched));
        Ok(None)
    }

    fn stored(location: &Location, options: ReadOptions) -> Result<Self, CliError> {
        let stores = all(location.open(&reading()?)?, options.mirrors);
        let open_options = OpenOptions {
            scratch: Some(std::env::temp_dir()),
            ..OpenOptions::default()
        };
        let place = StoredPlace {
            stores: &stores,
            cache: &cache()?,
            is_offline: options.cache.is_offline,
        };
        let (mut archive, index_bytes) = Archive::open_fetched(&place, &open_options, &Silent)?;
        let volumes = cached(&archive, stores, &options.cache)?;
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
    stores: Vec<Arc<dyn Store>>,
    options: &CacheOptions,
) -> Result<Arc<CachedVolumes>, CliError> {
    let records = VolumeIdentity::of_archive(archive)?;
    let volumes = CachedVolumes::new(stores, records, options)?;
    Ok(Arc::new(volumes))
}

fn all(store: Arc<dyn Store>, mirrors: Vec<Arc<dyn Store>>) -> Vec<Arc<dyn Store>> {
    [vec![store], mirrors].concat()
}

/// Opens the stores that `--mirror` names, each of which must be able to read parts of files.
fn mirrors(typed: &[String]) -> Result<Vec<Arc<dyn Store>>, CliError> {
    let open = |text: &String| {
        let refused = |why: String| CliError::Option {
            option: "--mirror",
            value: text.clone(),
            why,
        };
        let location = Location::parse(text).map_err(|error| refused(error.to_string()))?;
        let store = location.open(&reading()?)?;
        match store.abilities().has_ranges {
            true => Ok(store),
            false => Err(refused(StoreCause::NoRanges.to_string())),
        }
    };
    typed.iter().map(open).collect()
}

/// How stores are reached that somebody waits for: one that stalls is asked again, or another one is, within the time in
/// which a sender would still have patience.
fn reading() -> Result<Settings, CliError> {
    let mut settings = settings()?;
    settings.network.connect_timeout = Duration::from_secs(5);
    settings.network.idle_timeout = Duration::from_secs(10);
    Ok(settings)
}

fn cache_options(
    args: &StoreCacheArgs,
    mut options: CacheOptions,
) -> Result<CacheOptions, CliError> {
    let size = size_option("--cache-size", args.cache_size.as_deref(), |text| {
        size::parse(text, Bare::Bytes)
    })?;
    options.directory.clone_from(&args.cache);
    options.disk_bytes = size.unwrap_or(options.disk_bytes);
    options.is_offline = args.offline;
    Ok(options)
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
