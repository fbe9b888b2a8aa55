//! Archives that are mounted for real, and the cache below them.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "tests make their own files, say what they skip, and fail loudly"
)]

mod ahead;
mod cache_archives;
mod cache_faults;
mod cache_processes;
mod cache_reads;
mod cache_scene;
mod compressed;
mod contents;
mod damage;
mod hostile;
mod scene;
mod trees;
mod users;
mod verifying;
