//! Volumes that are complete: committed in order, each once it is durable.
//!
//! ```text
//!   000003.tar.partial ──sync──┐
//!   000004.tar.partial ──sync──┼─> rename to 000003.tar ──> one transaction: tars + files
//!   000005.tar.partial ──sync──┘    in the order of the volumes
//! ```
//! Nothing is in the index before its bytes are durable under their final name. A part of a plan is built away from
//! the index: its volume keeps its name and its staged rows, for `commit` to go on from.

use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;

use stook_index::{Index, Interrupt, RunId, Volume, VolumeId, VolumeParts};
use stook_sys::{install_new, open_read_write};
use stook_timers::scope;

use crate::ArchiveError;
use crate::folder::Folder;
use crate::observer::Observer;
use crate::open_volume::{ClosingVolume, PendingRow, Unstaged};
use crate::recovery::{recover, remove_staging};
use crate::transfer::Uploads;

/// Volumes on their way to the disk, past which the first of them is waited for.
const MOST_CLOSING: usize = 8;

/// The run under which the rows of a part are staged, until `commit` knows the real one.
pub(crate) const NO_RUN: RunId = RunId(0);

/// Where complete volumes and their rows go.
pub(crate) enum Target<'a> {
    /// Into an archive.
    Index {
        index: &'a mut Index,
        run: RunId,
        /// By how many bytes the lengths on record are too large, one for each record of a volume.
        record_errors: &'a [u64],
        /// Where they are sent, if they are.
        uploads: Option<&'a Uploads<'a>>,
    },
    /// They stay where they are, with their rows beside them.
    Part(BuiltPart),
}

/// What became of the members of a part.
#[derive(Debug, Default)]
pub(crate) struct BuiltPart {
    /// None if nothing was written.
    pub(crate) volume: Option<BuiltVolume>,
    /// Names of members that did not fit any more.
    pub(crate) overflowed: Vec<Vec<u8>>,
}

/// A volume without a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BuiltVolume {
    pub(crate) len: u64,
    pub(crate) md5: Option<[u8; 16]>,
}

/// Whether to wait for a volume that is not durable yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    Yes,
    No,
}

pub(crate) struct CommitQueue<'a> {
    folder: &'a Folder,
    observer: &'a dyn Observer,
    pub(crate) target: Target<'a>,
    /// All volumes that are not committed yet, in order.
    order: VecDeque<VolumeId>,
    /// Volumes that are complete; None if nothing came into one.
    ended: BTreeMap<VolumeId, Option<ClosingVolume>>,
    /// Volumes committed.
    pub(crate) committed: u64,
}

impl<'a> CommitQueue<'a> {
    pub(crate) fn new(folder: &'a Folder, target: Target<'a>, observer: &'a dyn Observer) -> Self {
        Self {
            folder,
            observer,
            target,
            order: VecDeque::new(),
            ended: BTreeMap::new(),
            committed: 0,
        }
    }

    /// Waits until a volume of this length may be begun, where the room for those on their way to the store is limited.
    pub(crate) fn wait_for_room(&mut self, bytes: u64) -> Result<(), ArchiveError> {
        match &mut self.target {
            Target::Index {
                index,
                uploads: Some(uploads),
                ..
            } => uploads.wait_for_room(bytes, index),
            _ => Ok(()),
        }
    }

    /// Returns true once a volume cannot be sent: the run should end early.
    pub(crate) fn has_failed(&self) -> bool {
        matches!(&self.target, Target::Index { uploads: Some(uploads), .. } if uploads.has_failed())
    }

    /// Adds volumes behind all others.
    pub(crate) fn expect(&mut self, ids: impl IntoIterator<Item = VolumeId>) {
        let was_empty = self.order.is_empty();
        self.order.extend(ids);
        if was_empty {
            self.tell_next();
        }
    }

    fn tell_next(&self) {
        if let Some(first) = self.order.front() {
            self.observer.volume_is_next(*first);
        }
    }

    pub(crate) fn expects(&self, id: VolumeId) -> bool {
        self.order.contains(&id)
    }

    /// Takes back the last volume, if it is this one.
    pub(crate) fn take_back(&mut self, id: VolumeId) -> bool {
        let is_last = self.order.back() == Some(&id);
        if is_last {
            self.order.pop_back();
        }
        is_last
    }

    /// Returns the volumes that have not ended.
    pub(crate) fn unended(&self) -> Vec<VolumeId> {
        let order = self.order.iter().copied();
        order.filter(|id| !self.ended.contains_key(id)).collect()
    }

    pub(crate) fn run(&self) -> RunId {
        match self.target {
            Target::Index { run, .. } => run,
            Target::Part(_) => NO_RUN,
        }
    }

    /// Takes a volume that gets nothing more; None if nothing came into it.
    pub(crate) fn end(
        &mut self,
        id: VolumeId,
        closing: Option<ClosingVolume>,
    ) -> Result<(), ArchiveError> {
        self.ended.insert(id, closing);
        let first_has_ended = || {
            let first = self.order.front();
            first.is_some_and(|first| self.ended.contains_key(first))
        };
        if self.ended.len() > MOST_CLOSING && first_has_ended() {
            self.commit_first(Wait::Yes)?;
        }
        Ok(())
    }

