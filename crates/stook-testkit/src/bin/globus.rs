//! `globus` as its reference says, for tests: see [`stook_testkit::doubles::globus`].

use std::process::ExitCode;

use stook_testkit::doubles::{globus, state_folder};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    let folder = state_folder(arguments.next().as_deref());
    let arguments: Vec<String> = arguments
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    globus::run(&folder, &arguments).into()
}
