//! The `stook` program: arguments, messages, exit codes. The work is done by the libraries.
//!
//! `args` holds what was typed and touches nothing; `options` checks it and turns it into the options
//! of the libraries; `run` has one function for each command.

mod archived;
mod args;
mod bench;
mod calls;
mod copy;
mod descriptors;
mod exit;
mod export;
mod format;
mod hints;
mod listener;
mod mount;
mod mutex;
mod number;
mod options;
mod output;
mod patterns;
mod plan;
mod profile;
mod progress;
mod reference;
mod remove;
mod report;
mod run;
mod size;
mod store_settings;
mod stores;
mod time;
mod timings;
mod transfer;
mod walk;
mod written;
mod zodb;
mod zstash;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    // A bench starts what it measures by way of this program, which must not have grown by then.
    if let Some(code) = stook_bench::launch(std::env::args_os()) {
        return code;
    }
    if let Some(typed) = zstash::arguments(std::env::args_os()) {
        return zstash::run(&typed).into();
    }
    let typed = mount::words(std::env::args_os());
    match args::Args::try_parse_from(typed).and_then(args::Args::checked) {
        Ok(args) => run::run(args),
        Err(error) => exit::usage_error(&error),
    }
}
