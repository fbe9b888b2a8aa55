//! What was released from the tree: each release repeats name, volume and offset of its row of `files`.

use std::ops::ControlFlow;

use super::Check;
use crate::damage::IndexDamage;
use crate::error::{IndexError, READ};
use crate::releases::{WITH_ROWS, names_its_row};
use crate::scan::{Step, is_unreadable, scan_ids};

const TABLE: &str = "stook_released";

impl Check<'_> {
    pub(super) fn releases(&mut self) -> Result<(), IndexError> {
        let index = self.index;
        let prepared = index.connection.prepare(WITH_ROWS);
        let Some(mut statement) = self.value(prepared, Some(TABLE))? else {
            return Ok(());
        };
        scan_ids(&index.path, &mut statement, i64::MIN..=i64::MAX, |step| {
            match step {
                Step::Row(id, row) => match names_its_row(row) {
                    Ok(true) => {}
                    Ok(false) if self.has_unknown_rows => {}
                    Ok(false) => {
                        let what = "it does not repeat name, volume and offset of a row of `files`";
                        self.tell(IndexDamage::value(TABLE, id, "file", what));
                    }
                    Err(error) if is_unreadable(&error) => {
                        self.tell(IndexDamage::value(TABLE, id, "file", error));
                    }
                    Err(error) => return Err(index.fault(READ)(error)),
                },
                Step::Unreadable(rows) => self.tell(IndexDamage::unreadable(TABLE, &rows)),
            }
            Ok(ControlFlow::Continue(()))
        })?;
        self.raw_released()
    }

    /// The real name of a release must be that of its row.
    fn raw_released(&mut self) -> Result<(), IndexError> {
        self.each(TABLE, "rowid, name, raw", |check, id, row| {
            let column = |index| row.get_ref(index).map_err(check.index.fault(READ));
            let real = super::deletions::real_name(column(1)?, column(2)?);
            if let Err(bad) = real {
                check.bad_value(TABLE, id, bad);
            }
            Ok(())
        })
    }
}
