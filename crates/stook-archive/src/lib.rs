//! Archives: create, update, diff, extract, check, list, cat and reindex.
//!
//! ```text
//!   create, update   survey ──> plan ──> pack (workers) ──> volume writer ──> index
//!   extract, check   rows of the index ──> batches ──> workers
//! ```
//! Every operation is a function of options and an [`Observer`]; none prints. A failure of one file does
//! not stop an operation: the observer is told, the result counts it.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests make their own files")
)]

mod batch;
mod buffers;
mod cat;
mod check;
mod create;
mod diff;
mod error;
mod extract;
mod folder;
mod hasher;
mod layout;
mod list;
mod memory;
mod mutex;
mod observer;
mod open_volume;
mod pack;
mod plan;
mod recovery;
mod reindex;
mod remove_archived;
mod survey;
mod task;
mod tracks;
mod writer;

pub use cat::cat;
pub use check::{CheckOptions, CheckReport, check};
pub use create::{WriteOptions, WriteReport, create, update};
pub use diff::{Change, DiffOptions, DiffReport, Difference, diff};
pub use error::ArchiveError;
pub use extract::{ExtractOptions, ExtractReport, extract};
pub use list::{ListOptions, ListReport, When, list, readable_runs, runs, state_at};
pub use observer::{Damage, Failure, Observer, Silent};
pub use plan::{DEFAULT_VOLUME_BYTES, PlanSummary, PlannedVolume};
pub use reindex::{ReindexReport, reindex};
pub use remove_archived::{RemoveArchivedObserver, RemoveArchivedReport, Staying, remove_archived};
pub use stook_index::{AsOf, IndexDamage, Mtime, RowRef, Run, RunId, VolumeId};
pub use stook_pool::Jobs;
pub use stook_volume::Dialect;
