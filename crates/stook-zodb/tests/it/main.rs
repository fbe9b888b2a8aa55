//! Databases made byte by byte, damaged in many ways, and compared with ZODB itself.
#![allow(clippy::disallowed_methods, reason = "tests make their own files")]

mod builder;
mod check;
mod golden;
mod reindex;
mod scan;
mod space;
