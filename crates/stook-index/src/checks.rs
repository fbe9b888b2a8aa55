//! Which volumes passed a check, so that nothing has to be read twice to be sure of it.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use rusqlite::params;

use crate::error::{IndexError, READ, WRITE};
use crate::index::Index;
use crate::mtime::Mtime;
use crate::scan::{Step, scan_ids};
use crate::types::VolumeId;

impl Index {
    /// Returns true if stook has written to this archive.
    ///
    /// # Errors
    /// `Sqlite` if the file cannot be read.
    pub fn is_stooks(&self) -> Result<bool, IndexError> {
        self.has_table("stook_meta")
    }

    /// Returns the volumes that passed their last check, each with the stamp its file had. A row that makes no
    /// sense counts for nothing: the volume is checked again.
    ///
    /// # Errors
    /// `Sqlite` if the file cannot be read.
    pub fn passed_checks(&self) -> Result<BTreeMap<VolumeId, String>, IndexError> {
        let mut passed = BTreeMap::new();
        if !self.has_table("stook_checks")? {
            return Ok(passed);
        }
        let query = "SELECT rowid, cast(volume AS blob), stamp FROM stook_checks NOT INDEXED
            WHERE rowid BETWEEN ?1 AND ?2 ORDER BY rowid";
        let mut statement = self.connection.prepare(query).map_err(self.fault(READ))?;
        scan_ids(&self.path, &mut statement, i64::MIN..=i64::MAX, |step| {
            if let Step::Row(_, row) = step {
                let name: Vec<u8> = row.get(1).unwrap_or_default();
                if let (Some(volume), Ok(stamp)) = (VolumeId::from_name(&name), row.get(2)) {
                    passed.insert(volume, stamp);
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(passed)
    }

    /// Records which volumes passed a check, with their stamps, and which did not, in one transaction.
    ///
    /// # Errors
    /// `Busy` or `Sqlite` if the index cannot be written.
    pub fn record_checks(
        &mut self,
        checked: &BTreeMap<VolumeId, Option<String>>,
        now: Mtime,
    ) -> Result<(), IndexError> {
        let transaction = self.begin()?;
        for (volume, stamp) in checked {
            let volume = volume.to_string();
            match stamp {
                Some(stamp) => transaction.execute(
                    "INSERT INTO stook_checks VALUES (?1, ?2, ?3)
                        ON CONFLICT (volume) DO UPDATE SET stamp = ?2, checked = ?3",
                    params![volume, stamp, now.to_string()],
                ),
                None => transaction.execute("DELETE FROM stook_checks WHERE volume = ?1", [volume]),
            }
            .map_err(self.fault(WRITE))?;
        }
        transaction.commit().map_err(self.fault(WRITE))
    }
}
