//! Where the volumes of an archive lie: a directory, a web server, an object store, a tape archive.
//!
//! A [`Store`] holds files under plain names, `index.db` and volumes, in one flat place. [`Location`] is what a user
//! writes for such a place; [`open`](Location::open) gives the store. Every store passes the same contract suite,
//! `tests/it/contract.rs`.
//!
//! ```text
//!   put    local file ──bytes──> store      proved: by size, by a hash on the way, or by reading back
//!   get    store ──bytes──> local file      its MD5 is the caller's to compare
//!   read   a range, where the store has ranges
//! ```
//! Nothing here knows what a volume is, and nothing is repeated after a failure: that is up to the caller, who
//! learns from [`StoreError::advice`] whether it may help.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests make their own files")
)]

mod arrival;
mod directory;
mod error;
mod globus;
mod hsi;
mod http;
mod local_file;
mod location;
mod network;
mod open;
mod program;
mod s3;
mod settings;
mod ssh;
mod store;
mod transfer;

pub use directory::DirectoryStore;
pub use error::{Advice, Difference, StoreCause, StoreError};
pub use globus::{EndpointError, EndpointId, GlobusOptions, GlobusStore, local_endpoint};
pub use hsi::{HsiOptions, HsiStore};
pub use http::HttpStore;
pub use location::{Location, LocationError};
pub use program::{Interruption, ProgramOptions};
pub use s3::S3Store;
pub use settings::{NetworkSettings, S3Settings, Settings};
pub use ssh::{SshOptions, SshStore};
pub use store::{
    Abilities, Condition, Download, FileVersion, Proof, Store, Stored, StoredFile, Upload,
};
pub use transfer::{Silent, TransferObserver};
