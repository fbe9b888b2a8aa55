//! What the tests of this crate share, those beside it in `tests/` too.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::{Observer, Sample};

/// An observer that keeps what it hears.
#[derive(Debug, Default)]
pub(crate) struct Quiet {
    is_stopped: AtomicBool,
    pub(crate) warnings: Mutex<Vec<String>>,
    pub(crate) samples: Mutex<Vec<Sample>>,
}

impl Quiet {
    /// Returns one that wants an end from the beginning.
    pub(crate) fn stopped() -> Self {
        let quiet = Self::default();
        quiet.is_stopped.store(true, Ordering::Relaxed);
        quiet
    }
}

impl Observer for Quiet {
    fn warning(&self, text: &str) {
        self.warnings.lock().unwrap().push(text.to_owned());
    }

    fn sampled(&self, sample: &Sample) {
        self.samples.lock().unwrap().push(sample.clone());
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }
}

/// Keeps tests apart that drop caches, or need what is in them, for as long as it is held.
pub(crate) fn alone_with_the_caches() -> MutexGuard<'static, ()> {
    static CACHES: Mutex<()> = Mutex::new(());
    CACHES.lock().unwrap_or_else(PoisonError::into_inner)
}
