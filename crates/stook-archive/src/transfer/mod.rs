//! Archives whose volumes lie in a store: sending them beside a run, fetching them, and what is where.
//!
//! ```text
//!   create, update   attach ──> session ──volumes──> uploads ──> complete: the rest, then index.db
//!   push             attach ───────────────────────> uploads ──> complete
//!   pull             index.db, if it is newer ──> volumes, each compared with its MD5
//!   status           what the index, the folder and the store say of each volume
//! ```

mod arrivals;
mod attach;
mod complete;
mod error;
mod fetching;
mod options;
mod pull;
mod push;
mod rebuilt;
mod recorded;
mod send;
mod status;
mod uploads;

pub use complete::SentReport;
pub use error::TransferError;
pub use fetching::FetchedVolumes;
pub use options::StoreOptions;
pub use pull::{PullOptions, PullReport, pull};
pub use push::push;
pub use status::{StatusReport, VolumeStatus, status};

pub(crate) use attach::{is_unsent, recorded_store, store_folder};
pub(crate) use push::{require_spool, with_store};
pub(crate) use rebuilt::{is_zstash_place, without_sent_run};
pub(crate) use uploads::Uploads;
