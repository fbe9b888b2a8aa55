//! What was built of the parts, as a commit holds it: under names that no builder touches.
//!
//! ```text
//!   built-000003 ──> taken-000003 ──┬─> volume of the archive
//!        ^                 │        └─> damaged-000003: a builder builds the part again
//!        └── not committed ┘
//! ```
//! A part may be built again at any time, in any process. Without a name of its own, what a commit has verified could be
//! replaced before it is committed.

use std::collections::BTreeSet;
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
                    taken.put_back(&BTreeSet::new());
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
    /// Not an error if it fails: the next commit finds what is left.
    pub(crate) fn put_back(&self, damaged: &BTreeSet<&Path>) {
        for taken in &self.parts {
            if damaged.contains(&*self.directory.part(taken.part)) {
                let _ = set_aside(&taken.path, &self.directory.damaged(taken.part));
            } else {
                let _ = rename_to_new(&taken.path, &taken.origin);
            }
        }
    }
}

fn set_aside(path: &Path, aside: &Path) -> Result<(), ArchiveError> {
    if stook_sys::exists(aside)?.is_some() {
        remove_built(aside)?;
    }
    Ok(rename_to_new(path, aside)?)
}