    /// Returns what a kill would lose now of each complete volume.
    pub(crate) fn unstaged(&self) -> impl Iterator<Item = Unstaged> {
        self.ended.values().flatten().map(ClosingVolume::unstaged)
    }

    /// Keeps the rows of volumes that wait for others before them, for a later run to commit them.
    pub(crate) fn checkpoint(&mut self) -> Result<(), ArchiveError> {
        let run = self.run();
        for closing in self.ended.values_mut().flatten() {
            closing.checkpoint(self.folder, run)?;
        }
        Ok(())
    }

    /// Commits what is complete, up to the first volume that is not.
    pub(crate) fn commit_ended(&mut self, wait: Wait) -> Result<(), ArchiveError> {
        while self.commit_first(wait)? {}
        Ok(())
    }

    /// Commits the first volume; false if it is not complete.
    fn commit_first(&mut self, wait: Wait) -> Result<bool, ArchiveError> {
        let Some(first) = self.order.front().copied() else {
            return Ok(false);
        };
        match self.ended.get(&first) {
            None => return Ok(false),
            Some(Some(closing)) if wait == Wait::No && !closing.is_durable() => return Ok(false),
            Some(_) => {}
        }
        self.order.pop_front();
        if let Some(closing) = self.ended.remove(&first).flatten() {
            self.commit(closing)?;
        }
        self.tell_next();
        Ok(true)
    }

    /// Rows go into the transaction while the volume is still on its way to the disk; it ends when the
    /// volume has its name.
    fn commit(&mut self, mut closing: ClosingVolume) -> Result<(), ArchiveError> {
        let _scope = scope!("commit");
        let (id, len, folder, observer) = (closing.id, closing.len, self.folder, self.observer);
        let (index, uploads, record_errors) = match &mut self.target {
            Target::Index {
                index,
                uploads,
                record_errors,
                ..
            } => (index, *uploads, *record_errors),
            Target::Part(built) => {
                let md5 = closing.wait_until_durable()?;
                closing.checkpoint(folder, NO_RUN)?;
                built.volume = Some(BuiltVolume { len, md5 });
                self.committed += 1;
                return Ok(());
            }
        };
        let rows = std::mem::take(&mut closing.rows);
        let attributes = std::mem::take(&mut closing.attributes);
        let frames = closing.unstaged_frames();
        let parts = VolumeParts {
            attributes: &attributes,
            frames: &frames,
        };
        let staging = closing.staging.take();
        let mut md5 = None;
        let make_durable = || -> Result<Vec<Volume>, ArchiveError> {
            md5 = closing.wait_until_durable()?;
            install_new(&folder.partial(id), &folder.volume(id))?;
            let volume = Volume { id, size: len, md5 };
            match observer.volume_is_ready(&volume) {
                ControlFlow::Continue(()) => {
                    let wrong = |&error: &u64| Volume {
                        size: len.saturating_add(error),
                        ..volume
                    };
                    Ok(record_errors.iter().map(wrong).collect())
                }
                ControlFlow::Break(()) => Err(ArchiveError::Refused(id)),
            }
        };
        let committed = index.commit_volume_when(
            id,
            rows.iter().map(PendingRow::as_new),
            parts,
            staging.as_ref(),
            make_durable,
        );
        if matches!(committed, Err(ArchiveError::Interrupted)) {
            // As before: the next run commits it.
            (closing.rows, closing.staging) = (rows, staging);
            closing.attributes = attributes;
            self.order.push_front(id);
            self.ended.insert(id, Some(closing));
            return Err(ArchiveError::Interrupted);
        }
        committed?;
        drop(staging);
        remove_staging(folder, id)?;
        self.committed += 1;
        if let Some(uploads) = uploads {
            uploads.add(Volume { id, size: len, md5 });
            uploads.record(index)?;
        }
        Ok(())
    }

    /// What is still to be done for the run must not end at once.
    pub(crate) fn outlive_interruption(&mut self) {
        if let Target::Index { index, .. } = &mut self.target {
            let _ = index.set_interrupt(&Interrupt::never());
        }
    }

    /// After an error: keeps what a checkpoint made durable, removes the rest.
    pub(crate) fn abandon(&mut self) {
        for mut closing in std::mem::take(&mut self.ended).into_values().flatten() {
            let _ = closing.wait_until_durable();
        }
        let Target::Index { index, run, .. } = &mut self.target else {
            return;
        };
        // Not one whose statements end at once.
        let folder = Folder::new(self.folder.path());
        for (checkpoint, _) in recover(&folder, index, Some(*run)).unwrap_or_default() {
            // On a full disk, what is not durable need not take room.
            let partial = open_read_write(&self.folder.partial(checkpoint.volume));
            let _ = partial.map(|file| file.set_len(checkpoint.stored));
        }
    }
}
