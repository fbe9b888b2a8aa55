//! The programs that are needed, and what they say of their versions.

use std::collections::BTreeMap;
use std::ffi::OsStr;

use super::options::FsOptions;
use super::phase::Tool;
use crate::Observer;
use crate::error::BenchError;
use crate::job::{Job, Output};
use crate::remedy::Remedy;

/// The programs of the system. Of the tool `single` the tar is made with `tar`.
const SYSTEM: [&str; 7] = ["tar", "cat", "cp", "find", "rm", "sh", "xargs"];

/// Returns what each program that is needed says of its version.
///
/// # Errors
/// [`BenchError::Missing`] for one that is not there.
pub(super) fn programs(
    options: &FsOptions,
    observer: &dyn Observer,
) -> Result<BTreeMap<String, String>, BenchError> {
    let system = match &options.tools {
        tools if tools.contains(&Tool::System) => &SYSTEM[..],
        tools if tools.contains(&Tool::Single) => &SYSTEM[..1],
        _ => &[],
    };
    let ours = options.tools.contains(&Tool::Stook);
    let ours = ours.then_some(("stook", options.stook.as_os_str()));
    let needed = system
        .iter()
        .map(|name| (*name, OsStr::new(*name)))
        .chain(ours);
    let versions =
        needed.map(|(name, program)| Ok((name.to_owned(), version(name, program, observer)?)));
    versions.collect()
}

/// Programs that do not know the option say nothing of use, and are there all the same.
fn version(
    name: &'static str,
    program: &OsStr,
    observer: &dyn Observer,
) -> Result<String, BenchError> {
    let job = Job {
        output: Output::Kept,
        ..Job::new([program, OsStr::new("--version")])
    };
    match job.run(observer) {
        Ok(ran) if ran.status.success() => Ok(ran.first_line()),
        Ok(_) => Ok("unknown".to_owned()),
        Err(BenchError::Start { source, .. }) => Err(BenchError::Missing {
            what: format!("cannot run `{name}`: {}", stook_sys::cause(&source)),
            remedy: Remedy::InstallOrLeaveOut(name),
        }),
        Err(error) => Err(error),
    }
}
