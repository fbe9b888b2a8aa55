//! Mounting a FUSE file system, and taking it away again.
//!
//! Who may mount does it with `mount(2)`. For others the program `fusermount3`, which has the right to, opens `/dev/fuse` and
//! hands it over through a socket. That socket is its standard input: so no other child of this process can inherit it.

use std::ffi::CString;
use std::io::{self, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, StatxFlags, open, statx};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use crate::{Context, SysError};

/// The program that mounts for users who may not.
const FUSERMOUNT: &str = "fusermount3";

/// Tells `fusermount3` the number of the socket that it answers through.
const SOCKET_VARIABLE: &str = "_FUSE_COMMFD";

/// How a FUSE file system is mounted: always read-only, without set-id bits and devices, and with permissions that the kernel
/// checks.
#[derive(Debug, Clone, Default)]
pub struct FuseMount {
    /// What is named as the source, in `/proc/mounts` for instance.
    pub source: String,
    /// The type behind `fuse.`.
    pub kind: String,
    /// Whether other users may use it.
    pub allow_other: bool,
    /// Whether programs in it may not be run.
    pub no_exec: bool,
}

impl FuseMount {
    /// Mounts on a directory, and returns the descriptor that requests come through.
    ///
    /// # Errors
    /// The operation "mount on": of `mount(2)`, or what `fusermount3` says.
    pub fn mount_on(&self, point: &Path) -> Result<OwnedFd, SysError> {
        match self.mount_directly(point) {
            Err(error) if is_refused(&error) => self.mount_by_helper(point),
            mounted => mounted,
        }
        .context("mount on", point)
    }

    fn mount_directly(&self, point: &Path) -> io::Result<OwnedFd> {
        if !crate::is_root() {
            return Err(Errno::PERM.into());
        }
        let device = open("/dev/fuse", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        let mode = statx(CWD, point, AtFlags::empty(), StatxFlags::MODE)?.stx_mode;
        let mut data = format!(
            "fd={},rootmode={mode:o},user_id=0,group_id=0,default_permissions",
            device.as_raw_fd()
        );
        if self.allow_other {
            data.push_str(",allow_other");
        }
        let mut flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
        if self.no_exec {
            flags |= MountFlags::NOEXEC;
        }
        let kind = format!("fuse.{}", self.kind);
        let data = CString::new(data)?;
        mount(self.source(), point, &*kind, flags, &*data)?;
        Ok(device)
    }

    fn mount_by_helper(&self, point: &Path) -> io::Result<OwnedFd> {
        let (ours, theirs) = UnixStream::pair()?;
        let mut child = Command::new(FUSERMOUNT)
            .args(["-o", &self.helper_options(), "--"])
            .arg(point)
            .env(SOCKET_VARIABLE, "0")
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| without_helper(&error))?;
        let device = receive_descriptor(&ours);
        let mut text = String::new();
        if let Some(errors) = &mut child.stderr {
            // Without a text the status has to do.
            let _ = errors.read_to_string(&mut text);
        }
        let status = child.wait()?;
        match device {
            Some(device) if status.success() => Ok(device),
            _ => Err(io::Error::other(helper_failure(&text, &status))),
        }
    }

    /// The kernel takes no empty one.
    fn source(&self) -> &str {
        match &*self.source {
            "" => &self.kind,
            source => source,
        }
    }

    fn helper_options(&self) -> String {
        // Commas and backslashes separate options there.
        let source = self.source().replace('\\', "\\\\").replace(',', "\\,");
        let mut options = format!(
            "ro,nosuid,nodev,default_permissions,fsname={source},subtype={}",
            self.kind
        );
        if self.allow_other {
            options.push_str(",allow_other");
        }
        if self.no_exec {
            options.push_str(",noexec");
        }
        options
    }
}

fn is_refused(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::PERM.raw_os_error())
}

fn without_helper(error: &io::Error) -> io::Error {
    let cause = crate::cause(error);
    io::Error::new(
        error.kind(),
        format!("cannot run `{FUSERMOUNT}`, which mounts for users: {cause}"),
    )
}

/// `fusermount3: mountpoint is not empty` without the name of the program.
fn helper_failure(text: &str, status: &std::process::ExitStatus) -> String {
    let line = text.lines().next().unwrap_or("").trim();
    let line = line
        .strip_prefix(FUSERMOUNT)
        .map_or(line, |line| line.trim_start_matches([':', ' ']));
    if line.is_empty() {
        format!("`{FUSERMOUNT}` ended with {status}")
    } else {
        line.to_owned()
    }
}

