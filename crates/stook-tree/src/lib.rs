//! Walks trees and matches paths against patterns.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests make their own files")
)]

mod filter;
mod pattern;
mod walk;

pub use filter::Filter;
pub use pattern::Pattern;
pub use walk::{Detail, Entry, Listing, Visitor, WalkError, WalkOptions, walk};
