//! Where a copy comes from and goes to, and what is refused before anything is written.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use stook_sys::{Context, Directory, FileId, FileKind, Links, Metadata, SysError};

use super::context::RootPaths;
use super::options::CopyOptions;
use super::state::Pair;
use crate::Reason;
use crate::archive::{has_index, is_archive, is_in_archive};
use crate::remove::{Tree, names_directory};

/// The two roots of a copy, open.
pub(super) struct Roots {
    /// The two trees, or the two directories that hold the single file and its copy.
    pub(super) pair: Pair,
    /// Of a single file.
    pub(super) single: Option<Single>,
    /// True if the copy's root is made by this run.
    pub(super) is_made: bool,
    pub(super) paths: RootPaths,
}

pub(super) struct Single {
    pub(super) name: Vec<u8>,
    pub(super) new_name: Vec<u8>,
    pub(super) kind: FileKind,
}

/// What to do about the copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// It must not be there.
    New,
    /// It may be there.
    Any,
    /// It is not made.
    AsItIs,
    /// It must be there, and is only read.
    There,
}

impl Roots {
    /// Opens both, and makes the copy's root, for its maker alone.
    ///
    /// # Errors
    /// See [`copy`](super::copy).
    pub(super) fn to_copy(
        tree: &Path,
        dest: &Path,
        options: &CopyOptions,
    ) -> Result<Self, SysError> {
        let wanted = match (options.is_dry_run, options.is_update) {
            (false, false) => Wanted::New,
            (false, true) => Wanted::Any,
            (true, _) => Wanted::AsItIs,
        };
        if options.is_dry_run && !options.is_update && is_there(dest)? {
            return refuse(dest, Reason::Exists);
        }
        Self::open(tree, dest, wanted)
    }

    /// Opens both to compare them.
    ///
    /// # Errors
    /// If one of them is not there.
    pub(super) fn to_compare(tree: &Path, dest: &Path) -> Result<Self, SysError> {
        Self::open(tree, dest, Wanted::There)
    }

    /// Returns what identifies the root of the copy, which is not copied itself.
    pub(super) fn leave_out(&self) -> io::Result<Option<FileId>> {
        let root = self.pair.copy.as_ref().filter(|_| self.single.is_none());
        root.map(|root| Ok(root.own_metadata()?.identity()))
            .transpose()
    }

    fn open(tree: &Path, dest: &Path, wanted: Wanted) -> Result<Self, SysError> {
        let metadata = stook_sys::exists(tree)?;
        let metadata = metadata.ok_or_else(stook_sys::not_found);
        let metadata = metadata.context("copy", tree)?;
        let end = end_of_link(dest)?;
        if metadata.kind == FileKind::Directory {
            Self::of_trees(tree, dest, wanted)
        } else {
            Self::of_single(tree, &metadata, end.as_deref().unwrap_or(dest), wanted)
        }
    }

    fn of_trees(tree: &Path, dest: &Path, wanted: Wanted) -> Result<Self, SysError> {
        let source = Directory::open(tree)?;
        let (copy, is_made) = match Directory::open(dest) {
            Ok(copy) => {
                refuse_nesting(&source, tree, &copy, dest)?;
                if wanted == Wanted::New {
                    return refuse(dest, Reason::Exists);
                }
                if wanted != Wanted::There {
                    refuse_archive(&source, &copy, dest, Reason::WouldChangeArchive)?;
                }
                (Some(copy), false)
            }
            Err(error) if error.is_not_found() && wanted != Wanted::There => {
                (make_root(&source, dest, wanted)?, true)
            }
            Err(error) if stook_sys::is_no_directory(&error.source) => {
                return refuse(dest, Reason::NotADirectory);
            }
            Err(error) => return Err(error),
        };
        if let Some(copy) = &copy
            && wanted != Wanted::There
            && !copy.lock()
        {
            return refuse(dest, Reason::Busy);
        }
        Ok(Self {
            pair: Pair { source, copy },
            single: None,
            is_made,
            paths: RootPaths {
                source: without_slashes(tree),
                copy: without_slashes(dest),
            },
        })
    }