fn receive_descriptor(socket: &UnixStream) -> Option<OwnedFd> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut slices = [IoSliceMut::new(&mut byte)];
    let received = rustix::io::retry_on_intr(|| {
        recvmsg(socket, &mut slices, &mut control, RecvFlags::CMSG_CLOEXEC)
    });
    received.ok()?;
    control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    })
}

/// How a file system is taken away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unmount {
    /// Only if nobody uses it.
    Unused,
    /// Now: who uses it keeps it until the last file is closed.
    Detach,
}

/// What is mounted at one place, and never another mount at the same place.
#[derive(Debug, Clone)]
pub struct MountPoint {
    path: PathBuf,
    device: (u32, u32),
}

impl MountPoint {
    /// Returns the mount at a path.
    ///
    /// # Errors
    /// The operation "look at", of a mount without a server for instance.
    pub fn at(path: &Path) -> Result<Self, SysError> {
        let device = device(path).context("look at", path)?;
        let path = path.to_owned();
        Ok(Self { path, device })
    }

    /// Returns where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns major and minor number of its device, which no other file system has as long as it is mounted.
    pub fn device(&self) -> (u32, u32) {
        self.device
    }

    /// Takes it away; nothing happens if it is gone already.
    ///
    /// # Errors
    /// The operation "unmount"; [`is_busy`] says whether somebody uses it.
    pub fn unmount(&self, how: Unmount) -> Result<(), SysError> {
        if device(&self.path).ok() != Some(self.device) {
            return Ok(());
        }
        let flags = match how {
            Unmount::Unused => UnmountFlags::NOFOLLOW,
            Unmount::Detach => UnmountFlags::NOFOLLOW | UnmountFlags::DETACH,
        };
        match unmount(&self.path, flags) {
            Err(Errno::PERM) => self.unmount_by_helper(how),
            unmounted => unmounted.map_err(Into::into),
        }
        .context("unmount", &self.path)
    }

    fn unmount_by_helper(&self, how: Unmount) -> io::Result<()> {
        let mut command = Command::new(FUSERMOUNT);
        command.arg("-u");
        if how == Unmount::Detach {
            command.arg("-z");
        }
        let output = command
            .arg("--")
            .arg(&self.path)
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .output()
            .map_err(|error| without_helper(&error))?;
        if output.status.success() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&output.stderr);
        // It has no other way to say which error it was.
        if text.contains("Device or resource busy") {
            return Err(Errno::BUSY.into());
        }
        Err(io::Error::other(helper_failure(&text, &output.status)))
    }
}

/// Returns true if it was not unmounted because somebody uses it.
pub fn is_busy(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::BUSY.raw_os_error())
}

/// Returns true if the server of a file system has ended, and its mount is still there.
pub fn is_without_server(error: &io::Error) -> bool {
    [Errno::NOTCONN, Errno::CONNABORTED]
        .map(|errno| Some(errno.raw_os_error()))
        .contains(&error.raw_os_error())
}

/// Returns the device number of what is at a path, without asking a server for anything.
fn device(path: &Path) -> io::Result<(u32, u32)> {
    let flags = AtFlags::STATX_DONT_SYNC | AtFlags::SYMLINK_NOFOLLOW;
    let facts = statx(CWD, path.as_os_str().as_bytes(), flags, StatxFlags::empty())?;
    Ok((facts.stx_dev_major, facts.stx_dev_minor))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::*;

    #[test]
    fn what_the_helper_says_is_passed_on_without_its_name() {
        let failed = ExitStatus::from_raw(256);
        let text = "fusermount3: option allow_other only allowed if 'user_allow_other' is set in /etc/fuse.conf\n";
        assert_eq!(
            helper_failure(text, &failed),
            "option allow_other only allowed if 'user_allow_other' is set in /etc/fuse.conf"
        );
        assert_eq!(
            helper_failure("", &failed),
            "`fusermount3` ended with exit status: 1"
        );
    }

    #[test]
    fn a_source_with_commas_stays_one_option() {
        let mount = FuseMount {
            source: "/a,b\\c".to_owned(),
            kind: "stook".to_owned(),
            allow_other: true,
            ..FuseMount::default()
        };
        assert_eq!(
            mount.helper_options(),
            "ro,nosuid,nodev,default_permissions,fsname=/a\\,b\\\\c,subtype=stook,allow_other"
        );
    }
}
