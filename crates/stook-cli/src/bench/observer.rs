//! What a bench reports while it runs: progress and warnings on stderr, samples to the results.

use std::sync::atomic::{AtomicBool, Ordering};

use stook_archive::{BaseObserver as _, Observer as _};
use stook_bench::{Observer, Remedy, Sample};

use crate::args::Common;
use crate::hints;
use crate::output;
use crate::progress::Reporter;

/// Shows progress and warnings, and hands on samples.
pub(crate) struct BenchObserver<'a> {
    reporter: &'a Reporter,
    is_quiet: bool,
    /// Takes a sample; false ends the bench.
    keep: Box<dyn Fn(&Sample) -> bool + Sync + 'a>,
    has_failed: AtomicBool,
}

impl<'a> BenchObserver<'a> {
    /// Returns one that passes over samples.
    pub(crate) fn new(reporter: &'a Reporter, common: &Common) -> Self {
        Self {
            reporter,
            is_quiet: common.quiet,
            keep: Box::new(|_| true),
            has_failed: AtomicBool::new(false),
        }
    }

    /// Shows warnings only.
    pub(super) fn quiet(self) -> Self {
        Self {
            is_quiet: true,
            ..self
        }
    }

    /// Hands samples on; if one cannot be kept, which is false, the bench ends.
    pub(super) fn keeping(self, keep: impl Fn(&Sample) -> bool + Sync + 'a) -> Self {
        Self {
            keep: Box::new(keep),
            ..self
        }
    }
}

impl Observer for BenchObserver<'_> {
    fn progress(&self, text: &str) {
        if !self.is_quiet {
            output::message(text);
        }
    }

    fn phase(&self, name: &'static str, files: Option<u64>, bytes: Option<u64>) {
        self.reporter.phase(name, files, bytes);
    }

    fn advanced(&self, files: u64, bytes: u64) {
        self.reporter.advanced(files, bytes);
    }

    fn warning(&self, text: &str) {
        output::message(&format!("warning: {text}"));
    }

    fn warning_with(&self, text: &str, remedy: &Remedy) {
        self.warning(text);
        output::message(&format!("hint: {}", hints::of_remedy(remedy)));
    }

    fn sampled(&self, sample: &Sample) {
        if !(self.keep)(sample) {
            self.has_failed.store(true, Ordering::Relaxed);
        }
    }

    fn is_stopped(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed) || self.reporter.is_interrupted()
    }
}
