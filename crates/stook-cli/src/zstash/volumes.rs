//! Whether a volume is here, and as long as the index says; if not it is fetched, and tried again as zstash does.

use std::path::PathBuf;

use stook_archive::{StoreOptions, Volume, VolumeId};
use stook_store::{Download, TransferObserver};
use stook_sys::exists;

use super::argparse::Values;
use super::context::Context;
use super::error::{FrontError, not_found};
use super::log::{Level, Line};
use super::messages;
use super::settings::Cache;

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
        match self.store {
            None => lines.push((Level::Info, messages::GET_UNAVAILABLE.to_owned())),
            Some(options) => {
                lines.push((Level::Info, messages::fetching(&shown)));
                self.get(options, volume)?;
            }
        }
        let found = exists(&self.path(volume))?.ok_or_else(|| not_found(&shown))?;
        if self.has_right_size(volume, found.size, lines)? {
            Ok(())
        } else {
            let text = messages::wrong_size(&shown);
            Err(FrontError::raised("RuntimeError", text))
        }
    }

    /// What is here under its name is replaced only by a whole file.
    fn get(&self, options: &StoreOptions, volume: VolumeId) -> Result<(), FrontError> {
        let (name, path) = (volume.to_string(), self.path(volume));
        let download = Download {
            name: &name,
            path: &path,
            size: None,
        };
        let mut outcome = Ok(());
        options
            .store
            .get(&[download], self, &mut |_, arrived| outcome = arrived)?;
        Ok(outcome?)
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
