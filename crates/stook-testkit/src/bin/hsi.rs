//! `hsi` as the manual says, for tests: see [`stook_testkit::doubles::hsi`].

use std::process::ExitCode;

use stook_testkit::doubles::{hsi, state_folder};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    let folder = state_folder(arguments.next().as_deref());
    let arguments: Vec<String> = arguments
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    hsi::run(&folder, &arguments).into()
}
