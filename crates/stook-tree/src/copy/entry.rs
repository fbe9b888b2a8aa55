//! One entry: is it there already, is it one more name of another, and if not, how is it made.

use std::borrow::Cow;
use std::io;
use std::sync::atomic::Ordering;

use stook_sys::{Directory, FileKind, Links as Follow, Metadata, NODE_MODE, is_link_refused};

use super::copier::Copier;
use super::fault::{At, Fault, Side};
use super::file::OpenFile;
use super::links::{First, Met};
use super::target::Target;
use super::visitor::{Entry, Later, Outcome};
use crate::Reason;
use crate::metadata::{ACCESS_ACL, Current, NamedTarget, Original, SET_ATTRIBUTES};

impl<'h> Copier<'_, 'h> {
    pub(super) fn copy_entry(
        &self,
        entry: &Entry<'_, 'h>,
        later: &mut Vec<Later<'h>>,
    ) -> Result<Outcome, Fault> {
        if entry.kind == FileKind::Socket {
            return Ok(Outcome::Skipped("it is a socket"));
        }
        // In a directory that this run has made nothing can be there.
        let is_made = entry.node.data.is_made;
        let copy = match entry.copy {
            Some(copy) if is_made && entry.kind == FileKind::File => {
                return self.copy_new_file(entry, copy, later);
            }
            other => other,
        };
        let metadata = entry.source.metadata(entry.name, Follow::Refuse);
        let metadata = metadata.at(Side::Source, "look at")?;
        if metadata.kind == FileKind::Directory {
            return Ok(Outcome::Directory);
        }
        let there = match copy {
            Some(copy) if !is_made => look(copy, entry.new_name).at(Side::Copy, "look at")?,
            _ => None,
        };
        let is_same = match (&there, copy) {
            (Some(there), Some(copy)) => {
                is_same(entry, copy, &metadata, there)?
                    && !self.is_tied(entry, copy, &metadata, there)?
            }
            _ => false,
        };
        let Some(open_copy) = copy.filter(|_| !self.context.options.is_dry_run) else {
            let same = there.filter(|_| is_same);
            return self.tell(entry, copy, &metadata, same.as_ref());
        };
        if !is_same && entry.waits(&metadata, later) {
            return Ok(Outcome::Later);
        }
        let there = clear(open_copy, entry.new_name, there)?;
        self.with_links(
            entry,
            open_copy,
            &metadata,
            there.as_ref(),
            later,
            || match &there {
                Some(there) if is_same => self.set_right(entry, open_copy, &metadata, there),
                _ if metadata.kind == FileKind::File => {
                    self.copy_file(entry, open_copy, OpenFile::open(entry)?, there.is_some())
                }
                _ => self.copy_other(entry, open_copy, &metadata, there.is_some()),
            },
        )
    }

    /// Copies a file into a directory that this run has made.
    fn copy_new_file(
        &self,
        entry: &Entry<'_, 'h>,
        copy: &Directory,
        later: &mut Vec<Later<'h>>,
    ) -> Result<Outcome, Fault> {
        let original = OpenFile::open(entry)?;
        let metadata = original.metadata;
        if entry.waits(&metadata, later) {
            return Ok(Outcome::Later);
        }
        self.with_links(entry, copy, &metadata, None, later, || {
            self.copy_file(entry, copy, original, false)
        })
    }

    /// Calls `make`, unless another name of the same file was copied or is being copied.
    fn with_links(
        &self,
        entry: &Entry<'_, 'h>,
        copy: &Directory,
        metadata: &Metadata,
        there: Option<&Metadata>,
        later: &mut Vec<Later<'h>>,
        make: impl FnOnce() -> Result<Outcome, Fault>,
    ) -> Result<Outcome, Fault> {
        if metadata.links < 2 {
            return make();
        }
        let id = metadata.identity();
        match self.links.meet(id, || entry.for_later()) {
            Met::Waits => Ok(Outcome::Later),
            Met::Copied(first) => match self.link(entry, copy, &first, there)? {
                Some(linked) => Ok(linked),
                None => make(),
            },
            Met::First => {
                let made = make();
                later.extend(if made.is_ok() {
                    let first = First {
                        directory: entry.node.path(b"").into(),
                        name: entry.new_name.into(),
                    };
                    self.links.copied(id, first, metadata.links)
                } else {
                    self.links.failed(id)
                });
                made
            }
        }
    }

    /// Makes one more name of what was copied first; None if the file system does not want to.
    fn link(
        &self,
        entry: &Entry<'_, 'h>,
        copy: &Directory,
        first: &First,
        there: Option<&Metadata>,
    ) -> Result<Option<Outcome>, Fault> {
        let root = entry.node.to_root().open();
        let root = root.and_then(|pair| pair.copy.as_ref());
        let Some(root) = root else {
            return Ok(None);
        };
        let directory = match root.open_beneath(&first.directory) {
            // It is done, and closed to the user.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Ok(self.lose_link());
            }
            other => other.at(Side::Copy, "link")?,
        };
        let is_linked = there.is_some_and(|there| {
            let linked = directory.metadata(&first.name, Follow::Refuse);
            linked.is_ok_and(|linked| linked.is_same_file(there))
        });
        if is_linked {
            return Ok(Some(Outcome::Unchanged));
        }
        let target = self.target(entry, copy, there.is_some());
        match directory.hard_link(&first.name, copy, &target.name) {
            Ok(()) => {}
            // Too many names, or a file system without such links: it becomes a file of its own.
            Err(error) if is_link_refused(&error) => return Ok(self.lose_link()),
            Err(error) => return Err(error).at(Side::Copy, "link"),
        }
        target.finish().inspect_err(|_| target.abandon())?;
        Ok(Some(Outcome::Done {
            bytes: 0,
            is_reported: true,
        }))
    }

    /// Notes that a name becomes a file of its own.
    fn lose_link(&self) -> Option<Outcome> {
        if !self.has_lost_links.swap(true, Ordering::Relaxed) {
            let text = "some hard links became files of their own";
            self.context.observer.noted(text);
        }
        None
    }

    /// Returns the name to make something under: its own, or another one if that is taken.
    pub(super) fn target<'t>(
        &self,
        entry: &Entry<'t, '_>,
        copy: &'t Directory,
        replaces: bool,
    ) -> Target<'t> {
        Target {
            copy,
            name: if replaces {
                Cow::Owned(self.temporary_name(&entry.node.data))
            } else {
                Cow::Borrowed(entry.new_name)
            },
            replaces: replaces.then_some(entry.new_name),
        }
    }

    /// Makes anything but a regular file.
    fn copy_other(
        &self,
        entry: &Entry<'_, '_>,
        copy: &Directory,
        metadata: &Metadata,
        replaces: bool,
    ) -> Result<Outcome, Fault> {
        let target = self.target(entry, copy, replaces);
        if metadata.kind == FileKind::Symlink {
            let leads_to = entry
                .source
                .read_link(entry.name)
                .at(Side::Source, "read")?;
            copy.create_symlink(&target.name, &leads_to)
        } else {
            copy.create_node(&target.name, metadata.kind, metadata.device)
        }
        .at(Side::Copy, "create")?;
        let metadata_set = self.apply_metadata_to_other(entry, &target, metadata);
        target.finish().inspect_err(|_| target.abandon())?;
        // It is there, and stays, as a file would.
        metadata_set?;
        Ok(Outcome::Done {
            bytes: 0,
            is_reported: true,
        })
    }

    fn apply_metadata_to_other(
        &self,
        entry: &Entry<'_, '_>,
        target: &Target<'_>,
        metadata: &Metadata,
    ) -> Result<(), Fault> {
        let (copy, name) = (target.copy, &target.name);
        let state = &entry.node.data;
        if state.lends_lists && metadata.kind != FileKind::Symlink {
            copy.remove_xattr(name, ACCESS_ACL)
                .at(Side::Copy, SET_ATTRIBUTES)?;
        }
        let owner = state.owner_of_new(|| copy.metadata(name, Follow::Refuse))?;
        let attributes = self.user.attributes_of_source(entry, metadata.kind)?;
        let original = Original {
            metadata,
            attributes: &attributes,
        };
        let to = NamedTarget {
            directory: copy,
            name,
        };
        let has = Current::new(owner, NODE_MODE);
        Ok(self
            .user
            .apply(&to, original, &has, &state.methods.refused)?)
    }
}

