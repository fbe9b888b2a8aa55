//! Where archives of a study are sent: a folder of its own in the store for each of them, which is emptied when the run is over.
//!
//! A directory loses the folder as well, and so does an object store, where folders are nothing but names. Other stores delete
//! files only: their empty folders stay.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use stook_store::{Interruption, Location, Settings, Store};
use stook_sys::Directory;

use crate::error::BenchError;
use crate::scratch::ScratchDirectory;

/// A store, as the user names it.
#[derive(Debug, Clone)]
pub struct StudyStore {
    /// Its place.
    pub location: Location,
    /// The same in the user's words.
    pub url: String,
    /// How it is reached.
    pub settings: Settings,
}

impl StudyStore {
    /// Makes sure that archives can be sent there.
    pub(super) fn prepare(&self) -> Result<(), BenchError> {
        if let Location::Directory(path) = &self.location {
            Directory::open_handle(path)?;
            return Ok(());
        }
        Ok(self.location.open(&self.settings)?.prepare()?)
    }

    /// Returns what kind of store it is, as labels have it.
    pub(super) fn kind(&self) -> &'static str {
        match self.location {
            Location::Directory(_) => "directory",
            Location::Http(_) => "http",
            Location::S3 { .. } => "s3",
            Location::Hpss(_) => "hpss",
            Location::Globus { .. } => "globus",
            Location::Ssh { .. } => "ssh",
        }
    }

    /// Returns the places in commands that stand for it: zstash knows two kinds of stores.
    pub(super) fn places(&self) -> &'static [&'static str] {
        match self.location {
            Location::Hpss(_) | Location::Globus { .. } => &["{store}", "{hpss}"],
            _ => &["{store}"],
        }
    }

    /// Returns what a user should know who looks at the store afterwards.
    pub(super) fn what_stays(&self) -> Option<String> {
        let is_removed = matches!(
            self.location,
            Location::Directory(_) | Location::S3 { .. } | Location::Http(_)
        );
        let url = &self.url;
        (!is_removed).then(|| {
            format!(
                "empty folders `{}-*` stay in `{url}`: only files can be deleted there",
                prefix()
            )
        })
    }
}

/// What names of folders begin with: other runs, on other machines too, have another one.
fn prefix() -> String {
    let host = stook_sys::host_name();
    format!("stook-bench-{host}-{}", std::process::id())
}

/// A folder of the store, emptied when this is dropped.
#[derive(Debug)]
pub(super) struct StoreFolder {
    /// Where it is, as stook takes it.
    pub(super) url: String,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// None once it is removed.
    Directory(Option<ScratchDirectory>),
    /// None once it is emptied.
    Other(Option<Arc<dyn Store>>),
}

impl StoreFolder {
    /// Makes one, or takes a name that nothing has.
    ///
    /// # Errors
    /// [`BenchError::Store`] if the store cannot be asked, [`BenchError::Refused`] if something has its name,
    /// [`BenchError::Sys`] if a directory cannot be made.
    pub(super) fn make(store: &StudyStore) -> Result<Self, BenchError> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        if let Location::Directory(path) = &store.location {
            let scratch = ScratchDirectory::make(path)?;
            let url = utf8(scratch.path())?;
            return Ok(Self {
                url,
                kind: Kind::Directory(Some(scratch)),
            });
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let base = store.url.trim_end_matches('/');
        let url = format!("{base}/{}-{number}", prefix());
        let location =
            Location::parse(&url).map_err(|error| BenchError::usage(error.to_string()))?;
        // What a study has sent goes also when the user has ended it.
        let settings = Settings {
            interruption: Interruption::default(),
            ..store.settings.clone()
        };
        let opened = location.open(&settings)?;
        if !opened.list()?.is_empty() {
            return Err(BenchError::refused(format!("there are files in `{url}`")));
        }
        Ok(Self {
            url,
            kind: Kind::Other(Some(opened)),
        })
    }

    /// Returns where it is as zstash takes it: a path of HPSS has no prefix.
    pub(super) fn hpss(&self) -> &str {
        let path = self.url.strip_prefix("hpss:").unwrap_or(&self.url);
        path.strip_prefix("//").unwrap_or(path)
    }

    /// Removes what was sent there.
    ///
    /// # Errors
    /// The first file that stays.
    pub(super) fn clear(mut self) -> Result<(), BenchError> {
        self.empty()
    }

    fn empty(&mut self) -> Result<(), BenchError> {
        match &mut self.kind {
            Kind::Directory(scratch) => scratch.take().map_or(Ok(()), ScratchDirectory::remove),
            Kind::Other(store) => {
                let Some(store) = store.take() else {
                    return Ok(());
                };
                for file in store.list()? {
                    store.delete(&file.name)?;
                }
                Ok(())
            }
        }
    }
}

impl Drop for StoreFolder {
    fn drop(&mut self) {
        // Another error is on its way to the user already.
        let _ = self.empty();
    }
}

/// Stores are named by text.
fn utf8(path: &Path) -> Result<String, BenchError> {
    let text = PathBuf::from(path).into_os_string().into_string();
    text.map_err(|path| {
        let path = stook_sys::display_path(&path);
        BenchError::refused(format!(
            "`{path}` is not UTF-8, and the place of a store is"
        ))
    })
}
