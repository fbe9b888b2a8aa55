//! Whether there is free space for what a bench will make: refused beforehand rather than found out in its middle.

use std::path::Path;

use stook_sys::{display_path, free_space};

use crate::error::BenchError;
use crate::remedy::Remedy;

const MEGABYTE: u64 = 1_000_000;

/// What something takes of a file system.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Need {
    pub(crate) bytes: u64,
    pub(crate) inodes: u64,
}

impl Need {
    pub(crate) fn times(self, number: u64) -> Self {
        Self {
            bytes: self.bytes.saturating_mul(number),
            inodes: self.inodes.saturating_mul(number),
        }
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_add(other.bytes),
            inodes: self.inodes.saturating_add(other.inodes),
        }
    }

    /// Refuses what the file system at `place` has no free space for.
    ///
    /// # Errors
    /// [`BenchError::Refused`] with figures; [`BenchError::Sys`] if the file system does not tell.
    pub(crate) fn require(self, place: &Path, remedy: Remedy) -> Result<(), BenchError> {
        let free = free_space(place)?;
        let lacking = match free.inodes {
            _ if free.bytes < self.bytes => {
                let needed = self.bytes.div_ceil(MEGABYTE);
                (
                    format!("{needed} MB"),
                    format!("{} MB", free.bytes / MEGABYTE),
                )
            }
            Some(inodes) if inodes < self.inodes => (
                format!("{} inodes", self.inodes),
                format!("{inodes} inodes"),
            ),
            _ => return Ok(()),
        };
        let (place, (needed, left)) = (display_path(place), lacking);
        let what =
            format!("`{place}` has too little free space: {needed} are needed, {left} are free");
        Err(BenchError::refused_with(remedy, what))
    }
}
