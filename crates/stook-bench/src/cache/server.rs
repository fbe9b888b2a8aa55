//! The CPU time of a process that works for the command without being its child, such as the server of a mount.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use stook_sys::{Directory, ProcessClock, display_path};

use super::traced::unescaped;
use crate::error::BenchError;
use crate::remedy::Remedy;
use crate::trees::{names_in, numbers_in};

/// Whose CPU time counts besides that of the command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Watch {
    /// The process with this number.
    Process(u32),
    /// The process that serves this FUSE mount: looked for before each run, since hooks may have started another one.
    Mount(PathBuf),
}

/// What is watched, found to be there.
#[derive(Debug)]
pub(super) struct Watched(Watch);

/// The clock of the process before a run; None of a mount that comes with its first use, which has no server yet.
#[derive(Debug)]
pub(super) struct Before<'a> {
    watched: &'a Watched,
    clock: Option<(ProcessClock, Duration)>,
}

impl Watched {
    pub(super) fn new(watch: &Watch) -> Result<Self, BenchError> {
        let watched = Self(match watch {
            Watch::Process(process) => Watch::Process(*process),
            Watch::Mount(path) => Watch::Mount(stook_sys::absolute(path)?),
        });
        watched.clock()?.ok_or_else(|| watched.not_served())?;
        Ok(watched)
    }

    /// Returns the clock of the process, if there is one now.
    fn clock(&self) -> Result<Option<ProcessClock>, BenchError> {
        let process = match &self.0 {
            Watch::Process(process) => Some(*process),
            Watch::Mount(path) => server_of(path)?,
        };
        Ok(process.map(ProcessClock::of).transpose()?)
    }

    /// Reads the clock before a run.
    pub(super) fn before(&self) -> Result<Before<'_>, BenchError> {
        let clock = self.clock()?;
        let clock = clock.map(|clock| Ok::<_, BenchError>((clock.now()?, clock)));
        let clock = clock.transpose()?.map(|(now, clock)| (clock, now));
        Ok(Before {
            watched: self,
            clock,
        })
    }

    fn not_served(&self) -> BenchError {
        let name = match &self.0 {
            Watch::Process(process) => process.to_string(),
            Watch::Mount(path) => display_path(path),
        };
        let what = format!("no process is found that serves `{name}`");
        BenchError::refused_with(Remedy::WatchMountOrProcess, what)
    }
}

impl Before<'_> {
    /// Returns the CPU time since then.
    ///
    /// # Errors
    /// [`BenchError::Sys`] if the process has ended, [`BenchError::Refused`] if none serves the mount.
    pub(super) fn served(&self) -> Result<Duration, BenchError> {
        if let Some((clock, then)) = &self.clock {
            return Ok(clock.now()?.saturating_sub(*then));
        }
        let clock = self.watched.clock()?;
        Ok(clock.ok_or_else(|| self.watched.not_served())?.now()?)
    }
}

/// Returns the process that serves a mount; None if nothing is mounted there, or nobody is found.
///
/// # Errors
/// [`BenchError::Refused`] if there are several.
pub fn server_of(mount: &Path) -> Result<Option<u32>, BenchError> {
    let mounts = stook_sys::read_text(Path::new("/proc/self/mountinfo"))?;
    let Some(connection) = connection_of(&mounts, mount) else {
        return Ok(None);
    };
    let mut servers = servers()?;
    if servers.iter().any(|server| server.connection.is_some()) {
        servers.retain(|server| server.connection == Some(connection));
    } else if servers.len() > 1 {
        // Before Linux 6.18 the kernel does not tell which mount is whose.
        servers.retain(|server| names_mount(server.process, mount));
    }
    match servers.as_slice() {
        [] => Ok(None),
        [server] => Ok(Some(server.process)),
        several => {
            let numbers = several.iter().map(|server| server.process.to_string());
            let numbers = numbers.collect::<Vec<String>>().join(", ");
            let mount = display_path(mount);
            let what = format!("`{mount}` may be served by each of the processes {numbers}");
            Err(BenchError::refused_with(Remedy::WatchProcess, what))
        }
    }
}

