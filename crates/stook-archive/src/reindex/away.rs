//! Volumes that the old index has and the folder has not.
//!
//! What the store holds is no loss: its rows, its records and the facts about the store go into the new index as they are. The rows of
//! zstash's archives on tape stay, too: nothing but `config.hpss` tells where their volumes are.

use std::ops::{ControlFlow, RangeInclusive};

use stook_index::{Index, IndexError, Rebuild, RowId, StoreFact, VolumeId, VolumeRows};

use crate::cause::Cause;
use crate::observer::{CountingObserver, Damage, Observer};
use crate::transfer::{is_zstash_place, without_sent_run};

/// The volumes that are in the store alone, with the ids of their rows.
#[derive(Debug, Default)]
pub(super) struct Away {
    rows: VolumeRows,
    /// Where they are.
    place: Option<String>,
}

impl Away {
    /// Finds them, and names those that are nowhere.
    pub(super) fn find(
        old: &Index,
        here: &[VolumeId],
        observer: &CountingObserver<'_>,
    ) -> Result<Self, IndexError> {
        let mut rows = old.rows_by_volume()?;
        for volume in old.volume_records()? {
            let none = RowId(1)..=RowId(0);
            rows.entry(volume.id).or_insert(none);
        }
        rows.retain(|volume, _| here.binary_search(volume).is_err());
        let sent = old.transfers()?;
        let hpss = old.config().ok().map(|config| config.hpss);
        let hpss = hpss.filter(|hpss| is_zstash_place(hpss));
        let is_kept = |volume: &VolumeId| hpss.is_some() || sent.contains_key(volume);
        let (kept, lost): (VolumeRows, VolumeRows) =
            rows.into_iter().partition(|(volume, _)| is_kept(volume));
        for (volume, ids) in lost {
            let members = count(old, volume, ids)?;
            if members > 0 {
                observer.damaged(&Damage {
                    volume,
                    offset: None,
                    member: None,
                    cause: Cause::MembersLost(members),
                });
            }
        }
        // What cannot be read of the facts is damage, which `check` reports.
        let place = old.store_fact(StoreFact::Place).ok().flatten();
        Ok(Self {
            rows: kept,
            place: place.or(hpss),
        })
    }

    pub(super) fn volumes(&self) -> impl Iterator<Item = VolumeId> {
        self.rows.keys().copied()
    }

    /// Takes over a volume; returns whether it is one of these, and with how many rows.
    pub(super) fn keep(
        &self,
        volume: VolumeId,
        old: &Index,
        rebuild: &mut Rebuild,
    ) -> Result<Option<u64>, IndexError> {
        let ids = self.rows.get(&volume);
        ids.map(|ids| rebuild.keep_volume(old, volume, ids.clone()))
            .transpose()
    }

    pub(super) fn note(&self, members: u64, observer: &CountingObserver<'_>) {
        let names: Vec<String> = self.volumes().map(|volume| volume.to_string()).collect();
        let place = self.place.as_deref().unwrap_or("the store");
        let text = match names.as_slice() {
            [] => return,
            [name] => format!(
                "{name} is not here, but in `{place}`: what the old index has of it stays, members: {members}"
            ),
            [first, .., last] => format!(
                "{} volumes, {first} to {last}, are not here, but in `{place}`: what the old index has of them stays, members: \
                 {members}",
                names.len()
            ),
        };
        observer.noted(&text);
    }
}

fn count(old: &Index, volume: VolumeId, ids: RangeInclusive<RowId>) -> Result<u64, IndexError> {
    let mut members = 0;
    old.rows_of_volume(volume, ids, |_| {
        members += 1;
        ControlFlow::Continue(())
    })?;
    Ok(members)
}

/// Takes over where the volumes were sent. The next run with the store puts the new index there.
pub(super) fn keep_store(old: &Index, rebuild: &mut Rebuild) -> Result<(), IndexError> {
    let version = old.store_fact(StoreFact::IndexVersion)?;
    let version = version.as_deref().map(without_sent_run);
    rebuild.keep_store(old, version.as_deref())
}
