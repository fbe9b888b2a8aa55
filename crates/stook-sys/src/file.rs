//! Files and folders that the user named, and whole reads and writes.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, CWD, MemfdFlags, Mode, OFlags, RenameFlags, SeekFrom};
use rustix::io::{Errno, ReadWriteFlags};

use crate::calls;
use crate::directory::{metadata_of, times};
use crate::{Context, Directory, FileKind, Metadata, SysError, Timestamp};

/// Opens a regular file for reading.
///
/// # Errors
/// The operation "open" with the path; anything but a regular file is refused, and does not block.
pub fn open_file(path: &Path) -> Result<File, SysError> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let fd = fs::openat(CWD, path, flags, Mode::empty()).context("open", path)?;
    require_regular(&metadata_of(&fd).context("look at", path)?, path)?;
    Ok(fd.into())
}

/// Returns the content of a text file; one of the kernel's, too, which say that they are empty.
///
/// # Errors
/// The operation "open" or "read" with the path; bytes that are not UTF-8 are an error.
pub fn read_text(path: &Path) -> Result<String, SysError> {
    // Files of `/proc` have no size, and would be read in small pieces.
    let mut text = String::with_capacity(4096);
    open_file(path)?
        .read_to_string(&mut text)
        .context("read", path)?;
    Ok(text)
}

/// Returns what can be read from a path, which may also be that of a pipe.
///
/// # Errors
/// The operation "open" or "read" with the path.
pub fn read_all(path: &Path) -> Result<Vec<u8>, SysError> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY;
    let mut file = File::from(fs::openat(CWD, path, flags, Mode::empty()).context("open", path)?);
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).context("read", path)?;
    Ok(bytes)
}

/// Returns an empty file in memory, without a name, which goes when the last descriptor of it is closed.
///
/// # Errors
/// The operation "create", with a name for it.
pub fn memory_file() -> Result<File, SysError> {
    let created = fs::memfd_create("stook", MemfdFlags::CLOEXEC);
    Ok(created.context("create", "a file in memory")?.into())
}

/// Refuses what is not a regular file.
///
/// # Errors
/// The operation "open" with the path.
pub fn require_regular(metadata: &Metadata, path: &Path) -> Result<(), SysError> {
    if metadata.kind == FileKind::File {
        return Ok(());
    }
    Err(io::Error::other("it is not a regular file")).context("open", path)
}

/// Opens a file for reading and writing, as it stands.
///
/// # Errors
/// The operation "open" with the path.
pub fn open_read_write(path: &Path) -> Result<File, SysError> {
    let fd = fs::openat(CWD, path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .context("open", path)?;
    Ok(fd.into())
}

/// Opens a file to append to it; it is created if missing.
///
/// # Errors
/// The operation "open" with the path.
pub fn append_to_file(path: &Path) -> Result<File, SysError> {
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::CLOEXEC;
    let fd = fs::openat(CWD, path, flags, Mode::from_raw_mode(0o644)).context("open", path)?;
    Ok(fd.into())
}

/// Makes a directory that only this user can enter, unless it is there already: then it must be such a one.
///
/// # Errors
/// The operation "create" or "look at" with the path; "use" if it belongs to another user, or others can enter it.
pub fn private_directory(path: &Path) -> Result<(), SysError> {
    match fs::mkdirat(CWD, path, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error).context("create", path),
    }
    let facts = fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).context("look at", path)?;
    let is_directory = fs::FileType::from_raw_mode(facts.st_mode) == fs::FileType::Directory;
    let is_private = facts.st_mode & 0o077 == 0 && facts.st_uid == crate::effective_user();
    if is_directory && is_private {
        return Ok(());
    }
    let refused = io::Error::new(
        io::ErrorKind::PermissionDenied,
        "it is no directory of this user alone",
    );
    Err(refused).context("use", path)
}

/// Creates a file that must not exist, for reading and writing.
///
/// # Errors
/// The operation "create" with the path.
pub fn create_new_file(path: &Path) -> Result<File, SysError> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let fd = fs::openat(CWD, path, flags, Mode::from_raw_mode(0o666)).context("create", path)?;
    Ok(fd.into())
}

/// Writes a file anew, whatever was in it.
///
/// # Errors
/// The operation "write" with the path.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), SysError> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC;
    let file: File = fs::openat(CWD, path, flags, Mode::from_raw_mode(0o666))
        .context("write", path)?
        .into();
    file.write_all_at(bytes, 0).context("write", path)
}

/// Makes a folder and those above it; one that is there already is fine.
///
/// # Errors
/// The operation "create" with the path.
pub fn create_directory(path: &Path) -> Result<(), SysError> {
    // Without the `.` of `folder/.`, which the kernel does not take for a new folder.
    let path: &Path = &path.components().collect::<PathBuf>();
    match fs::mkdirat(CWD, path, Mode::from_raw_mode(0o777)) {
        Ok(()) => Ok(()),
        Err(Errno::EXIST) => match Directory::open(path) {
            Ok(_) => Ok(()),
            Err(error) => Err(error.source).context("create", path),
        },
        Err(Errno::NOENT) => {
            let parent = path
                .parent()
                .filter(|parent| !parent.as_os_str().is_empty());
            create_directory(parent.ok_or(Errno::NOENT).context("create", path)?)?;
            fs::mkdirat(CWD, path, Mode::from_raw_mode(0o777)).context("create", path)
        }
        Err(error) => Err(error).context("create", path),
    }
}

