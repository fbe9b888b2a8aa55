//! Open directories, and everything done relative to one.
//!
//! [`Directory::open_beneath`] is the safe way down: for a single name one `openat` with `O_NOFOLLOW`; for a
//! path one `openat2` with `RESOLVE_BENEATH` and `RESOLVE_NO_SYMLINKS` where the kernel has it, else one `openat`
//! for each component. Paths longer than `PATH_MAX` are opened in pieces.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, RawDir, RenameFlags, ResolveFlags, StatxAttributes,
    Timespec, Timestamps, UTIME_OMIT, Uid, makedev,
};
use rustix::io::Errno;

use crate::calls as fs;
use crate::{Context, FileId, FileKind, Metadata, SysError, Timestamp};

/// What to do with a symbolic link in the last place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// Look at what it points to.
    Follow,
    /// Look at the link itself; opening one fails.
    Refuse,
}

/// An open directory.
#[derive(Debug)]
pub struct Directory {
    /// None only while it is dropped.
    fd: Option<OwnedFd>,
}

impl Drop for Directory {
    fn drop(&mut self) {
        if let Some(fd) = self.fd.take() {
            let _ = fs::close(fd);
        }
    }
}

/// A name found in a directory.
#[derive(Debug, Clone, Copy)]
pub struct FoundName<'a> {
    /// The name, without the directory.
    pub name: &'a [u8],
    /// Its kind, where the file system returns it with the name.
    pub kind: Option<FileKind>,
    /// Its inode number.
    pub inode: u64,
}

/// Memory for [`Directory::names`], to be used again from directory to directory.
#[derive(Debug)]
pub struct NameBuffer(Vec<MaybeUninit<u8>>);

impl Default for NameBuffer {
    fn default() -> Self {
        // Holds about 8,000 names: one getdents64 for nearly every directory. Memory that is not written
        // to costs nothing.
        Self(vec![MaybeUninit::uninit(); 256 << 10])
    }
}

/// Longest path handed to the kernel in one call; `PATH_MAX` is 4,096 with the final NUL.
const LONGEST_PATH: usize = 4_000;

/// The mode of a fifo or device when it is made.
pub const NODE_MODE: u32 = 0o600;

const DIRECTORY_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

const BENEATH: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS);

/// Cleared when the kernel (before 5.6) or a seccomp filter refuses `openat2`.
static HAS_OPENAT2: AtomicBool = AtomicBool::new(true);

impl Directory {
    /// Opens a directory that the user named: symbolic links are followed.
    ///
    /// # Errors
    /// The operation "open" with the path.
    pub fn open(path: &Path) -> Result<Self, SysError> {
        let fd = fs::openat(CWD, path, DIRECTORY_FLAGS, Mode::empty()).context("open", path)?;
        Ok(Self { fd: Some(fd) })
    }

