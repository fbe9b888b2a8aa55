//! What is behind the names of a directory.

use std::io;

use stook_pool::advance;
use stook_sys::{Directory, FileKind, Links, Metadata};
use stook_timers::scope;

use super::listing::Entry;
use super::{Detail, Visitor, Walk};
use crate::names::Name;
use crate::path::join;

/// What was found in a directory, or in a part of it.
pub(super) struct Found {
    pub(super) entries: Vec<Entry>,
    pub(super) subdirectories: Vec<Name>,
    pub(super) is_empty: bool,
}

enum Look {
    Directory,
    Skipped,
    Entry {
        metadata: Metadata,
        leads_to_directory: bool,
    },
}

impl Found {
    pub(super) fn with_capacity(entries: usize) -> Self {
        Self {
            entries: Vec::with_capacity(entries),
            subdirectories: Vec::new(),
            is_empty: true,
        }
    }
}

impl<V: Visitor> Walk<'_, V> {
    /// Finds out what is behind each of the names, in their order.
    pub(super) fn look_at_all(
        &self,
        directory: &Directory,
        path: &[u8],
        (bytes, names): (&[u8], &[Name]),
        found: &mut Found,
    ) {
        let _scope = scope!("stat");
        for each in names {
            // Where each look takes long, a directory must not be finished first.
            if self.visitor.is_stopped() {
                return;
            }
            let name = each.place.of(bytes);
            match self.look_at(directory, path, name, each.kind) {
                Ok(Look::Directory) if self.is_left_out(directory, name, each.inode) => {
                    self.visitor.left_out(&join(path, name));
                    continue;
                }
                Ok(Look::Directory) => found.subdirectories.push(*each),
                Ok(Look::Skipped) => {}
                Ok(Look::Entry {
                    metadata,
                    leads_to_directory,
                }) => {
                    let entry = Entry::new(each.place, &metadata, leads_to_directory);
                    found.entries.push(entry);
                }
                // Removed since it was listed: as if it had never been there.
                Err(_) if has_vanished(directory, name) => continue,
                Err(source) => self.fail(join(path, name), "look at", source),
            }
            advance(1);
            found.is_empty = false;
        }
    }

    fn look_at(
        &self,
        directory: &Directory,
        path: &[u8],
        name: &[u8],
        kind: Option<FileKind>,
    ) -> io::Result<Look> {
        let links = self.options.links;
        // A link that is followed is of the kind that it leads to.
        let told = kind.filter(|&kind| kind != FileKind::Symlink || links == Links::Refuse);
        let skips = |kind| self.visitor.skips(path, name, kind);
        let metadata = match told {
            Some(FileKind::Directory) => return Ok(Look::Directory),
            Some(kind) if skips(kind) => return Ok(Look::Skipped),
            Some(kind) if self.options.detail == Detail::Kinds => Metadata::of_kind(kind),
            _ => directory.metadata(name, links)?,
        };
        if metadata.kind == FileKind::Directory {
            return Ok(Look::Directory);
        }
        if told.is_none() && skips(metadata.kind) {
            return Ok(Look::Skipped);
        }
        let leads_to_directory = metadata.kind == FileKind::Symlink
            && self.options.detail == Detail::LinkTargets
            && directory
                .metadata(name, Links::Follow)
                .is_ok_and(|target| target.kind == FileKind::Directory);
        Ok(Look::Entry {
            metadata,
            leads_to_directory,
        })
    }

    /// Only an inode number that agrees is worth a system call. A mount point has another one in the
    /// listing; it is found when it is opened.
    fn is_left_out(&self, directory: &Directory, name: &[u8], inode: u64) -> bool {
        self.options.leave_out.is_some_and(|identity| {
            identity.1 == inode
                && directory
                    .metadata(name, self.options.links)
                    .is_ok_and(|metadata| metadata.identity() == identity)
        })
    }
}

fn has_vanished(directory: &Directory, name: &[u8]) -> bool {
    directory
        .metadata(name, Links::Refuse)
        .is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}
