//! Every store passes one contract; what only one of them has is tested beside it.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "tests make their own files, say what they skip, and fail loudly"
)]

mod contract;
mod directory;
mod globus;
mod hsi;
mod http;
mod kill;
mod s3;
mod ssh;
mod versitygw;
mod watch;
