//! What is known of an entry: from the index, or where that says nothing, from the header in the volume.

use std::borrow::Cow;
use std::sync::Arc;

use stook_index::{Attributes, MemberKind, Mtime, RowId, VolumeId};
use stook_sys::{Timestamp, Xattr};
use stook_volume::{Kind, Member};

use super::facts::HAS_MD5;
use super::shared::Shared;
use super::{Catalogue, EntryId};
use crate::attributes::attributes_of_member;
use crate::member_attributes::read_header;
use crate::mutex::lock;

/// Mode of a directory without a row.
const DIRECTORY_MODE: u32 = 0o755;
/// Modes of what has a row, while its header cannot be read: who else may use it is not known.
const UNREAD_MODE: u32 = 0o600;
const UNREAD_DIRECTORY_MODE: u32 = 0o700;

/// Headers that are remembered; then they are forgotten, all at once. Some 300 bytes each.
const MOST_HEADERS: usize = 1 << 16;

/// What `stat` says of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Its type, never a hard link; `None` if nothing says it, and it has no content.
    pub kind: Option<MemberKind>,
    /// Permission bits, 0 to 0o7777.
    pub mode: u32,
    /// Number of the owner.
    pub uid: u64,
    /// Number of the group.
    pub gid: u64,
    /// Bytes of content; of a symbolic link, of its target.
    pub size: u64,
    /// Time of the last change of the content. Of a directory without a row, the latest of what is in it.
    pub mtime: Timestamp,
    /// Major and minor number of a device; else zeros.
    pub device: (u32, u32),
    /// Names of the same file; 1 for a directory.
    pub links: u32,
    /// As [`Catalogue::inode`].
    pub inode: u64,
    /// Whether it is stored without its holes.
    pub is_sparse: bool,
    /// Whether its header has extended attributes.
    pub has_xattrs: bool,
    /// What this was read from.
    pub source: StatSource,
}

/// What attributes of an entry were read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatSource {
    /// The index.
    Index,
    /// The header in the volume: the index has no attributes of it, as of all that zstash wrote.
    Header,
    /// The row only: the volume is not here, or has another member there. The owner is unknown, and zero; so is the mode, and has
    /// bits for the owner only.
    Row,
    /// Nothing: the directory has no row. Its owner is unknown, and zero; its mode is `0o755`.
    Path,
}

/// What is known of an entry beyond its row.
enum Known<'c> {
    Index(&'c Shared),
    Header(Arc<Member>),
    Row,
    Path,
}

impl Catalogue {
    /// Returns what is known of an entry.
    ///
    /// # Cost
    /// A cache line and, for a symbolic link, a device or one of several names of a file, a binary search. For a row without
    /// attributes in the index, a read of 4 KiB from its volume, unless the header is remembered: 65,536 of them are.
    pub fn stat(&self, entry: EntryId) -> Stat {
        let facts = &self.facts[entry.index()];
        let known = self.known(entry);
        let mut stat = Stat {
            kind: None,
            mode: UNREAD_MODE,
            uid: 0,
            gid: 0,
            size: facts.size,
            mtime: facts.time(),
            device: (0, 0),
            links: 1,
            inode: self.inode(entry),
            is_sparse: false,
            has_xattrs: false,
            source: StatSource::Row,
        };
        match &known {
            Known::Index(shared) => {
                stat.kind = Some(shared.kind);
                (stat.mode, stat.uid, stat.gid) = (shared.mode, shared.uid, shared.gid);
                stat.is_sparse = shared.is_sparse;
                stat.has_xattrs = shared.has_xattrs;
                stat.device = self.extras.device(entry);
                stat.links = self.links.count(entry);
                stat.source = StatSource::Index;
            }
            Known::Header(member) => stat.add(&attributes_of_member(member)),
            Known::Row => stat.kind = facts.has(HAS_MD5).then_some(MemberKind::File),
            Known::Path => stat.source = StatSource::Path,
        }
        if stat.kind == Some(MemberKind::HardLink) {
            stat.kind = Some(MemberKind::File);
        }
        if self.has_children(entry) || stat.source == StatSource::Path {
            stat.kind = Some(MemberKind::Directory);
            match stat.source {
                StatSource::Path => stat.mode = DIRECTORY_MODE,
                StatSource::Row => stat.mode = UNREAD_DIRECTORY_MODE,
                StatSource::Index | StatSource::Header => {}
            }
        }
        if stat.kind == Some(MemberKind::Symlink) {
            stat.size = self.target(entry).len() as u64;
        }
        stat
    }

