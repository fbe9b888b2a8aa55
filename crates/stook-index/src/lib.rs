//! index.db: every line of SQL in the project.
//!
//! The database is zstash's: three tables of its making, which real zstash reads and goes on
//! with. What stook knows beyond that (runs, deletions, names that are not UTF-8) lies in tables
//! named `stook_*` beside them. Rows are only ever added; the newest row of a name is the one
//! with the greatest id, and a recorded deletion hides the rows before it.
//!
//! Everything streams: a pass over 10^8 rows needs bounded memory. This crate does not look at
//! volumes or trees, takes no lock on the archive, and never prints.

mod absence;
mod access;
mod attributes;
mod blocks;
mod check;
mod checks;
mod column;
mod commit;
mod compression;
mod create;
mod damage;
mod error;
mod frames;
mod history;
mod id_set;
mod index;
mod interrupt;
mod load;
mod mtime;
mod name;
mod name_table;
mod names;
mod newest;
mod origin;
mod place;
mod rebuild;
mod released;
mod releases;
mod row;
mod rows;
mod runs;
mod scan;
mod schema;
mod selection;
mod snapshot;
mod staging;
mod transfers;
mod trust;
mod types;
mod witness;

pub use absence::Absence;
pub use attributes::{
    Attributes, AttributesBlock, AttributesEncoder, AttributesTable, Gaps, MemberKind, Members,
    RecordedMetadata, StoredAttributes, VolumeRows,
};
pub use blocks::NewBlock;
pub use check::Structure;
pub use commit::VolumeParts;
pub use damage::{IndexDamage, IndexFault};
pub use error::{IndexError, Missing, StagingFault};
pub use frames::{Frame, FramesBlock, encode_frames};
pub use history::{RunCounts, Writer};
pub use index::{Index, ReadOptions};
pub use interrupt::Interrupt;
pub use mtime::Mtime;
pub use name::{escape_name, path_hash};
pub use name_table::{NameTable, NewestRow};
pub use names::{NameLookup, NameVersions, Version};
pub use origin::Origin;
pub use rebuild::Rebuild;
pub use selection::{Deleted, Selection};
pub use snapshot::{Passed, Snapshot};
pub use staging::{Checkpoint, Staging};
pub use transfers::{StoreFact, Transfer};
pub use types::{
    AsOf, BadVolumeName, Config, NewRow, Row, RowId, RowRef, Run, RunId, Volume, VolumeEncoding,
    VolumeId,
};