/// Returns the facts about what `path` names, following links; None if there is nothing.
///
/// # Errors
/// The operation "look at" with the path, for anything but a missing file.
pub fn exists(path: &Path) -> Result<Option<Metadata>, SysError> {
    match statx(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error).context("look at", path),
    }
}

/// Returns the facts about what `path` names, following links.
///
/// # Errors
/// The operation "look at" with the path.
pub fn look_at(path: &Path) -> Result<Metadata, SysError> {
    statx(path).context("look at", path)
}

fn statx(path: &Path) -> Result<Metadata, Errno> {
    fs::statx(CWD, path, AtFlags::empty(), Metadata::WANTED).map(|stat| Metadata::of(&stat))
}

/// Renames a file, replacing what had the new name.
///
/// # Errors
/// The operation "rename" with the old path.
pub fn rename(from: &Path, to: &Path) -> Result<(), SysError> {
    fs::renameat(CWD, from, CWD, to).context("rename", from)
}

/// Renames a file to a name that nothing has.
///
/// # Errors
/// The operation "rename" with the new path; `AlreadyExists` if something has that name. Where the file
/// system cannot make sure of it in one step, it is looked at before.
pub fn rename_to_new(from: &Path, to: &Path) -> Result<(), SysError> {
    match fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) if exists(to)?.is_none() => {
            rename(from, to)
        }
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => Err(Errno::EXIST).context("rename", to),
        other => other.context("rename", to),
    }
}

/// Gives two files or directories each other's name, in one step; false, with nothing done, where the file system cannot.
///
/// # Errors
/// The operation "rename" with the second path; `NotFound` if one of the two is not there.
pub fn exchange(one: &Path, other: &Path) -> Result<bool, SysError> {
    match fs::renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(true),
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => Ok(false),
        Err(error) => Err(error).context("rename", other),
    }
}

/// Removes a file; one that is not there is fine.
///
/// # Errors
/// The operation "remove" with the path.
pub fn remove_file(path: &Path) -> Result<(), SysError> {
    match fs::unlinkat(CWD, path, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error).context("remove", path),
    }
}

/// Makes the names in a folder durable.
///
/// # Errors
/// The operation "sync" with the path.
pub fn sync_directory(path: &Path) -> Result<(), SysError> {
    let directory = Directory::open(path)?;
    match fs::fsync(directory.as_fd()) {
        // Some network file systems cannot sync a directory, and need not.
        Ok(()) | Err(Errno::INVAL | Errno::NOTSUP) => Ok(()),
        Err(error) => Err(error).context("sync", path),
    }
}

/// Returns the path with all links and dots resolved.
///
/// # Errors
/// The operation "resolve" with the path.
#[expect(clippy::disallowed_methods, reason = "this is the wrapper")]
pub fn absolute(path: &Path) -> Result<PathBuf, SysError> {
    std::fs::canonicalize(path).context("resolve", path)
}

/// Returns the facts about an open file.
///
/// # Errors
/// As `fstat`.
pub fn metadata(file: &File) -> io::Result<Metadata> {
    metadata_of(file)
}

/// Sets the modification time of an open file or directory; that of the last access stays.
///
/// # Errors
/// As `futimens`.
pub fn set_mtime(fd: impl AsFd, mtime: Timestamp) -> io::Result<()> {
    Ok(calls::futimens(fd, &times(mtime))?)
}

/// Sets the permission bits of an open file or directory.
///
/// # Errors
/// As `fchmod`.
pub fn set_mode(fd: impl AsFd, mode: u32) -> io::Result<()> {
    Ok(calls::fchmod(fd, Mode::from_raw_mode(mode))?)
}

/// Sets the owner of an open file or directory.
///
/// # Errors
/// As `fchown`.
pub fn set_owner(fd: impl AsFd, uid: u32, gid: u32) -> io::Result<()> {
    Ok(calls::fchown(
        fd,
        Some(fs::Uid::from_raw(uid)),
        Some(fs::Gid::from_raw(gid)),
    )?)
}

