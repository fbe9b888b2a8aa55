//! What `stat` says, in FUSE's words.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{FileAttr, FileType, INodeNo};
use stook_archive::{MemberKind, Stat};
use stook_sys::Timestamp;

/// The user nobody: for numbers that are none.
const NOBODY: u32 = 65_534;

/// Bits for the group; with an access control list they are its mask.
const GROUP_BITS: u16 = 0o070;

/// The attributes of an entry, and how good they are.
pub(crate) struct Attributes {
    pub(crate) facts: FileAttr,
    /// False while its header cannot be read: `stat` fails.
    pub(crate) is_known: bool,
    /// For how long the kernel may keep them.
    pub(crate) validity: Duration,
}

/// How long the kernel may keep what does not change: as good as for ever.
pub(crate) const FOREVER: Duration = Duration::from_secs(1 << 32);

/// Returns the attributes of an entry. What nothing says the type of is called a file.
pub(crate) fn attributes_of(
    number: u64,
    stat: &Stat,
    stored_bytes: u64,
    lists: AccessLists,
) -> FileAttr {
    let kind = stat.kind.map_or(FileType::RegularFile, file_type);
    let time = system_time(stat.mtime);
    let mut perm = u16::try_from(stat.mode & 0o7777).unwrap_or(0);
    if stat.has_xattrs && lists == AccessLists::Unknown {
        perm &= !GROUP_BITS;
    }
    FileAttr {
        ino: INodeNo(number),
        size: stat.size,
        blocks: blocks(kind, stat.size.min(stored_bytes)),
        atime: time,
        mtime: time,
        ctime: time,
        crtime: time,
        kind,
        perm,
        nlink: stat.links,
        uid: user(stat.uid),
        gid: user(stat.gid),
        rdev: device_number(stat.device),
        blksize: 4096,
        flags: 0,
    }
}

/// Whether the kernel asks for access control lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AccessLists {
    /// It does, and heeds them.
    Heeded,
    /// It does not: who is let in by the group's bits might not be by the list.
    Unknown,
}

fn blocks(kind: FileType, bytes: u64) -> u64 {
    match kind {
        FileType::RegularFile => bytes.div_ceil(512),
        _ => 0,
    }
}

pub(crate) fn file_type(kind: MemberKind) -> FileType {
    match kind {
        MemberKind::File | MemberKind::HardLink => FileType::RegularFile,
        MemberKind::Directory => FileType::Directory,
        MemberKind::Symlink => FileType::Symlink,
        MemberKind::Fifo => FileType::NamedPipe,
        MemberKind::CharDevice => FileType::CharDevice,
        MemberKind::BlockDevice => FileType::BlockDevice,
    }
}

fn user(number: u64) -> u32 {
    u32::try_from(number).map_or(
        NOBODY,
        |number| if number == u32::MAX { NOBODY } else { number },
    )
}

/// # Source
/// Linux, `include/linux/kdev_t.h`: `new_encode_dev`.
fn device_number((major, minor): (u32, u32)) -> u32 {
    (minor & 0xff) | (major << 8) | ((minor & !0xff) << 12)
}

fn system_time(time: Timestamp) -> SystemTime {
    let whole = Duration::from_secs(time.seconds.unsigned_abs());
    let begin = if time.seconds < 0 {
        UNIX_EPOCH.checked_sub(whole)
    } else {
        UNIX_EPOCH.checked_add(whole)
    };
    let nanoseconds = Duration::from_nanos(time.nanoseconds.into());
    begin
        .and_then(|begin| begin.checked_add(nanoseconds))
        .unwrap_or(UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_1970_keep_their_nanoseconds() {
        let time = system_time(Timestamp {
            seconds: -2,
            nanoseconds: 250_000_000,
        });
        let before = UNIX_EPOCH.duration_since(time).unwrap();
        assert_eq!(before, Duration::from_millis(1750));
    }

    #[test]
    fn devices_are_numbered_as_the_kernel_does() {
        assert_eq!(device_number((8, 1)), 0x801);
        assert_eq!(
            device_number((259, 0x12345)),
            0x1230_0000 | 0x0001_0300 | 0x45
        );
    }

    #[test]
    fn a_number_that_is_no_user_is_nobody() {
        assert_eq!(user(1000), 1000);
        assert_eq!(user(u64::from(u32::MAX)), NOBODY);
        assert_eq!(user(1 << 40), NOBODY);
    }
}
