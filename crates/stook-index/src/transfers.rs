//! Where the volumes of an archive were sent, and how it is known that they arrived.
//!
//! ```text
//!   stook_meta        store = the place, as the user wrote it; store_index = version of its index.db when it was put;
//!                     store_leaving = local volumes that are being removed because the store has them
//!   stook_transfers   one row for each volume that the store has confirmed
//! ```
//! Proofs and versions are texts of `stook-store`, which this crate knows nothing of.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use rusqlite::{Connection, OptionalExtension, params};

use crate::error::{IndexError, READ, WRITE};
use crate::index::Index;
use crate::mtime::Mtime;
use crate::row::{mtime_of, signed, unsigned};
use crate::scan::{Step, scan_ids};
use crate::types::VolumeId;

/// The table of volumes in a store.
pub(crate) const TRANSFERS: &str = "stook_transfers";

/// A volume that the store of the archive holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transfer {
    /// Its length in bytes, as it was sent.
    pub size: u64,
    /// How it is known that the store holds it: the word of a proof.
    pub proof: String,
    /// Its version in the store; None where that has none.
    pub version: Option<String>,
    /// When that was proved.
    pub at: Mtime,
}

/// Facts about the store of an archive in `stook_meta`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreFact {
    /// The place, as the user wrote it.
    Place,
    /// The version of the index there.
    IndexVersion,
    /// Names of the local volumes that were being removed when this was written. A run that was killed then left them.
    Leaving,
}

impl StoreFact {
    /// Returns true for the key of one.
    pub(crate) fn is_key(key: &str) -> bool {
        [Self::Place, Self::IndexVersion, Self::Leaving]
            .map(Self::key)
            .contains(&key)
    }

    const fn key(self) -> &'static str {
        match self {
            Self::Place => "store",
            Self::IndexVersion => "store_index",
            Self::Leaving => "store_leaving",
        }
    }
}

impl Index {
    /// Returns a fact about the store; None if none was recorded.
    ///
    /// # Errors
    /// `Sqlite` if the file cannot be read.
    pub fn store_fact(&self, fact: StoreFact) -> Result<Option<String>, IndexError> {
        if !self.has_table("stook_meta")? {
            return Ok(None);
        }
        let query = "SELECT cast(value AS text) FROM stook_meta WHERE key = ?1";
        let value = self
            .connection
            .query_row(query, [fact.key()], |row| row.get(0));
        value
            .optional()
            .map(Option::flatten)
            .map_err(self.fault(READ))
    }

    /// Returns the place of the volumes that was recorded, and what zstash's settings say of it, in one state.
    ///
    /// # Errors
    /// `Sqlite` if the file cannot be read.
    pub fn store_places(&self) -> Result<(Option<String>, Option<String>), IndexError> {
        let _locked = self.lock_to_read()?;
        // A setting that is missing is damage, which `check` reports; the rest can be read without.
        Ok((
            self.store_fact(StoreFact::Place)?,
            self.setting("hpss").ok(),
        ))
    }

    /// Records a fact about the store; None removes it.
    ///
    /// # Errors
    /// `Busy` or `Sqlite` if the index cannot be written.
    pub fn set_store_fact(
        &mut self,
        fact: StoreFact,
        value: Option<&str>,
    ) -> Result<(), IndexError> {
        let transaction = self.begin()?;
        set_fact(&transaction, fact, value).map_err(self.fault(WRITE))?;
        transaction.commit().map_err(self.fault(WRITE))
    }

    /// Returns the local volumes that a run was removing, because the store has them, when it was killed.
    ///
    /// # Errors
    /// `Sqlite` if the file cannot be read.
    pub fn leaving(&self) -> Result<BTreeSet<VolumeId>, IndexError> {
        let names = self.store_fact(StoreFact::Leaving)?.unwrap_or_default();
        let ids = names.split(' ').filter_map(|name| name.parse().ok());
        Ok(ids.collect())
    }

