//! A stamp of a file: a different one means that the file was changed meanwhile.

use std::fs::File;
use std::io;
use std::time::Duration;

use rustix::fs::{AtFlags, Statx, StatxFlags};

use crate::calls as fs;
use crate::metadata::timestamp;
use crate::{Directory, FileId, Timestamp, utc_now};

/// State of a file: as long as it has the same stamp, it has the same content. A server is asked for it each time,
/// as others may have changed the file there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Which file it is.
    pub identity: FileId,
    /// Bytes of content.
    pub size: u64,
    /// Last change of the content, which its owner can set.
    pub mtime: Timestamp,
    /// Last change of anything, which no program can set.
    pub ctime: Timestamp,
}

/// The clock that the kernel stamps files with ticks at least this often.
const TICK: Duration = Duration::from_millis(20);
/// Some file systems round times to seconds, one of them to two.
const COARSE_TICK: Duration = Duration::from_secs(2);

const WANTED: StatxFlags = StatxFlags::INO
    .union(StatxFlags::SIZE)
    .union(StatxFlags::MTIME)
    .union(StatxFlags::CTIME);

impl Stamp {
    /// Returns the stamp of an open file.
    ///
    /// # Errors
    /// If it cannot be looked at.
    pub fn of(file: &File) -> io::Result<Self> {
        Ok(Self::from(&fs::statx(
            file,
            c"",
            AtFlags::EMPTY_PATH | AtFlags::STATX_FORCE_SYNC,
            WANTED,
        )?))
    }

    /// Returns the stamp of an entry, not following a link.
    ///
    /// # Errors
    /// If it is missing or cannot be looked at.
    pub fn at(directory: &Directory, name: &[u8]) -> io::Result<Self> {
        Ok(Self::from(&fs::statx(
            directory,
            name,
            AtFlags::SYMLINK_NOFOLLOW | AtFlags::STATX_FORCE_SYNC,
            WANTED,
        )?))
    }

    /// Waits until any change from now on gives the file another stamp: two within one tick of the clock do not.
    /// Returns false if that cannot be waited for: the clock of the storage is ahead.
    ///
    /// # Cost
    /// Nothing for a file that was not changed a moment ago; else up to two seconds.
    pub fn settle(&self) -> bool {
        let tick = if self.ctime.nanoseconds == 0 {
            COARSE_TICK
        } else {
            TICK
        };
        let Some(age) = since(self.ctime, utc_now()) else {
            return false;
        };
        std::thread::sleep(tick.saturating_sub(age));
        true
    }

    /// Returns all of it but the device, whose number another mount changes, as words.
    pub fn text(&self) -> String {
        let [mtime, ctime] = [self.mtime, self.ctime]
            .map(|time| format!("{}.{:09}", time.seconds, time.nanoseconds));
        format!("{} {} {mtime} {ctime}", self.size, self.identity.1)
    }
}

fn since(earlier: Timestamp, later: Timestamp) -> Option<Duration> {
    let [earlier, later] = [earlier, later]
        .map(|time| i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanoseconds));
    let age = u64::try_from((later - earlier).min(i128::from(u64::MAX))).ok()?;
    Some(Duration::from_nanos(age))
}

impl From<&Statx> for Stamp {
    fn from(stat: &Statx) -> Self {
        Self {
            identity: ((stat.stx_dev_major, stat.stx_dev_minor), stat.stx_ino),
            size: stat.stx_size,
            mtime: timestamp(stat.stx_mtime),
            ctime: timestamp(stat.stx_ctime),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_behind_a_settled_stamp_is_seen_though_size_and_mtime_are_set_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "one").unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        let before = Stamp::of(&file).unwrap();
        assert!(before.settle());
        let mtime = file.metadata().unwrap().modified().unwrap();
        std::fs::write(&path, "two").unwrap();
        file.set_modified(mtime).unwrap();
        let directory = Directory::open(folder.path()).unwrap();
        let after = Stamp::at(&directory, b"file").unwrap();
        assert_eq!((before.size, before.mtime), (after.size, after.mtime));
        assert_ne!(before, after);
        assert_ne!(before.text(), after.text());
    }

    #[test]
    fn a_clock_that_is_ahead_cannot_be_waited_for() {
        let mut stamp = Stamp::of(&tempfile::tempfile().unwrap()).unwrap();
        stamp.ctime.seconds += 100;
        assert!(!stamp.settle());
        stamp.ctime.seconds = i64::MIN;
        assert!(stamp.settle());
    }
}
