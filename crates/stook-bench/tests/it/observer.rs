//! An observer that keeps what it hears.

use std::sync::{Mutex, MutexGuard, PoisonError};

use stook_bench::{Observer, Sample};

/// Keeps warnings and samples.
#[derive(Debug, Default)]
pub(crate) struct Quiet {
    pub(crate) warnings: Mutex<Vec<String>>,
    pub(crate) samples: Mutex<Vec<Sample>>,
    is_stopped: bool,
}

impl Quiet {
    /// Returns one whose user wants an end from the beginning.
    pub(crate) fn stopped() -> Self {
        Self {
            is_stopped: true,
            ..Self::default()
        }
    }
}

impl Observer for Quiet {
    fn progress(&self, _text: &str) {}

    fn warning(&self, text: &str) {
        self.warnings.lock().unwrap().push(text.to_owned());
    }

    fn sampled(&self, sample: &Sample) {
        self.samples.lock().unwrap().push(sample.clone());
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped
    }
}

/// Keeps tests apart that drop caches, or need what is in them, for as long as it is held.
pub(crate) fn alone_with_the_caches() -> MutexGuard<'static, ()> {
    static CACHES: Mutex<()> = Mutex::new(());
    CACHES.lock().unwrap_or_else(PoisonError::into_inner)
}
