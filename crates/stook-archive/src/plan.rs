//! The plan: what will be written, in which order, in which volumes. A value, made before any data
//! moves.
//!
//! The length of a member is a function of its metadata, so the volumes can be told beforehand. What
//! only an open file shows (extended attributes, holes, a failure) may move a later member; so the
//! volume writer asks the same [`Cutter`] again with the real lengths.

use std::collections::{BTreeMap, HashMap};

use stook_index::VolumeId;
use stook_pool::Weight;
use stook_sys::{FileId, FileKind, Metadata, Owners};
use stook_tree::{join, split};
use stook_volume::{Dialect, Header, Kind, padding, trailer_len};

use crate::survey::{Group, Survey};
use crate::tracks::{self, Track};

/// What a volume may hold unless the user says otherwise: 256 GiB, as with zstash.
pub const DEFAULT_VOLUME_BYTES: u64 = 256 << 30;

/// Content above this is read in slices, by one worker; below, whole members are gathered in a batch.
pub(crate) const BATCH_BYTES: u64 = 4 << 20;

/// Members in a batch at most. Where every file costs milliseconds, 128 workers share even 20,000 files
/// evenly; where it costs microseconds, the hand-over is still a hundredth of the work.
const BATCH_MEMBERS: usize = 64;

/// Header blocks and padding of any member, but for the longest of names.
const MOST_OVERHEAD: u64 = 8 << 10;

/// Header blocks and padding of a usual member.
const USUAL_OVERHEAD: usize = 3 * 512 + 512;

/// What a run will write.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlanSummary {
    /// The volumes, in order.
    pub volumes: Vec<PlannedVolume>,
    /// Members to write.
    pub members: u64,
    /// Bytes of content in them.
    pub bytes: u64,
    /// Paths that are no longer in the source.
    pub deleted: u64,
}

/// One volume of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedVolume {
    /// Its number.
    pub id: VolumeId,
    /// Members in it.
    pub members: u64,
    /// Its length in bytes.
    pub bytes: u64,
}

pub(crate) struct Plan {
    groups: Vec<Group>,
    link_names: HashMap<FileId, Vec<u8>>,
    pub(crate) members: u64,
    pub(crate) bytes: u64,
    /// Something has changed since an interrupted run staged it.
    pub(crate) supersedes_staged: bool,
}

/// The place of a member in the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    group: u32,
    /// Index of the entry; None for the group's own entry.
    entry: Option<u32>,
}

/// A member as it was found by the survey.
pub(crate) struct PlannedMember<'a> {
    /// Directory of the entry.
    pub(crate) directory: &'a [u8],
    pub(crate) name: &'a [u8],
    pub(crate) path: Vec<u8>,
    pub(crate) metadata: Metadata,
    /// Name under which the same file comes earlier.
    pub(crate) first_name: Option<&'a [u8]>,
}

/// Consecutive members for one worker: either all small, or a single large one.
pub(crate) struct Batch {
    pub(crate) track: Track,
    /// Nothing if the track ends here.
    pub(crate) places: Vec<Place>,
    pub(crate) is_large: bool,
    /// About how many bytes the members take in a volume, or a slice of a large one.
    pub(crate) buffer_len: usize,
}

impl Batch {
    pub(crate) fn end_of(track: Track) -> Self {
        Self {
            track,
            places: Vec::new(),
            is_large: false,
            buffer_len: 0,
        }
    }
}

impl Weight for Batch {
    fn weight(&self) -> usize {
        self.buffer_len
    }
}

impl Plan {
    pub(crate) fn new(survey: Survey) -> Self {
        let mut plan = Self {
            groups: survey.groups,
            link_names: survey.link_names,
            members: 0,
            bytes: 0,
            supersedes_staged: survey.supersedes_staged,
        };
        let (members, bytes) = plan.places().fold((0, 0), |(members, bytes), place| {
            (members + 1, bytes + content_len(&plan.metadata(place)))
        });
        plan.members = members;
        plan.bytes = bytes;
        plan
    }

    /// Returns all members, in archive order.
    pub(crate) fn places(&self) -> impl Iterator<Item = Place> + Send {
        self.places_from_group(0)
    }

    fn places_from(&self, start: Place) -> impl Iterator<Item = Place> + Send {
        let group = usize::try_from(start.group).unwrap_or(usize::MAX);
        self.places_from_group(group)
            .skip_while(move |place| *place < start)
    }

