//! Mounting an EROFS image whose files lie in other files, without a block device.
//!
//! `mount(8)` puts a loop device under the image, and then the kernel wants devices for the other files, too: so the calls that
//! `mount(8)` is made of are made here.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::CWD;
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, fsconfig_create, fsconfig_set_flag,
    fsconfig_set_string, fsmount, fsopen, move_mount,
};

use crate::{Context, Directory, SysError};

/// Longer texts the kernel does not take, the NUL at the end included.
///
/// # Source
/// Linux, `fs/fsopen.c`: `FSCONFIG_SET_STRING`.
const LONGEST_TEXT: usize = 255;

/// How an image is mounted: always read-only, without set-id bits and devices.
#[derive(Debug)]
pub struct ErofsMount<'a> {
    /// The image, a plain file on a disk: not in memory, not on overlayfs.
    pub image: &'a Path,
    /// Where the other files are.
    pub folder: &'a Directory,
    /// Their names, in the order of the image.
    pub devices: &'a [OsString],
    /// Whether programs in it may not be run.
    pub no_exec: bool,
}

impl ErofsMount<'_> {
    /// Mounts on a directory.
    ///
    /// # Errors
    /// "find" with the name of the file system if the kernel does not have it; "mount on". Of a kernel that mounts only devices:
    /// [`is_no_block_device`].
    pub fn mount_on(&self, point: &Path) -> Result<(), SysError> {
        let context = open_context()?;
        self.mount_in(&context, point).context("mount on", point)
    }

    fn mount_in(&self, context: &OwnedFd, point: &Path) -> io::Result<()> {
        let folder = format!("/proc/self/fd/{}", self.folder.as_fd().as_raw_fd());
        let image = self.image.as_os_str();
        if image.len() > LONGEST_TEXT {
            return Err(Errno::NAMETOOLONG.into());
        }
        fsconfig_set_string(context, "source", image)?;
        for device in self.devices {
            let path = [folder.as_bytes(), b"/", device.as_bytes()].concat();
            fsconfig_set_string(context, "device", path)?;
        }
        fsconfig_set_flag(context, "ro")?;
        fsconfig_create(context)?;
        let mut attributes = MountAttrFlags::MOUNT_ATTR_RDONLY
            | MountAttrFlags::MOUNT_ATTR_NOSUID
            | MountAttrFlags::MOUNT_ATTR_NODEV;
        if self.no_exec {
            attributes |= MountAttrFlags::MOUNT_ATTR_NOEXEC;
        }
        let mount = fsmount(context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        move_mount(&mount, "", CWD, point, flags)?;
        Ok(())
    }
}

fn open_context() -> Result<OwnedFd, SysError> {
    fsopen("erofs", FsOpenFlags::FSOPEN_CLOEXEC).context("find", "erofs")
}

/// Returns whether the kernel heeds access control lists in an image. One that was built without does not refuse to, but says so.
///
/// # Errors
/// "find": [`is_unknown_file_system`], or that it is not permitted.
///
/// # Source
/// Linux, `fs/erofs/super.c`: `Opt_acl`; what a context says is read from its descriptor.
pub fn erofs_heeds_access_lists() -> Result<bool, SysError> {
    let context = open_context()?;
    if fsconfig_set_flag(&context, "acl").is_err() {
        return Ok(false);
    }
    let mut text = [0; 256];
    // Nothing is there to be read if it has nothing to say.
    let said = rustix::io::read(&context, &mut text).unwrap_or(0);
    Ok(said == 0)
}

/// Returns true if the kernel does not have the file system.
pub fn is_unknown_file_system(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::NODEV.raw_os_error())
}

/// Returns true if the kernel mounts only block devices, or cannot read a file as one: in memory, for instance.
pub fn is_no_block_device(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::NOTBLK.raw_os_error())
}

/// Returns the version of the kernel.
pub fn kernel_release() -> String {
    rustix::system::uname()
        .release()
        .to_string_lossy()
        .into_owned()
}
