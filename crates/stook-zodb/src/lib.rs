//! ZODB's `Data.fs`: its index rebuilt, checked and written, its space and its references.
//!
//! A `Data.fs` is an append-only file of transactions with pickled objects; `Data.fs.index` beside it says where the
//! current record of every object is, and can always be built anew by reading the file ([`scan()`], [`reindex()`]). [`check()`]
//! goes on behind damage, [`analyze()`] says what takes the space, [`References`] who refers to whom.
//!
//! Nothing is unpickled or imported: pickles are gone through as far as classes and references need it. No file but the
//! index is ever written, and nothing here prints.
#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests make their own files")
)]

mod analyze;
mod check;
mod data_file;
mod error;
mod format;
mod id;
mod index;
mod observer;
mod pickle;
mod record;
mod references;
mod reindex;
mod sanity;
mod saved;
mod scan;
mod transaction;

pub use analyze::{Amount, Analysis, ClassUse, DayUse, ObjectUse, analyze};
pub use check::{Checked, Damage, DamageKind, check};
pub use data_file::DataFile;
pub use error::{SavedIndexError, ZodbError};
pub use format::FIRST_TRANSACTION;
pub use id::{Day, Oid, Tid};
pub use index::Index;
pub use observer::Observer;
pub use pickle::PickleError;
pub use references::{Dangling, ReferenceCounts, References};
pub use reindex::{IndexState, Reindexed, Trust, Write, look_at_index, reindex};
pub use sanity::is_sane;
pub use saved::{
    DatabaseLock, SavedIndex, decode_index, encode_index, index_path, read_index, save_index,
};
pub use scan::{Scan, ScanEnd, Start, scan};
pub use transaction::{Imperfection, Reason};