    fn places_from_group(&self, first: usize) -> impl Iterator<Item = Place> + Send {
        let groups = self.groups.iter().zip(0_u32..).skip(first);
        groups.flat_map(|(group, index)| {
            let own = group.own.map(|_| Place {
                group: index,
                entry: None,
            });
            let entries = group
                .listing
                .as_ref()
                .map_or(0, |listing| listing.entries.len());
            let entries = (0_u32..).take(entries).map(move |entry| Place {
                group: index,
                entry: Some(entry),
            });
            own.into_iter().chain(entries)
        })
    }

    fn metadata(&self, place: Place) -> Metadata {
        self.member_parts(place).2
    }

    fn member_parts(&self, place: Place) -> (&[u8], &[u8], Metadata) {
        let group = &self.groups[place.group as usize];
        match (place.entry, &group.own, &group.listing) {
            (Some(index), _, Some(listing)) => {
                let entry = &listing.entries[index as usize];
                (&group.path, listing.name(entry), entry.metadata())
            }
            (_, Some(own), _) => {
                let (directory, name) = split(&group.path);
                (directory, name, *own)
            }
            (_, None, _) => {
                unreachable!("a place comes from `places`, which yields only what is there")
            }
        }
    }

    pub(crate) fn member(&self, place: Place) -> PlannedMember<'_> {
        let (directory, name, metadata) = self.member_parts(place);
        let path = join(directory, name);
        let first_name = match metadata.kind {
            FileKind::File if metadata.links > 1 => self.link_names.get(&metadata.identity()),
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

    /// Returns the work on some consecutive members, in order.
    pub(crate) fn batches(
        &self,
        start: Place,
        members: usize,
        track: Track,
    ) -> impl Iterator<Item = Batch> + Send + use<'_> {
        let mut places = self.places_from(start).take(members).peekable();
        std::iter::from_fn(move || {
            let first = places.next()?;
            let is_large = content_len(&self.metadata(first)) > BATCH_BYTES;
            let mut batch = Batch {
                track,
                places: vec![first],
                is_large,
                buffer_len: 0,
            };
            let mut held = content_len(&self.metadata(first));
            while let Some(&next) = places
                .peek()
                .filter(|_| !is_large && batch.places.len() < BATCH_MEMBERS)
            {
                let next_len = content_len(&self.metadata(next));
                if held + next_len > BATCH_BYTES {
                    break;
                }
                held += next_len;
                batch.places.push(next);
                places.next();
            }
            let content = usize::try_from(held.min(BATCH_BYTES)).unwrap_or(0);
            batch.buffer_len = content + batch.places.len() * USUAL_OVERHEAD;
            Some(batch)
        })
    }

    /// Tells the volumes that will be written.
    pub(crate) fn summary(
        &self,
        first: VolumeId,
        cutter: Cutter,
        owners: &Owners,
        deleted: u64,
    ) -> PlanSummary {
        let ids = (first.0..).map(VolumeId);
        let stretches = tracks::cut(self, cutter, owners, ids.clone(), &BTreeMap::new());
        let volumes = stretches
            .iter()
            .zip(ids)
            .map(|(stretch, id)| PlannedVolume {
                id,
                members: stretch.members as u64,
                bytes: stretch.len + trailer_len(stretch.len),
            });
        PlanSummary {
            volumes: volumes.collect(),
            members: self.members,
            bytes: self.bytes,
            deleted,
        }
    }

    /// Returns whether more than one volume may be needed, without looking at every member.
    pub(crate) fn may_exceed(&self, limit: u64) -> bool {
        let overhead = self.members.saturating_mul(MOST_OVERHEAD);
        self.bytes.saturating_add(overhead) > limit
    }
}

/// Decides where a volume ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cutter {
    pub(crate) dialect: Dialect,
    pub(crate) limit: u64,
}

impl Cutter {
    /// Returns true if a member still goes into a volume of which `offset` bytes are written.
    ///
    /// zstash counts 512 bytes of header whatever they are, and forgets the trailer: its own volumes
    /// are only met byte for byte with the same rule.
    pub(crate) fn fits(self, offset: u64, member_len: u64, content_len: u64) -> bool {
        let end = match self.dialect {
            Dialect::Zstash => offset + 512 + content_len + padding(content_len),
            Dialect::Stook => offset + member_len + trailer_len(offset + member_len),
        };
        offset == 0 || end <= self.limit
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

/// Returns the header as far as metadata tells it: no attributes, no holes, and for a symbolic link a
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
