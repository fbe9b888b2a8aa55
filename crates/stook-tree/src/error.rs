//! A failure of an operation on a tree.

use std::error::Error;
use std::fmt;
use std::io;

use stook_sys::{cause, display_bytes};

use crate::Reason;

/// Something in a tree that an operation failed on; the rest went on.
#[derive(Debug)]
pub struct TreeError {
    /// Its path, below the tree that is walked, or as the user would write it.
    pub path: Vec<u8>,
    /// What was tried, as a verb.
    pub operation: &'static str,
    /// Why it failed: what the system said, or a [`Reason`](crate::Reason).
    pub source: io::Error,
}

impl Clone for TreeError {
    /// Keeps the number of the system's error, or the reason.
    fn clone(&self) -> Self {
        let source = match (self.source.raw_os_error(), Reason::of(&self.source)) {
            (Some(number), _) => io::Error::from_raw_os_error(number),
            (None, Some(reason)) => reason.clone().into(),
            (None, None) => io::Error::new(self.source.kind(), self.source.to_string()),
        };
        Self {
            path: self.path.clone(),
            operation: self.operation,
            source,
        }
    }
}

impl fmt::Display for TreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, cause) = (display_bytes(&self.path), cause(&self.source));
        write!(f, "cannot {} `{path}`: {cause}", self.operation)
    }
}

impl Error for TreeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.source)
    }
}
