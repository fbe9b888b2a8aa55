//! What is done to each entry of a pair walk: making its copy, or comparing it with one. The walk knows the names, the
//! visitor what to do about them.

use std::sync::Arc;

use stook_sys::{Directory, FileKind, Metadata};

use super::fault::Fault;
use super::state::{DirectoryState, Pair, PairNode};
use crate::traverse::Waiting;

/// An entry that is visited later, by any worker.
pub(super) type Later<'t> = Waiting<'t, Pair, DirectoryState>;

/// What a pair walk does to each entry.
pub(super) trait PairVisitor<'h>: Sync {
    /// Gets the copy of a directory ready; None in a dry run, where there is none.
    fn enter(
        &self,
        entrance: &Entrance<'_, 'h>,
        source: &Directory,
        metadata: Metadata,
    ) -> Result<(Option<Directory>, DirectoryState), Fault>;

    /// Visits anything but a directory. What must wait is put into `later`.
    fn entry(&self, entry: &Entry<'_, 'h>, later: &mut Vec<Later<'h>>) -> Result<Outcome, Fault>;

    /// Ends a directory in which all is done; `copy` is its copy if that is open.
    fn leave(&self, node: &PairNode<'h>, copy: Option<Directory>) -> Result<(), Fault>;
}

/// A directory that is being entered, seen from the one above.
pub(super) struct Entrance<'e, 'h> {
    pub(super) parent: &'e PairNode<'h>,
    /// The copy of the one above.
    pub(super) copy: Option<&'e Directory>,
    pub(super) name: &'e [u8],
}

/// A name in a directory, and the name of its copy.
pub(super) struct Entry<'e, 'h> {
    pub(super) node: &'e Arc<PairNode<'h>>,
    pub(super) source: &'e Directory,
    /// None in a dry run, where there is none.
    pub(super) copy: Option<&'e Directory>,
    pub(super) name: &'e [u8],
    pub(super) new_name: &'e [u8],
    pub(super) kind: FileKind,
    /// True if a large file may be left to another worker.
    pub(super) may_wait: bool,
}

/// Larger files are tasks of their own, so that other workers take the small ones meanwhile.
const LARGE: u64 = 8 << 20;

impl<'h> Entry<'_, 'h> {
    /// Leaves a large file to another task; true if it did.
    pub(super) fn waits(&self, metadata: &Metadata, later: &mut Vec<Later<'h>>) -> bool {
        let waits = self.may_wait && metadata.kind == FileKind::File && metadata.size > LARGE;
        if waits {
            later.push(self.for_later());
        }
        waits
    }

    pub(super) fn for_later(&self) -> Later<'h> {
        Later::new(self.node, self.name)
    }
}

/// What became of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Done {
        bytes: u64,
        /// True if the bytes have been reported.
        is_reported: bool,
    },
    Unchanged,
    /// It is a directory after all.
    Directory,
    Later,
    Skipped(&'static str),
}
