//! What `stook profile` prints: tables with the figures in front, as names may be long, or a line for each row of them.

use serde::Serialize;
use stook_bench::Table;
use stook_bench::profile::{self, COUNTED_BY, Function, Profile, Stacks, TimedFunction};

use super::row::Syscall;
use super::{Line, Summary};
use crate::number::{count, percent};

/// Functions and places that are printed; the files and `--json` have all.
const MOST_ROWS: usize = 10;
/// System calls that are printed.
const MOST_CALLS: usize = 20;

/// The stacks of a view.
#[derive(Serialize)]
pub(crate) struct ViewStacks {
    view: &'static str,
    count: u64,
    seconds: f64,
    cut_seconds: f64,
}

/// A function of a view.
#[derive(Serialize)]
pub(crate) struct ViewFunction {
    #[serde(flatten)]
    function: Function,
    view: &'static str,
}

/// A line of a Python function.
#[derive(Serialize)]
pub(crate) struct SourceLine<'a> {
    #[serde(flatten)]
    line: &'a profile::Line,
    function: &'a str,
    file: &'a str,
}

/// What `profile` recorded.
#[derive(Serialize)]
pub(crate) struct Profiled {
    lost: u64,
    files: Vec<String>,
    interrupted: bool,
    counted_by: Option<&'static str>,
    missing: Vec<String>,
    failure: Option<String>,
}

/// What `profile --lines` timed.
#[derive(Serialize)]
pub(crate) struct Timed {
    functions: usize,
    failure: Option<String>,
}

/// Returns the lines about a profile, the summary last.
pub(crate) fn lines(found: &Profile) -> Vec<Line<'_>> {
    let mut lines: Vec<Line<'_>> = found.times.into_iter().map(Line::Times).collect();
    let off_cpu = found.off_cpu.as_ref();
    let views = [
        ("on-cpu", found.on_cpu.as_ref()),
        ("off-cpu", off_cpu.map(|(stacks, _)| stacks)),
    ];
    for (view, stacks) in views {
        let Some(stacks) = stacks else {
            continue;
        };
        lines.push(Line::Stacks(ViewStacks {
            view,
            count: stacks.count(),
            seconds: stacks.seconds(),
            cut_seconds: stacks.cut_seconds(),
        }));
        let functions = stacks.functions().into_iter();
        lines.extend(functions.map(|function| Line::Function(ViewFunction { function, view })));
    }
    let places = off_cpu.map(|(_, places)| places).into_iter().flatten();
    lines.extend(places.map(Line::Place));
    let calls = found.system_calls.iter().flat_map(|calls| &calls.calls);
    lines.extend(calls.map(|call| Line::Syscall(Syscall::counted(call))));
    lines.push(Line::Summary(Summary::Profiled(Profiled {
        lost: found.lost,
        files: found.files.iter().map(stook_sys::display_path).collect(),
        interrupted: found.is_interrupted,
        counted_by: found.system_calls.as_ref().map(|_| COUNTED_BY),
        missing: found.missing.iter().map(ToString::to_string).collect(),
        failure: found.failure.as_ref().map(ToString::to_string),
    })));
    lines
}

/// Returns the tables about a profile, and which files were written.
pub(crate) fn text(found: &Profile) -> String {
    let mut parts = Vec::new();
    if let Some(times) = found.times {
        let all = times.on_cpu + times.blocked + times.waiting_for_cpu;
        let threads = count(times.threads as u64, "thread", "threads");
        let mut table = Table::name_last(["seconds", "share", &format!("time of {threads}")]);
        for (seconds, name) in [
            (times.on_cpu, "on a processor"),
            (times.blocked, "blocked"),
            (times.waiting_for_cpu, "ready, waiting for a processor"),
        ] {
            table.row([&format!("{seconds:.3}"), &percent(seconds, all), name]);
        }
        parts.push(table.text());
    }
    if let Some(stacks) = found.on_cpu.as_ref().filter(|stacks| stacks.count() > 0) {
        parts.push(functions(stacks));
    }
    if let Some((stacks, places)) = &found.off_cpu {
        parts.push(self::places(stacks, places));
    }
    if let Some(calls) = &found.system_calls {
        parts.push(calls.table(MOST_CALLS));
    }
    let files = found.files.iter().map(stook_sys::display_path);
    parts.push(files.map(|file| format!("written: {file}\n")).collect());
    parts.join("\n")
}

fn functions(stacks: &Stacks) -> String {
    let samples = count(stacks.count(), "sample", "samples");
    let name = format!("on the CPU, {samples}");
    let mut table = Table::name_last(["self s", "share", "total s", &name]);
    let functions = stacks.functions().into_iter();
    let functions = functions.filter(|function| function.self_seconds > 0.0);
    for function in functions.take(MOST_ROWS) {
        table.row([
            format!("{:.3}", function.self_seconds),
            percent(function.self_seconds, stacks.seconds()),
            format!("{:.3}", function.total_seconds),
            function.function,
        ]);
    }
    table.text()
}

fn places(stacks: &Stacks, places: &[profile::Place]) -> String {
    let name = match places.iter().any(|place| !place.caller.is_empty()) {
        true => "blocked in",
        false => "blocked in (`--dwarf` tells by whose call)",
    };
    let mut table = Table::name_last(["seconds", "share", "times", name]);
    for place in places.iter().take(MOST_ROWS) {
        table.row([
            format!("{:.3}", place.seconds),
            percent(place.seconds, stacks.seconds()),
            place.times.to_string(),
            match (place.call.as_str(), place.caller.as_str()) {
                ("", "") => "(unknown)".to_owned(),
                (call, "") => call.to_owned(),
                ("", caller) => caller.to_owned(),
                (call, caller) => format!("{call}, called by {caller}"),
            },
        ]);
    }
    table.text()
}

/// Returns the lines about Python functions, the summary last.
pub(crate) fn source_lines<'a>(
    functions: &'a [TimedFunction],
    failure: Option<String>,
) -> Vec<Line<'a>> {
    let of_function = |timed: &'a TimedFunction| {
        let lines = timed.lines.iter();
        lines.map(|line| {
            Line::Source(SourceLine {
                line,
                function: &timed.function,
                file: &timed.file,
            })
        })
    };
    let functions_timed = functions.len();
    let mut lines: Vec<Line<'a>> = functions.iter().flat_map(of_function).collect();
    lines.push(Line::Summary(Summary::Timed(Timed {
        functions: functions_timed,
        failure,
    })));
    lines
}

/// Returns the source of Python functions with what each line took.
pub(crate) fn source(functions: &[TimedFunction]) -> String {
    let parts = functions.iter().map(|function| {
        let all: f64 = function.lines.iter().map(|line| line.microseconds).sum();
        let mut table = Table::name_last(["line", "hits", "microseconds", "share", "source"]);
        for line in &function.lines {
            let [hits, microseconds, share] = match line.hits {
                0 => <[String; 3]>::default(),
                hits => [
                    hits.to_string(),
                    format!("{:.1}", line.microseconds),
                    percent(line.microseconds, all),
                ],
            };
            let source = line.source.clone();
            table.row([line.line.to_string(), hits, microseconds, share, source]);
        }
        let (name, file) = (&function.function, stook_sys::display_path(&function.file));
        format!("{name} in {file}: {:.6} s\n\n{}", all / 1e6, table.text())
    });
    parts.collect::<Vec<String>>().join("\n")
}
