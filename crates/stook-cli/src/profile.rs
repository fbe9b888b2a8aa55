//! `stook profile`: runs it, and prints tables with the figures in front, as names may be long.

use std::ffi::OsString;
use std::path::PathBuf;

use serde_json::{Value, json};
use stook_archive::BaseObserver as _;
use stook_bench::profile::{
    self, COUNTED_BY, CacheState, LinesOptions, Profile, ProfileOptions, Stacks, Subject,
    TimedFunction, Unwind, View,
};
use stook_bench::{BenchError, Observer, Sample};

use crate::args::{CacheArg, Common, ProfileArgs};
use crate::exit::{CliError, Ending, report};
use crate::hints;
use crate::number::{count, percent};
use crate::output::{self, Data};
use crate::progress::Reporter;
use crate::report::with_type;

/// Functions and places that are printed; the files and `--json` have all.
const MOST_ROWS: usize = 10;
/// System calls that are printed.
const MOST_CALLS: usize = 20;

pub(crate) fn profile(args: &ProfileArgs, common: &Common) -> Result<Ending, CliError> {
    let reporter = Reporter::new(common);
    let listener = Listener {
        reporter: &reporter,
        is_quiet: common.quiet,
    };
    if let Some(function) = &args.lines {
        let options = LinesOptions {
            function: function.clone(),
            command: args.command.clone(),
            search_path: search_path(),
        };
        let (functions, failure) = profile::profile_lines(&options, &listener)?;
        print(common, lines_json(&functions), || lines_text(&functions))?;
        return Ok(failure.map_or(Ending::Done, |error| report(&error.into(), common.json)));
    }
    let options = options(args);
    let found = profile::profile(&options, &listener)?;
    print(common, json_lines(&found), || text(&found))?;
    for error in &found.missing {
        output::message(&format!("warning: {error}"));
        if let Some(hint) = hints::of_bench(error) {
            output::message(&format!("hint: {hint}"));
        }
    }
    Ok(match found.failure {
        _ if found.is_interrupted => report(&BenchError::Interrupted.into(), common.json),
        Some(error) => report(&error.into(), common.json),
        None if !found.missing.is_empty() => Ending::SomeFailed,
        None => Ending::Done,
    })
}

fn options(args: &ProfileArgs) -> ProfileOptions {
    let views = [
        (args.on_cpu, View::OnCpu),
        (args.off_cpu, View::OffCpu),
        (args.syscalls, View::SystemCalls),
    ];
    let folder = || {
        let now = jiff::Zoned::now().strftime("%Y%m%d-%H%M%S");
        PathBuf::from(format!("stook-profile-{now}"))
    };
    ProfileOptions {
        subject: match args.pid {
            Some(pid) => Subject::Process {
                pid,
                longest: args.longest,
            },
            None => Subject::Command(args.command.clone()),
        },
        views: views
            .into_iter()
            .filter_map(|(is_wanted, view)| is_wanted.then_some(view))
            .collect(),
        unwind: match args.dwarf {
            true => Unwind::Dwarf,
            false => Unwind::FramePointers,
        },
        cache: args.cache.map(|cache| match cache {
            CacheArg::Cold => CacheState::Cold,
            CacheArg::Warm => CacheState::Warm,
            CacheArg::Hot => CacheState::Hot,
        }),
        before: args.before.clone(),
        folder: args.out.clone().unwrap_or_else(folder),
        search_path: search_path(),
    }
}

/// Where programs are looked for; where nothing is set, as the C library does.
fn search_path() -> OsString {
    #[expect(
        clippy::disallowed_methods,
        reason = "the program, not a library, reads the environment"
    )]
    let path = std::env::var_os("PATH");
    path.unwrap_or_else(|| "/bin:/usr/bin".into())
}

/// Prints lines of JSON, or the text.
fn print(common: &Common, json: Vec<Value>, text: impl Fn() -> String) -> Result<(), CliError> {
    let mut data = Data::new();
    if common.json {
        for line in json {
            data.json(&line)?;
        }
    } else {
        data.text(&text())?;
    }
    Ok(data.flush()?)
}

fn text(found: &Profile) -> String {
    let mut parts = Vec::new();
    if let Some(times) = found.times {
        let all = times.on_cpu + times.blocked + times.waiting_for_cpu;
        let row = |seconds: f64, name: &str| {
            let figures = [format!("{seconds:.3}"), percent(seconds, all)];
            (figures.to_vec(), name.to_owned())
        };
        let threads = count(times.threads as u64, "thread", "threads");
        let rows = vec![
            row(times.on_cpu, "on a processor"),
            row(times.blocked, "blocked"),
            row(times.waiting_for_cpu, "ready, waiting for a processor"),
        ];
        let titles = ["seconds", "share", &format!("time of {threads}")];
        parts.push(table(&titles, &rows));
    }
    if let Some(stacks) = found.on_cpu.as_ref().filter(|stacks| stacks.count() > 0) {
        parts.push(functions_text(stacks));
    }
    if let Some((stacks, places)) = &found.off_cpu {
        let rows = places.iter().take(MOST_ROWS).map(|place| {
            let figures = [
                format!("{:.3}", place.seconds),
                percent(place.seconds, stacks.seconds()),
                place.times.to_string(),
            ];
            (figures.to_vec(), place_text(&place.call, &place.caller))
        });
        let is_caller_known = places.iter().any(|place| !place.caller.is_empty());
        let name = match is_caller_known {
            true => "blocked in",
            false => "blocked in (`--dwarf` tells by whose call)",
        };
        let titles = ["seconds", "share", "times", name];
        parts.push(table(&titles, &rows.collect::<Vec<_>>()));
    }
    if let Some(calls) = &found.system_calls {
        parts.push(calls.table(MOST_CALLS));
    }
    let written = found
        .files
        .iter()
        .map(|file| format!("written: {}\n", stook_sys::display_path(file)));
    parts.push(written.collect());
    parts.join("\n")
}

