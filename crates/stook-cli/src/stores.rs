//! What stores need of the environment, which libraries do not read: credentials, proxies, programs, a folder for copies.

use std::path::{Path, PathBuf};

use stook_archive::{Archive, Observer, OpenOptions, StoredVolumes};
use stook_store::{Interruption, Location, Settings, Silent};
use stook_sys::display_path;

use crate::exit::CliError;
use crate::progress::{Reporter, is_asked_to_end};

/// What begins the names of variables that object stores are told about.
const OBJECT_STORES: &str = "AWS_";

/// An archive that is open for reading, wherever it lies.
pub(crate) struct Opened {
    pub(crate) archive: Archive,
    /// What was fetched, of an archive in a store.
    volumes: Option<std::sync::Arc<StoredVolumes>>,
}

impl Opened {
    /// Opens the archive that a path names, or a URL.
    pub(crate) fn new(archive: &Path) -> Result<Self, CliError> {
        match location(archive)? {
            Some(location) => Self::stored(&location),
            None => Ok(Self {
                archive: crate::options::open(archive)?,
                volumes: None,
            }),
        }
    }

    fn stored(location: &Location) -> Result<Self, CliError> {
        let store = location.open(&settings());
        let store = store.map_err(stook_archive::ArchiveError::Store)?;
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

fn settings() -> Settings {
    let mut settings = Settings {
        interruption: Interruption::new(is_asked_to_end),
        ..Settings::default()
    };
    settings.network.http_proxy = variable("http_proxy");
    settings.network.https_proxy = variable("https_proxy").or_else(|| variable("HTTPS_PROXY"));
    settings.network.no_proxy = variable("no_proxy").or_else(|| variable("NO_PROXY"));
    settings.s3.variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| name.starts_with(OBJECT_STORES))
        .collect();
    settings.s3.has_instance_credentials = variable("STOOK_INSTANCE_CREDENTIALS").is_some();
    settings
}

#[expect(
    clippy::disallowed_methods,
    reason = "the program reads its environment, so that libraries need not"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Returns where copies of indices go: a folder of the user, where nobody else can put one.
fn cache() -> Result<PathBuf, CliError> {
    let home = || Some(PathBuf::from(variable("HOME")?).join(".cache"));
    let cache = variable("XDG_CACHE_HOME").map(PathBuf::from).or_else(home);
    let cache = cache.map(|cache| cache.join("stook/indices"));
    cache.ok_or_else(|| CliError::Option {
        option: "XDG_CACHE_HOME",
        value: String::new(),
        why: "neither it nor HOME names a folder for copies of indices".to_owned(),
    })
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
