//! Where a run puts its members: which volumes it takes, and how it goes on with those that an interrupted
//! run left.
//!
//! The row of a newer version must come after that of the older one, and rows come in the order of the
//! volumes. So where a file has changed since it was staged, volumes that were left are closed as they
//! are, and everything else goes behind them.

use std::collections::{BTreeMap, BTreeSet};

use stook_index::{Index, VolumeId};
use stook_sys::Owners;
use stook_volume::Dialect;

use crate::ArchiveError;
use crate::folder::Folder;
use crate::plan::{Begun, Plan, VolumeRange, VolumeSplitter, in_sequence, split_into_volumes};
use crate::recovery::{
    Blank, PartialVolume, foreign_numbers, is_of_dialect, next_volume, volume_behind,
};

pub(crate) struct Layout {
    pub(crate) ranges: Vec<VolumeRange>,
    /// Volumes with streams of their own, or that were left, with their planned lengths.
    pub(crate) volumes: BTreeMap<VolumeId, u64>,
    /// Those among them that get nothing more.
    pub(crate) complete: BTreeSet<VolumeId>,
    /// The first number behind them.
    pub(crate) next: VolumeId,
}

impl Layout {
    /// Several volumes at a time are for stook's own dialect alone: where volumes are to be those of another
    /// program, they end where its rule says, hard links and all. The numbers `elsewhere` are those of files in the store.
    pub(crate) fn new(
        folder: &Folder,
        index: &Index,
        plan: &Plan,
        splitter: VolumeSplitter,
        owners: &Owners,
        partial_volumes: &[PartialVolume],
        elsewhere: &BTreeSet<VolumeId>,
    ) -> Result<Self, ArchiveError> {
        let mut next = next_volume(folder, index, Blank::Foreign)?;
        if let Some(&last) = elsewhere.last() {
            next = next.max(volume_behind(folder, last)?);
        }
        let is_sequence = splitter.dialect == Dialect::Zstash
            || (partial_volumes.len() < 2 && !plan.may_exceed(splitter.limit));
        if is_sequence {
            return Ok(Self {
                ranges: in_sequence(plan),
                volumes: BTreeMap::new(),
                complete: BTreeSet::new(),
                next,
            });
        }
        let left: BTreeMap<VolumeId, u64> = partial_volumes
            .iter()
            .map(|partial| (partial.checkpoint.volume, partial.checkpoint.planned))
            .collect();
        let mut taken: BTreeSet<VolumeId> = folder.volumes()?.into_iter().collect();
        taken.extend(elsewhere);
        taken.extend(foreign_numbers(folder, Blank::Foreign)?);
        let begun = begun(folder, splitter.dialect, plan, partial_volumes)?;
        taken.extend(left.keys().filter(|id| !begun.contains_key(id)));
        // After a kill, the same members as before go into each volume that was begun, or lost.
        let first = match left.last_key_value() {
            None => next,
            Some(_) if !plan.supersedes_staged => index.next_volume()?,
            Some((last, _)) => next.max(VolumeId::plain(last.0 + 1)),
        };
        let ids = (first.0..)
            .map(|number| VolumeId::plain(number).stored_as(splitter.encoding))
            .filter(|id| !taken.contains(id));
        let ranges = split_into_volumes(plan, splitter, owners, ids, &begun);
        let planned = ranges.iter();
        let planned = planned.filter_map(|range| Some((range.stream.volume()?, range.len)));
        let planned: BTreeMap<VolumeId, u64> = planned.collect();
        let complete = left.keys().filter(|id| !planned.contains_key(id));
        let complete = complete.copied().collect();
        let volumes: BTreeMap<VolumeId, u64> = left.into_iter().chain(planned).collect();
        let last = volumes.last_key_value();
        let behind = match last {
            None => next,
            Some((&last, _)) => volume_behind(folder, last)?,
        };
        Ok(Self {
            ranges,
            volumes,
            complete,
            next: next.max(behind),
        })
    }
}

/// Returns the volumes that can be gone on with.
fn begun(
    folder: &Folder,
    dialect: Dialect,
    plan: &Plan,
    partial_volumes: &[PartialVolume],
) -> Result<Begun, ArchiveError> {
    let mut begun = Begun::new();
    for PartialVolume { checkpoint, .. } in partial_volumes {
        let id = checkpoint.volume;
        if !plan.supersedes_staged && is_of_dialect(folder, id, dialect)? {
            let end = Some(checkpoint.planned_end).filter(|&end| end > 0);
            begun.insert(id, (checkpoint.planned, end));
        }
    }
    Ok(begun)
}
