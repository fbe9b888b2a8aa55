//! Integration tests of the pool: order, budget, and every way in which a run may end early.
#![allow(
    clippy::unwrap_used,
    reason = "tests may panic outside test functions too"
)]

mod endings;
mod flow;
