//! Names and attributes: the catalogue, with inode numbers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fuser::{FileAttr, FileType};
use stook_archive::{Catalogue, EntryId, MemberKind, Stat, StatSource};

use crate::attributes::{AccessLists, Attributes, FOREVER, attributes_of, file_type};
use crate::nodes::{Nodes, VERSION, entries};

/// Longer names cannot be shown: the kernel refuses a whole directory that has one.
///
/// # Source
/// Linux, `fs/fuse/fuse_i.h`: `FUSE_NAME_MAX`.
const LONGEST_NAME: usize = 1024;

#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) catalogue: Arc<Catalogue>,
    nodes: Nodes,
    /// Set in each number.
    tag: u64,
    heeds_access_lists: AtomicBool,
    /// Of all files.
    pub(crate) bytes: u64,
    /// Names that are too long, and one of them.
    pub(crate) left_out: Option<(u64, EntryId)>,
}

/// An entry as a directory lists it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Listed {
    pub(crate) entry: EntryId,
    /// Where to go on behind it.
    pub(crate) next: u64,
}

/// Positions before those of the entries: of `.` and `..`.
pub(crate) const DOTS: u64 = 2;

impl Tree {
    /// Returns the tree of a catalogue; `tag` is set in each of its inode numbers.
    pub(crate) fn new(catalogue: Arc<Catalogue>, tag: u64) -> Self {
        let nodes = Nodes::of(&catalogue);
        let mut bytes = 0_u64;
        let mut left_out = None;
        for entry in entries(&catalogue) {
            if catalogue.first_name(entry) == entry {
                bytes = bytes.saturating_add(catalogue.size(entry));
            }
            if catalogue.name(entry).len() > LONGEST_NAME {
                let (names, _) = left_out.unwrap_or((0, entry));
                left_out = Some((names + 1, entry));
            }
        }
        Self {
            catalogue,
            nodes,
            tag,
            heeds_access_lists: AtomicBool::new(false),
            bytes,
            left_out,
        }
    }

    /// Returns true if an entry may have an access control list.
    pub(crate) fn may_have_access_lists(&self) -> bool {
        entries(&self.catalogue).any(|entry| self.catalogue.may_have_xattrs(entry))
    }

    /// The kernel asks for access control lists from now on.
    pub(crate) fn heed_access_lists(&self) {
        self.heeds_access_lists.store(true, Ordering::Relaxed);
    }

    pub(crate) fn entry(&self, number: u64) -> Option<EntryId> {
        self.nodes.entry(&self.catalogue, number & !VERSION)
    }

    pub(crate) fn number(&self, entry: EntryId) -> u64 {
        self.nodes.number(&self.catalogue, entry) | self.tag
    }

    /// Returns the directory above another one; of the root, the root.
    pub(crate) fn above(&self, entry: EntryId) -> EntryId {
        self.catalogue.parent(entry).unwrap_or(EntryId::ROOT)
    }

    pub(crate) fn child(&self, entry: EntryId, name: &[u8]) -> Option<EntryId> {
        if name.len() > LONGEST_NAME {
            return None;
        }
        self.catalogue.child(entry, name)
    }

    /// Returns the entries of a directory behind a position.
    pub(crate) fn children_from(
        &self,
        directory: EntryId,
        position: u64,
    ) -> impl Iterator<Item = Listed> + use<'_> {
        let skipped = position.saturating_sub(DOTS);
        let children = self
            .catalogue
            .children_from(directory, usize::try_from(skipped).unwrap_or(usize::MAX));
        (skipped + DOTS + 1..)
            .zip(children)
            .map(|(next, entry)| Listed { entry, next })
            .filter(|listed| self.catalogue.name(listed.entry).len() <= LONGEST_NAME)
    }

    /// Returns true if the attributes of an entry are in memory.
    pub(crate) fn is_in_memory(&self, entry: EntryId) -> bool {
        self.catalogue.is_stat_in_memory(entry)
    }

    /// Returns true if the type of an entry is in memory.
    pub(crate) fn has_kind_in_memory(&self, entry: EntryId) -> bool {
        self.catalogue.kind(entry).is_some() || self.is_in_memory(entry)
    }

    /// Returns the type of an entry. May wait, unless it is in memory.
    pub(crate) fn kind(&self, entry: EntryId) -> FileType {
        let kind = self.catalogue.kind(entry);
        kind.map_or_else(|| self.attributes(entry).facts.kind, file_type)
    }

    /// Returns the attributes of an entry. May wait, unless they are in memory.
    pub(crate) fn attributes(&self, entry: EntryId) -> Attributes {
        let stat = self.stat(entry);
        let stored = match stat.is_sparse {
            true => self.catalogue.stored_bytes(entry),
            false => stat.size,
        };
        let lists = match self.heeds_access_lists.load(Ordering::Relaxed) {
            true => AccessLists::Heeded,
            false => AccessLists::Unknown,
        };
        let is_read = stat.source != StatSource::Row;
        let facts = attributes_of(self.number(entry), &stat, stored, lists);
        Attributes {
            // Below a directory whose header cannot be read, all else can.
            is_known: is_read || stat.kind == Some(MemberKind::Directory),
            validity: if is_read { FOREVER } else { Duration::ZERO },
            facts: self.closed_if_versions(entry, facts),
        }
    }

    /// Directories of versions have no modes of their own, so the uppermost one keeps all others out.
    fn closed_if_versions(&self, entry: EntryId, attributes: FileAttr) -> FileAttr {
        if entry != EntryId::ROOT || self.tag != VERSION {
            return attributes;
        }
        FileAttr {
            perm: 0o700,
            uid: stook_sys::effective_user(),
            ..attributes
        }
    }

    fn stat(&self, entry: EntryId) -> Stat {
        use MemberKind::{BlockDevice, CharDevice, Directory, Fifo};
        let mut stat = self.catalogue.stat(entry);
        // Whatever the row says: they have no content.
        if matches!(stat.kind, Some(BlockDevice | CharDevice | Directory | Fifo)) {
            stat.size = 0;
        }
        stat
    }
}
