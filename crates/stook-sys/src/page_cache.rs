//! Hints for the page cache: what will be written soon, what will be read soon, and what will not; and emptying it.

use std::fs::File;
use std::num::NonZeroU64;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use rustix::fs::{Advice, CWD, Mode, OFlags, fadvise, openat};

use crate::{Context, SysError};

const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// What the kernel is to forget of the files of the whole machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forget {
    /// Data only: the pages of files, and those of the devices below, which hold directories and tables of inodes.
    Data,
    /// Data, names and inodes.
    Everything,
}

/// Writes all that is to be written, and then drops what the kernel holds of the files of the whole machine.
///
/// What a process has mapped or open stays, and so do files that live in memory only.
///
/// # Errors
/// The operation "open" or "write" with the kernel's switch: without the rights of the superuser, and in many containers.
///
/// # Cost
/// Everything that the machine reads afterwards comes from its disks.
///
/// # Source
/// `proc_sys_vm(5)`, `drop_caches`.
pub fn drop_caches(what: Forget) -> Result<(), SysError> {
    let switch = open_switch()?;
    // Only what is on the disk can be dropped.
    rustix::fs::sync();
    // A name or an inode that was used lately is passed over once, and where little else is to be dropped the kernel goes
    // through them only once.
    let numbers: &[&[u8]] = match what {
        Forget::Data => &[b"1"],
        Forget::Everything => &[b"3", b"3"],
    };
    for number in numbers {
        // At its beginning each time: the kernel passes over what is written behind it.
        switch
            .write_all_at(number, 0)
            .context("write", DROP_CACHES)?;
    }
    Ok(())
}

/// Returns true if this user may drop the caches; nothing is dropped.
pub fn may_drop_caches() -> bool {
    open_switch().is_ok()
}

fn open_switch() -> Result<File, SysError> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let opened = openat(CWD, DROP_CACHES, flags, Mode::empty());
    Ok(opened.context("open", DROP_CACHES)?.into())
}

/// Asks the kernel to begin writing a range of a file to the disk, and does not wait for it.
///
/// A hint: file systems that do not know it ignore it, and nothing is promised. It keeps the disk busy
/// while a volume is being made, so that the sync at its end has little left to do.
pub fn start_writeback(file: &File, offset: u64, len: u64) {
    let (Ok(offset), Ok(len)) = (i64::try_from(offset), i64::try_from(len)) else {
        return;
    };
    // SAFETY: the descriptor is open for as long as `file` is borrowed; no memory is handed over.
    let _ = unsafe {
        libc::sync_file_range(file.as_raw_fd(), offset, len, libc::SYNC_FILE_RANGE_WRITE)
    };
}

/// Says that a range of a file will be read soon, so that reading begins now.
pub fn read_ahead(file: &File, offset: u64, len: u64) {
    advise(file, offset, len, Advice::WillNeed);
}

/// Says that a range of a file will not be read again soon. What is not on the disk yet stays.
pub fn drop_cached(file: &File, offset: u64, len: u64) {
    advise(file, offset, len, Advice::DontNeed);
}

/// Says that a file is read once, from its beginning to its end.
pub fn read_once(file: &File) {
    // Length 0 means all of it, however long it is.
    for advice in [Advice::Sequential, Advice::NoReuse] {
        let _ = fadvise(file, 0, None, advice);
    }
}

fn advise(file: &File, offset: u64, len: u64, advice: Advice) {
    if let Some(len) = NonZeroU64::new(len) {
        // A hint: a file system may ignore it.
        let _ = fadvise(file, offset, Some(len), advice);
    }
}
