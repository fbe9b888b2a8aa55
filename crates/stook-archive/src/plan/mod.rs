//! The plan: what will be written, in which order, in which volumes. A value, made before any data
//! moves.
//!
//! The length of a member is a function of its metadata, so the volumes are known beforehand. What
//! only an open file shows (extended attributes, holes, a failure) may move a later member; so the
//! volume writer asks the same [`VolumeSplitter`] again with the real lengths.

mod abandon;
mod batch;
mod block_file;
mod blocks;
mod build;
mod build_result;
mod commit;
mod commit_log;
mod commit_options;
mod comparison;
mod contents;
mod damage;
mod deleted_names;
mod directory;
mod install;
mod make;
mod member;
mod part;
mod parts_writer;
mod piece;
mod plan_file;
mod prepare;
mod sorted;
mod splitter;
mod taken;
mod verify;
mod volume_ranges;

use std::collections::BTreeMap;

use stook_index::VolumeId;
use stook_sys::Owners;
use stook_volume::trailer_len;

pub use abandon::{AbandonReport, abandon};
pub use blocks::PlanFileError;
pub use build::{BuildOptions, BuildReport, build_part};
pub use commit::{CommitReport, commit};
pub use commit_options::{BuiltVolumes, CommitOptions, FailedMembers};
pub use damage::{BuiltDamage, DamagedPart};
pub use make::{PlanOptions, PlanReport, plan};
pub use part::check_part;
pub use parts_writer::PlannedPart;

pub(crate) use batch::{Batch, batches};
pub(crate) use directory::{PLAN_DIRECTORY, PlanDirectory, refuse_planned};
pub(crate) use member::{Group, LinkNames, Member, PlannedMember, content_len, header_of};
pub(crate) use sorted::{Sorter, held_bytes};
pub(crate) use splitter::VolumeSplitter;
pub(crate) use volume_ranges::{
    Begun, OutputStream, VolumeRange, in_sequence, interleave, split_into_volumes,
};

/// What a volume may hold unless the user says otherwise: 256 GiB, as with zstash.
pub const DEFAULT_VOLUME_BYTES: u64 = 256 << 30;

/// Header blocks and padding of any member, but for the longest of names.
const MOST_OVERHEAD: u64 = 8 << 10;

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

/// All that a run will archive, in memory.
pub(crate) struct Plan {
    groups: Vec<Group>,
    link_names: LinkNames,
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

impl Plan {
    pub(crate) fn new(groups: Vec<Group>, link_names: LinkNames, supersedes_staged: bool) -> Self {
        let mut plan = Self {
            groups,
            link_names,
            members: 0,
            bytes: 0,
            supersedes_staged,
        };
        let (members, bytes) = plan.places().fold((0, 0), |(members, bytes), place| {
            let metadata = plan.member(place).metadata();
            (members + 1, bytes + content_len(&metadata))
        });
        plan.members = members;
        plan.bytes = bytes;
        plan
    }

    /// Returns all members, in archive order.
    pub(crate) fn places(&self) -> impl Iterator<Item = Place> + Send {
        self.places_from_group(0)
    }

    fn places_from_group(&self, first: usize) -> impl Iterator<Item = Place> + Send {
        let groups = self.groups.iter().zip(0_u32..).skip(first);
        groups.flat_map(|(group, number)| {
            group.entries().map(move |entry| Place {
                group: number,
                entry,
            })
        })
    }

    pub(crate) fn member(&self, place: Place) -> Member<'_> {
        let group = &self.groups[place.group as usize];
        Member::in_memory(group, &self.link_names, place.entry)
    }

    /// Returns the members of a volume, in order.
    pub(crate) fn members_of(
        &self,
        range: &VolumeRange,
    ) -> impl Iterator<Item = Member<'_>> + Send {
        let start = range.start;
        let group = usize::try_from(start.group).unwrap_or(usize::MAX);
        self.places_from_group(group)
            .skip_while(move |place| *place < start)
            .take(range.members)
            .map(|place| self.member(place))
    }

    /// Returns the volumes that will be written.
    pub(crate) fn summary(
        &self,
        first: VolumeId,
        splitter: VolumeSplitter,
        owners: &Owners,
        deleted: u64,
    ) -> PlanSummary {
        let id = |number| VolumeId::plain(number).stored_as(splitter.encoding);
        let ids = (first.0..).map(id);
        let ranges = split_into_volumes(self, splitter, owners, ids.clone(), &BTreeMap::new());
        let volumes = ranges.iter().zip(ids).map(|(range, id)| PlannedVolume {
            id,
            members: range.members as u64,
            bytes: range.len + trailer_len(range.len),
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

#[cfg(test)]
mod measure;
#[cfg(test)]
mod tests;
