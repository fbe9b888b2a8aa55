//! Integration tests: golden bytes, other programs, fixtures, damage.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod agreement;
mod fixtures;
mod format_page;
mod generate;
mod hostile;
mod interpreter;
mod programs;
mod round_trip;
mod salvage;
mod volume;
