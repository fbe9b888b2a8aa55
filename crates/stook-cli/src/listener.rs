//! What the work on trees tells on its way: paths as data, and failures, the first of them by name.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use stook_archive::{Failure, Observer};
use stook_sys::display_bytes;
use stook_tree::TreeError;

use crate::exit::{CliError, Ending};
use crate::output::{self, Data, JsonPath};
use crate::progress::Reporter;
use crate::size::grouped;

/// Failures that are named; of the others there is only the number.
const MOST_NAMED: u64 = 20;

pub(crate) struct Listener<'a> {
    pub(crate) reporter: &'a Reporter,
    is_json: bool,
    failed: AtomicU64,
    /// Why stdout could not be written.
    unwritable: Mutex<Option<io::Error>>,
}

impl<'a> Listener<'a> {
    pub(crate) fn new(reporter: &'a Reporter, is_json: bool) -> Self {
        Self {
            reporter,
            is_json,
            failed: AtomicU64::new(0),
            unwritable: Mutex::default(),
        }
    }

    /// Takes a failure.
    pub(crate) fn failure(&self, error: TreeError) {
        if self.failed.fetch_add(1, Ordering::Relaxed) < MOST_NAMED {
            self.reporter.failed(&Failure {
                operation: error.operation,
                path: error.path,
                cause: stook_sys::cause(&error.source),
            });
        }
    }

    /// Prints a path; `line` is what the line is about.
    pub(crate) fn print(&self, line: &'static str, path: &[u8]) {
        if let Err(error) = self.try_print(line, path) {
            let unwritable = self.unwritable.lock();
            unwritable
                .unwrap_or_else(PoisonError::into_inner)
                .get_or_insert(error);
        }
    }

    fn try_print(&self, line: &'static str, path: &[u8]) -> io::Result<()> {
        let mut data = Data::new();
        if self.is_json {
            #[derive(serde::Serialize)]
            struct Line {
                #[serde(rename = "type")]
                line: &'static str,
                #[serde(flatten)]
                path: JsonPath,
            }
            data.json(&Line {
                line,
                path: JsonPath::new(path),
            })?;
        } else {
            data.line(&display_bytes(path))?;
        }
        data.flush()
    }

    /// Tells of failures that were not named, and returns how many there were in all.
    ///
    /// # Errors
    /// If stdout could not be written.
    pub(crate) fn failures(&self) -> Result<u64, CliError> {
        let unwritable = self.unwritable.lock();
        if let Some(error) = unwritable.unwrap_or_else(PoisonError::into_inner).take() {
            return Err(error.into());
        }
        let failed = self.failed.load(Ordering::Relaxed);
        if failed > MOST_NAMED {
            let rest = grouped(failed - MOST_NAMED);
            output::error(&format!("and {rest} more failures"), None);
        }
        Ok(failed)
    }

    /// Returns how it ended; `hint` is for who has interrupted it.
    pub(crate) fn ending(&self, failed: u64, hint: &str) -> Ending {
        if self.reporter.is_interrupted() {
            output::error("interrupted", Some(hint));
            Ending::Interrupted
        } else if failed > 0 {
            Ending::SomeFailed
        } else {
            Ending::Done
        }
    }
}
