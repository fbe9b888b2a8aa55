//! Locks that outlive a panic: the thread that panicked has reported it.

pub(crate) use stook_sys::{into_inner, lock};
