//! The end of a mount: asked for, or because the process that serves it has died.
//!
//! A FUSE mount outlives its server as a path on which every call fails. So a shell waits beside the server at a pipe,
//! in a process group of its own. A line means that all is over; the end of the pipe without a line means that the
//! server was killed, and the shell unmounts. Only what kills both leaves a dead mount.

use crate::failure::Describe;
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

const WATCH: &str = "trap '' HUP INT TERM
read -r over || umount -l \"$1\" || fusermount3 -u -z -- \"$1\"";

/// How long a drop waits for the threads of the server. They end at once unless an unprivileged user's mount is still
/// used by somebody.
const PATIENCE: Duration = Duration::from_secs(5);

/// Unmounts one mount, from any thread, and never another one at the same place.
#[derive(Clone, Debug)]
pub struct Unmounter {
    mountpoint: PathBuf,
    device: (u32, u32),
}

impl Unmounter {
    /// For what is mounted at `mountpoint` now.
    pub(super) fn new(mountpoint: PathBuf) -> io::Result<Self> {
        let device =
            device(&mountpoint).describe("look at the mount", mountpoint.as_os_str().as_bytes())?;
        Ok(Self { mountpoint, device })
    }

    pub(super) fn mountpoint(&self) -> &Path {
        &self.mountpoint
    }

    /// Takes the mount away; nothing happens if it is gone already.
    ///
    /// Requests of programs that still use it fail from then on, if root does it. For others, these programs go on
    /// until they have closed their files.
    ///
    /// # Errors
    /// When it cannot be unmounted.
    pub fn unmount(&self) -> io::Result<()> {
        if device(&self.mountpoint) != Ok(self.device) {
            return Ok(());
        }
        let unmounted = match unmount(&self.mountpoint, UnmountFlags::NOFOLLOW) {
            Err(Errno::BUSY) => {
                let flags = UnmountFlags::FORCE | UnmountFlags::DETACH | UnmountFlags::NOFOLLOW;
                unmount(&self.mountpoint, flags)
            }
            Err(Errno::PERM) => return self.ask_fusermount(),
            unmounted => unmounted,
        };
        unmounted.describe("unmount", self.mountpoint.as_os_str().as_bytes())
    }

    /// The set-user-id program that lets a user unmount what is his.
    fn ask_fusermount(&self) -> io::Result<()> {
        let asked = Command::new("fusermount3")
            .args(["-u", "-z", "--"])
            .arg(&self.mountpoint)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        let bytes = self.mountpoint.as_os_str().as_bytes();
        match asked.describe("run fusermount3 for", bytes)? {
            status if status.success() => Ok(()),
            status => Err(io::Error::other(status.to_string())).describe("unmount", bytes),
        }
    }
}

/// Returns the device number of what is at `path`, without asking a FUSE server for anything.
fn device(path: &Path) -> Result<(u32, u32), Errno> {
    let flags = AtFlags::STATX_DONT_SYNC | AtFlags::SYMLINK_NOFOLLOW;
    let facts = statx(CWD, path, flags, StatxFlags::empty())?;
    Ok((facts.stx_dev_major, facts.stx_dev_minor))
}

/// Tells whether the thread has ended, within a few seconds.
pub(super) fn is_finished_soon<T>(thread: &JoinHandle<T>) -> bool {
    let start = Instant::now();
    while !thread.is_finished() {
        if start.elapsed() > PATIENCE {
            return false;
        }
        sleep(Duration::from_millis(1));
    }
    true
}

/// The shell that unmounts when this process has died.
#[derive(Debug)]
pub(super) struct Watch {
    shell: Child,
}

impl Watch {
    pub(super) fn start(mountpoint: &Path) -> io::Result<Self> {
        let shell = Command::new("sh")
            .args(["-c", WATCH, "slowfs-watch"])
            .arg(mountpoint)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .describe("start the watch of", mountpoint.as_os_str().as_bytes())?;
        Ok(Self { shell })
    }

    /// Ends the watch: there is nothing left to unmount.
    pub(super) fn dismiss(&mut self) {
        if let Some(mut pipe) = self.shell.stdin.take() {
            // If the shell is gone there is no watch to end.
            let _ = pipe.write_all(b"over\n");
        }
        let _ = self.shell.wait();
    }
}
