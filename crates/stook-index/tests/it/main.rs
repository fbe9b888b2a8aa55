//! Integration tests of the index, in one binary.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests make their own files and fail loudly"
)]

mod absences;
mod checking;
mod fixtures;
mod hostile;
mod interrupted;
mod names;
mod opening;
mod python;
mod rebuilding;
mod recorded;
mod releases;
mod samples;
mod states;
mod storing;
