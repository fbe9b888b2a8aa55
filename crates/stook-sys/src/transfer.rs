//! Content from one open file to another without passing through this process, where the system can do that.

use std::fs::File;
use std::io;

use rustix::io::Errno;

use crate::calls;

/// Why content did not go from one file to another in a certain way, though neither file is to blame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// It never goes that way between the two file systems.
    Always,
    /// Perhaps it is only these two files.
    ThisTime,
}

/// Returns why a way was refused; None for a failure that any other way would meet, too.
pub fn refusal(error: &io::Error) -> Option<Refusal> {
    match Errno::from_io_error(error)? {
        Errno::NOTSUP | Errno::XDEV | Errno::NOSYS | Errno::NOTTY | Errno::PERM => {
            Some(Refusal::Always)
        }
        Errno::INVAL | Errno::TXTBSY | Errno::BADF | Errno::OVERFLOW => Some(Refusal::ThisTime),
        _ => None,
    }
}

/// Lets a new file share the whole content of another one.
///
/// # Errors
/// As `ioctl_ficlone(2)`; see [`refusal`].
pub fn share_content(from: &File, to: &File) -> io::Result<()> {
    Ok(calls::ioctl_ficlone(to, from)?)
}

/// Copies up to `len` bytes from `offset` on to the same place in another file; returns their number, 0 at the end of
/// the file, and on file systems that do not know how long their files are.
///
/// # Errors
/// As `copy_file_range(2)`; see [`refusal`]. An interrupted call is repeated.
pub fn copy_range(from: &File, to: &File, offset: u64, len: usize) -> io::Result<usize> {
    loop {
        let (mut from_offset, mut to_offset) = (offset, offset);
        let (from_place, to_place) = (Some(&mut from_offset), Some(&mut to_offset));
        match calls::copy_file_range(from, from_place, to, to_place, len) {
            Err(Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}

/// Sets the length of an open file; what is new is a hole.
///
/// # Errors
/// As `ftruncate`.
pub fn set_len(file: &File, len: u64) -> io::Result<()> {
    Ok(calls::ftruncate(file, len)?)
}

/// Closes a file. Unlike dropping it, this is counted, and returns errors that some file systems report only now.
///
/// # Errors
/// As `close`: on a network file system, that something written before got lost.
pub fn close_file(file: File) -> io::Result<()> {
    Ok(calls::close(file.into())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{create_new_file, read_up_to_at, write_all_at};

    #[test]
    fn content_goes_over_or_the_way_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let [from, to] =
            ["from", "to"].map(|name| create_new_file(&folder.path().join(name)).unwrap());
        write_all_at(&from, b"0123456789", 0).unwrap();
        let copied = copy_range(&from, &to, 4, 100);
        let shared = share_content(&from, &to);
        let mut found = [0; 16];
        let len = read_up_to_at(&to, &mut found, 0).unwrap();
        match (&copied, &shared) {
            (_, Ok(())) => assert_eq!(&found[..len], b"0123456789"),
            (Ok(count), _) => {
                assert_eq!((*count, &found[..len]), (6, &b"\x00\x00\x00\x00456789"[..]));
            }
            _ => assert_eq!(len, 0),
        }
        for error in [copied.err(), shared.err()].into_iter().flatten() {
            assert!(refusal(&error).is_some(), "{error}");
        }
        set_len(&to, 3).unwrap();
        assert_eq!(read_up_to_at(&to, &mut found, 0).unwrap(), 3);
        close_file(to).unwrap();
        assert_eq!(refusal(&io::ErrorKind::StorageFull.into()), None);
        assert_eq!(refusal(&Errno::NOSPC.into()), None);
        assert_eq!(refusal(&Errno::IO.into()), None);
    }
}
