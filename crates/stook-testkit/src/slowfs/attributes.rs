//! Facts of an entry, from the form of the system calls to that of FUSE and back.

use fuser::{FileAttr, FileType, INodeNo, TimeOrNow};
use rustix::fs::{Stat, Timespec, UTIME_NOW, UTIME_OMIT};
use rustix::io::Errno;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Returns the attributes with `node` in the place of the inode number.
///
/// # Errors
/// `EIO` for a kind of entry that FUSE has no name for.
pub(super) fn attributes(stat: &Stat, node: u64) -> Result<FileAttr, Errno> {
    let kind = rustix::fs::FileType::from_raw_mode(stat.st_mode);
    Ok(FileAttr {
        ino: INodeNo(node),
        size: stat.st_size.cast_unsigned(),
        blocks: stat.st_blocks.cast_unsigned(),
        atime: system_time(stat.st_atime, stat.st_atime_nsec),
        mtime: system_time(stat.st_mtime, stat.st_mtime_nsec),
        ctime: system_time(stat.st_ctime, stat.st_ctime_nsec),
        crtime: UNIX_EPOCH,
        kind: file_type(kind).ok_or(Errno::IO)?,
        perm: narrow(stat.st_mode & 0o7777)?,
        nlink: narrow(stat.st_nlink)?,
        uid: stat.st_uid,
        gid: stat.st_gid,
        // The low half of the number of a device is what the kernel calls its new encoding.
        rdev: narrow(stat.st_rdev)?,
        blksize: narrow(stat.st_blksize)?,
        flags: 0,
    })
}

fn narrow<T, S: TryInto<T>>(number: S) -> Result<T, Errno> {
    number.try_into().ok().ok_or(Errno::OVERFLOW)
}

/// Returns the kind in FUSE's words; `None` when the system does not know it.
pub(super) fn file_type(kind: rustix::fs::FileType) -> Option<FileType> {
    use rustix::fs::FileType as Kind;
    Some(match kind {
        Kind::RegularFile => FileType::RegularFile,
        Kind::Directory => FileType::Directory,
        Kind::Symlink => FileType::Symlink,
        Kind::Fifo => FileType::NamedPipe,
        Kind::Socket => FileType::Socket,
        Kind::CharacterDevice => FileType::CharDevice,
        Kind::BlockDevice => FileType::BlockDevice,
        Kind::Unknown => return None,
    })
}

fn system_time(seconds: i64, nanoseconds: u64) -> SystemTime {
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let start = if seconds < 0 {
        UNIX_EPOCH.checked_sub(whole)
    } else {
        UNIX_EPOCH.checked_add(whole)
    };
    start
        .and_then(|start| start.checked_add(Duration::from_nanos(nanoseconds)))
        .unwrap_or(UNIX_EPOCH)
}

/// Returns what `utimensat` takes for a time that may be set, may be "now", or stays.
pub(super) fn timespec(time: Option<TimeOrNow>) -> Timespec {
    let (tv_sec, tv_nsec) = match time {
        None => (0, UTIME_OMIT),
        Some(TimeOrNow::Now) => (0, UTIME_NOW),
        Some(TimeOrNow::SpecificTime(time)) => requested(time),
    };
    Timespec { tv_sec, tv_nsec }
}

/// Undoes fuser 0.18's reading of a time before 1970: it takes the nanoseconds away where the kernel adds them.
fn requested(time: SystemTime) -> (i64, i64) {
    let (is_after, distance) = match time.duration_since(UNIX_EPOCH) {
        Ok(after) => (true, after),
        Err(before) => (false, before.duration()),
    };
    let seconds = i64::try_from(distance.as_secs()).unwrap_or(i64::MAX);
    let nanoseconds = i64::from(distance.subsec_nanos());
    (if is_after { seconds } else { -seconds }, nanoseconds)
}