    fn of_single(
        file: &Path,
        metadata: &Metadata,
        dest: &Path,
        wanted: Wanted,
    ) -> Result<Self, SysError> {
        // A link that the user named is followed to its end; there nothing is.
        let from = Tree::at(&stook_sys::absolute(file)?).context("copy", file)?;
        let to = Tree::at(dest).context("copy to", dest)?;
        let (source, copy) = (Directory::open(&from.holder)?, Directory::open(&to.holder)?);
        if wanted != Wanted::There {
            refuse_archive(&source, &copy, dest, Reason::IsInArchive)?;
        }
        match copy.metadata(&to.name, Links::Refuse) {
            Ok(there) if there.is_same_file(metadata) => return refuse(dest, Reason::IsTheTree),
            // Below a tree a file takes the place of an empty directory; here it is hardly what the user means.
            Ok(there) if there.kind == FileKind::Directory => {
                return refuse(dest, Reason::IsDirectory);
            }
            Ok(_) if wanted == Wanted::New => return refuse(dest, Reason::Exists),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound && wanted != Wanted::There => {}
            Err(error) => return Err(error).context("look at", dest),
        }
        if names_directory(dest) {
            let error = io::Error::from(io::ErrorKind::NotADirectory);
            return Err(error).context("copy to", dest);
        }
        Ok(Self {
            pair: Pair {
                source,
                copy: Some(copy),
            },
            single: Some(Single {
                name: from.name,
                new_name: to.name,
                kind: metadata.kind,
            }),
            is_made: false,
            paths: RootPaths {
                source: from.prefix,
                copy: to.prefix,
            },
        })
    }
}

fn refuse<T>(path: &Path, why: Reason) -> Result<T, SysError> {
    Err(io::Error::from(why)).context("copy to", path)
}

/// Returns what a link leads to, and `None` for any other path: a copy is made where a link leads, whatever is copied.
///
/// # Errors
/// If it is a link that leads nowhere: the user means something that is there.
fn end_of_link(dest: &Path) -> Result<Option<PathBuf>, SysError> {
    let is_link = || {
        let place = Tree::at(dest).ok()?;
        let holder = Directory::open_handle(&place.holder).ok()?;
        let metadata = holder.metadata(&place.name, Links::Refuse).ok()?;
        Some(metadata.kind == FileKind::Symlink)
    };
    if !is_link().unwrap_or(false) {
        return Ok(None);
    }
    match stook_sys::absolute(dest) {
        Err(error) if error.is_not_found() => refuse(dest, Reason::BrokenLink),
        other => other.map(Some),
    }
}

fn is_there(path: &Path) -> Result<bool, SysError> {
    Ok(stook_sys::exists(path)?.is_some())
}

/// Makes the root of the copy, unless nothing is to be written.
fn make_root(
    source: &Directory,
    dest: &Path,
    wanted: Wanted,
) -> Result<Option<Directory>, SysError> {
    let to = Tree::at(dest).context("copy to", dest)?;
    let holder = Directory::open(&to.holder)?;
    refuse_below(source, &holder, dest)?;
    let is_refused = is_archive(&holder).and_then(|is| Ok(is || is_in_archive(&holder)?));
    if is_refused.context("look at what is above", dest)? {
        return refuse(dest, Reason::IsInArchive);
    }
    if wanted == Wanted::AsItIs {
        return Ok(None);
    }
    match holder.create_directory(&to.name, 0o700) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return refuse(dest, Reason::Taken);
        }
        other => other.context("create", dest)?,
    }
    let root = holder.open_beneath(&to.name).context("open", dest)?;
    Ok(Some(root))
}

/// Refuses to write into an archive. Only another archive may: its earlier copy is brought up to date so.
fn refuse_archive(
    source: &Directory,
    copy: &Directory,
    dest: &Path,
    why: Reason,
) -> Result<(), SysError> {
    if would_change_archive(source, copy).context("look at", dest)? {
        return refuse(dest, why);
    }
    if is_in_archive(copy).context("look at what is above", dest)? {
        return refuse(dest, Reason::IsInArchive);
    }
    Ok(())
}

/// Returns true if a directory that is there is an archive, and the one that would be copied to it is none. A tree with
/// files of such names is none either: its index must be one.
pub(super) fn would_change_archive(source: &Directory, copy: &Directory) -> io::Result<bool> {
    Ok(is_archive(copy)? && !has_index(source)?)
}

fn refuse_below(source: &Directory, holder: &Directory, dest: &Path) -> Result<(), SysError> {
    let own = source.own_metadata().context("look at", dest)?.identity();
    let upwards = holder
        .identities_upwards()
        .context("look at what is above", dest)?;
    if upwards.contains(&own) {
        return refuse(dest, Reason::IsInTheTree);
    }
    Ok(())
}

fn refuse_nesting(
    source: &Directory,
    tree: &Path,
    copy: &Directory,
    dest: &Path,
) -> Result<(), SysError> {
    let upwards = source
        .identities_upwards()
        .context("look at what is above", tree)?;
    let own = copy.own_metadata().context("look at", dest)?.identity();
    if upwards.first() == Some(&own) {
        return refuse(dest, Reason::IsTheTree);
    }
    if upwards.contains(&own) {
        return refuse(dest, Reason::HoldsTheTree);
    }
    refuse_below(source, copy, dest)
}

fn without_slashes(path: &Path) -> Vec<u8> {
    let bytes = path.as_os_str().as_bytes();
    let end = bytes.iter().rposition(|&byte| byte != b'/');
    match end {
        Some(end) => bytes[..=end].to_vec(),
        None => bytes[..1.min(bytes.len())].to_vec(),
    }
}
