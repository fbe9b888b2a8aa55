//! `Data.fs.index`: the index as ZODB saves it, byte for byte.
//!
//! ```text
//!   80 03 <position> 2e                                              end of the last transaction that it has
//!   80 03 43 06 <prefix 6> 43 <len 1> | 42 <len 4, le> <bytes> 86 2e     for each prefix, in order
//!   80 03 4e 2e                                                      the end
//!
//!   position   4b u8 | 4d u16 le | 4a i32 le | 8a <len> number, little-endian two's complement
//!   bytes      suffix 2, for each object, in order; then its position 6, for each object
//! ```
//! These are pickles of protocol 3, of numbers, bytes and pairs; they are read as this format and as nothing else. A saved
//! index has no checksum, so all that can be tested without the file is: order, lengths, and that positions lie before
//! the end.

mod bytes;
mod lock;
mod read;
mod save;

pub use bytes::encode_index;
pub use lock::DatabaseLock;
pub(crate) use read::BucketReader;
pub use read::{SavedIndex, decode_index, read_index};
pub use save::{index_path, save_index};
