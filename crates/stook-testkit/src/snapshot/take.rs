//! Takes a snapshot from disk.

use super::{Fact, Facts, Kind, Snapshot};
use crate::failure::Describe;
use crate::walk::{Visited, Visitor, walk};
use md5::{Digest, Md5};
use rustix::fd::AsRawFd;
use rustix::fs::{
    FileType, Mode, OFlags, Stat, lgetxattr, llistxattr, major, minor, openat, readlinkat,
};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::Path;

const READ_BYTES: usize = 128 * 1024;
/// Linux allows 64 KiB for a list of names and for a value.
const XATTR_BYTES: usize = 64 * 1024;

impl Snapshot {
    /// Reads everything below `root`.
    ///
    /// A file that this user may not read has no MD5; every other failure ends the snapshot.
    ///
    /// # Errors
    /// At the first entry that cannot be looked at.
    pub fn take(root: &Path) -> io::Result<Self> {
        let mut camera = Camera {
            buffer: vec![0; READ_BYTES],
            ..Camera::default()
        };
        walk(root, &mut camera)?;
        for paths in camera.links.into_values().filter(|paths| paths.len() > 1) {
            let first = paths.first().cloned();
            for path in &paths {
                if let Some(facts) = camera.entries.get_mut(path) {
                    facts.first_link.clone_from(&first);
                }
            }
        }
        Ok(Self {
            entries: camera.entries,
            known: every_fact(),
        })
    }
}

fn every_fact() -> BTreeSet<Fact> {
    use Fact::{
        Content, Device, DirectoryMtime, Holes, Links, Mode, Mtime, Owner, Size, Target, Xattrs,
    };
    [
        Mode,
        Owner,
        Size,
        Mtime,
        DirectoryMtime,
        Content,
        Target,
        Device,
        Xattrs,
        Links,
        Holes,
    ]
    .into()
}

#[derive(Default)]
struct Camera {
    entries: BTreeMap<Vec<u8>, Facts>,
    links: HashMap<(u64, u64), BTreeSet<Vec<u8>>>,
    buffer: Vec<u8>,
}

impl Visitor for Camera {
    fn enter(&mut self, entry: &Visited<'_>) -> io::Result<()> {
        let facts = self.facts(entry)?;
        if facts.kind != Kind::Directory && entry.stat.st_nlink > 1 {
            self.links
                .entry((entry.stat.st_dev, entry.stat.st_ino))
                .or_default()
                .insert(entry.path.to_vec());
        }
        self.entries.insert(entry.path.to_vec(), facts);
        Ok(())
    }
}

impl Camera {
    fn facts(&mut self, entry: &Visited<'_>) -> io::Result<Facts> {
        let stat = entry.stat;
        let kind = kind_of(stat);
        let is_file = kind == Kind::File;
        let size = if is_file {
            u64::try_from(stat.st_size).unwrap_or(0)
        } else {
            0
        };
        let target = if kind == Kind::Symlink {
            Some(
                readlinkat(entry.parent, entry.name, Vec::new())
                    .describe("read the link", entry.path)?
                    .into_bytes(),
            )
        } else {
            None
        };
        let is_device = matches!(kind, Kind::CharacterDevice | Kind::BlockDevice);
        Ok(Facts {
            kind,
            mode: stat.st_mode & 0o7777,
            owner: (stat.st_uid, stat.st_gid),
            size,
            mtime_ns: i128::from(stat.st_mtime) * 1_000_000_000 + i128::from(stat.st_mtime_nsec),
            md5: if is_file { self.md5(entry)? } else { None },
            target,
            device: is_device.then(|| (major(stat.st_rdev), minor(stat.st_rdev))),
            xattrs: xattrs(entry)?,
            first_link: None,
            has_holes: is_file && u64::try_from(stat.st_blocks).unwrap_or(0) * 512 < size,
        })
    }

    fn md5(&mut self, entry: &Visited<'_>) -> io::Result<Option<String>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = match openat(entry.parent, entry.name, flags, Mode::empty()) {
            Err(Errno::ACCESS) => return Ok(None),
            opened => opened.describe("open", entry.path)?,
        };
        let mut hash = Md5::new();
        loop {
            let count = rustix::io::read(&file, &mut self.buffer).describe("read", entry.path)?;
            if count == 0 {
                break;
            }
            hash.update(&self.buffer[..count]);
        }
        Ok(Some(
            hash.finalize()
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect(),
        ))
    }
}

fn kind_of(stat: &Stat) -> Kind {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Directory,
        FileType::Symlink => Kind::Symlink,
        FileType::Fifo => Kind::Fifo,
        FileType::Socket => Kind::Socket,
        FileType::CharacterDevice => Kind::CharacterDevice,
        FileType::BlockDevice => Kind::BlockDevice,
        FileType::Unknown => Kind::Unknown,
    }
}

fn xattrs(entry: &Visited<'_>) -> io::Result<BTreeMap<Vec<u8>, Vec<u8>>> {
    // There is no lgetxattrat before Linux 6.13; /proc names the directory at any depth.
    let mut path = format!("/proc/self/fd/{}/", entry.parent.as_raw_fd()).into_bytes();
    path.extend_from_slice(entry.name.to_bytes());
    let mut names = Vec::new();
    match llistxattr(
        path.as_slice(),
        rustix::buffer::spare_capacity(with_room(&mut names, 1024)),
    ) {
        Ok(_) => {}
        Err(Errno::NOTSUP) => return Ok(BTreeMap::new()),
        Err(Errno::RANGE) => {
            llistxattr(
                path.as_slice(),
                rustix::buffer::spare_capacity(with_room(&mut names, XATTR_BYTES)),
            )
            .describe("list the attributes of", entry.path)?;
        }
        Err(error) => return Err(error).describe("list the attributes of", entry.path),
    }
    let mut pairs = BTreeMap::new();
    for name in names
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
    {
        let mut value = Vec::new();
        lgetxattr(
            path.as_slice(),
            name,
            rustix::buffer::spare_capacity(with_room(&mut value, XATTR_BYTES)),
        )
        .describe("read an attribute of", entry.path)?;
        pairs.insert(name.to_vec(), value);
    }
    Ok(pairs)
}

fn with_room(buffer: &mut Vec<u8>, bytes: usize) -> &mut Vec<u8> {
    buffer.reserve(bytes);
    buffer
}
