//! Worker threads: a parallel loop, a parallel walk over growing work, and an ordered pipeline.
//!
//! All three are scoped: they return when every worker has ended, and a panic in a worker becomes a
//! panic of the caller. Timer scopes of the workers hang under the scope that started them.

mod ordered;
mod tasks;

pub use ordered::{Output, Weight, ordered};
pub use tasks::{Tasks, for_each, recursive};
