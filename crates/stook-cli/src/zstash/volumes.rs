//! Whether a volume is here, and as long as the index says; if not it is fetched, and tried again as zstash does.
//!
//! ```text
//!   a temporary name ──size as on record──> 000000.tar, if nothing is there
//!                    ──and its MD5────────> 000000.tar, in the place of what no record knows
//! ```
//! What is here may be the only copy, and the place that was named another archive's.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use stook_archive::{StoreOptions, Volume, VolumeId};
use stook_md5::Md5;
use stook_store::{Download, TransferObserver};
use stook_sys::{
    Context as _, TemporaryNames, create_directory, exists, install, install_new, look_at,
    open_file, read_up_to_at, remove_file,
};

use super::argparse::Values;
use super::context::Context;
use super::error::{FrontError, not_found};
use super::log::{Level, Line};
use super::messages;
use super::settings::Cache;

/// Bytes that are hashed at once.
const PIECE_BYTES: usize = 1 << 20;

/// Brings volumes here.
pub(crate) struct Fetcher<'a> {
    pub(crate) context: &'a Context,
    pub(crate) cache: &'a Cache,
    pub(crate) store: Option<&'a StoreOptions>,
    /// What is on record of volumes, oldest first; None if nothing is.
    records: Option<Vec<(i64, Volume)>>,
    tries: i128,
    fails_on_duplicate: bool,
}

impl<'a> Fetcher<'a> {
    pub(crate) fn new(
        context: &'a Context,
        cache: &'a Cache,
        store: Option<&'a StoreOptions>,
        records: Option<Vec<(i64, Volume)>>,
        values: &Values,
    ) -> Self {
        Self {
            context,
            cache,
            store,
            records,
            tries: values.integer("retries").saturating_add(1),
            fails_on_duplicate: values.switch("error_on_duplicate_tar"),
        }
    }

    pub(crate) fn path(&self, volume: VolumeId) -> PathBuf {
        self.cache.folder.join(volume.to_string())
    }

