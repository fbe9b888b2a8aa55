//! Integration tests of the tree crate: patterns against Python's own, walks against an independent walker.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests make their own files, say what they skip, and may panic outside test functions too"
)]

mod copy;
mod copy_faults;
mod copy_rights;
mod copy_update;
mod copying;
mod deep;
mod large;
mod limits;
mod pattern;
mod recorder;
mod remove;
mod skips;
mod walk;
mod walk_faults;
