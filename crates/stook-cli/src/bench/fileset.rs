//! `stook bench fileset`.

use stook_bench::Table;
use stook_bench::fileset::{self, FilesetOptions, Filling, Properties, Spec};

use super::observer::BenchObserver;
use crate::args::{Common, FilesetArgs};
use crate::exit::{CliError, Ending};
use crate::number::{grouped, rounded};
use crate::options::jobs;
use crate::output::Data;
use crate::progress::Reporter;
use crate::report::{Line, Summary};

pub(crate) fn fileset(args: &FilesetArgs, common: &Common) -> Result<Ending, CliError> {
    let options = FilesetOptions {
        spec: Spec::find(&args.spec)?,
        files: args.files,
        seed: args.seed,
        jobs: jobs(args.jobs),
        filling: match args.sparse {
            true => Filling::Hole,
            false => Filling::Content,
        },
    };
    let reporter = Reporter::new(common);
    let observer = BenchObserver::new(&reporter, common);
    let made = if args.dry_run {
        fileset::properties(&options, &observer)
    } else {
        fileset::make(&args.dir, &options, &observer)
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
