//! How the user ends a long statement: SQLite asks now and then whether to go on.
//!
//! The statement fails with `Interrupted`, and its transaction is rolled back as a whole. Nothing here knows of signals:
//! the caller shares a flag, and raises it.

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::Connection;

/// Instructions of SQLite between two questions: some hundred rows, much less than a millisecond.
const INSTRUCTIONS: c_int = 4096;

/// A flag that ends what an index is doing once it is raised.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Option<Arc<AtomicBool>>);

impl Interrupt {
    /// Returns one that is never raised.
    pub fn never() -> Self {
        Self::default()
    }

    /// Returns true once the flag is raised.
    pub fn is_raised(&self) -> bool {
        let raised = |flag: &Arc<AtomicBool>| flag.load(Ordering::Relaxed);
        self.0.as_ref().is_some_and(raised)
    }

    /// Has the connection ask this flag from now on.
    pub(crate) fn install(&self, connection: &mut Connection) -> rusqlite::Result<()> {
        let Some(flag) = self.0.clone() else {
            return connection.progress_handler(0, None::<fn() -> bool>);
        };
        let is_raised = move || flag.load(Ordering::Relaxed);
        connection.progress_handler(INSTRUCTIONS, Some(is_raised))
    }
}

impl From<Arc<AtomicBool>> for Interrupt {
    fn from(flag: Arc<AtomicBool>) -> Self {
        Self(Some(flag))
    }
}