    /// Makes sure that a volume is here. Returns whether this run has fetched it; adds what is to be said of it.
    ///
    /// # Errors
    /// If it is not here, or not as long as it must be.
    pub(crate) fn require(
        &self,
        volume: VolumeId,
        lines: &mut Vec<Line>,
    ) -> Result<bool, FrontError> {
        let mut left = self.tries;
        while left > 0 {
            left -= 1;
            if let Some(found) = exists(&self.path(volume))?
                && self.has_right_size(volume, found.size, lines)?
            {
                return Ok(false);
            }
            match self.fetch(volume, lines) {
                Ok(()) => return Ok(true),
                Err(error)
                    if left > 0 && is_temporary(&error) && !self.context.is_interrupted() =>
                {
                    if self.store.is_some() {
                        lines.push((Level::Error, error.to_string()));
                    }
                    lines.push((Level::Info, messages::retrying(left)));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    fn fetch(&self, volume: VolumeId, lines: &mut Vec<Line>) -> Result<(), FrontError> {
        let shown = self.cache.path_of(volume);
        let arrived = match self.store {
            None => {
                lines.push((Level::Info, messages::GET_UNAVAILABLE.to_owned()));
                None
            }
            Some(options) => {
                lines.push((Level::Info, messages::fetching(&shown)));
                Some(self.get(options, volume)?)
            }
        };
        let path = arrived
            .as_ref()
            .map_or_else(|| self.path(volume), |it| it.0.clone());
        let found = exists(&path)?.ok_or_else(|| not_found(&shown))?;
        let is_right = self.has_right_size(volume, found.size, lines)?;
        match arrived {
            Some(arrived) if is_right && self.install(volume, &arrived, found.size)? => Ok(()),
            None if is_right => Ok(()),
            _ => {
                let text = messages::wrong_size(&shown);
                Err(FrontError::raised("RuntimeError", text))
            }
        }
    }

    /// Fetches a volume under a name that nothing has.
    fn get(&self, options: &StoreOptions, volume: VolumeId) -> Result<Arrived, FrontError> {
        let folder = &self.cache.folder;
        create_directory(folder)?;
        let inode = look_at(folder)?.identity().1;
        let temporary = TemporaryNames::new("partial").next(inode);
        let (name, arrived) = (
            volume.to_string(),
            Arrived(folder.join(OsStr::from_bytes(&temporary))),
        );
        let download = Download {
            name: &name,
            path: &arrived.0,
            size: None,
        };
        let mut outcome = Ok(());
        options
            .store
            .get(&[download], self, &mut |_, arrived| outcome = arrived)?;
        outcome?;
        Ok(arrived)
    }

    /// Gives what arrived its name; false if it must not take the place of what is there.
    fn install(&self, volume: VolumeId, arrived: &Arrived, size: u64) -> Result<bool, FrontError> {
        let path = self.path(volume);
        let Some(here) = exists(&path)? else {
            install_new(&arrived.0, &path)?;
            return Ok(true);
        };
        if self.is_on_record(volume, &path, here.size)?
            || !self.is_on_record(volume, &arrived.0, size)?
        {
            return Ok(false);
        }
        install(&arrived.0, &path)?;
        Ok(true)
    }

    /// Returns true if a file has the size of a record of the volume, and its MD5 if that has one.
    fn is_on_record(&self, volume: VolumeId, path: &Path, size: u64) -> Result<bool, FrontError> {
        let records = self.records.iter().flatten().map(|(_, record)| record);
        let md5s: Vec<Option<[u8; 16]>> = records
            .filter(|record| record.id == volume && record.size == size)
            .map(|record| record.md5)
            .collect();
        if md5s.is_empty() || md5s.contains(&None) {
            return Ok(!md5s.is_empty());
        }
        Ok(md5s.contains(&Some(self.md5_of(path)?)))
    }

    fn md5_of(&self, path: &Path) -> Result<[u8; 16], FrontError> {
        let file = open_file(path)?;
        let (mut md5, mut offset) = (Md5::new(), 0);
        let mut buffer = vec![0; PIECE_BYTES];
        loop {
            if self.context.is_interrupted() {
                return Err(FrontError::Interrupted);
            }
            let read = read_up_to_at(&file, &mut buffer, offset);
            let read = read.context("read", path)?;
            if read == 0 {
                return Ok(md5.finish());
            }
            md5.update(&buffer[..read]);
            offset += read as u64;
        }
    }

    fn has_right_size(
        &self,
        volume: VolumeId,
        actual: u64,
        lines: &mut Vec<Line>,
    ) -> Result<bool, FrontError> {
        let Some(records) = &self.records else {
            lines.push((Level::Debug, messages::SIZES_UNKNOWN.to_owned()));
            return Ok(true);
        };
        let shown = self.cache.path_of(volume);
        lines.push((Level::Info, messages::exists(&shown)));
        let of_volume = records.iter().rev().filter(|(_, it)| it.id == volume);
        let sizes: Vec<u64> = of_volume.map(|(_, it)| it.size).collect();
        match sizes.as_slice() {
            [] => {
                lines.push((Level::Error, messages::no_entries(volume)));
                self.context.note_failure();
                Ok(true)
            }
            [expected] => {
                lines.push((Level::Info, messages::single_entry(volume)));
                let is_right = *expected == actual;
                lines.push(if is_right {
                    (Level::Info, messages::size_passed(volume, actual))
                } else {
                    let text = messages::size_mismatch(volume, *expected, actual);
                    (Level::Error, text)
                });
                Ok(is_right)
            }
            [newest, others @ ..] => {
                let text = messages::several_entries(volume, &sizes);
                if self.fails_on_duplicate {
                    lines.push((Level::Error, text.clone()));
                    return Err(FrontError::raised("RuntimeError", text));
                }
                lines.push((Level::Warning, text));
                lines.push((
                    Level::Info,
                    if *newest == actual {
                        messages::newest_matches(volume, actual)
                    } else if others.contains(&actual) {
                        messages::other_matches(volume, actual)
                    } else {
                        messages::none_matches(volume, actual)
                    },
                ));
                Ok(*newest == actual)
            }
        }
    }
}

/// A file that was fetched; it goes unless it has got its name.
struct Arrived(PathBuf);

impl Drop for Arrived {
    fn drop(&mut self) {
        let _ = remove_file(&self.0);
    }
}

impl TransferObserver for Fetcher<'_> {
    fn transferred(&self, bytes: u64) {
        self.context.phases.advance(0, bytes);
    }

    fn is_interrupted(&self) -> bool {
        self.context.is_interrupted()
    }
}

/// zstash tries again after what it raises as `RuntimeError`: a transfer that failed, a wrong size.
fn is_temporary(error: &FrontError) -> bool {
    matches!(
        error,
        FrontError::Store(_)
            | FrontError::Raised {
                class: "RuntimeError",
                ..
            }
    )
}
