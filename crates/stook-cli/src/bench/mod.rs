//! `stook bench`: shows progress, saves the samples, and prints the results.

mod cache;
mod fileset;
mod fs;
mod pair;
mod report;
mod update;

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;

use stook_archive::BaseObserver as _;
use stook_bench::{BenchError, Header, Observer, Sample};

use stook_sys::Context;

use crate::args::{BenchArgs, BenchCommand, Common, SaveArgs};
use crate::exit::{CliError, Ending};
use crate::mutex::lock;
use crate::output::{self, Data};
use crate::progress::Reporter;

pub(crate) fn bench(args: &BenchArgs, common: &Common) -> Result<Ending, CliError> {
    // Not its path: a user may run a program from a folder that nobody else may enter.
    stook_bench::set_launcher("/proc/self/exe".into());
    match &args.command {
        BenchCommand::Fileset(args) => fileset::fileset(args, common),
        BenchCommand::Fs(args) => fs::fs(args, common),
        BenchCommand::Cache(args) => cache::cache(args, common),
        BenchCommand::Update(args) => update::update(args, common),
        BenchCommand::Report(args) => report::report(args, common),
        BenchCommand::Pair(args) => pair::measure(args, common),
    }
}

/// The time now, as results have it.
fn now() -> String {
    jiff::Timestamp::now()
        .strftime("%Y-%m-%dT%H:%M:%SZ")
        .to_string()
}

/// Listens to a bench: samples go to the file that `--save` names, and with `--json` to stdout.
struct Listener<'a> {
    reporter: &'a Reporter,
    is_quiet: bool,
    is_json: bool,
    saved: Option<(Mutex<File>, &'a Path)>,
    /// The first write error, reported when the bench has ended.
    failed: Mutex<Option<CliError>>,
}

impl<'a> Listener<'a> {
    /// Begins the file with the header.
    fn new(
        reporter: &'a Reporter,
        header: &Header,
        save: &'a SaveArgs,
        common: &Common,
    ) -> Result<Self, CliError> {
        let saved = match save.save.as_deref() {
            Some(path) => Some((Mutex::new(stook_sys::create_new_file(path)?), path)),
            None => None,
        };
        let listener = Self {
            reporter,
            is_quiet: common.quiet,
            is_json: common.json,
            saved,
            failed: Mutex::default(),
        };
        listener.write(&header.line())?;
        Ok(listener)
    }

    fn write(&self, line: &str) -> Result<(), CliError> {
        if let Some((file, path)) = &self.saved {
            let written = writeln!(lock(file), "{line}");
            written.context("write", path)?;
        }
        if self.is_json {
            let mut data = Data::new();
            data.line(line)?;
            data.flush()?;
        }
        Ok(())
    }

    /// Returns what the bench found, or the first failure of writing its samples.
    fn finish<T>(self, found: Result<T, BenchError>) -> Result<T, CliError> {
        match self.failed.into_inner() {
            Ok(Some(error)) => Err(error),
            _ => Ok(found?),
        }
    }
}

impl Observer for Listener<'_> {
    fn progress(&self, text: &str) {
        if !self.is_quiet {
            output::message(text);
        }
    }

    fn warning(&self, text: &str) {
        output::message(&format!("warning: {text}"));
    }

    fn sampled(&self, sample: &Sample) {
        if let Err(error) = self.write(&sample.line()) {
            lock(&self.failed).get_or_insert(error);
        }
    }

    fn is_stopped(&self) -> bool {
        self.reporter.is_interrupted() || lock(&self.failed).is_some()
    }
}