    /// Returns the volumes that the store has confirmed. A row that makes no sense counts for nothing: the volume is
    /// sent, or compared, again.
    ///
    /// # Errors
    /// `Sqlite` if the file cannot be read.
    pub fn transfers(&self) -> Result<BTreeMap<VolumeId, Transfer>, IndexError> {
        let mut transfers = BTreeMap::new();
        if !self.has_table(TRANSFERS)? {
            return Ok(transfers);
        }
        let query = "SELECT rowid, cast(volume AS blob), size, proof, version, sent
            FROM stook_transfers NOT INDEXED WHERE rowid BETWEEN ?1 AND ?2 ORDER BY rowid";
        let mut statement = self.connection.prepare(query).map_err(self.fault(READ))?;
        scan_ids(&self.path, &mut statement, i64::MIN..=i64::MAX, |step| {
            if let Step::Row(_, row) = step {
                let name: Vec<u8> = row.get(1).unwrap_or_default();
                if let (Some(volume), Some(transfer)) = (VolumeId::from_name(&name), read(row)) {
                    transfers.insert(volume, transfer);
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(transfers)
    }

    /// Records volumes that the store has confirmed, and the local ones that will be removed for it, in one transaction.
    ///
    /// # Errors
    /// `TooLarge`, `Busy` or `Sqlite` if the index cannot be written.
    pub fn record_transfers<'t>(
        &mut self,
        transfers: impl IntoIterator<Item = (VolumeId, &'t Transfer)>,
        leaving: &[VolumeId],
    ) -> Result<(), IndexError> {
        let names: Vec<String> = leaving.iter().map(VolumeId::to_string).collect();
        let names = Some(names.join(" ")).filter(|names| !names.is_empty());
        let transaction = self.begin()?;
        let set = set_fact(&transaction, StoreFact::Leaving, names.as_deref());
        set.map_err(self.fault(WRITE))?;
        for (volume, transfer) in transfers {
            let size = signed(transfer.size, "size", &self.path)?;
            let (volume, at) = (volume.to_string(), transfer.at.to_string());
            let values = params![volume, size, transfer.proof, transfer.version, at];
            let query = "INSERT INTO stook_transfers VALUES (?1, ?2, ?3, ?4, ?5)
                ON CONFLICT (volume) DO UPDATE SET size = ?2, proof = ?3, version = ?4, sent = ?5";
            let inserted = transaction.execute(query, values);
            inserted.map_err(self.fault(WRITE))?;
        }
        transaction.commit().map_err(self.fault(WRITE))
    }

    /// Forgets which volumes a store holds: they belong to another one.
    ///
    /// # Errors
    /// `Busy` or `Sqlite` if the index cannot be written.
    pub fn forget_transfers(&mut self) -> Result<(), IndexError> {
        let transaction = self.begin()?;
        // Without a condition SQLite would not report the rows, and their witnesses stay.
        let deleted = transaction.execute("DELETE FROM stook_transfers WHERE true", []);
        deleted.map_err(self.fault(WRITE))?;
        transaction.commit().map_err(self.fault(WRITE))
    }
}

fn set_fact(
    connection: &Connection,
    fact: StoreFact,
    value: Option<&str>,
) -> rusqlite::Result<usize> {
    let key = fact.key();
    match value {
        Some(value) => connection.execute(
            "INSERT INTO stook_meta VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = ?2",
            params![key, value],
        ),
        None => connection.execute("DELETE FROM stook_meta WHERE key = ?1", [key]),
    }
}

fn read(row: &rusqlite::Row<'_>) -> Option<Transfer> {
    Some(Transfer {
        size: unsigned(row.get_ref(2).ok()?)?,
        proof: row.get(3).ok()?,
        version: row.get(4).ok()?,
        at: mtime_of(row.get_ref(5).ok()?)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Config;

    fn index() -> (tempfile::TempDir, Index) {
        let folder = tempfile::tempdir().unwrap();
        let config = Config {
            hpss: "none".into(),
            maxsize: 1,
            path: b"/src".into(),
        };
        let index = Index::create(folder.path().join("index.db"), &config).unwrap();
        (folder, index)
    }

    fn damages(index: &Index) -> u64 {
        let mut damages = 0;
        let ended = index.check(&mut |_| ControlFlow::Continue(()), &mut |_| damages += 1);
        ended.unwrap();
        damages
    }

    #[test]
    fn what_was_sent_is_recorded_replaced_and_forgotten() {
        let (_folder, mut index) = index();
        assert_eq!(index.transfers().unwrap(), BTreeMap::new());
        let transfer = |size, version: Option<&str>| Transfer {
            size,
            proof: "read back".to_owned(),
            version: version.map(str::to_owned),
            at: Mtime(1_700_000_000_000_000),
        };
        let first = [
            (VolumeId::plain(0), transfer(7, None)),
            (VolumeId::plain(1), transfer(8, Some("a"))),
        ];
        index
            .record_transfers(
                first.iter().map(|(id, sent)| (*id, sent)),
                &[VolumeId::plain(0), VolumeId::plain(1)],
            )
            .unwrap();
        let leaving = BTreeSet::from([VolumeId::plain(0), VolumeId::plain(1)]);
        assert_eq!(index.leaving().unwrap(), leaving);
        assert_eq!(damages(&index), 0);
        let again = transfer(9, Some("b"));
        index
            .record_transfers([(VolumeId::plain(1), &again)], &[])
            .unwrap();
        assert_eq!(index.leaving().unwrap(), BTreeSet::new());
        let expected = BTreeMap::from([first[0].clone(), (VolumeId::plain(1), again)]);
        assert_eq!(index.transfers().unwrap(), expected);
        assert_eq!(damages(&index), 0);
        index.forget_transfers().unwrap();
        assert_eq!(index.transfers().unwrap(), BTreeMap::new());
        assert_eq!(damages(&index), 0);
    }

    #[test]
    fn facts_about_the_store_come_back() {
        let (_folder, mut index) = index();
        assert_eq!(index.store_fact(StoreFact::Place).unwrap(), None);
        index
            .set_store_fact(StoreFact::Place, Some("s3://bucket"))
            .unwrap();
        index
            .set_store_fact(StoreFact::IndexVersion, Some("1"))
            .unwrap();
        index
            .set_store_fact(StoreFact::IndexVersion, Some("2"))
            .unwrap();
        let place = index.store_fact(StoreFact::Place).unwrap();
        assert_eq!(place.as_deref(), Some("s3://bucket"));
        let version = index.store_fact(StoreFact::IndexVersion).unwrap();
        assert_eq!(version.as_deref(), Some("2"));
        assert_eq!(damages(&index), 0);
        index.set_store_fact(StoreFact::Place, None).unwrap();
        assert_eq!(index.store_fact(StoreFact::Place).unwrap(), None);
    }

    #[test]
    fn a_changed_row_is_damage() {
        let (_folder, mut index) = index();
        let transfer = Transfer {
            size: 7,
            proof: "size".to_owned(),
            version: None,
            at: Mtime(0),
        };
        index
            .record_transfers([(VolumeId::plain(0), &transfer)], &[])
            .unwrap();
        let raw = rusqlite::Connection::open(&index.path).unwrap();
        raw.execute("UPDATE stook_transfers SET proof = 'read back'", [])
            .unwrap();
        assert_eq!(damages(&index), 1);
    }
}
