//! The smallest program that can be a launcher.

use std::process::ExitCode;

fn main() -> ExitCode {
    stook_bench::launch(std::env::args_os()).unwrap_or(ExitCode::FAILURE)
}
