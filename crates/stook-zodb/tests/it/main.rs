//! Databases made byte by byte, damaged in many ways, and compared with ZODB itself.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests make their own files, and fail loudly"
)]

mod builder;
mod check;
mod golden;
mod reindex;
mod scan;
mod space;
