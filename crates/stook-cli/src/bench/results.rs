//! Where the samples of a bench go: into the file that `--save` names, to stdout with `--json`, and into memory.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;

use stook_bench::{BenchError, Results, Sample};
use stook_sys::Context;

use crate::args::{Common, SaveArgs};
use crate::exit::{CliError, to_stdout};
use crate::mutex::lock;
use crate::output;
use crate::report::{Header, Line, Measured, Summary};

/// The time now, as results have it.
pub(super) fn now() -> String {
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ");
    now.to_string()
}

/// Prints the header of a bench that ends before it has conditions to tell: what fails is the line after it.
pub(super) fn or_header<T, E>(
    prepared: Result<T, E>,
    command: &'static str,
    common: &Common,
) -> Result<T, E> {
    if prepared.is_err() && common.json {
        // The error to report is why nothing can be measured.
        let _ = output::line(&Line::Header(Header::new(command)));
    }
    prepared
}

/// Writes results while they come.
pub(super) struct ResultsWriter<'a> {
    is_json: bool,
    saved: Option<(Mutex<File>, &'a Path)>,
    results: Mutex<Results>,
    /// The first write error, reported when the bench has ended.
    failed: Mutex<Option<CliError>>,
}

impl<'a> ResultsWriter<'a> {
    /// Begins the file and the lines of JSON with the header.
    pub(super) fn begin(
        command: &'static str,
        header: &stook_bench::Header,
        save: &'a SaveArgs,
        common: &Common,
    ) -> Result<Self, CliError> {
        let create = |path: &'a Path| Ok((Mutex::new(stook_sys::create_new_file(path)?), path));
        let saved = save.save.as_deref().map(create).transpose();
        let writer = Self {
            is_json: common.json,
            saved: or_header(saved, command, common).map_err(CliError::Sys)?,
            results: Mutex::new(Results {
                header: header.clone(),
                samples: Vec::new(),
            }),
            failed: Mutex::default(),
        };
        writer.write(
            &header.line(),
            &Line::Header(Header::of_bench(command, header)),
        )?;
        Ok(writer)
    }

    fn write(&self, saved: &str, printed: &Line<'_>) -> Result<(), CliError> {
        if let Some((file, path)) = &self.saved {
            writeln!(lock(file), "{saved}").context("write", path)?;
        }
        if self.is_json {
            output::line(printed)?;
        }
        Ok(())
    }

    /// Takes a sample; returns false if it could not be written.
    pub(super) fn keep(&self, sample: &Sample) -> bool {
        lock(&self.results).samples.push(sample.clone());
        let written = self.write(&sample.line(), &Line::Sample(sample));
        let is_written = written.is_ok();
        if let Err(error) = written {
            lock(&self.failed).get_or_insert(error);
        }
        is_written
    }

    /// Returns what was measured so far.
    pub(super) fn results(&self) -> Results {
        lock(&self.results).clone()
    }

    /// Returns what the bench found, or the first failure of writing its samples.
    pub(super) fn finish<T>(&self, found: Result<T, BenchError>) -> Result<T, CliError> {
        match lock(&self.failed).take() {
            Some(error) => Err(error),
            None => Ok(found?),
        }
    }

    /// Prints the tables, or the summary.
    pub(super) fn print(&self, measured: Measured, text: &str) -> Result<(), CliError> {
        let print = |data: &mut output::Data| match self.is_json {
            true => Ok(data.json(&Line::Summary(Summary::Measured(measured)))?),
            false => Ok(data.text(text)?),
        };
        to_stdout(print).map(drop)
    }
}
