//! The directory that members are written into, kept open for the next one.

use stook_sys::{Directory, OpenPath};

/// The directory that was opened last: consecutive members are mostly in the same one, or near it.
#[derive(Debug)]
pub(in crate::extract) struct LastParent<'t> {
    pub(super) way: OpenPath<'t>,
    /// Of the last one on the way; `None` before the first one, and after a failure.
    pub(super) facts: Option<ParentFacts>,
}

/// What is known of an open directory that members are written into.
#[derive(Debug)]
pub(super) struct ParentFacts {
    pub(super) path: Vec<u8>,
    /// Nobody else can change what new files in it are like.
    pub(super) is_ours: bool,
    /// What is made in it gets an access control list that the archive does not know.
    pub(super) lends_lists: bool,
    pub(super) new_files: NewFiles,
}

/// The directory that a member belongs into.
pub(super) struct Parent<'l> {
    pub(super) directory: &'l Directory,
    pub(super) facts: &'l mut ParentFacts,
}

/// What new files of a directory are like, as seen on one: their group may come from the directory, their
/// mode from a default access control list. What is right from the start need not be set.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct NewFiles {
    pub(super) owner: Option<(u32, u32)>,
    /// A mode that a file gets as it was asked for.
    pub(super) exact_mode: Option<u32>,
}
