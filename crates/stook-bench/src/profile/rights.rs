//! What this user may record, and what the rest takes.
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
use std::path::Path;

use super::programs::find_program;
use crate::error::BenchError;
use crate::remedy::{ProfileRemedy, Remedy};

const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";
/// What `perf` must read to record an event of the scheduler.
const SWITCH: [&str; 2] = [
    "/sys/kernel/tracing/events/sched/sched_switch/id",
    "/sys/kernel/debug/tracing/events/sched/sched_switch/id",
];
/// Bits of capabilities that let a process record everything: `CAP_PERFMON` and `CAP_SYS_ADMIN`.
const MAY_ALL: u64 = 1 << 38 | 1 << 21;
/// The bits of `CAP_SYS_NICE` and `CAP_IPC_LOCK`: to run before all others, and to have rings of any size.
const MAY_HURRY: u64 = 1 << 23 | 1 << 14;

/// Samples of the clock that a thread has while it is on a processor: 997 a second, so as not to keep step with anything
/// that happens a round number of times a second. The rate belongs to this event: given for all events it would thin out
/// the switches as well.
const CLOCK: &str = "cpu-clock/freq=997/";
const CLOCK_IN_PROGRAMS: &str = "cpu-clock/freq=997/u";

/// What there is, and what is allowed.
#[derive(Debug, Clone)]
pub(super) struct Rights {
    has_perf: bool,
    has_strace: bool,
    /// None where the kernel does not know perf.
    paranoid: Option<i32>,
    /// Bits of the capabilities that are held.
    capabilities: u64,
    /// Whether the event of the scheduler may be looked up.
    has_switch: bool,
}

impl Rights {
    /// Finds out what there is; programs are looked for in `search_path`.
    pub(super) fn here(search_path: &OsStr) -> Self {
        let has = |name: &str| find_program(OsStr::new(name), search_path).is_some();
        Self {
            has_perf: has("perf"),
            has_strace: has("strace"),
            paranoid: read(PARANOID).and_then(|text| text.trim().parse().ok()),
            capabilities: capabilities().unwrap_or(0),
            has_switch: SWITCH.iter().any(|path| read(path).is_some()),
        }
    }

    fn may(&self, paranoid: i32) -> bool {
        self.capabilities & MAY_ALL != 0 || self.paranoid.is_some_and(|set| set <= paranoid)
    }

    /// Returns true if perf may run before all others.
    pub(super) fn may_hurry(&self) -> bool {
        self.capabilities & MAY_HURRY == MAY_HURRY
    }

    /// Returns true if what runs in the kernel is sampled as well.
    pub(super) fn may_sample_kernel(&self) -> bool {
        self.may(1)
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

    /// Returns the event of a thread that leaves its processor.
    pub(super) fn switches(&self) -> Result<&'static str, BenchError> {
        self.require_perf("which records where a program is blocked")?;
        match self.may(1) {
            true if self.may(-1) && self.has_switch => Ok("sched:sched_switch"),
            true => Ok("context-switches/period=1/"),
            false => Err(self.forbidden("`perf` may not record where threads are blocked")),
        }
    }

    fn require_perf(&self, purpose: &str) -> Result<(), BenchError> {
        let what = format!("`perf` is not installed, {purpose}");
        require(
            self.has_perf,
            what,
            Remedy::Profile(ProfileRemedy::InstallPerf),
        )
    }

    /// Makes sure that system calls can be counted.
    pub(super) fn require_strace(&self) -> Result<(), BenchError> {
        let what = "`strace` is not installed, which counts system calls".to_owned();
        require(
            self.has_strace,
            what,
            Remedy::Profile(ProfileRemedy::InstallStrace),
        )
    }

    fn forbidden(&self, what: &str) -> BenchError {
        let (why, remedy) = match self.paranoid {
            Some(set) => (
                format!("kernel.perf_event_paranoid is {set}"),
                Remedy::Profile(ProfileRemedy::AllowPerf),
            ),
            None => (
                "this kernel was built without it".to_owned(),
                Remedy::Profile(ProfileRemedy::BuildKernelWithPerf),
            ),
        };
        let what = format!("{what}: {why}");
        BenchError::Missing { what, remedy }
    }
}

fn require(is_there: bool, what: String, remedy: Remedy) -> Result<(), BenchError> {
    is_there
        .then_some(())
        .ok_or(BenchError::Missing { what, remedy })
}

fn capabilities() -> Option<u64> {
    let status = read("/proc/self/status")?;
    let mut lines = status.lines();
    let held = lines.find_map(|line| line.strip_prefix("CapEff:"))?;
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
            has_perf: true,
            has_strace: true,
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
    fn what_is_missing_is_reported_with_what_to_do() {
        let none = Rights {
            has_perf: false,
            has_strace: false,
            ..rights(-1)
        };
        for (error, expected, wanted) in [
            (
                rights(2).switches().unwrap_err(),
                "`perf` may not record where threads are blocked: kernel.perf_event_paranoid is 2",
                Remedy::Profile(ProfileRemedy::AllowPerf),
            ),
            (
                rights(3).clock().unwrap_err(),
                "`perf` may not record: kernel.perf_event_paranoid is 3",
                Remedy::Profile(ProfileRemedy::AllowPerf),
            ),
            (
                none.clock().unwrap_err(),
                "`perf` is not installed",
                Remedy::Profile(ProfileRemedy::InstallPerf),
            ),
            (
                none.switches().unwrap_err(),
                "`perf` is not installed",
                Remedy::Profile(ProfileRemedy::InstallPerf),
            ),
            (
                none.require_strace().unwrap_err(),
                "`strace` is not installed",
                Remedy::Profile(ProfileRemedy::InstallStrace),
            ),
        ] {
            let BenchError::Missing { what, remedy } = error else {
                panic!("{error}");
            };
            assert!(what.starts_with(expected) && remedy == wanted, "{what}");
        }
    }
}
