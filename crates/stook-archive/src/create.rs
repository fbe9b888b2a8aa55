//! `create` and `update`: what they take and give back. What they do is in `write.rs`.

use std::path::PathBuf;
use std::time::Duration;

use stook_pool::Jobs;
use stook_sys::Links;
use stook_tree::Filter;
use stook_volume::{Dialect, ZstdLevel};

use crate::deletions::Deletions;
use crate::metadata_change::MetadataChanges;
use crate::plan::PlanSummary;
use crate::transfer::{SentReport, StoreOptions};

/// How to create or update an archive.
#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one independent switch of the command line"
)]
pub struct WriteOptions {
    /// What to archive.
    pub filter: Filter,
    /// Largest length of a volume; None: what the archive was created with.
    pub volume_bytes: Option<u64>,
    /// Whether symbolic links are followed or stored.
    pub links: Links,
    /// How many workers.
    pub jobs: Jobs,
    /// How members are written.
    pub dialect: Dialect,
    /// At which level volumes are compressed; None: as the archive was created, or not at all. zstash cannot read such volumes.
    pub zstd: Option<ZstdLevel>,
    /// By how many microseconds the time of an unchanged entry may differ from the archived one.
    pub time_tolerance: u64,
    /// Record each volume, with its length. A new archive without these records is one as zstash made before version 1.1.
    pub records_volumes: bool,
    /// For tests of what reads them: by how many bytes the lengths on record are too large, one for each record that a volume
    /// gets.
    pub record_errors: Vec<u64>,
    /// Store every directory, not only empty ones and those whose name the archive holds already.
    pub directories: bool,
    /// Store extended attributes and access control lists.
    pub xattrs: bool,
    /// Compare the content of files that look unchanged.
    pub compare_content: bool,
    /// What becomes of entries of which only mode or owner changed.
    pub metadata: MetadataChanges,
    /// What becomes of names that are gone from the source.
    pub deletions: Deletions,
    /// Take the MD5 of whole volumes.
    pub volume_md5: bool,
    /// Take the write bits from finished volumes.
    pub read_only_volumes: bool,
    /// Create the archive in a folder that holds other files, too. In the dialect of zstash it always may.
    pub allows_other_files: bool,
    /// What a new archive remembers as its source; None: where that is, links resolved.
    pub recorded_source: Option<PathBuf>,
    /// Where volumes are sent; None: they stay.
    pub store: Option<StoreOptions>,
    /// Only report what would be written.
    pub is_dry_run: bool,
    /// Most bytes between two checkpoints.
    pub checkpoint_bytes: u64,
    /// Longest time between two checkpoints.
    pub checkpoint_interval: Duration,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            filter: Filter::default(),
            volume_bytes: None,
            links: Links::Refuse,
            jobs: Jobs::Adaptive,
            dialect: Dialect::Stook,
            zstd: None,
            time_tolerance: 0,
            records_volumes: true,
            record_errors: vec![0],
            directories: true,
            xattrs: true,
            compare_content: false,
            metadata: MetadataChanges::default(),
            deletions: Deletions::default(),
            volume_md5: true,
            read_only_volumes: true,
            allows_other_files: false,
            recorded_source: None,
            store: None,
            is_dry_run: false,
            checkpoint_bytes: 1 << 30,
            checkpoint_interval: Duration::from_secs(60),
        }
    }
}

/// What a `create` or `update` did.
#[derive(Debug, Clone, Default)]
pub struct WriteReport {
    /// Entries found in the source.
    pub entries: u64,
    /// Those that the archive holds as they are.
    pub unchanged: u64,
    /// Entries of which only mode or owner changed, and that were not archived again.
    pub metadata_changed: u64,
    /// Members written.
    pub members: u64,
    /// Bytes of content in them.
    pub bytes: u64,
    /// Volumes committed.
    pub volumes: u64,
    /// Names recorded as deleted.
    pub deleted: u64,
    /// Files that failed, each reported to the observer.
    pub failed: u64,
    /// With a store: what was sent.
    pub sent: Option<SentReport>,
    /// In a dry run: what would be written.
    pub plan: Option<PlanSummary>,
}
