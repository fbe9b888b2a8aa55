//! Compares the saved index with the file, for every object: ZODB looks at five records.
//!
//! The saved index is read as a stream when the check has come to where it ends, so it takes no memory of its own.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use super::{DamageKind, Found};
use crate::error::ZodbError;
use crate::id::Oid;
use crate::index::Index;
use crate::saved::{BucketReader, index_path};

/// A saved index that is to be compared.
pub(super) struct IndexComparison {
    saved: Option<BucketReader<BufReader<File>>>,
    compared: Option<u64>,
}

impl IndexComparison {
    /// Opens the saved index; damage at its beginning is reported.
    pub(super) fn open(data: &Path, found: &mut Found<'_>) -> Result<Self, ZodbError> {
        let compared = None;
        match BucketReader::open(&index_path(data)) {
            Ok(saved) => Ok(Self {
                saved: Some(saved),
                compared,
            }),
            Err(ZodbError::Sys(error)) if error.is_not_found() => Ok(Self {
                saved: None,
                compared,
            }),
            Err(error) => {
                tell(error, found)?;
                Ok(Self {
                    saved: None,
                    compared: Some(0),
                })
            }
        }
    }

    /// Returns the number of objects that were compared; `None` if there was no saved index.
    pub(super) fn compared(&self) -> Option<u64> {
        self.compared
    }

    /// The file was read up to a position, where a transaction begins.
    pub(super) fn reach(
        &mut self,
        position: u64,
        index: &Index,
        found: &mut Found<'_>,
    ) -> Result<(), ZodbError> {
        if self
            .saved
            .as_ref()
            .is_none_or(|saved| saved.position() > position)
        {
            return Ok(());
        }
        let Some(mut saved) = self.saved.take() else {
            return Ok(());
        };
        self.compared = Some(0);
        if saved.position() != position {
            found.tell(0, None, DamageKind::IndexPosition(saved.position()));
            return Ok(());
        }
        match compare(&mut saved, index, found) {
            Ok(compared) => {
                self.compared = Some(compared);
                Ok(())
            }
            Err(error) => tell(error, found),
        }
    }

    /// The file is at its end.
    pub(super) fn finish(&mut self, found: &mut Found<'_>) {
        if let Some(saved) = self.saved.take() {
            self.compared = Some(0);
            found.tell(0, None, DamageKind::IndexPosition(saved.position()));
        }
    }
}

fn tell(error: ZodbError, found: &mut Found<'_>) -> Result<(), ZodbError> {
    match error {
        ZodbError::SavedIndex { cause, .. } => {
            found.tell(0, None, DamageKind::Index(cause));
            Ok(())
        }
        error => Err(error),
    }
}

/// Both are sorted: goes through them side by side.
fn compare(
    saved: &mut BucketReader<BufReader<File>>,
    index: &Index,
    found: &mut Found<'_>,
) -> Result<u64, ZodbError> {
    let _scope = stook_timers::scope!("compare");
    let mut actual = index.iter().peekable();
    let mut compared = 0;
    while let Some(bucket) = saved.next()? {
        for (oid, position) in bucket {
            compared += 1;
            while let Some((oid, actual)) = actual.next_if(|(other, _)| *other < oid) {
                found.tell(actual, Some(oid), DamageKind::IndexMissing { actual });
            }
            let same = actual.next_if(|(other, _)| *other == oid);
            tell_difference(oid, position, same.map(|(_, position)| position), found);
        }
    }
    for (oid, actual) in actual {
        found.tell(actual, Some(oid), DamageKind::IndexMissing { actual });
    }
    Ok(compared)
}

fn tell_difference(oid: Oid, saved: u64, actual: Option<u64>, found: &mut Found<'_>) {
    match actual {
        Some(actual) if actual == saved => {}
        Some(actual) => found.tell(actual, Some(oid), DamageKind::IndexEntry { saved, actual }),
        None => found.tell(saved, Some(oid), DamageKind::IndexExtra { saved }),
    }
}
