//! Releases: members that `remove --archived-in` took from the tree because the archive holds them.
//!
//! A released name is gone from the tree and still in the newest state: an update does not record it as deleted. A
//! release names a row of `files` by its id, and repeats its name, volume and offset: it holds only as long as that row is
//! still this member, and the newest of its name. So an index that was rebuilt or replaced cannot keep a name by mistake.
//! A name that is met in the tree again loses its release.

use std::ops::ControlFlow;

use rusqlite::types::ValueRef;
use rusqlite::{Statement, params};

use crate::error::{IndexError, READ, WRITE};
use crate::id_set::IdSet;
use crate::index::Index;
use crate::name::escape_name;
use crate::row::bytes;
use crate::scan::{Step, scan_ids};
use crate::types::{RowId, RowRef, VolumeId};

/// A release and the row of `files` that has its id, one behind the other.
pub(crate) const WITH_ROWS: &str =
    "SELECT r.file, r.name, r.volume, r.offset, f.name, f.tar, f.offset, r.raw
     FROM stook_released AS r LEFT JOIN files AS f ON f.id = r.file
     WHERE r.file BETWEEN ?1 AND ?2 ORDER BY r.file";

/// A release, by what its row is.
pub(crate) enum Release<'a> {
    /// The row is the member that it names.
    Held(RowId, &'a [u8]),
    /// The row is another member, or there is none.
    Void(RowId),
}

impl Index {
    /// Records, durably and in one transaction, that these rows are released from the tree; returns their number. `rows`
    /// ascend. A row that is not there, or is invalid, is passed over.
    ///
    /// # Errors
    /// `Busy`, `ReadOnly` or `Sqlite` if it cannot be written; nothing is recorded then.
    ///
    /// # Cost
    /// A pass over the rows between the first and the last.
    pub fn record_releases(&mut self, rows: &[RowId]) -> Result<u64, IndexError> {
        let (Some(first), Some(last)) = (rows.first(), rows.last()) else {
            return Ok(0);
        };
        let transaction = self.begin()?;
        let mut inserter = Inserter::new(self)?;
        let mut wanted = rows.iter().peekable();
        let (mut count, mut outcome) = (0, Ok(()));
        self.readable_rows_in(first.0..=last.0, |row| {
            while wanted.next_if(|&&id| id < row.id).is_some() {}
            if wanted.peek() == Some(&&row.id) {
                outcome = inserter.insert(row.id, &row);
                count += 1;
            }
            if outcome.is_ok() {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })?;
        outcome?;
        drop(inserter);
        transaction.commit().map_err(self.fault(WRITE))?;
        Ok(count)
    }

    /// Withdraws releases in one transaction: these names are in the tree again, have a newer row, or are deleted.
    ///
    /// # Errors
    /// `Busy`, `ReadOnly` or `Sqlite` if it cannot be written; nothing is changed then.
    pub fn withdraw_releases(&mut self, rows: &[RowId]) -> Result<(), IndexError> {
        if rows.is_empty() {
            return Ok(());
        }
        let transaction = self.begin()?;
        self.withdraw(rows)?;
        transaction.commit().map_err(self.fault(WRITE))
    }

    /// As [`Index::withdraw_releases`], within a transaction.
    pub(crate) fn withdraw(&self, rows: &[RowId]) -> Result<(), IndexError> {
        let mut delete = self
            .connection
            .prepare("DELETE FROM stook_released WHERE file = ?1")
            .map_err(self.fault(WRITE))?;
        for row in rows {
            delete.execute([row.0]).map_err(self.fault(WRITE))?;
        }
        Ok(())
    }

    /// Shows all releases to `visit`, ascending by row.
    pub(crate) fn releases(&self, mut visit: impl FnMut(Release<'_>)) -> Result<(), IndexError> {
        if !self.has_table("stook_released")? {
            return Ok(());
        }
        let mut statement = self
            .connection
            .prepare(WITH_ROWS)
            .map_err(self.fault(READ))?;
        scan_ids(&self.path, &mut statement, i64::MIN..=i64::MAX, |step| {
            // What cannot be read does not hold; `check` tells of it.
            if let Step::Row(id, row) = step {
                let release = release(RowId(id), row).map_err(self.fault(READ))?;
                visit(release);
            }
            Ok(ControlFlow::Continue(()))
        })
    }
}

fn release<'r>(id: RowId, row: &'r rusqlite::Row<'_>) -> rusqlite::Result<Release<'r>> {
    if !names_its_row(row)? {
        return Ok(Release::Void(id));
    }
    let raw = bytes(row.get_ref(7)?);
    let name = raw.or(bytes(row.get_ref(1)?));
    Ok(name.map_or(Release::Void(id), |name| Release::Held(id, name)))
}

/// Returns true if the release in a row of [`WITH_ROWS`] repeats what the row of `files` says.
pub(crate) fn names_its_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<bool> {
    let name = bytes(row.get_ref(1)?);
    let volume = match row.get_ref(2)? {
        ValueRef::Integer(number) => u64::try_from(number).ok().map(VolumeId::plain),
        _ => None,
    };
    let tar = bytes(row.get_ref(5)?).and_then(VolumeId::from_name);
    Ok(name.is_some()
        && name == bytes(row.get_ref(4)?)
        && volume.is_some()
        && volume == tar
        && row.get_ref(3)? == row.get_ref(6)?)
}

struct Inserter<'i> {
    index: &'i Index,
    insert: Statement<'i>,
}

impl<'i> Inserter<'i> {
    fn new(index: &'i Index) -> Result<Self, IndexError> {
        let insert = index
            .connection
            .prepare("INSERT OR REPLACE INTO stook_released VALUES (?1, ?2, ?3, ?4, ?5)");
        Ok(Self {
            index,
            insert: insert.map_err(index.fault(WRITE))?,
        })
    }

    fn insert(&mut self, file: RowId, row: &RowRef<'_>) -> Result<(), IndexError> {
        let name = escape_name(row.name);
        let raw = (name.as_bytes() != row.name).then_some(row.name);
        let values = params![
            file.0,
            &*name,
            raw,
            row.volume.0.cast_signed(),
            row.offset.cast_signed()
        ];
        self.insert
            .execute(values)
            .map(drop)
            .map_err(self.index.fault(WRITE))
    }
}

/// Takes releases over to a rebuilt index, within a transaction: its rows have other ids, but the same names and places.
///
/// # Cost
/// 24 bytes a release, and a pass over the rows of the new index.
pub(crate) fn copy_releases(old: &Index, new: &Index) -> Result<(), IndexError> {
    let mut held = Vec::new();
    old.releases(|release| {
        if let Release::Held(row, _) = release {
            held.push(row.0);
        }
    })?;
    let held = IdSet::new(held);
    let Some((first, last)) = held.ends() else {
        return Ok(());
    };
    let mut places = Vec::new();
    old.readable_rows_in(first..=last, |row| {
        if held.contains(row.id.0) {
            places.push((row.volume, row.offset, row.id));
        }
        ControlFlow::Continue(())
    })?;
    places.sort_unstable();
    let mut inserter = Inserter::new(new)?;
    let mut outcome = Ok(());
    new.readable_rows_in(i64::MIN..=i64::MAX, |row| {
        let place = (row.volume, row.offset);
        let found = places.binary_search_by_key(&place, |&(volume, offset, _)| (volume, offset));
        if let Ok(at) = found {
            outcome = old.row(places[at].2).and_then(|old| match old {
                Some(old) if old.name == row.name => inserter.insert(row.id, &row),
                _ => Ok(()),
            });
        }
        if outcome.is_ok() {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    })?;
    outcome
}