    /// As [`Directory::open`], for a way to what is in it: it need not be readable, and its names cannot be listed.
    ///
    /// # Errors
    /// The operation "open" with the path.
    pub fn open_handle(path: &Path) -> Result<Self, SysError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = fs::openat(CWD, path, flags, Mode::empty()).context("open", path)?;
        Ok(Self { fd: Some(fd) })
    }

    /// Opens the directory `path` below this one, an empty path meaning this one again.
    ///
    /// No component may be a symbolic link or `..`, and none leads out of this directory.
    ///
    /// # Cost
    /// One system call, or one for each component where `openat2` is missing.
    pub fn open_beneath(&self, path: &[u8]) -> io::Result<Self> {
        self.open_pieces(path, Self::open_piece_beneath)
    }

    /// As [`Directory::open_beneath`], but a mount point on the way or at the end is an error: see [`crate::is_mount_point`].
    ///
    /// # Cost
    /// One system call; where `openat2` is missing, one for each component and two more.
    pub fn open_on_same_mount(&self, path: &[u8]) -> io::Result<Self> {
        if HAS_OPENAT2.load(Ordering::Relaxed) {
            let opened = self.open_pieces(path, |base, piece| {
                fs::openat2(
                    base,
                    piece,
                    DIRECTORY_FLAGS,
                    Mode::empty(),
                    BENEATH.union(ResolveFlags::NO_XDEV),
                )
            });
            match opened {
                Err(error) if is_missing(&error) => HAS_OPENAT2.store(false, Ordering::Relaxed),
                other => return other,
            }
        }
        let opened = self.open_pieces(path, Self::open_components)?;
        if is_mounted(&opened, c"", AtFlags::EMPTY_PATH, self)? {
            return Err(Errno::XDEV.into());
        }
        Ok(opened)
    }

    /// Opens the directory `path` below this one, following symbolic links.
    pub fn open_following(&self, path: &[u8]) -> io::Result<Self> {
        self.open_pieces(path, |base, piece| {
            fs::openat(base, piece, DIRECTORY_FLAGS, Mode::empty())
        })
    }

    /// Opens a handle on the directory above; at the root of the system that is the root again.
    pub fn open_above(&self) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = fs::openat(self, "..", flags, Mode::empty())?;
        Ok(Self { fd: Some(fd) })
    }

    /// Opens the directory so many levels above, to read its names, if it is this one; None if it is another: something
    /// on the way was moved.
    pub fn open_known_above(&self, levels: usize, expected: FileId) -> io::Result<Option<Self>> {
        let fd = fs::openat(self, "../".repeat(levels), DIRECTORY_FLAGS, Mode::empty())?;
        let above = Self { fd: Some(fd) };
        let is_expected = above.own_metadata()?.identity() == expected;
        Ok(is_expected.then_some(above))
    }

    fn open_pieces(
        &self,
        path: &[u8],
        open: impl Fn(BorrowedFd<'_>, &[u8]) -> Result<OwnedFd, Errno>,
    ) -> io::Result<Self> {
        let mut rest = if path.is_empty() { &b"."[..] } else { path };
        let mut opened: Option<OwnedFd> = None;
        while !rest.is_empty() {
            let (piece, tail) = split_piece(rest);
            let base = opened.as_ref().map_or(self.as_fd(), AsFd::as_fd);
            opened = Some(open(base, piece)?);
            rest = tail;
        }
        Ok(Self {
            fd: Some(opened.ok_or(Errno::NOENT)?),
        })
    }

    fn open_piece_beneath(base: BorrowedFd<'_>, piece: &[u8]) -> Result<OwnedFd, Errno> {
        // A single name leads nowhere but down; so it takes no `openat2`, which is the slower call.
        if piece.contains(&b'/') && HAS_OPENAT2.load(Ordering::Relaxed) {
            match fs::openat2(base, piece, DIRECTORY_FLAGS, Mode::empty(), BENEATH) {
                Err(Errno::NOSYS | Errno::PERM) => HAS_OPENAT2.store(false, Ordering::Relaxed),
                other => return other,
            }
        }
        Self::open_components(base, piece)
    }

    /// The way down without `openat2`.
    fn open_components(base: BorrowedFd<'_>, piece: &[u8]) -> Result<OwnedFd, Errno> {
        let mut opened: Option<OwnedFd> = None;
        for component in piece
            .split(|&byte| byte == b'/')
            .filter(|component| !component.is_empty())
        {
            if component == b".." {
                return Err(Errno::XDEV);
            }
            let base = opened.as_ref().map_or(base, AsFd::as_fd);
            opened = Some(fs::openat(
                base,
                component,
                DIRECTORY_FLAGS | OFlags::NOFOLLOW,
                Mode::empty(),
            )?);
        }
        opened.ok_or(Errno::NOENT)
    }

    /// Opens a regular file in this directory for reading.
    ///
    /// Never blocks on a fifo that took the file's place.
    pub fn open_file(&self, name: &[u8], links: Links) -> io::Result<File> {
        let mut flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        if links == Links::Refuse {
            flags |= OFlags::NOFOLLOW;
        }
        Ok(fs::openat(self, name, flags, Mode::empty())?.into())
    }

    /// Creates a file that must not exist.
    pub fn create_file(&self, name: &[u8], mode: u32) -> io::Result<File> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(fs::openat(self, name, flags, Mode::from_raw_mode(mode))?.into())
    }

    /// Opens a file of this directory for reading and writing, and makes an empty one where there is none. A symbolic link
    /// in its place is refused.
    pub fn open_or_create_file(&self, name: &[u8], mode: u32) -> io::Result<File> {
        let flags = OFlags::RDWR
            | OFlags::CREATE
            | OFlags::NOFOLLOW
            | OFlags::NONBLOCK
            | OFlags::NOCTTY
            | OFlags::CLOEXEC;
        Ok(fs::openat(self, name, flags, Mode::from_raw_mode(mode))?.into())
    }

    /// Calls `visit` with every name but `.` and `..`, in the file system's order.
    pub fn names(
        &self,
        buffer: &mut NameBuffer,
        visit: impl FnMut(FoundName<'_>),
    ) -> io::Result<()> {
        self.names_up_to(buffer, usize::MAX, visit).map(drop)
    }

    /// As [`Directory::names`], but stops after about so many; the next call goes on there. Returns true if there
    /// may be more.
    pub fn names_up_to(
        &self,
        buffer: &mut NameBuffer,
        most: usize,
        mut visit: impl FnMut(FoundName<'_>),
    ) -> io::Result<bool> {
        let mut entries = RawDir::new(self, &mut buffer.0);
        let mut visited = 0;
        loop {
            // What the system handed over is used up: nothing gets lost here.
            if visited >= most && entries.is_buffer_empty() {
                return Ok(true);
            }
            let Some(entry) = fs::next_name(&mut entries) else {
                return Ok(false);
            };
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                visited += 1;
                visit(FoundName {
                    name,
                    kind: FileKind::of(entry.file_type()),
                    inode: entry.ino(),
                });
            }
        }
    }

    /// Returns the facts about an entry.
    pub fn metadata(&self, name: &[u8], links: Links) -> io::Result<Metadata> {
        let flags = match links {
            Links::Follow => AtFlags::empty(),
            Links::Refuse => AtFlags::SYMLINK_NOFOLLOW,
        };
        let stat = fs::statx(self, name, flags, Metadata::WANTED)?;
        Ok(Metadata::of(&stat))
    }

    /// Returns true if an entry is the root of a mount; before Linux 5.8, only if that is on another device.
    pub fn is_mount_root(&self, name: &[u8]) -> io::Result<bool> {
        is_mounted(self, name, AtFlags::SYMLINK_NOFOLLOW, self)
    }

    /// Returns the path under which it is reached now.
    pub fn path(&self) -> io::Result<Vec<u8>> {
        let link = format!("/proc/self/fd/{}", self.as_fd().as_raw_fd());
        Ok(fs::readlinkat(CWD, link, Vec::new())?.into_bytes())
    }

    /// Returns the facts about the directory itself.
    pub fn own_metadata(&self) -> io::Result<Metadata> {
        metadata_of(self)
    }

    /// Returns the target of a symbolic link.
    pub fn read_link(&self, name: &[u8]) -> io::Result<Vec<u8>> {
        Ok(fs::readlinkat(self, name, Vec::new())?.into_bytes())
    }

    /// Makes a directory.
    pub fn create_directory(&self, name: &[u8], mode: u32) -> io::Result<()> {
        Ok(fs::mkdirat(self, name, Mode::from_raw_mode(mode))?)
    }

    /// Makes a symbolic link.
    pub fn create_symlink(&self, name: &[u8], target: &[u8]) -> io::Result<()> {
        Ok(fs::symlinkat(target, self, name)?)
    }

    /// Makes a fifo, or a device with the given major and minor number.
    pub fn create_node(&self, name: &[u8], kind: FileKind, device: (u32, u32)) -> io::Result<()> {
        let kind = match kind {
            FileKind::Fifo => FileType::Fifo,
            FileKind::CharDevice => FileType::CharacterDevice,
            FileKind::BlockDevice => FileType::BlockDevice,
            _ => return Err(Errno::INVAL.into()),
        };
        let device = makedev(device.0, device.1);
        Ok(fs::mknodat(
            self,
            name,
            kind,
            Mode::from_raw_mode(NODE_MODE),
            device,
        )?)
    }

    /// Gives the file `name` of this directory a further name in another one.
    pub fn hard_link(&self, name: &[u8], into: &Self, new_name: &[u8]) -> io::Result<()> {
        Ok(fs::linkat(self, name, into, new_name, AtFlags::empty())?)
    }

    /// Renames an entry within this directory, replacing what had the new name.
    pub fn rename(&self, from: &[u8], to: &[u8]) -> io::Result<()> {
        Ok(fs::renameat(self, from, self, to)?)
    }

    /// Renames an entry within this directory, to a name that nothing has.
    ///
    /// # Errors
    /// `AlreadyExists` if something has it; `InvalidInput` where the file system cannot make sure of that.
    pub fn rename_to_new(&self, from: &[u8], to: &[u8]) -> io::Result<()> {
        Ok(fs::renameat_with(
            self,
            from,
            self,
            to,
            RenameFlags::NOREPLACE,
        )?)
    }

    /// Removes a name that is not a directory.
    pub fn remove(&self, name: &[u8]) -> io::Result<()> {
        Ok(fs::unlinkat(self, name, AtFlags::empty())?)
    }

    /// Removes an empty directory.
    pub fn remove_directory(&self, name: &[u8]) -> io::Result<()> {
        Ok(fs::unlinkat(self, name, AtFlags::REMOVEDIR)?)
    }

    /// Sets the modification time of an entry, not following a link.
    pub fn set_mtime(&self, name: &[u8], mtime: Timestamp) -> io::Result<()> {
        Ok(fs::utimensat(
            self,
            name,
            &times(mtime),
            AtFlags::SYMLINK_NOFOLLOW,
        )?)
    }

    /// Sets the owner of an entry, not following a link.
    pub fn set_owner(&self, name: &[u8], uid: u32, gid: u32) -> io::Result<()> {
        let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
        Ok(fs::chownat(
            self,
            name,
            Some(uid),
            Some(gid),
            AtFlags::SYMLINK_NOFOLLOW,
        )?)
    }

    /// Sets the permission bits of an entry that is not a link.
    pub fn set_mode(&self, name: &[u8], mode: u32) -> io::Result<()> {
        // chmod has no way not to follow a link that took the entry's place; a handle on the entry has.
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let entry = fs::openat(self, name, flags, Mode::empty())?;
        if metadata_of(&entry)?.kind == FileKind::Symlink {
            return Err(Errno::LOOP.into());
        }
        change_mode(&entry, mode)
    }

    /// Gives a directory in this one these permission bits, too. Anything else in its place is an error.
    pub fn add_mode_of_directory(&self, name: &[u8], bits: u32) -> io::Result<()> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let entry = fs::openat(self, name, flags, Mode::empty())?;
        let mode = metadata_of(&entry)?.mode | bits;
        change_mode(&entry, mode)
    }

    /// Sets the directory's own permission bits.
    pub fn set_own_mode(&self, mode: u32) -> io::Result<()> {
        Ok(fs::fchmod(self, Mode::from_raw_mode(mode))?)
    }

    /// Sets the directory's own modification time.
    pub fn set_own_mtime(&self, mtime: Timestamp) -> io::Result<()> {
        Ok(fs::futimens(self, &times(mtime))?)
    }

    /// Sets the directory's own owner.
    pub fn set_own_owner(&self, uid: u32, gid: u32) -> io::Result<()> {
        Ok(fs::fchown(
            self,
            Some(Uid::from_raw(uid)),
            Some(Gid::from_raw(gid)),
        )?)
    }

    /// Returns a second handle on the same open directory.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self {
            fd: Some(self.as_fd().try_clone_to_owned()?),
        })
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_ref().expect("it is open").as_fd()
    }
}