    /// Returns the type of an entry as far as memory has it; `None` if only its header does. For listing directories.
    ///
    /// # Cost
    /// Two cache lines.
    pub fn kind(&self, entry: EntryId) -> Option<MemberKind> {
        let facts = &self.facts[entry.index()];
        if self.has_children(entry) || !self.has_row(entry) {
            return Some(MemberKind::Directory);
        }
        match self.shared.get(facts.shared as usize) {
            Some(shared) if shared.kind == MemberKind::HardLink => Some(MemberKind::File),
            Some(shared) => Some(shared.kind),
            None => facts.has(HAS_MD5).then_some(MemberKind::File),
        }
    }

    /// Returns the names of owner and group; empty where they are unknown.
    ///
    /// # Cost
    /// As [`Catalogue::stat`].
    pub fn owner_names(&self, entry: EntryId) -> (Cow<'_, [u8]>, Cow<'_, [u8]>) {
        match self.known(entry) {
            Known::Index(shared) => {
                let (uname, gname) = (&shared.uname[..], &shared.gname[..]);
                (uname.into(), gname.into())
            }
            Known::Header(member) => {
                let (uname, gname) = (&member.header.uname, &member.header.gname);
                (uname.clone().into(), gname.clone().into())
            }
            Known::Row | Known::Path => Default::default(),
        }
    }

