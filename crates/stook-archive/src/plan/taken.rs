//! What was built of the parts, as a commit holds it: under names that no builder touches.
//!
//! ```text
//!   built-000003 ──> taken-000003 ──┬─> volume of the archive
//!        ^                 │        └─> damaged-000003: a builder builds the part again
//!        └── not committed ┘              (damaged-000003-2, if something of the user's has that name)
//! ```
//! A part may be built again at any time, in any process. Without a name of its own, what a commit has verified could be
//! replaced before it is committed.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use stook_sys::rename_to_new;

use super::directory::{PlanDirectory, remove_built};
use crate::ArchiveError;

pub(crate) struct TakenParts<'a> {
    directory: &'a PlanDirectory,
    pub(crate) parts: Vec<TakenPart>,
}

pub(crate) struct TakenPart {
    pub(crate) part: u32,
    pub(crate) path: PathBuf,
    /// Where it goes back to.
    pub(crate) origin: PathBuf,
}

impl<'a> TakenParts<'a> {
    /// Takes parts from where they were built. After an error they are there again.
    pub(crate) fn take(
        directory: &'a PlanDirectory,
        built: Vec<(u32, PathBuf)>,
    ) -> Result<Self, ArchiveError> {
        let parts = Vec::new();
        let mut taken = Self { directory, parts };
        for (part, found) in built {
            let path = directory.taken(part);
            let origin = if found == path {
                // A commit was killed, and where the part was built is lost.
                directory.built(part)
            } else {
                if let Err(error) = rename_to_new(&found, &path) {
                    taken.put_back(&BTreeSet::new())?;
                    return Err(error.into());
                }
                found
            };
            taken.parts.push(TakenPart { part, path, origin });
        }
        Ok(taken)
    }

    /// Lets go of the parts; those that are damaged get a name of their own, so that they are built again.
    ///
    /// # Errors
    /// `Sys` if one of these cannot be put aside, and would stop every commit. One that is sound and does not get its name
    /// back is found by the next commit.
    pub(crate) fn put_back(&self, damaged: &BTreeSet<&Path>) -> Result<(), ArchiveError> {
        for taken in &self.parts {
            if damaged.contains(&*self.directory.part(taken.part)) {
                self.put_aside(taken)?;
            } else {
                let _ = rename_to_new(&taken.path, &taken.origin);
            }
        }
        Ok(())
    }

    fn put_aside(&self, taken: &TakenPart) -> Result<(), ArchiveError> {
        let mut attempt = 1;
        loop {
            let aside = self.directory.damaged(taken.part, attempt);
            match rename_to_new(&taken.path, &aside) {
                Err(error) if error.source.kind() == io::ErrorKind::AlreadyExists => {
                    // Of an earlier commit, or the user's.
                    if !remove_built(&aside)? {
                        attempt += 1;
                    }
                }
                other => return Ok(other?),
            }
        }
    }
}
