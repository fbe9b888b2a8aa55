//! Which part of the metadata could not be set, and why.

use std::io;

/// The operation that may fail for want of room though there is some: for attributes it is small.
pub(crate) const SET_ATTRIBUTES: &str = "set the attributes of";

/// Part of the metadata could not be set.
#[derive(Debug)]
pub(crate) struct MetadataError {
    /// What was tried, as a verb.
    pub(crate) operation: &'static str,
    /// Why it failed.
    pub(crate) source: io::Error,
}

/// Adds the operation to a bare error.
pub(crate) trait During<T> {
    fn during(self, operation: &'static str) -> Result<T, MetadataError>;
}

impl<T> During<T> for io::Result<T> {
    fn during(self, operation: &'static str) -> Result<T, MetadataError> {
        self.map_err(|source| MetadataError { operation, source })
    }
}
