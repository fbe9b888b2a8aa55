//! The front that takes zstash's command line: `stook zstash ...`, and the program called as `zstash`.
//!
//! ```text
//!   argparse + commands ──values──> create, update, extract, ls, chgrp ──> stook's libraries
//!                                      └── messages, through log: the texts and the order of zstash
//! ```
//! What it prints is zstash's interface, so the texts are zstash's, also where stook would say it better.

mod argparse;
mod chgrp;
mod commands;
mod context;
mod create;
mod error;
mod extract;
mod glob;
mod log;
mod ls;
mod messages;
mod phases;
mod report;
mod resume;
mod settings;
mod store;
mod tars;
mod update;
mod volumes;
mod write;

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use self::argparse::{Parser, Stop, Values, terminal_columns};
use self::context::{Context, say_interrupted};
use self::error::FrontError;
use self::extract::Verb;
use self::log::{Level, Log};
use self::phases::Phase;
use crate::exit::Ending;
use crate::output::{self, Data};

/// The name that the program is called by, and that of the command.
const NAME: &str = "zstash";

/// Returns zstash's arguments, if it is zstash that was called.
pub(crate) fn arguments(mut typed: impl Iterator<Item = OsString>) -> Option<Vec<Vec<u8>>> {
    let program = typed.next().unwrap_or_default();
    let is_zstash = Path::new(&program).file_name() == Some(NAME.as_ref());
    let mut typed = typed.peekable();
    if !is_zstash {
        typed.next_if(|word| word == NAME)?;
    }
    Some(words(typed))
}

/// Returns words as the front takes them.
pub(crate) fn words(typed: impl IntoIterator<Item = OsString>) -> Vec<Vec<u8>> {
    typed.into_iter().map(OsString::into_vec).collect()
}

/// Runs one command of zstash.
pub(crate) fn run(typed: &[Vec<u8>]) -> Ending {
    let (first, rest) = typed.split_at(typed.len().min(1));
    let values = match commands::TOP.parse(first) {
        Ok(values) => values,
        Err(stop) => return stopped(&commands::TOP, &stop),
    };
    match values.text("command").unwrap_or_default() {
        b"version" => {
            output::message(messages::HELP);
            print(&format!("{}\n", commands::VERSION))
        }
        b"create" => command(&commands::CREATE, rest, create::create),
        b"update" => command(&commands::UPDATE, rest, update::update),
        b"extract" => command(&commands::EXTRACT, rest, |values, context| {
            extract::extract(values, context, Verb::Extract)
        }),
        b"check" => command(&commands::EXTRACT, rest, |values, context| {
            extract::extract(values, context, Verb::Check)
        }),
        b"ls" => command(&commands::LS, rest, ls::ls),
        b"chgrp" => command(&commands::CHGRP, rest, chgrp::chgrp),
        _ => {
            let help = commands::TOP.help_text(columns());
            print(&format!("{}\n{help}", messages::UNRECOGNIZED));
            Ending::Failed
        }
    }
}

fn command(
    parser: &Parser,
    typed: &[Vec<u8>],
    run: impl FnOnce(&Values, &Context) -> Result<(), FrontError>,
) -> Ending {
    output::message(messages::HELP);
    let values = match parser.parse(typed) {
        Ok(values) => values,
        Err(stop) => return stopped(parser, &stop),
    };
    stook_sys::raise_open_files();
    let is_verbose = values.switch("verbose") || values.integer("workers") > 1;
    let context = Context::new(Log::new(is_verbose));
    context.watch_signals();
    let result = crate::options::select_md5_kernel()
        .map_err(FrontError::from)
        .and_then(|()| run(&values, &context));
    ended(&context, result, values.switch("verbose"))
}

/// The one place that knows the exit codes.
fn ended(context: &Context, result: Result<(), FrontError>, is_verbose: bool) -> Ending {
    context.phases.begin(Phase::Commit);
    let mut has_failed = context.has_failed() && settings::failures_count();
    match result {
        Ok(()) => {}
        Err(error) if error.is_interruption() || context.is_interrupted() => {
            context.log.flush();
            say_interrupted();
            return Ending::Failed;
        }
        Err(error) if error.is_broken_pipe() => {}
        Err(error) => {
            has_failed = true;
            if !matches!(error, FrontError::Raised { .. }) {
                context.log.error(&error.to_string());
            }
            if let Some(hint) = error.login_hint() {
                context.log.error(&hint);
            }
            context.log.line(Level::Plain, &error.traceback());
        }
    }
    context.log.flush();
    if let Some(table) = context.phases.table().filter(|_| is_verbose) {
        output::message(&table);
    }
    failed_if(has_failed)
}

fn stopped(parser: &Parser, stop: &Stop) -> Ending {
    match stop {
        Stop::Help => print(&parser.help_text(columns())),
        Stop::Error(text) => {
            let usage = parser.usage_text();
            output::message(&format!("{usage}{NAME}: error: {text}"));
            Ending::Usage
        }
    }
}

fn print(text: &str) -> Ending {
    let mut data = Data::new();
    let printed = data.text(text).and_then(|()| data.flush());
    failed_if(printed.is_err())
}

fn failed_if(has_failed: bool) -> Ending {
    if has_failed {
        Ending::Failed
    } else {
        Ending::Done
    }
}

fn columns() -> i64 {
    let typed = settings::variable("COLUMNS");
    terminal_columns(typed.as_deref(), stook_sys::stdout_columns())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zstash_is_a_name_and_a_command() {
        let called = |words: &[&str]| {
            let typed = words.iter().map(OsString::from);
            arguments(typed.collect::<Vec<_>>().into_iter())
        };
        let ls = Some(vec![b"ls".to_vec()]);
        assert_eq!(called(&["/usr/bin/zstash", "ls"]), ls);
        assert_eq!(called(&["stook", "zstash", "ls"]), ls);
        assert_eq!(called(&["zstash"]), Some(Vec::new()));
        assert_eq!(called(&["stook", "list", "zstash"]), None);
        assert_eq!(called(&[]), None);
    }
}