/// The number of the FUSE connection behind a mount: the minor number of its device. The last of several mounts counts.
///
/// # Source
/// `proc_pid_mountinfo(5)`: `36 35 0:39 / /mnt rw,relatime shared:1 - fuse.stook stook rw`.
fn connection_of(mounts: &str, mount: &Path) -> Option<u32> {
    let of_line = |line: &str| {
        let (facts, kind) = line.split_once(" - ")?;
        let mut facts = facts.split(' ').skip(2);
        let (device, _, point) = (facts.next()?, facts.next()?, facts.next()?);
        let is_it = kind.starts_with("fuse") && unescaped(point) == mount;
        is_it
            .then(|| device.split_once(':')?.1.parse().ok())
            .flatten()
    };
    mounts.lines().rev().find_map(of_line)
}

#[derive(Debug)]
struct Server {
    process: u32,
    /// Where the kernel tells it.
    connection: Option<u32>,
}

/// Processes that hold the device of FUSE; those of other users cannot be looked into.
fn servers() -> Result<Vec<Server>, BenchError> {
    let mut servers = Vec::new();
    for process in numbers_in(Path::new("/proc"))? {
        let connections = connections_of(process);
        servers.extend(connections.into_iter().map(|connection| Server {
            process,
            connection,
        }));
    }
    servers.dedup_by_key(|server| (server.process, server.connection));
    Ok(servers)
}

fn connections_of(process: u32) -> Vec<Option<u32>> {
    let path = PathBuf::from(format!("/proc/{process}/fd"));
    let (Ok(names), Ok(directory)) = (names_in(&path), Directory::open(&path)) else {
        return Vec::new();
    };
    let is_device = |name: &&std::ffi::OsString| {
        directory
            .read_link(name.as_bytes())
            .is_ok_and(|target| target == b"/dev/fuse")
    };
    let devices = names.iter().filter(is_device);
    let fdinfo = PathBuf::from(format!("/proc/{process}/fdinfo"));
    let connections = devices.map(|name| connection_in(&fdinfo.join(name)));
    let mut connections: Vec<Option<u32>> = connections.collect();
    connections.sort_unstable();
    connections.dedup();
    connections
}

fn connection_in(fdinfo: &Path) -> Option<u32> {
    let text = stook_sys::read_text(fdinfo).ok()?;
    let number = text
        .lines()
        .find_map(|line| line.strip_prefix("fuse_connection:"))?;
    number.trim().parse().ok()
}

/// Whether the command line of a process names a mount.
fn names_mount(process: u32, mount: &Path) -> bool {
    let path = PathBuf::from(format!("/proc/{process}/cmdline"));
    let command = stook_sys::read_text(&path).unwrap_or_default();
    let mut words = command.split('\0');
    words.any(|word| Path::new(word) == mount)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n\
        42 27 0:39 / /mnt/a\\040b rw,relatime shared:7 - fuse.slowfs slowfs rw,user_id=0\n\
        43 27 0:40 / /mnt/c rw - fuse slowfs rw\n44 27 0:41 / /mnt/c rw - fuse slowfs rw\n";

    #[test]
    fn the_connection_of_a_mount_is_found() {
        let of = |mount: &str| connection_of(MOUNTS, Path::new(mount));
        assert_eq!(of("/mnt/a b"), Some(39));
        assert_eq!(of("/mnt/c"), Some(41), "the upper one");
        assert_eq!((of("/"), of("/mnt")), (None, None));
    }

    #[test]
    fn what_is_no_fuse_mount_has_no_server() {
        let error = Watched::new(&Watch::Mount("/".into())).unwrap_err();
        assert_eq!(error.to_string(), "no process is found that serves `/`");
        assert_eq!(error.remedy(), Some(&Remedy::WatchMountOrProcess));
    }

    #[test]
    fn the_cpu_time_of_a_process_is_counted_and_its_end_is_an_error() {
        let spin = "i=0; while [ $i -lt 100000000 ]; do i=$((i+1)); done";
        let mut child = std::process::Command::new("sh")
            .args(["-c", spin])
            .spawn()
            .unwrap();
        let watched = Watched::new(&Watch::Process(child.id())).unwrap();
        let before = watched.before().unwrap();
        while before.served().unwrap() < Duration::from_millis(20) {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(watched.before().is_err());
    }
}
