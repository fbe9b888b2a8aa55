//! Facts about this process and its machine.

use std::fs::File;
use std::io::Write;
use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::Timestamp;

/// Returns the number of processors this process may use: affinity and cgroup limits counted.
///
/// # Cost
/// Three files the first time; every pool asks.
pub fn available_cpus() -> usize {
    static CPUS: OnceLock<usize> = OnceLock::new();
    *CPUS.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Returns true if the process has the rights of the superuser.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Returns the user that new files of this process belong to.
pub fn effective_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Returns the groups that this process belongs to: what the user owns may be given to one of them.
pub fn groups() -> Vec<u32> {
    let supplementary = rustix::process::getgroups().unwrap_or_default();
    let effective = rustix::process::getegid();
    let all = supplementary.into_iter().chain([effective]);
    all.map(rustix::process::Gid::as_raw).collect()
}

/// Returns the current time.
pub fn utc_now() -> Timestamp {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    Timestamp {
        seconds: now.tv_sec,
        nanoseconds: u32::try_from(now.tv_nsec).unwrap_or(0),
    }
}

/// Returns the nanoseconds of the clock that only goes forward, which other programs of the machine read as well.
pub fn monotonic_nanoseconds() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

/// Raises the limit of open files as far as the system lets an ordinary process go.
pub fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    // A refusal leaves the limit as it was, which is no error.
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        },
    );
}

/// Returns how many files the process may hold open at once.
pub fn most_open_files() -> usize {
    let limit = getrlimit(Resource::Nofile).current;
    limit.map_or(usize::MAX, |limit| {
        usize::try_from(limit).unwrap_or(usize::MAX)
    })
}

/// Returns how much memory the process may use: that of the machine, or less where a control group
/// says so.
///
/// # Cost
/// A file, and one for each control group, the first time; what changes later is not seen.
///
/// # Source
/// `sysinfo(2)`; `Documentation/admin-guide/cgroup-v2.rst` of Linux, and of version 1 `memory.rst`.
pub fn memory_limit() -> u64 {
    static LIMIT: OnceLock<u64> = OnceLock::new();
    *LIMIT.get_or_init(|| {
        let groups = read_text("/proc/self/cgroup").unwrap_or_default();
        let limits = groups.lines().flat_map(limits_of_group);
        limits.fold(machine_memory(), u64::min)
    })
}

/// A line is `0::/path` for version 2, and `5:memory:/path` for version 1. In a container the path may be
/// that of the host, and the limit stands at the root of the mount.
fn limits_of_group(line: &str) -> Vec<u64> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
        return Vec::new();
    };
    let (base, file) = match controllers {
        "" => ("/sys/fs/cgroup", "memory.max"),
        "memory" => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
        _ => return Vec::new(),
    };
    // A group is held by the limits of those above it, too.
    let mut places = vec![String::new()];
    for component in path.split('/').filter(|component| !component.is_empty()) {
        let above = places.last().cloned().unwrap_or_default();
        places.push(format!("{above}/{component}"));
    }
    let read = |place: &String| read_text(&format!("{base}{place}/{file}"));
    let limits = places.iter().filter_map(read);
    limits.filter_map(|text| text.trim().parse().ok()).collect()
}

fn machine_memory() -> u64 {
    let info = rustix::system::sysinfo();
    info.totalram.saturating_mul(u64::from(info.mem_unit))
}

fn read_text(path: &str) -> Option<String> {
    crate::read_text(path.as_ref()).ok()
}

/// Returns the most memory the process has held since [`reset_peak_memory`], in bytes.
///
/// None where `/proc` is not there.
pub fn peak_memory() -> Option<u64> {
    let text = read_text("/proc/self/status")?;
    let line = text.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1024)
}

/// Starts the count of [`peak_memory`] anew.
pub fn reset_peak_memory() {
    use rustix::fs::{CWD, Mode, OFlags, openat};
    let opened = openat(
        CWD,
        "/proc/self/clear_refs",
        OFlags::WRONLY | OFlags::CLOEXEC,
        Mode::empty(),
    );
    if let Ok(fd) = opened {
        // A kernel without it keeps the count from the start.
        let _ = File::from(fd).write_all(b"5");
    }
}

/// Returns the name of this machine.
pub fn host_name() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}

pub(crate) fn is_process_alive(process: i32) -> bool {
    let Some(process) = rustix::process::Pid::from_raw(process) else {
        return false;
    };
    !matches!(
        rustix::process::test_kill_process(process),
        Err(rustix::io::Errno::SRCH)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peak_memory_is_counted() {
        reset_peak_memory();
        let block = vec![1_u8; 64 << 20];
        assert!(std::hint::black_box(&block)[100] == 1);
        assert!(peak_memory().unwrap() > 64 << 20);
        let limit = memory_limit();
        assert!(limit > 64 << 20 && limit <= machine_memory());
        assert!(available_cpus() >= 1);
        assert!(utc_now().seconds > 1_700_000_000);
    }
}