    /// Returns where a symbolic link points; empty for all else, and where that is unknown.
    ///
    /// # Cost
    /// As [`Catalogue::stat`].
    pub fn target(&self, entry: EntryId) -> Cow<'_, [u8]> {
        match self.known(entry) {
            Known::Index(_) => self.extras.target(entry).into(),
            Known::Header(member) if member.header.kind == Kind::Symlink => {
                member.header.target.clone().into()
            }
            Known::Header(_) | Known::Row | Known::Path => Cow::default(),
        }
    }

    /// Returns true if all that [`Catalogue::stat`] and [`Catalogue::stored_bytes`] say of an entry is in memory, so that no volume is read for it.
    ///
    /// # Cost
    /// A cache line.
    pub fn is_stat_in_memory(&self, entry: EntryId) -> bool {
        let facts = &self.facts[entry.index()];
        let shared = self.shared.get(facts.shared as usize);
        shared.map_or_else(|| !self.has_row(entry), |shared| !shared.is_sparse)
            || lock(&self.headers).contains_key(&entry)
    }

    /// Returns the bytes that the content of an entry takes in its volume: fewer than its size, if it has holes.
    ///
    /// # Cost
    /// As [`Catalogue::stat`]; of a sparse file, that of a header.
    pub fn stored_bytes(&self, entry: EntryId) -> u64 {
        let facts = &self.facts[entry.index()];
        match self.shared.get(facts.shared as usize) {
            Some(shared) if !shared.is_sparse => facts.size,
            _ => self
                .header(entry)
                .map_or(facts.size, |member| member.data_len),
        }
    }

    /// Returns the extended attributes of an entry, sorted by name, from its header; `None` if that cannot be read.
    ///
    /// # Cost
    /// None if it has none and the index says so. Else a read of 4 KiB, unless the header is remembered.
    pub fn xattrs(&self, entry: EntryId) -> Option<Vec<Xattr>> {
        match self.may_have_xattrs(entry) {
            false => Some(Vec::new()),
            true => self
                .header(entry)
                .map(|member| member.header.xattrs.clone()),
        }
    }

    /// Returns true if an entry has extended attributes, or only its header knows.
    ///
    /// # Cost
    /// A cache line.
    pub fn may_have_xattrs(&self, entry: EntryId) -> bool {
        let facts = &self.facts[entry.index()];
        let shared = self.shared.get(facts.shared as usize);
        shared.map_or_else(|| self.has_row(entry), |shared| shared.has_xattrs)
    }

    /// As [`Catalogue::content_at`]; where the index does not say it, the header does. `None` also if that has another size than
    /// the row.
    ///
    /// # Cost
    /// As [`Catalogue::stat`].
    pub fn find_content(&self, entry: EntryId) -> Option<(VolumeId, u64)> {
        if let Some(found) = self.content_at(entry) {
            return Some(found);
        }
        let facts = &self.facts[entry.index()];
        let member = facts
            .has(HAS_MD5)
            .then(|| self.header(entry))
            .flatten()
            .filter(|member| {
                member.header.kind.has_content() && member.header.size == facts.size
            })?;
        let volume = self.volume_ids[facts.volume as usize];
        Some((volume, member.data_offset))
    }

    fn known(&self, entry: EntryId) -> Known<'_> {
        if !self.has_row(entry) {
            return Known::Path;
        }
        let facts = &self.facts[entry.index()];
        match self.shared.get(facts.shared as usize) {
            Some(shared) => Known::Index(shared),
            None => self.header(entry).map_or(Known::Row, Known::Header),
        }
    }

    /// Returns the header of an entry without attributes; `None` if its volume is not here, or has another member there.
    fn header(&self, entry: EntryId) -> Option<Arc<Member>> {
        if let Some(found) = lock(&self.headers).get(&entry) {
            return Some(Arc::clone(found));
        }
        // Not under the lock: a store far away takes its time.
        let row = self.row_of(entry)?;
        let found = read_header(&self.volumes, &row.to_ref()).map(Arc::new);
        let mut headers = lock(&self.headers);
        if headers.len() >= MOST_HEADERS {
            headers.clear();
        }
        // Not if it could not be read: a store may answer the next time.
        if let Some(member) = &found {
            headers.insert(entry, Arc::clone(member));
        }
        found
    }

    /// Returns a number for the file of an entry that no other file has and that stays the same while the archive grows: the
    /// id of the row of its first name. A directory without a row gets a number above 2^63, made from its path.
    ///
    /// # Cost
    /// As [`Catalogue::stat`] without a header; of a directory without a row, a hash of its path.
    pub fn inode(&self, entry: EntryId) -> u64 {
        let first = self.facts[self.links.first(entry).index()].row;
        match u64::try_from(first) {
            Ok(row) if row > 0 => row,
            // Of a row with an id below 1, too, which no archive has.
            _ => stook_index::path_hash(&self.path(entry)) | HASHED,
        }
    }

    /// Returns the id of the row that an entry is of; `None` for a directory without one.
    pub fn row_id(&self, entry: EntryId) -> Option<RowId> {
        self.has_row(entry)
            .then(|| RowId(self.facts[entry.index()].row))
    }
}

/// Set in an inode number that is no id of a row.
const HASHED: u64 = 1 << 63;

impl Stat {
    /// Adds what a header says; not its time, if that has whole seconds only.
    fn add(&mut self, attributes: &Attributes<'_>) {
        if Mtime::from(attributes.mtime) == Mtime::from(self.mtime) {
            self.mtime = attributes.mtime;
        }
        self.kind = Some(attributes.kind);
        self.mode = attributes.mode;
        (self.uid, self.gid) = (attributes.uid, attributes.gid);
        self.device = attributes.device;
        self.is_sparse = attributes.is_sparse;
        self.has_xattrs = attributes.has_xattrs;
        self.source = StatSource::Header;
    }
}