/// Reads until the buffer is full or the file ends; returns the number of bytes.
///
/// # Errors
/// As `pread`; an interrupted call is repeated.
pub fn read_up_to_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match file.read_at(&mut buffer[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// As [`read_up_to_at`], but only if no disk is needed for it; `None` if one is, or where the file system cannot tell.
///
/// # Errors
/// As `preadv2`.
pub fn read_cached_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
    let mut done = 0;
    while done < buffer.len() {
        let mut rest = [io::IoSliceMut::new(&mut buffer[done..])];
        let at = offset + done as u64;
        match rustix::io::preadv2(file, &mut rest, at, ReadWriteFlags::NOWAIT) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Some(done))
}

/// Appends `len` bytes from `offset` to the buffer, or what there is up to the end of the file; returns
/// their number.
///
/// # Errors
/// As `pread`; an interrupted call is repeated.
///
/// # Cost
/// The new part of the buffer is not filled with zeros first.
pub fn append_at(file: &File, buffer: &mut Vec<u8>, len: usize, offset: u64) -> io::Result<usize> {
    append_some_at(file, buffer, len, len, offset)
}

/// As [`append_at`], but content with `enough` bytes: for up to `most` it asks the system only once.
///
/// So the whole of a file is read with one system call, and one byte more would show that it has grown.
///
/// # Errors
/// As `pread`; an interrupted call is repeated.
pub fn append_some_at(
    file: &File,
    buffer: &mut Vec<u8>,
    enough: usize,
    most: usize,
    offset: u64,
) -> io::Result<usize> {
    let start = buffer.len();
    buffer.reserve(most);
    while buffer.len() - start < most {
        let done = buffer.len() - start;
        let room = &mut buffer.spare_capacity_mut()[..most - done];
        match calls::pread(file, room, offset + done as u64) {
            Ok(([], _)) => break,
            Ok((filled, _)) => {
                let end = start + done + filled.len();
                // SAFETY: the bytes up to there are those that were there, and those that `pread` has
                // written, which it returned as initialised; they lie within the capacity.
                unsafe { buffer.set_len(end) };
            }
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        if buffer.len() - start >= enough {
            break;
        }
    }
    Ok(buffer.len() - start)
}

/// Writes the whole buffer.
///
/// # Errors
/// As `pwrite`; an interrupted call is repeated.
pub fn write_all_at(file: &File, buffer: &[u8], offset: u64) -> io::Result<()> {
    let mut done = 0;
    while done < buffer.len() {
        match calls::pwrite(file, &buffer[done..], offset + done as u64) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => done += count,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// A range of a sparse file that holds data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Where it begins, in bytes.
    pub offset: u64,
    /// Its length in bytes.
    pub len: u64,
}

/// Returns the first range of a file of `size` bytes that holds data at `position` or behind it.
///
/// A file system that cannot tell gives all that is left.
///
/// # Errors
/// As `lseek`.
pub fn next_data_segment(file: &File, position: u64, size: u64) -> io::Result<Option<Segment>> {
    if position >= size {
        return Ok(None);
    }
    let offset = match calls::seek(file, SeekFrom::Data(position)) {
        Ok(start) => start.min(size),
        Err(Errno::NXIO) => return Ok(None),
        Err(Errno::INVAL | Errno::OPNOTSUPP) => {
            let len = size - position;
            return Ok(Some(Segment {
                offset: position,
                len,
            }));
        }
        Err(error) => return Err(error.into()),
    };
    if offset == size {
        return Ok(None);
    }
    let end = match calls::seek(file, SeekFrom::Hole(offset)) {
        Ok(end) => end.min(size),
        // Cut off meanwhile.
        Err(Errno::NXIO) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let len = end - offset;
    Ok(Some(Segment { offset, len }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_of_a_sparse_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = create_new_file(&folder.path().join("f")).unwrap();
        file.set_len(10 << 20).unwrap();
        write_all_at(&file, b"data", 5 << 20).unwrap();
        let mut segments = Vec::new();
        let mut position = 0;
        while let Some(found) = next_data_segment(&file, position, 10 << 20).unwrap() {
            position = found.offset + found.len;
            segments.push(found);
        }
        assert!(
            segments
                .iter()
                .any(|s| s.offset <= 5 << 20 && s.offset + s.len >= (5 << 20) + 4)
        );
        assert_eq!(next_data_segment(&file, 0, 0).unwrap(), None);
        let mut buffer = [1; 8];
        assert_eq!(
            read_up_to_at(&file, &mut buffer, (10 << 20) - 4).unwrap(),
            4
        );
    }

    #[test]
    fn two_folders_exchange_their_names() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = ["one", "other"].map(|name| folder.path().join(name));
        std::fs::create_dir(&one).unwrap();
        std::fs::write(one.join("f"), b"").unwrap();
        // Where the file system cannot, it does not look for the names either.
        let missing = exchange(&one, &other);
        assert!(match missing {
            Ok(is_done) => !is_done,
            Err(error) => error.is_not_found() && error.path == other,
        });
        std::fs::create_dir(&other).unwrap();
        let is_done = exchange(&one, &other).unwrap();
        let now = if is_done { &other } else { &one };
        assert!(exists(&now.join("f")).unwrap().is_some());
        if !is_done {
            stook_testkit::skip!("names cannot be exchanged here");
        }
    }

    #[test]
    fn folders_are_made_with_those_above() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("a/b/c");
        create_directory(&deep).unwrap();
        create_directory(&deep).unwrap();
        assert!(exists(&deep).unwrap().is_some());
        std::fs::write(deep.join("f"), b"").unwrap();
        let error = create_directory(&deep.join("f")).unwrap_err();
        assert_eq!(error.operation, "create");
        assert!(exists(&deep.join("none")).unwrap().is_none());
    }
}
