//! `stook bench fileset`.

use stook_archive::{BaseObserver as _, Observer as _};
use stook_bench::fileset::{self, FilesetOptions, Properties, Spec};
use stook_bench::{Observer, Sample, Table};

use crate::args::{Common, FilesetArgs};
use crate::exit::{CliError, Ending};
use crate::number::{grouped, rounded};
use crate::options::jobs;
use crate::output::{self, Data};
use crate::progress::Reporter;
use crate::report::{Line, Summary};

pub(crate) fn fileset(args: &FilesetArgs, common: &Common) -> Result<Ending, CliError> {
    let options = FilesetOptions {
        spec: Spec::find(&args.spec)?,
        files: args.files,
        seed: args.seed,
        jobs: jobs(args.jobs),
    };
    let reporter = Reporter::new(common);
    let listener = Listener {
        reporter: &reporter,
        is_quiet: common.quiet,
    };
    let made = if args.dry_run {
        fileset::properties(&options, &listener)
    } else {
        fileset::make(&args.dir, &options, &listener)
    };
    reporter.finish();
    let properties = made?;
    let mut data = Data::new();
    if common.json {
        let summary = Summary::Fileset(Box::new(properties));
        data.json(&Line::Summary(summary))?;
    } else {
        data.text(&table(&properties).text())?;
    }
    data.flush()?;
    Ok(Ending::Done)
}

/// The figures of a set as a table of one row.
pub(crate) fn table(properties: &Properties) -> Table {
    let mut table = Table::new([
        "format",
        "bytes",
        "files",
        "directories",
        "mean",
        "stdev",
        "min",
        "median",
        "max",
    ]);
    table.row([
        properties.format.clone(),
        grouped(properties.bytes),
        grouped(properties.files),
        grouped(properties.directories),
        rounded(properties.mean),
        rounded(properties.stdev),
        grouped(properties.min),
        grouped(properties.median),
        grouped(properties.max),
    ]);
    table
}

/// Shows the progress.
struct Listener<'a> {
    reporter: &'a Reporter,
    is_quiet: bool,
}

impl Observer for Listener<'_> {
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

    fn sampled(&self, _sample: &Sample) {}

    fn is_stopped(&self) -> bool {
        self.reporter.is_interrupted()
    }
}
