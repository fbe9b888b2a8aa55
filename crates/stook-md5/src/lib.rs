//! MD5 of many streams at once, one in each lane of the processor's vectors.
//!
//! One MD5 is a chain of dependent steps: it cannot be spread over anything, only its steps can be made
//! short. Streams that do not depend on each other run side by side. [`md5_many`] takes messages that are
//! there as a whole, [`update_many`] streams that arrive in pieces, [`Md5`] a single stream. A stream joins
//! a free lane at a block boundary and leaves it at another one, so streams of any lengths mix; the
//! functions used narrow down with the streams that are left.
//!
//! Which instructions are used is found out at run time, and may be [`select`]ed for all of the process.
//! The crate reads no environment, starts no threads, and offers no other digest.
//!
//! # Cost
//! GB/s on one core of an AMD EPYC (Zen 4, 3.7 GHz), best of many runs (`cargo bench -p stook-md5`):
//!
//! FIGURES

#[expect(
    unsafe_code,
    reason = "vector instructions, and loads through the pointers of lanes"
)]
mod kernel;
#[expect(unsafe_code, reason = "gives the kernels pointers to blocks")]
mod lanes;
mod stream;

pub use kernel::{Kernel, UnknownKernel, Unsupported, select};
pub use stream::{Feed, Md5, STATE_BYTES, md5_many, update_many};