/// Changes the permission bits of what a handle is on, which chmod itself cannot do.
fn change_mode(entry: &OwnedFd, mode: u32) -> io::Result<()> {
    let path = format!("/proc/self/fd/{}", entry.as_raw_fd());
    Ok(fs::chmod(path, Mode::from_raw_mode(mode))?)
}

/// Returns true if something is mounted there; `above` is the directory that holds it.
fn is_mounted(
    at: &Directory,
    name: impl rustix::path::Arg,
    flags: AtFlags,
    above: &Directory,
) -> io::Result<bool> {
    let stat = fs::statx(at, name, flags, Metadata::WANTED)?;
    let (known, attributes) = (stat.stx_attributes_mask, stat.stx_attributes);
    if known.contains(StatxAttributes::MOUNT_ROOT) {
        return Ok(attributes.contains(StatxAttributes::MOUNT_ROOT));
    }
    Ok(Metadata::of(&stat).filesystem != above.own_metadata()?.filesystem)
}

/// Before Linux 5.6, and below filters that do not know the call.
fn is_missing(error: &io::Error) -> bool {
    let number = error.raw_os_error();
    [Errno::NOSYS, Errno::PERM]
        .map(|errno| Some(errno.raw_os_error()))
        .contains(&number)
}

pub(crate) fn metadata_of(fd: impl AsFd) -> io::Result<Metadata> {
    const SELF: &CStr = c"";
    Ok(Metadata::of(&fs::statx(
        fd,
        SELF,
        AtFlags::EMPTY_PATH,
        Metadata::WANTED,
    )?))
}

