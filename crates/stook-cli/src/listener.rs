//! Observes operations on trees: prints paths as data, and names the first failures.

use std::io::{self, IsTerminal, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use stook_archive::{BaseObserver as _, Failure};
use stook_sys::display_bytes;
use stook_tree::TreeError;

use crate::exit::{CliError, Ending, fatal};
use crate::hints;
use crate::mutex::lock;
use crate::number::count;
use crate::output::{self, Data};
use crate::progress::Reporter;
use crate::report::Line;

/// Bytes of lines that are printed at once, where nobody sees them come.
const MOST_BUFFERED: usize = 64 << 10;

/// Failures that are named on stderr; the others are only counted.
const MOST_NAMED: u64 = 20;

pub(crate) struct Listener<'a> {
    pub(crate) reporter: &'a Reporter,
    pub(crate) is_json: bool,
    is_terminal: bool,
    failed: AtomicU64,
    lines: Mutex<Vec<u8>>,
    /// Why stdout could not be written.
    unwritable: Mutex<Option<io::Error>>,
    /// That it could not: workers ask for every file.
    is_unwritable: AtomicBool,
}

impl<'a> Listener<'a> {
    pub(crate) fn new(reporter: &'a Reporter, is_json: bool) -> Self {
        Self {
            reporter,
            is_json,
            is_terminal: io::stdout().is_terminal(),
            failed: AtomicU64::new(0),
            lines: Mutex::default(),
            unwritable: Mutex::default(),
            is_unwritable: AtomicBool::new(false),
        }
    }

    /// Reports a failure: all of them as JSON, the first ones on stderr.
    pub(crate) fn failure(&self, error: &TreeError) {
        let hint = hints::of_tree(error.operation, &error.source);
        let failure = Failure {
            operation: error.operation,
            path: error.path.clone(),
            cause: error.clone().source.into(),
        };
        if self.failed.fetch_add(1, Ordering::Relaxed) < MOST_NAMED {
            output::error(&failure.to_string(), None);
            self.reporter.advise(hint);
        }
        self.reporter.failed_as_json(&failure);
    }

    /// Prints a path: with `--json` the line, else the path behind a word that says what is with it.
    pub(crate) fn print(&self, line: &Line<'_>, word: Option<&str>, path: &[u8]) {
        let mut lines = lock(&self.lines);
        if self.is_json {
            let text = serde_json::to_string(line);
            lines.extend(text.unwrap_or_default().into_bytes());
        } else {
            let word = word.map(|word| format!("{word:<9} ")).unwrap_or_default();
            lines.extend([word, display_bytes(path)].concat().into_bytes());
        }
        lines.push(b'\n');
        if self.is_terminal || lines.len() >= MOST_BUFFERED {
            self.flush(&mut lines);
        }
    }

    fn flush(&self, lines: &mut Vec<u8>) {
        let mut data = Data::new();
        let written = data.bytes().write_all(lines).and_then(|()| data.flush());
        lines.clear();
        if let Err(error) = written {
            lock(&self.unwritable).get_or_insert(error);
            self.is_unwritable.store(true, Ordering::Relaxed);
        }
    }

    /// Reports the number of failures that were not named, and returns the number of all.
    ///
    /// # Errors
    /// If stdout could not be written.
    pub(crate) fn failures(&self) -> Result<u64, CliError> {
        self.flush(&mut lock(&self.lines));
        if let Some(error) = lock(&self.unwritable).take() {
            return Err(error.into());
        }
        let failed = self.failed.load(Ordering::Relaxed);
        if failed > MOST_NAMED {
            let rest = count(failed - MOST_NAMED, "more failure", "more failures");
            output::error(&format!("and {rest}"), None);
        }
        Ok(failed)
    }

    /// Returns how it ended; `hint` is for who has interrupted it.
    pub(crate) fn ending(&self, failed: u64, hint: &str) -> Ending {
        if self.reporter.is_interrupted() {
            let ending = Ending::Interrupted;
            fatal("interrupted", Some(hint), ending, self.is_json);
            ending
        } else if failed > 0 {
            Ending::SomeFailed
        } else {
            Ending::Done
        }
    }
}

impl stook_tree::Observer for Listener<'_> {
    type Failure = TreeError;

    fn advanced(&self, entries: u64, bytes: u64) {
        self.reporter.advanced(entries, bytes);
    }

    fn failed(&self, error: &TreeError) {
        self.failure(error);
    }

    /// Returns true if the user has asked to end, or nobody can read what is printed.
    fn is_interrupted(&self) -> bool {
        self.reporter.is_interrupted() || self.is_unwritable.load(Ordering::Relaxed)
    }
}
