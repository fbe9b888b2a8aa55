//! Walks, counts, copies and removes trees, and selects entries.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests make their own files")
)]

mod archive;
mod copy;
mod error;
mod filter;
mod metadata;
mod names;
mod path;
mod pattern;
mod reason;
mod remove;
mod search;
mod selection;
mod summary;
mod traverse;
mod walk;

pub use archive::{is_archive, is_in_archive};
pub use copy::{Copied, CopyObserver, CopyOptions, Verified, copy, verify};
pub use error::TreeError;
pub use filter::Filter;
pub use metadata::{
    ACCESS_ACL, CAPABILITY, DEFAULT_ACL, MetadataTarget, NamedTarget, OpenTarget, Owner, Rights,
};
pub use path::{join, split};
pub use pattern::Pattern;
pub use reason::Reason;
pub use remove::{
    Candidate, Decision, Guard, RemovalPolicy, RemoveObserver, RemoveOptions, Removed, Tree, remove,
};
pub use search::{SearchOptions, SearchRoot, Searched, SearchedTree, search};
pub use selection::Selection;
/// The base of all observers here.
pub use stook_pool::Observer;
pub use summary::{Counts, Group, Ranking, SizeClass, SizeFigures, Summary, SummaryBuilder};
pub use walk::{Detail, Entry, Listing, Visitor, WalkOptions, walk};
