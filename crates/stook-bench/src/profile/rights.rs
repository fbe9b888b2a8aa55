//! What this user may record, and what to install or to set for the rest.
//!
//! | | kernel.perf_event_paranoid | and |
//! |---|---|---|
//! | on the CPU, in programs | 2 | |
//! | on the CPU, in the kernel too | 1 | |
//! | where threads block | 1 (`context-switches`) | or the rights of the superuser (`sched:sched_switch`) |
//!
//! # Source
//! `Documentation/admin-guide/sysctl/kernel.rst` and `perf-security.rst` of Linux; `capabilities(7)`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::error::BenchError;

const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";
/// What `perf` must read to record an event of the scheduler.
const SWITCH: &str = "sched/sched_switch";
const TRACING: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// Bits of capabilities that let a process record everything: `CAP_PERFMON` and `CAP_SYS_ADMIN`.
const MAY_ALL: u64 = 1 << 38 | 1 << 21;
/// The bits of `CAP_SYS_NICE` and `CAP_IPC_LOCK`: to run before all others, and to have rings of any size.
const MAY_HURRY: u64 = 1 << 23 | 1 << 14;

/// Samples of the clock that a thread has while it is on a processor: 997 a second, so as not to keep step with anything
/// that happens a round number of times a second. The rate belongs to this event: given for all events it would thin out
/// the switches as well.
const CLOCK: &str = "cpu-clock/freq=997/";
const CLOCK_IN_PROGRAMS: &str = "cpu-clock/freq=997/u";

const INSTALL_PERF: &str =
    "install `linux-perf` (Debian), `linux-tools-generic` (Ubuntu) or `perf` (Fedora, RHEL, SUSE)";
const ALLOW: &str = "`sysctl kernel.perf_event_paranoid=1`, or run it as root";

/// What there is, and what is allowed.
#[derive(Debug, Clone)]
pub(super) struct Rights {
    /// Which of `perf` and `strace` there are.
    programs: Vec<&'static str>,
    /// None where the kernel does not know perf.
    paranoid: Option<i32>,
    /// Bits of the capabilities that are held.
    capabilities: u64,
    /// Whether the event of the scheduler may be looked up.
    has_switch: bool,
}

impl Rights {
    /// Looks for what there is; programs are looked for in `search_path`.
    pub(super) fn look(search_path: &OsStr) -> Self {
        let has = |name: &&str| find_program(OsStr::new(name), search_path).is_some();
        Self {
            programs: ["perf", "strace"].into_iter().filter(has).collect(),
            paranoid: read(PARANOID).and_then(|text| text.trim().parse().ok()),
            capabilities: capabilities().unwrap_or(0),
            has_switch: is_traceable(SWITCH),
        }
    }

    fn may(&self, paranoid: i32) -> bool {
        self.capabilities & MAY_ALL != 0 || self.paranoid.is_some_and(|set| set <= paranoid)
    }

    /// Returns true if perf may run before all others.
    pub(super) fn may_hurry(&self) -> bool {
        self.capabilities & MAY_HURRY == MAY_HURRY
    }

    /// Returns the event that samples threads on processors.
    pub(super) fn clock(&self) -> Result<&'static str, BenchError> {
        self.require_perf("which records where a program spends its time")?;
        match self.may(1) {
            true => Ok(CLOCK),
            false if self.may(2) => Ok(CLOCK_IN_PROGRAMS),
            false => Err(self.forbidden("`perf` may not record")),
        }
    }

    /// Returns true if what runs in the kernel is sampled as well.
    pub(super) fn may_sample_kernel(&self) -> bool {
        self.may(1)
    }

    /// Returns the event that tells where a thread leaves its processor.
    pub(super) fn switches(&self) -> Result<&'static str, BenchError> {
        self.require_perf("which records where a program is blocked")?;
        let may_trace = self.may(-1) && self.has_switch;
        match self.may(1) {
            true if may_trace => Ok("sched:sched_switch"),
            true => Ok("context-switches/period=1/"),
            false => Err(self.forbidden("`perf` may not record where threads are blocked")),
        }
    }

    /// Makes sure that system calls can be counted.
    pub(super) fn require_strace(&self) -> Result<(), BenchError> {
        if self.programs.contains(&"strace") {
            return Ok(());
        }
        Err(missing(
            "`strace` is not installed, which counts system calls",
            "install `strace`",
        ))
    }

    fn has_perf(&self) -> bool {
        self.programs.contains(&"perf")
    }

    fn require_perf(&self, purpose: &str) -> Result<(), BenchError> {
        if !self.has_perf() {
            return Err(missing(
                &format!("`perf` is not installed, {purpose}"),
                INSTALL_PERF,
            ));
        }
        Ok(())
    }

    fn forbidden(&self, what: &str) -> BenchError {
        match self.paranoid {
            Some(set) => missing(
                &format!("{what}: kernel.perf_event_paranoid is {set}"),
                ALLOW,
            ),
            None => missing(
                &format!("{what}: this kernel was built without it"),
                "it takes a kernel with CONFIG_PERF_EVENTS",
            ),
        }
    }
}

