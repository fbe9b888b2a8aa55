//! Files with several names: the first name that is met gets the content, the others are links to it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Mutex;

use stook_sys::{FileId, lock};

use super::visitor::Later;

/// Files with several names, by file system and inode.
#[derive(Debug, Default)]
pub(super) struct Links<'h> {
    files: Mutex<HashMap<FileId, State<'h>>>,
    /// The same of a dry run.
    told: Mutex<HashMap<FileId, ToldFile>>,
}

/// A file of which a dry run has told of a name.
#[derive(Debug)]
struct ToldFile {
    /// What the first name was told with.
    kept: Option<FileId>,
    /// Names that have not come by yet.
    left: u32,
}

/// What a dry run knows of a file when it comes to one of its names.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// It is the first.
    First,
    /// It becomes one more name of the copy of the first, which is this file if it is kept as it is.
    Later(Option<FileId>),
}

#[derive(Debug)]
enum State<'h> {
    /// A worker copies it; these names wait for it.
    Copying(Vec<Later<'h>>),
    Copied {
        first: First,
        /// Names that have not come by yet.
        left: u32,
    },
}

/// Where the first copy is, below the root of the copy.
#[derive(Debug, Default, Clone)]
pub(super) struct First {
    pub(super) directory: Box<[u8]>,
    pub(super) name: Box<[u8]>,
}

/// What to do with a name.
#[derive(Debug)]
pub(super) enum Met {
    /// Copy it, and report it.
    First,
    /// Nothing: it comes again.
    Waits,
    /// Link it to this.
    Copied(First),
}

impl<'h> Links<'h> {
    /// Asks about one of the names of a file; `later` is called if it must wait.
    pub(super) fn meet(&self, id: FileId, later: impl FnOnce() -> Later<'h>) -> Met {
        let mut files = lock(&self.files);
        match files.entry(id) {
            Entry::Vacant(vacant) => {
                vacant.insert(State::Copying(Vec::new()));
                Met::First
            }
            Entry::Occupied(mut occupied) => match occupied.get_mut() {
                State::Copying(waiting) => {
                    waiting.push(later());
                    Met::Waits
                }
                State::Copied { first, left } => {
                    *left = left.saturating_sub(1);
                    let first = first.clone();
                    if *left == 0 {
                        occupied.remove();
                    }
                    Met::Copied(first)
                }
            },
        }
    }

    /// Of a dry run: asks about one of so many names of a file. `kept` is its copy if that stays as it is.
    pub(super) fn tell(&self, id: FileId, names: u32, kept: Option<FileId>) -> Told {
        match lock(&self.told).entry(id) {
            Entry::Vacant(vacant) => {
                let left = names.saturating_sub(1);
                vacant.insert(ToldFile { kept, left });
                Told::First
            }
            Entry::Occupied(mut occupied) => {
                let file = occupied.get_mut();
                file.left = file.left.saturating_sub(1);
                let first = file.kept;
                if file.left == 0 {
                    occupied.remove();
                }
                Told::Later(first)
            }
        }
    }

    /// The first of so many names is copied; returns the names that waited for it.
    pub(super) fn copied(&self, id: FileId, first: First, names: u32) -> Vec<Later<'h>> {
        let left = names.saturating_sub(1);
        let mut files = lock(&self.files);
        Self::waiting(files.insert(id, State::Copied { first, left }))
    }

    /// The first name could not be copied; returns the names that waited for it.
    pub(super) fn failed(&self, id: FileId) -> Vec<Later<'h>> {
        let mut files = lock(&self.files);
        Self::waiting(files.remove(&id))
    }

    fn waiting(state: Option<State<'h>>) -> Vec<Later<'h>> {
        match state {
            Some(State::Copying(waiting)) => waiting,
            _ => Vec::new(),
        }
    }
}
