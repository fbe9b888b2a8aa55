//! `stook bench cache`.

use std::ffi::OsString;
use std::path::Path;

use serde_json::{Value, json};
use stook_bench::{CacheOptions, CacheTables, Header, Job, Kind, Watch};
use stook_sys::display_path;

use super::observer::BenchObserver;
use super::results::{ResultsWriter, now};
use crate::args::{BenchCacheArgs, Common};
use crate::exit::{CliError, Ending};
use crate::mount::server_at;
use crate::progress::Reporter;
use crate::report::Measured;

pub(crate) fn cache(args: &BenchCacheArgs, common: &Common) -> Result<Ending, CliError> {
    let options = options(args)?;
    let mut header = Header::new(Kind::Cache, &now());
    header.options = asked_for(args, &options);
    let reporter = Reporter::new(common);
    let writer = ResultsWriter::begin("bench cache", &header, &args.save, common)?;
    let observer = BenchObserver::new(&reporter, common).keeping(|sample| writer.keep(sample));
    let found = writer.finish(stook_bench::cache(&options, &observer))?;
    let samples = writer.results().samples;
    let measured = Measured {
        samples: samples.len(),
        warnings: CacheTables::of(&samples).warnings,
        ..Measured::default()
    };
    writer.print(measured, &found.text())?;
    Ok(Ending::Done)
}

fn options(args: &BenchCacheArgs) -> Result<CacheOptions, CliError> {
    let shell = |line: &Option<OsString>| {
        let line = line.clone()?;
        Some(Job::new([OsString::from("sh"), "-c".into(), line]))
    };
    let mut options = CacheOptions::new(Job::new(args.command.iter().cloned()), args.rounds);
    options.local = shell(&args.local);
    options.cold_hook = shell(&args.cold_hook);
    options.warm_hook = shell(&args.warm_hook);
    options.watch = args.watch.as_deref().map(watch);
    options.files.clone_from(&args.files);
    options.server = match &args.mount {
        Some(mount) => Some(server_at(mount).ok_or_else(|| CliError::Option {
            option: "--mount",
            value: display_path(mount),
            why: "no archive is mounted there that answers you".to_owned(),
        })?),
        None => server_at(Path::new(".")),
    };
    Ok(options)
}

/// A number is a process; `./7` is a mount of that name.
fn watch(typed: &Path) -> Watch {
    let number = typed.to_str().and_then(|text| text.parse().ok());
    number.map_or_else(|| Watch::Mount(typed.to_owned()), Watch::Process)
}

/// The options in the words of the command line.
fn asked_for(
    args: &BenchCacheArgs,
    options: &CacheOptions,
) -> std::collections::BTreeMap<String, Value> {
    let text = |job: &Option<Job>| job.as_ref().map(Job::text);
    let files: Vec<String> = args.files.iter().map(display_path).collect();
    let all = [
        ("rounds", json!(args.rounds)),
        ("command", json!(options.command.text())),
        ("local", json!(text(&options.local))),
        ("cold-hook", json!(text(&options.cold_hook))),
        ("warm-hook", json!(text(&options.warm_hook))),
        ("watch", json!(args.watch.as_ref().map(display_path))),
        ("mount", json!(args.mount.as_ref().map(display_path))),
        ("files", json!(files)),
    ];
    let given = all
        .into_iter()
        .filter(|(_, value)| !value.is_null() && *value != json!([]));
    given
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}
