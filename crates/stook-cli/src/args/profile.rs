//! `stook profile`: what was typed.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, ValueEnum};

#[derive(Debug, ClapArgs)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch that the user types"
)]
pub(crate) struct ProfileArgs {
    /// Show which functions use the CPU
    #[arg(long)]
    pub(crate) on_cpu: bool,
    /// Show where threads are blocked
    #[arg(long)]
    pub(crate) off_cpu: bool,
    /// Show numbers, errors and times of system calls
    #[arg(long)]
    pub(crate) syscalls: bool,
    /// State of the caches before each run (default: as they are)
    #[arg(long, value_name = "STATE", conflicts_with = "pid")]
    pub(crate) cache: Option<CacheArg>,
    /// Run this with `sh -c` before each run, for example to remove the output of the previous one
    #[arg(long, value_name = "LINE", conflicts_with = "pid")]
    pub(crate) before: Option<String>,
    /// Find callers by DWARF debug information, for programs that are built without frame pointers
    ///
    /// Stacks are then complete, but each takes up to 32 KiB, and perf may lose some if a program switches threads very often.
    #[arg(long)]
    pub(crate) dwarf: bool,
    /// Directory for flame graphs and stacks; created if missing (default: `stook-profile-` and the time)
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Profile a running process
    #[arg(long, value_name = "PID", conflicts_with = "command", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) pid: Option<u32>,
    /// How long to record it, such as `10s`: once for stacks and once for system calls (default: until it ends, or
    /// Ctrl-C)
    #[arg(long = "for", value_name = "TIME", requires = "pid", conflicts_with = "command", value_parser = span)]
    pub(crate) longest: Option<Duration>,
    /// Profile the server of this FUSE mount while CMD runs; with --cache, a mounted archive forgets what it has fetched
    ///
    /// cold: nothing is left in memory or in its cache. warm: its cache on disk is left. hot: everything is.
    #[arg(long, value_name = "MOUNT", requires = "command", conflicts_with_all = ["pid", "syscalls"])]
    pub(crate) watch: Option<PathBuf>,
    /// Show how often each line of a Python function runs, and how long it takes
    ///
    /// CMD is `python3 SCRIPT` or such; functions of SCRIPT itself are in `__main__`, methods are `MODULE:CLASS.METHOD`.
    /// Needs the Python package `line_profiler`.
    #[arg(long, value_name = "MODULE:FUNCTION", conflicts_with_all = ["on_cpu", "off_cpu", "syscalls", "cache", "before", "dwarf", "out", "pid", "watch"])]
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