/// Returns the facts about a name; None if nothing has it.
pub(super) fn look(directory: &Directory, name: &[u8]) -> io::Result<Option<Metadata>> {
    match directory.metadata(name, Follow::Refuse) {
        Ok(there) => Ok(Some(there)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns what stays in the way of something that is not a directory: an empty directory does not.
fn clear(
    copy: &Directory,
    name: &[u8],
    there: Option<Metadata>,
) -> Result<Option<Metadata>, Fault> {
    match there {
        Some(there) if there.kind == FileKind::Directory => match copy.remove_directory(name) {
            Ok(()) => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                Err(Reason::DirectoryInPlace.into()).at(Side::Copy, "replace")
            }
            Err(error) => Err(error).at(Side::Copy, "replace"),
        },
        other => Ok(other),
    }
}

fn is_same(
    entry: &Entry<'_, '_>,
    copy: &Directory,
    metadata: &Metadata,
    there: &Metadata,
) -> Result<bool, Fault> {
    if metadata.kind != there.kind {
        return Ok(false);
    }
    Ok(match metadata.kind {
        FileKind::File => metadata.size == there.size && metadata.mtime == there.mtime,
        FileKind::Symlink => have_same_target(entry, copy)?,
        _ => metadata.device == there.device,
    })
}

/// Returns true if the two symbolic links lead to the same place.
pub(super) fn have_same_target(entry: &Entry<'_, '_>, copy: &Directory) -> Result<bool, Fault> {
    let wanted = entry
        .source
        .read_link(entry.name)
        .at(Side::Source, "read")?;
    let found = copy.read_link(entry.new_name).at(Side::Copy, "read")?;
    Ok(wanted == found)
}
