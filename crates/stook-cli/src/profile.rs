//! `stook profile`: runs it, and prints what it found.

use std::ffi::OsString;
use std::path::PathBuf;

use stook_bench::profile::{self, CacheState, LinesOptions, ProfileOptions, Subject, Unwind, View};
use stook_bench::{BenchError, server_of};
use stook_sys::display_path;

use crate::args::{CacheArg, Common, ProfileArgs};
use crate::bench::BenchObserver;
use crate::exit::{CliError, Ending, report, to_stdout};
use crate::hints;
use crate::mount::server_at;
use crate::output;
use crate::progress::Reporter;
use crate::report::Line;
use crate::report::profile::{lines, source, source_lines, text};

pub(crate) fn profile(args: &ProfileArgs, common: &Common) -> Result<Ending, CliError> {
    let reporter = Reporter::new(common);
    let observer = BenchObserver::new(&reporter, common);
    if let Some(function) = &args.lines {
        let options = LinesOptions {
            function: function.clone(),
            command: args.command.clone(),
            search_path: search_path(),
        };
        let (functions, failure) = profile::profile_lines(&options, &observer)?;
        let why = failure.as_ref().map(ToString::to_string);
        print(
            common,
            || source_lines(&functions, why),
            || source(&functions),
        )?;
        return Ok(failure.map_or(Ending::Done, |error| report(&error.into(), common.json)));
    }
    let options = options(args)?;
    let found = profile::profile(&options, &observer)?;
    print(common, || lines(&found), || text(&found))?;
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

fn options(args: &ProfileArgs) -> Result<ProfileOptions, CliError> {
    let is_any = !args.on_cpu && !args.off_cpu && !args.syscalls;
    // System calls of a server are not counted while a command runs.
    let is_watching = is_any && args.watch.is_some();
    let views = [
        (args.on_cpu || is_watching, View::OnCpu),
        (args.off_cpu || is_watching, View::OffCpu),
        (args.syscalls, View::SystemCalls),
    ];
    let folder = || {
        let now = jiff::Zoned::now().strftime("%Y%m%d-%H%M%S");
        PathBuf::from(format!("stook-profile-{now}"))
    };
    Ok(ProfileOptions {
        subject: subject(args)?,
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
        server: args.watch.as_deref().and_then(server_at),
        before: args.before.clone(),
        folder: args.out.clone().unwrap_or_else(folder),
        search_path: search_path(),
    })
}

fn subject(args: &ProfileArgs) -> Result<Subject, CliError> {
    let process = |pid, during| Subject::Process {
        pid,
        longest: args.longest,
        during,
    };
    if let Some(pid) = args.pid {
        return Ok(process(pid, None));
    }
    let Some(mount) = &args.watch else {
        return Ok(Subject::Command(args.command.clone()));
    };
    let pid = server_of(&stook_sys::absolute(mount)?)?;
    let pid = pid.ok_or_else(|| CliError::Option {
        option: "--watch",
        value: display_path(mount),
        why: "no process is found that serves it".to_owned(),
    })?;
    Ok(process(pid, Some(args.command.clone())))
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
fn print<'a>(
    common: &Common,
    lines: impl FnOnce() -> Vec<Line<'a>>,
    text: impl FnOnce() -> String,
) -> Result<(), CliError> {
    let print = |data: &mut output::Data| {
        if !common.json {
            return Ok(data.text(&text())?);
        }
        for line in lines() {
            data.json(&line)?;
        }
        Ok(())
    };
    to_stdout(print).map(drop)
}
