//! Whole benches, as a program that uses the library runs them: every file here must be listed.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests make their own files, and fail by panicking"
)]

mod cache;
mod fs;
mod launcher;
#[path = "../../src/testing.rs"]
mod observer;
mod pair;
mod update;

use stook_bench::{Observer, Sample};
