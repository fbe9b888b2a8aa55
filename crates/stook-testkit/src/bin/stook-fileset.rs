//! `stook-fileset DIR FILES [SEED]` makes a seeded set of small files and says what it made.
//!
//! The command line over [`stook_testkit::fileset::arc`], for `make demo` and benches.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this is a program, its output is the point"
)]

use std::path::Path;
use std::process::ExitCode;

const DEFAULT_SEED: u64 = 7;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let number = |position: usize| {
        arguments
            .get(position)
            .and_then(|text| text.to_str()?.parse::<u64>().ok())
    };
    let (directory, files, seed) = match (arguments.first(), number(1), number(2), arguments.len())
    {
        (Some(directory), Some(files), None, 2) => (directory, files, DEFAULT_SEED),
        (Some(directory), Some(files), Some(seed), 3) => (directory, files, seed),
        _ => {
            eprintln!("usage: stook-fileset DIR FILES [SEED={DEFAULT_SEED}]");
            return ExitCode::from(2);
        }
    };
    match stook_testkit::fileset::arc(Path::new(directory), files, seed) {
        Ok(made) => {
            println!(
                "{} files, {} directories, {} bytes",
                made.files, made.directories, made.bytes
            );
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
