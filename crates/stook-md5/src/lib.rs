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
//! GB/s on one core of an AMD EPYC (Zen 4, 3.7 GHz), the best of many runs of `cargo bench -p stook-md5`:
//!
//! | kernel   | 1 stream | 2    | 3    | 8   | 16  | 32   | 600  | 600 small files |
//! |----------|----------|------|------|-----|-----|------|------|-----------------|
//! | avx512   | 0.91     | 1.74 | 2.60 | 6.7 | 9.5 | 12.5 | 12.0 | 9.3             |
//! | avx2     | 0.81     | 1.47 | 2.24 | 5.8 | 8.1 | 8.1  | 7.8  | 7.5             |
//! | portable | 0.81     | 1.45 | 2.17 | 4.2 | 4.2 | 4.2  | 4.0  | 4.0             |
//! | scalar   | 0.81     | 1.41 | 1.69 | 1.6 | 1.6 | 1.7  | 1.7  | 1.7             |
//! | crate `md-5`, one by one | 0.65 |  |    |     |     |      |      | 0.61            |
//!
//! Streams of 16,000 bytes; files of log-normal lengths, median 1.8 KB, mean 7.5 KB, the longest 227 KB. Nothing
//! is done before its longest stream, so the more of the bytes are in one stream, the less is gained.

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
