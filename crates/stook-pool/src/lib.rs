//! Worker threads, as many as the storage's latency asks for: a parallel loop, a parallel walk over growing
//! work, and an ordered pipeline with a byte budget.
//!
//! On a local disk two workers for two processors are enough; on a file system where every operation
//! waits a millisecond, 128 do sixty times as much. So a [`WorkerPool`] measures what its workers wait for while they run,
//! has as many as fill the processors, and keeps as many as pay: see `governor/mod.rs` for the law, `controller.rs` for the
//! figures it is fed. Every change is a sample of the gauge `workers` and a line of the trace.
//!
//! All three forms are scoped: they return when every worker has ended, and a panic in a worker becomes
//! a panic of the caller. A pool interrupted through [`WorkerPool::until`] drops the items that are left. Timer
//! scopes of the workers hang under the scope that started them.

#![forbid(unsafe_code)]

mod activity;
mod budget;
mod controller;
mod governor;
mod observer;
mod ordered;
mod tasks;
mod worker;
mod worker_pool;

pub use activity::advance;
pub use budget::{Budget, Reserved};
pub use observer::Observer;
pub use ordered::{Output, Weight};
pub use tasks::Tasks;
pub use worker_pool::{Jobs, MAX_WORKERS, NoThread, WorkerPool};