/// The time of the last access stays as it is: no other one was given.
pub(crate) fn times(mtime: Timestamp) -> Timestamps {
    Timestamps {
        last_access: Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_OMIT,
        },
        last_modification: Timespec {
            tv_sec: mtime.seconds,
            tv_nsec: mtime.nanoseconds.into(),
        },
    }
}

/// Cuts off as many leading components as fit into one call.
fn split_piece(path: &[u8]) -> (&[u8], &[u8]) {
    if path.len() <= LONGEST_PATH {
        return (path, &[]);
    }
    let cut = path[..LONGEST_PATH]
        .iter()
        .rposition(|&byte| byte == b'/')
        .unwrap_or(LONGEST_PATH);
    let tail = &path[cut..];
    (&path[..cut], tail.strip_prefix(b"/").unwrap_or(tail))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch() -> (tempfile::TempDir, Directory) {
        let folder = tempfile::tempdir().unwrap();
        let directory = Directory::open(folder.path()).unwrap();
        (folder, directory)
    }

    #[test]
    fn opens_beneath_and_refuses_links_and_parents() {
        let (_folder, root) = scratch();
        root.create_directory(b"a", 0o755).unwrap();
        root.open_beneath(b"a")
            .unwrap()
            .create_directory(b"b", 0o755)
            .unwrap();
        root.create_symlink(b"link", b"a").unwrap();
        assert!(root.open_beneath(b"").is_ok());
        assert!(root.open_beneath(b"a/b").is_ok());
        assert!(root.open_beneath(b"link/b").is_err());
        assert!(root.open_beneath(b"a/../..").is_err());
        assert!(root.open_following(b"link/b").is_ok());
    }

    #[test]
    fn a_directory_above_is_opened_if_it_is_the_known_one() {
        let (_folder, root) = scratch();
        let identity = |directory: &Directory| directory.own_metadata().unwrap().identity();
        let mut below = root.try_clone().unwrap();
        for name in [b"a", b"b"] {
            below.create_directory(name, 0o755).unwrap();
            below = below.open_beneath(name).unwrap();
        }
        let above = |levels| below.open_known_above(levels, identity(&root)).unwrap();
        assert_eq!(identity(&above(2).unwrap()), identity(&root));
        assert!(above(1).is_none() && above(3).is_none());
        fs::renameat(&root, "a/b", &root, "b").unwrap();
        assert!(above(2).is_none() && above(1).is_some());
    }

    #[test]
    fn component_walk_is_as_strict_as_openat2() {
        let (_folder, root) = scratch();
        root.create_directory(b"a", 0o755).unwrap();
        root.create_symlink(b"link", b"a").unwrap();
        let fd = root.as_fd();
        assert!(Directory::open_components(fd, b"a").is_ok());
        assert!(Directory::open_components(fd, b"./a/").is_ok());
        assert!(Directory::open_components(fd, b"link").is_err());
        assert!(Directory::open_components(fd, b"a/..").is_err());
        assert!(Directory::open_components(fd, b"/").is_err());
    }

    #[test]
    fn long_paths_are_opened_in_pieces() {
        let (_folder, root) = scratch();
        let name = [b'n'; 200];
        let mut path = Vec::new();
        let mut current = root.try_clone().unwrap();
        for _ in 0..30 {
            current.create_directory(&name, 0o755).unwrap();
            current = current.open_beneath(&name).unwrap();
            path.extend_from_slice(&name);
            path.push(b'/');
        }
        path.pop();
        assert!(path.len() > 4096);
        let found = root.open_beneath(&path).unwrap().own_metadata().unwrap();
        assert!(found.is_same_file(&current.own_metadata().unwrap()));
    }

    #[test]
    fn names_lists_all_but_the_dots() {
        let (_folder, root) = scratch();
        for i in 0..5_000 {
            root.create_file(format!("file-with-a-long-name-{i}").as_bytes(), 0o600)
                .unwrap();
        }
        let mut count = 0;
        root.names(&mut NameBuffer::default(), |_| count += 1)
            .unwrap();
        assert_eq!(count, 5_000);
    }
}
