//! Goes through the pickles of a record for its class and its references; nothing is unpickled or imported.
//!
//! A record has two pickles: the class, or the class and the arguments of its constructor; and the state. They share their
//! memo. All protocols up to 5 are known, and zodbpickle's bytes in protocol 3. Strings are passed without reading them, so
//! a blob of 100 MB costs as much as a number.

mod input;
mod memo;
mod steps;
mod value;
mod walk;

pub(crate) use input::{Fault, Slice, Windowed};
pub(crate) use value::Reference;
pub(crate) use walk::Walker;

/// Why bytes are no pickle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PickleError {
    /// They end in the middle of it.
    #[error("it ends too early")]
    CutOff,
    /// A byte stands for no operation.
    #[error("0x{0:02x} is no operation of a pickle")]
    Operation(u8),
    /// It takes more values than it has made.
    #[error("it takes a value that it has not made")]
    Underflow,
    /// It refers to a value that it has not kept.
    #[error("it refers to value {0}, which it has not kept")]
    Memo(u64),
    /// A protocol that does not exist.
    #[error("it has protocol {0}")]
    Protocol(u8),
    /// A number of the text protocol that is none.
    #[error("it has a number that is none")]
    Number,
    /// More than a million values at a time.
    #[error("it has too many values at a time")]
    TooMany,
    /// Bytes behind the second pickle.
    #[error("{0} bytes follow the pickles")]
    Trailing(u64),
}

#[cfg(test)]
mod tests;
