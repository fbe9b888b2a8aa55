//! `stook profile`: what was typed.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, ValueEnum};

/// Show where a command spends its time
///
/// Runs CMD once to record where its threads are on a processor and where they are blocked, and once more to count its
/// system calls; with only some of --on-cpu, --off-cpu and --syscalls only what they take. Prints tables, and writes
/// flame graphs (SVG, for a browser) and folded stacks into a folder. CMD reads nothing, its output is dropped; if it
/// fails, the profile is of what ran, and the status is 1. Ctrl-C ends it, and the profile is of what ran, too.
///
/// It takes `perf`, and for system calls `strace`; what is missing, or not allowed, is told with
/// what to install or to set. Without options, what can be shown is shown, and the status is 3 if something is missing.
#[derive(Debug, ClapArgs)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch that the user types"
)]
pub(crate) struct ProfileArgs {
    /// Show the functions that run on a processor
    #[arg(long)]
    pub(crate) on_cpu: bool,
    /// Show what threads are blocked in
    #[arg(long)]
    pub(crate) off_cpu: bool,
    /// Show the system calls: how many, how many failed, how long
    #[arg(long)]
    pub(crate) syscalls: bool,
    /// The state of the caches before each run; without it, as it comes
    #[arg(long, value_name = "STATE", conflicts_with = "pid")]
    pub(crate) cache: Option<CacheArg>,
    /// Run this line with `sh -c` before each run, such as one that removes what the run before has made
    #[arg(long, value_name = "LINE", conflicts_with = "pid")]
    pub(crate) before: Option<String>,
    /// Find callers by the tables for debuggers: for programs that are built without frame pointers
    ///
    /// Stacks are then complete, but each takes up to 32 KiB to write, and a program that switches threads very often
    /// makes perf lose some.
    #[arg(long)]
    pub(crate) dwarf: bool,
    /// The folder for the pictures and stacks, which is made (default: `stook-profile-` and the time)
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Watch a process that runs already
    #[arg(long, value_name = "PID", conflicts_with = "command", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) pid: Option<u32>,
    /// How long to watch it, such as `10s`: once for stacks, and as long again for system calls (default: to its end, or
    /// to Ctrl-C)
    #[arg(long = "for", value_name = "TIME", requires = "pid", conflicts_with = "command", value_parser = span)]
    pub(crate) longest: Option<Duration>,
    /// Show the lines of one Python function: how often each runs, and how long
    ///
    /// CMD is `python3 SCRIPT` or such; functions of SCRIPT itself are in `__main__`, methods are `MODULE:CLASS.METHOD`.
    /// It takes the Python package `line_profiler`.
    #[arg(long, value_name = "MODULE:FUNCTION", conflicts_with_all = ["on_cpu", "off_cpu", "syscalls", "cache", "before", "dwarf", "out", "pid"])]
    pub(crate) lines: Option<String>,
    /// The command and its arguments
    #[arg(value_name = "CMD", last = true, required_unless_present = "pid")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum CacheArg {
    /// The kernel has forgotten all files of the machine (takes the rights of the superuser)
    Cold,
    /// CMD has run once, then the kernel has forgotten all files: only what CMD caches on disk is there
    Warm,
    /// CMD has run once
    Hot,
}

fn span(text: &str) -> Result<Duration, String> {
    let span: Option<jiff::SignedDuration> = text.parse().ok();
    let span = span.and_then(|span| Duration::try_from(span).ok());
    span.filter(|span| !span.is_zero())
        .ok_or_else(|| "it is no time such as `10s`, `500ms` or `2m`".to_owned())
}
