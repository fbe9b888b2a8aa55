//! Archives: create, update, diff, extract, check, list, cat and reindex.
//!
//! ```text
//!   create, update   survey ──> plan ──> pack (workers) ──> volume writer ──> index
//!   extract, check   rows of the index ──> batches ──> workers
//! ```
//! Every operation is a function of options and an [`Observer`]; none prints. A failure of one file does
//! not stop an operation: it is reported to the observer, and counted.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests make their own files")
)]

mod admission;
mod archive;
mod attributes;
mod buffers;
mod cat;
mod catalogue;
mod cause;
mod check;
mod commit_queue;
mod compress;
mod create;
mod deleted;
mod deletions;
mod diff;
mod dry_run;
mod error;
mod extract;
mod file_content;
mod folder;
mod frame_log;
mod guard;
mod hasher;
mod layout;
mod list;
mod member_attributes;
mod memory;
mod metadata_change;
mod mutex;
mod not_visited;
mod observer;
mod open_volume;
mod pack;
mod packed;
mod pending_bytes;
mod plan;
mod read;
mod recovery;
mod reindex;
mod remove_archived;
mod safe_path;
mod select;
mod session;
mod sort;
mod stored;
mod survey;
mod task;
mod transfer;
mod verify;
mod when;
mod write;
mod writer;

pub use archive::{Archive, Found, OpenOptions};
pub use attributes::{AttributesReport, fill_attributes};
pub use cat::cat;
pub use catalogue::{
    Catalogue, CatalogueOptions, EntryId, Stat, StatSource, StoredFiles, Versions, clean_path,
};
pub use cause::{Cause, Since};
pub use check::{CheckOptions, CheckReport, check};
pub use create::{WriteOptions, WriteReport};
pub use deleted::MissingName;
pub use deletions::{Deletions, NameCounts, StopReason, UnlikelyDeletions};
pub use diff::{Change, DiffOptions, DiffReport, Difference, diff};
pub use error::ArchiveError;
pub use extract::{ExtractOptions, ExtractReport, extract, extract_selected};
pub use list::{ListReport, list, list_with_attributes};
pub use metadata_change::{Changed, MetadataChange, MetadataChanges};
pub use observer::{Damage, Failure, MemberDone, MemberEnd, Note, Observer, Silent, SkipReason};
pub use plan::{
    AbandonReport, BuildOptions, BuildReport, BuiltDamage, BuiltVolumes, CommitOptions,
    CommitReport, DEFAULT_VOLUME_BYTES, DamagedPart, FailedMembers, PlanFileError, PlanOptions,
    PlanReport, PlanSummary, PlannedPart, PlannedVolume, abandon, build_part, check_part, commit,
    plan,
};
pub use read::{
    DEFAULT_MAX_HOLE_BYTES, FramedVolume, LocalFolder, MemberReader, Patience, VolumeBytes,
    VolumeStore, VolumeVersion,
};
pub use reindex::{ReindexOptions, ReindexReport, reindex};
pub use remove_archived::{
    Recording, RemoveArchivedObserver, RemoveArchivedReport, Staying, remove_archived,
};
pub use select::ListOptions;
pub use stook_index::{
    Absence, AsOf, Attributes, Config, IndexDamage, IndexError, Interrupt, MemberKind, Missing,
    Mtime, NameVersions, Row, RowId, RowRef, Run, RunCounts, RunId, Selection, Version, Volume,
    VolumeId, Writer,
};
pub use stook_pool::{Jobs, Observer as BaseObserver};
pub use stook_volume::{BadZstdLevel, Dialect, ReadAt, ZstdLevel};
pub use stored::StoredPlace;
pub use transfer::{
    FetchedVolumes, PullOptions, PullReport, SentReport, StatusReport, StoreOptions, TransferError,
    VolumeStatus, pull, push, status,
};
pub use verify::verify_selected;
pub use when::When;
pub use write::{create, update};