fn functions_text(stacks: &Stacks) -> String {
    let functions = stacks.functions().into_iter();
    let functions = functions.filter(|function| function.self_seconds > 0.0);
    let rows = functions.take(MOST_ROWS).map(|row| {
        let figures = [
            format!("{:.3}", row.self_seconds),
            percent(row.self_seconds, stacks.seconds()),
            format!("{:.3}", row.total_seconds),
        ];
        (figures.to_vec(), row.function)
    });
    let samples = count(stacks.count(), "sample", "samples");
    let titles = [
        "self s",
        "share",
        "total s",
        &format!("on the CPU, {samples}"),
    ];
    table(&titles, &rows.collect::<Vec<_>>())
}

fn place_text(call: &str, caller: &str) -> String {
    match (call, caller) {
        ("", "") => "(unknown)".to_owned(),
        (call, "") => call.to_owned(),
        ("", caller) => caller.to_owned(),
        (call, caller) => format!("{call}, called by {caller}"),
    }
}

/// Rows of figures, right-aligned, with a name behind them.
fn table(titles: &[&str], rows: &[(Vec<String>, String)]) -> String {
    let (name, titles) = titles.split_last().expect("a table has columns");
    let titles: Vec<String> = titles.iter().map(ToString::to_string).collect();
    let width = |column: usize| {
        let cells = rows.iter().map(|(figures, _)| figures[column].len());
        cells.chain([titles[column].len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..titles.len()).map(width).collect();
    let head = (titles, (*name).to_owned());
    let line = |(figures, name): &(Vec<String>, String)| {
        let cells = figures.iter().zip(&widths);
        let cells: Vec<String> = cells
            .map(|(cell, &width)| format!("{cell:>width$}"))
            .collect();
        format!("{}  {name}\n", cells.join("  "))
    };
    std::iter::once(&head).chain(rows).map(line).collect()
}

fn json_lines(found: &Profile) -> Vec<Value> {
    let mut lines = Vec::new();
    if let Some(times) = found.times {
        lines.push(with_type("times", json!(times)));
    }
    let off_cpu = found.off_cpu.as_ref();
    let views = [
        ("on-cpu", found.on_cpu.as_ref()),
        ("off-cpu", off_cpu.map(|(stacks, _)| stacks)),
    ];
    for (view, stacks) in views
        .into_iter()
        .filter_map(|(view, stacks)| Some((view, stacks?)))
    {
        lines.push(json!({
            "type": "stacks", "view": view, "count": stacks.count(), "seconds": stacks.seconds(),
            "cut_seconds": stacks.cut_seconds(),
        }));
        for function in stacks.functions() {
            let mut line = with_type("function", json!(function));
            line["view"] = json!(view);
            lines.push(line);
        }
    }
    for place in off_cpu.map(|(_, places)| places).into_iter().flatten() {
        lines.push(with_type("place", json!(place)));
    }
    for call in found.system_calls.iter().flat_map(|calls| &calls.calls) {
        lines.push(with_type("syscall", json!(call)));
    }
    let files: Vec<String> = found.files.iter().map(stook_sys::display_path).collect();
    lines.push(json!({
        "type": "summary", "lost": found.lost, "files": files, "interrupted": found.is_interrupted,
        "counted_by": found.system_calls.as_ref().map(|_| COUNTED_BY),
        "missing": found.missing.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "failure": found.failure.as_ref().map(ToString::to_string),
    }));
    lines
}

fn lines_json(functions: &[TimedFunction]) -> Vec<Value> {
    let mut lines = Vec::new();
    for function in functions {
        for line in &function.lines {
            let mut value = with_type("line", json!(line));
            value["function"] = json!(function.function);
            value["file"] = json!(function.file);
            lines.push(value);
        }
    }
    lines
}

fn lines_text(functions: &[TimedFunction]) -> String {
    let parts = functions.iter().map(|function| {
        let all: f64 = function.lines.iter().map(|line| line.microseconds).sum();
        let rows = function.lines.iter().map(|line| {
            let figures = match line.hits {
                0 => [
                    line.line.to_string(),
                    String::new(),
                    String::new(),
                    String::new(),
                ],
                hits => [
                    line.line.to_string(),
                    hits.to_string(),
                    format!("{:.1}", line.microseconds),
                    percent(line.microseconds, all),
                ],
            };
            (figures.to_vec(), line.source.clone())
        });
        let rows = table(
            &["line", "hits", "microseconds", "share", "source"],
            &rows.collect::<Vec<_>>(),
        );
        let file = stook_sys::display_path(&function.file);
        format!(
            "{} in {file}: {:.6} s\n\n{rows}",
            function.function,
            all / 1e6
        )
    });
    parts.collect::<Vec<String>>().join("\n")
}

/// Listens to a profile.
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

    fn warning(&self, text: &str) {
        output::message(&format!("warning: {text}"));
    }

    fn sampled(&self, _sample: &Sample) {}

    fn is_stopped(&self) -> bool {
        self.reporter.is_interrupted()
    }
}
