//! Tests against the `md-5` crate, with every kernel of this processor.
//!
//! STOOK_MD5_KERNEL=avx512|avx2|portable|scalar restricts them to one.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests read the environment, say what they skip, and fail loudly"
)]

mod choice;
mod each_kernel;
mod messages;
mod streams;
