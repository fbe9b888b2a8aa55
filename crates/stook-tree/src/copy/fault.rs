//! Why an entry is not copied, and in which of the two trees that was.

use std::io;

use crate::Reason;
use crate::metadata::MetadataError;

/// One of the two trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Source,
    Copy,
}

/// Why an entry is not done.
#[derive(Debug)]
pub(super) enum Fault {
    Failed {
        side: Side,
        /// What was tried, as a verb.
        operation: &'static str,
        source: io::Error,
    },
    /// The user does not want to wait for it.
    Stopped,
}

/// Adds side and operation to a bare error.
pub(super) trait At<T> {
    fn at(self, side: Side, operation: &'static str) -> Result<T, Fault>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, side: Side, operation: &'static str) -> Result<T, Fault> {
        self.map_err(|source| Fault::new(side, operation, source))
    }
}

impl Fault {
    pub(super) fn new(side: Side, operation: &'static str, source: io::Error) -> Self {
        Self::Failed {
            side,
            operation,
            source,
        }
    }

    /// Returns a fault of an entry of the tree.
    pub(super) fn because(operation: &'static str, why: Reason) -> Self {
        Self::new(Side::Source, operation, why.into())
    }
}

impl From<MetadataError> for Fault {
    /// Metadata are set in the copy only.
    fn from(error: MetadataError) -> Self {
        Self::new(Side::Copy, error.operation, error.source)
    }
}

pub(super) const READ_ATTRIBUTES: &str = "read the attributes of";
