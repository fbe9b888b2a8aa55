//! Reading: every byte that an operation reads of a volume comes through here.
//!
//! ```text
//!   VolumeStore ──open(name)──> VolumeBytes     len, read_at, append_at, prefetch, version
//!        │                          │
//!     Volumes   keeps some open     ├──> LoadedRange    a part of a volume in memory; the members in it are slices of it
//!        │                          ├──> MemberReader   any bytes of one member, from any thread
//!   for_each_batch                  └──> SkipBadPages   what a scan reads past places that the disk cannot give
//!     rows of an index ──> batches, prefetched ──> workers
//!
//!   of a compressed volume   VolumeBytes of the file ──> FramedVolume: VolumeBytes of the uncompressed one
//!                                                        FrameTable: from the index, or the end of the file
//! ```
//! Where a volume lies is known to its [`VolumeStore`] alone; the local folder is the first. Calls through these traits are
//! dynamic, one for each batch or header, none for each member of a batch. Nothing here writes, and nothing decides what
//! damage means.

mod bad_pages;
mod batch;
mod content_md5;
mod decoders;
mod frame_cache;
mod frame_table;
mod framed_volume;
mod loaded_range;
mod member;
mod member_reader;
mod small_member;
#[cfg(test)]
mod tests;
mod volume;
mod volumes;

pub(crate) use bad_pages::SkipBadPages;
pub(crate) use batch::{RowBatch, for_each_batch};
pub use content_md5::DEFAULT_MAX_HOLE_BYTES;
pub(crate) use content_md5::{ContentMd5, Interrupted, file_md5, too_many_holes};
pub(crate) use frame_cache::FrameCache;
pub use framed_volume::FramedVolume;
pub(crate) use framed_volume::open_volume;
pub(crate) use loaded_range::LoadedRange;
pub(crate) use member::{check_row, is_stooks, segments_of};
pub use member_reader::MemberReader;
pub(crate) use member_reader::open_member;
pub use small_member::Patience;
pub(crate) use small_member::read_small;
pub(crate) use volume::LocalFirst;
pub use volume::{LocalFolder, VolumeBytes, VolumeStore, VolumeVersion};
pub(crate) use volumes::Volumes;

/// Bytes that are read at once, and held by one worker: content above this is read slice by slice.
pub(crate) const BATCH_BYTES: u64 = 4 << 20;