fn missing(what: &str, hint: &str) -> BenchError {
    BenchError::Missing {
        what: what.to_owned(),
        hint: hint.to_owned(),
    }
}

/// Returns that there is no program of this name.
pub(super) fn no_program(name: &OsStr) -> BenchError {
    const ENOENT: i32 = 2;
    BenchError::Start {
        command: stook_sys::display_path(name),
        source: std::io::Error::from_raw_os_error(ENOENT),
    }
}

/// Returns the program that a name stands for, looked for as the shell does.
pub fn find_program(name: &OsStr, search_path: &OsStr) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return is_program(Path::new(name)).then(|| name.into());
    }
    let folders = search_path.as_bytes().split(|byte| *byte == b':');
    let mut paths = folders.map(|folder| match folder {
        b"" => Path::new(".").join(name),
        folder => Path::new(OsStr::from_bytes(folder)).join(name),
    });
    paths.find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    let found = stook_sys::look_at(path);
    found.is_ok_and(|found| found.kind == stook_sys::FileKind::File && found.mode & 0o111 != 0)
}

fn is_traceable(event: &str) -> bool {
    TRACING
        .iter()
        .any(|folder| read(&format!("{folder}/events/{event}/id")).is_some())
}

fn capabilities() -> Option<u64> {
    let status = read("/proc/self/status")?;
    let held = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(held.trim(), 16).ok()
}

fn read(path: &str) -> Option<String> {
    stook_sys::read_text(Path::new(path)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rights(paranoid: i32) -> Rights {
        Rights {
            programs: vec!["perf", "strace"],
            paranoid: Some(paranoid),
            capabilities: 0,
            has_switch: false,
        }
    }

    #[test]
    fn what_is_allowed_follows_from_the_setting() {
        assert_eq!(rights(2).clock().unwrap(), CLOCK_IN_PROGRAMS);
        assert_eq!(rights(1).clock().unwrap(), CLOCK);
        assert_eq!(rights(1).switches().unwrap(), "context-switches/period=1/");
        let superuser = Rights {
            capabilities: 1 << 38,
            has_switch: true,
            ..rights(4)
        };
        assert_eq!(superuser.switches().unwrap(), "sched:sched_switch");
    }

    #[test]
    fn what_is_missing_is_told_with_what_to_do() {
        let told = |error: BenchError| (error.to_string(), error.hint().unwrap());
        let (what, hint) = told(rights(2).switches().unwrap_err());
        assert_eq!(
            what,
            "`perf` may not record where threads are blocked: kernel.perf_event_paranoid is 2"
        );
        assert_eq!(
            hint,
            "`sysctl kernel.perf_event_paranoid=1`, or run it as root"
        );
        let (what, _) = told(rights(3).clock().unwrap_err());
        assert_eq!(
            what,
            "`perf` may not record: kernel.perf_event_paranoid is 3"
        );
        let none = Rights {
            programs: Vec::new(),
            ..rights(-1)
        };
        for error in [none.clock().unwrap_err(), none.switches().unwrap_err()] {
            let (what, hint) = told(error);
            assert!(
                what.starts_with("`perf` is not installed") && hint.starts_with("install "),
                "{what}"
            );
        }
        let (what, hint) = told(none.require_strace().unwrap_err());
        assert!(
            what.contains("`strace` is not installed") && hint.contains("install `strace`"),
            "{what}"
        );
    }

    #[test]
    fn programs_are_found_as_the_shell_finds_them() {
        let path = OsStr::new("/no/such/folder:/usr/bin:/bin");
        assert!(find_program(OsStr::new("sh"), path).is_some());
        assert_eq!(
            find_program(OsStr::new("/bin/sh"), OsStr::new("")),
            Some("/bin/sh".into())
        );
        for name in ["no-such-program", "/usr", "/etc/passwd"] {
            assert_eq!(find_program(OsStr::new(name), path), None, "{name}");
        }
    }
}
