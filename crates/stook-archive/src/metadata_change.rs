//! Whether mode and owner of an entry are still those of its newest member.
//!
//! An owner is the same if it has the archived number, or the archived name: `extract` goes by the name where this machine
//! knows it. The mode of a symbolic link means nothing. Extended attributes, access control
//! lists, targets of links with the same time and numbers of devices are not compared. A member of which the index has no
//! attributes, as of an archive that only zstash has written, counts as the same.

use std::sync::OnceLock;

use stook_index::{Index, MemberKind, NameTable, NewestRow, RecordedMetadata, Staging};
use stook_pool::Jobs;
use stook_sys::{FileKind, Metadata, Owners};

use crate::ArchiveError;

/// What becomes of entries of which only mode or owner changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MetadataChanges {
    /// They are not looked for.
    Ignore,
    /// They are counted, and stay as they are in the archive.
    #[default]
    Count,
    /// They are archived again.
    Archive,
}

impl MetadataChanges {
    /// Loads what the archive holds, with what these changes are seen by.
    pub(crate) fn load_names<'s>(
        self,
        index: &Index,
        stagings: impl IntoIterator<Item = &'s Staging>,
        jobs: Jobs,
    ) -> Result<NameTable, ArchiveError> {
        Ok(match self {
            Self::Ignore => NameTable::load(index, stagings, jobs)?,
            Self::Count | Self::Archive => NameTable::load_with_metadata(index, stagings, jobs)?,
        })
    }
}

/// A number that is another one now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Changed<T> {
    /// In the archive.
    pub archived: T,
    /// In the tree.
    pub now: T,
}

impl<T: PartialEq> Changed<T> {
    fn new(archived: T, now: T) -> Option<Self> {
        (archived != now).then_some(Self { archived, now })
    }
}

/// How mode and owner of an entry changed: at least one of them did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetadataChange {
    /// Permission bits, with set-id and sticky bits.
    pub mode: Option<Changed<u32>>,
    /// Number of the owner.
    pub uid: Option<Changed<u64>>,
    /// Number of the group.
    pub gid: Option<Changed<u64>>,
}

/// Type, mode and owner of all that the archive holds.
pub(crate) struct ArchivedMetadata<'t> {
    entries: Vec<Entry<'t>>,
    owners: Owners,
}

/// One combination of them, which many members share.
struct Entry<'t> {
    recorded: &'t RecordedMetadata,
    /// The numbers that the names of owner and group have on this machine. Looked up once a number differs: a lookup may
    /// ask a server.
    named: OnceLock<(Option<u32>, Option<u32>)>,
}

impl<'t> ArchivedMetadata<'t> {
    pub(crate) fn new(name_table: &'t NameTable) -> Self {
        let entry = |recorded| Entry {
            recorded,
            named: OnceLock::new(),
        };
        Self {
            entries: name_table.recorded().iter().map(entry).collect(),
            owners: Owners::default(),
        }
    }

    fn of(&self, row: &NewestRow) -> Option<&Entry<'t>> {
        self.entries.get(row.recorded?)
    }

    /// Returns whether the newest member of a name is of another kind than the entry.
    pub(crate) fn is_other_kind(&self, row: &NewestRow, kind: FileKind) -> bool {
        self.of(row)
            .is_some_and(|entry| kind_of(entry.recorded.kind) != kind)
    }

    /// Compares an entry with its newest row; `None` if nothing changed, or nothing is known.
    pub(crate) fn change(&self, row: &NewestRow, metadata: &Metadata) -> Option<MetadataChange> {
        let entry = self.of(row)?;
        let recorded = entry.recorded;
        let mode = Changed::new(recorded.mode, metadata.mode);
        let mut change = MetadataChange {
            mode: mode.filter(|_| metadata.kind != FileKind::Symlink),
            uid: Changed::new(recorded.uid, metadata.uid.into()),
            gid: Changed::new(recorded.gid, metadata.gid.into()),
        };
        if change.uid.is_some() || change.gid.is_some() {
            let (uid, gid) = *entry.named.get_or_init(|| self.numbers_of_names(recorded));
            change.uid = change.uid.filter(|_| uid != Some(metadata.uid));
            change.gid = change.gid.filter(|_| gid != Some(metadata.gid));
        }
        let is_same = change.mode.is_none() && change.uid.is_none() && change.gid.is_none();
        (!is_same).then_some(change)
    }

    fn numbers_of_names(&self, recorded: &RecordedMetadata) -> (Option<u32>, Option<u32>) {
        let RecordedMetadata { uname, gname, .. } = recorded;
        (self.owners.user_id(uname), self.owners.group_id(gname))
    }
}

fn kind_of(kind: MemberKind) -> FileKind {
    match kind {
        MemberKind::File | MemberKind::HardLink => FileKind::File,
        MemberKind::Symlink => FileKind::Symlink,
        MemberKind::CharDevice => FileKind::CharDevice,
        MemberKind::BlockDevice => FileKind::BlockDevice,
        MemberKind::Directory => FileKind::Directory,
        MemberKind::Fifo => FileKind::Fifo,
    }
}

#[cfg(test)]
mod tests {
    use stook_index::{Mtime, RowId};

    use super::*;

    const ROW: NewestRow = NewestRow {
        id: Some(RowId(1)),
        size: 0,
        mtime: Mtime(0),
        is_file: true,
        recorded: Some(0),
        is_readable: true,
    };

    fn recorded() -> RecordedMetadata {
        RecordedMetadata {
            kind: MemberKind::File,
            mode: 0o640,
            uid: 54_321,
            gid: 5_000_000_000,
            uname: b"root"[..].into(),
            gname: b"no group of this machine"[..].into(),
        }
    }

    fn change(kind: FileKind, mode: u32, uid: u32, gid: u32) -> Option<(bool, bool, bool)> {
        let recorded = recorded();
        let archived = ArchivedMetadata {
            entries: vec![Entry {
                recorded: &recorded,
                named: OnceLock::new(),
            }],
            owners: Owners::default(),
        };
        let metadata = Metadata {
            mode,
            uid,
            gid,
            ..Metadata::of_kind(kind)
        };
        let change = archived.change(&ROW, &metadata)?;
        Some((
            change.mode.is_some(),
            change.uid.is_some(),
            change.gid.is_some(),
        ))
    }

    #[test]
    fn an_owner_is_the_same_by_number_or_by_name() {
        let of = |uid| change(FileKind::File, 0o640, uid, 7);
        assert_eq!(of(54_321), Some((false, false, true)));
        // The number of root, whose name was archived with another number.
        assert_eq!(of(0), Some((false, false, true)));
        assert_eq!(of(1), Some((false, true, true)));
    }

    #[test]
    fn the_mode_of_a_link_means_nothing() {
        let of = |kind, mode| change(kind, mode, 0, 7);
        assert_eq!(of(FileKind::Symlink, 0o777), Some((false, false, true)));
        assert_eq!(of(FileKind::Fifo, 0o4640), Some((true, false, true)));
    }
}
