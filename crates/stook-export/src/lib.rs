//! Views of an archive for other programs: they read the volumes themselves, and stook is not needed any more.
//!
//! ```text
//!   refs     one line for each file: URL of the volume, begin, bytes ──> Python's fsspec     refs/
//!   erofs    an image of names and attributes; content stays in the volumes ──> the kernel   erofs/
//!   native   such an image, made from the index and mounted at once                          native.rs
//! ```
//! All of them say only where bytes lie, so nothing can be shown that a volume does not hold as it is: compressed volumes, and
//! for references the holes of sparse files. What cannot be shown is reported, never left out in silence. And nothing that is read
//! through them is verified.

#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests make their own files")
)]

mod erofs;
mod error;
mod native;
mod new_file;
mod refs;
mod volumes;

pub use erofs::{AccessLists, ErofsReport, ImageRecord, ImageState, RecordedVolume, export_erofs};
pub use error::{BadImage, ExportError, Refusal};
pub use native::{NativeMount, access_lists, mount_native, require_native};
pub use refs::{Format, RefsOptions, RefsReport, Target, export_refs};
pub use volumes::Places;
