//! Members before they are packed: what the walk of the source saw of each.
//!
//! A plan in memory holds them by directory, as the walk handed them over, in 64 bytes and the name each. A part that
//! is read from a file yields them in pieces of a directory, which live as long as a worker packs from them.

use std::collections::HashMap;
use std::sync::Arc;

use stook_sys::{FileId, FileKind, Metadata, Owners};
use stook_tree::{Listing, join, split};
use stook_volume::{Dialect, Header, Kind};

/// The first name, in archive order, of every file with several names.
pub(crate) type LinkNames = HashMap<FileId, Vec<u8>>;

/// Entries of one directory that are to be archived.
///
/// Groups sorted by path, each with itself first and then its files by name, are in archive order:
/// that of the key (directory, name), with a directory as the first of its own group. A symbolic link
/// to a directory is a group, too, because zstash sorts it so.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) path: Vec<u8>,
    pub(crate) own: Option<Metadata>,
    pub(crate) listing: Option<Listing>,
}

/// A piece of a directory as it was read from a part.
#[derive(Debug)]
pub(crate) struct GroupPiece {
    pub(crate) group: Group,
    pub(crate) link_names: LinkNames,
}

/// One member of a plan.
#[derive(Debug, Clone)]
pub(crate) struct Member<'p> {
    source: Source<'p>,
    /// Index of the entry; None for the group's own entry.
    entry: Option<u32>,
}

#[derive(Debug, Clone)]
enum Source<'p> {
    Memory(&'p Group, &'p LinkNames),
    Part(Arc<GroupPiece>),
}

/// What the packer needs to know of a member.
pub(crate) struct PlannedMember<'a> {
    /// Directory of the entry.
    pub(crate) directory: &'a [u8],
    pub(crate) name: &'a [u8],
    pub(crate) path: Vec<u8>,
    pub(crate) metadata: Metadata,
    /// Name under which the same file comes earlier.
    pub(crate) first_name: Option<&'a [u8]>,
}

impl Group {
    /// Returns the members, without the group: None is its own entry.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Option<u32>> + Send + use<> {
        let own = self.own.map(|_| None);
        let listing = self.listing.as_ref();
        let count = listing.map_or(0, |listing| listing.entries.len());
        own.into_iter().chain((0_u32..).take(count).map(Some))
    }

    /// Returns one of [`Group::entries`]; None behind the last one.
    pub(crate) fn entry(&self, position: usize) -> Option<Option<u32>> {
        let position = match (self.own, position) {
            (Some(_), 0) => return Some(None),
            (Some(_), position) => position - 1,
            (None, position) => position,
        };
        let count = self.listing.as_ref()?.entries.len();
        let entry = u32::try_from(position).ok()?;
        (position < count).then_some(Some(entry))
    }

    /// Returns the metadata of one of [`Group::entries`].
    pub(crate) fn metadata(&self, entry: Option<u32>) -> Metadata {
        self.fields(entry).2
    }

    /// Returns the name of one of [`Group::entries`], without the directory.
    pub(crate) fn name(&self, entry: Option<u32>) -> Option<&[u8]> {
        entry.map(|_| self.fields(entry).1)
    }

    /// Returns directory, name and metadata.
    fn fields(&self, entry: Option<u32>) -> (&[u8], &[u8], Metadata) {
        match (entry, &self.own, &self.listing) {
            (Some(index), _, Some(listing)) => {
                let entry = &listing.entries[index as usize];
                (&self.path, listing.name(entry), entry.metadata())
            }
            (_, Some(own), _) => {
                let (directory, name) = split(&self.path);
                (directory, name, *own)
            }
            (_, None, _) => {
                unreachable!(
                    "an entry comes from `Group::entries`, which yields only what is there"
                )
            }
        }
    }
}

impl<'p> Member<'p> {
    /// Returns a member of a plan in memory; `entry` must be of [`Group::entries`].
    pub(crate) fn in_memory(
        group: &'p Group,
        link_names: &'p LinkNames,
        entry: Option<u32>,
    ) -> Self {
        let source = Source::Memory(group, link_names);
        Self { source, entry }
    }

    /// Returns a member that was read from a part; `entry` must be of [`Group::entries`].
    pub(crate) fn of_part(piece: Arc<GroupPiece>, entry: Option<u32>) -> Self {
        let source = Source::Part(piece);
        Self { source, entry }
    }

    fn group(&self) -> (&Group, &LinkNames) {
        match &self.source {
            Source::Memory(group, link_names) => (group, link_names),
            Source::Part(piece) => (&piece.group, &piece.link_names),
        }
    }

    pub(crate) fn metadata(&self) -> Metadata {
        self.group().0.metadata(self.entry)
    }

    /// Returns the group's path, and the name in it; None for the group's own entry.
    pub(crate) fn directory_and_name(&self) -> (&[u8], Option<&[u8]>) {
        let (group, _) = self.group();
        (&group.path, group.name(self.entry))
    }

    pub(crate) fn planned(&self) -> PlannedMember<'_> {
        let (group, link_names) = self.group();
        let (directory, name, metadata) = group.fields(self.entry);
        let path = join(directory, name);
        let first_name = match metadata.kind {
            FileKind::File if metadata.links > 1 => link_names.get(&metadata.identity()),
            _ => None,
        };
        let first_name = first_name
            .map(|first| &first[..])
            .filter(|first| *first != path);
        PlannedMember {
            directory,
            name,
            path,
            metadata,
            first_name,
        }
    }
}

/// Bytes of content that an entry's metadata promises.
pub(crate) fn content_len(metadata: &Metadata) -> u64 {
    if metadata.kind == FileKind::File {
        metadata.size
    } else {
        0
    }
}

/// Returns the header as far as metadata shows it: no attributes, no holes, and for a symbolic link a
/// target of the right length.
pub(crate) fn header_of(member: &PlannedMember<'_>, owners: &Owners, dialect: Dialect) -> Header {
    let metadata = &member.metadata;
    let kind = match metadata.kind {
        FileKind::File | FileKind::Socket => Kind::File,
        FileKind::Directory => Kind::Directory,
        FileKind::Symlink => Kind::Symlink,
        FileKind::Fifo => Kind::Fifo,
        FileKind::CharDevice => Kind::CharDevice,
        FileKind::BlockDevice => Kind::BlockDevice,
    };
    let target_len = if kind == Kind::Symlink {
        usize::try_from(metadata.size).unwrap_or(0)
    } else {
        0
    };
    Header {
        name: member.path.clone(),
        kind,
        target: vec![b'-'; target_len],
        mode: metadata.mode,
        uid: metadata.uid.into(),
        gid: metadata.gid.into(),
        uname: owners.user_name(metadata.uid),
        gname: owners.group_name(metadata.gid),
        size: content_len(metadata),
        mtime: metadata.mtime,
        device: if kind.is_device() {
            metadata.device
        } else {
            (0, 0)
        },
        xattrs: Vec::new(),
        sparse: None,
        link: member
            .first_name
            .filter(|_| dialect == Dialect::Stook)
            .map(<[u8]>::to_vec),
    }
}
