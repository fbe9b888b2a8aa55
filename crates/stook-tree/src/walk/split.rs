//! A directory of many names: chunks of them are tasks of their own, and the last to be done makes the
//! listing.
//!
//! So one flat directory has as many workers as it has chunks. The names are looked at in the order of
//! their inodes: the inodes of a disk are read in blocks, each of them once then, and ahead.

use std::sync::{Arc, Mutex, PoisonError};

use stook_pool::Tasks;
use stook_sys::{FileKind, Metadata};

use super::listing::{Entry, Listing};
use super::look::Found;
use super::open::{Ancestor, Below, Opened};
use super::{Detail, Task, Visitor, Walk};
use crate::held::Held;
use crate::names::{Name, Names};

/// Names that one task looks at; a directory of more is split. So 16,000 names are work for 128 workers,
/// and to hand over a chunk is still less than a hundredth of the work on it.
const CHUNK: usize = 128;

/// A directory that several tasks look at.
pub(super) struct Split<'w> {
    parent: Arc<Held<'w>>,
    path: Vec<u8>,
    metadata: Metadata,
    ancestors: Option<Arc<Ancestor>>,
    bytes: Vec<u8>,
    names: Vec<Name>,
    done: Mutex<Done>,
}

/// What its tasks have found so far.
struct Done {
    entries: Vec<Entry>,
    is_empty: bool,
}

/// Some of the names of a directory.
pub(super) struct Chunk<'w> {
    split: Arc<Split<'w>>,
    first: usize,
}

impl<V: Visitor> Walk<'_, V> {
    /// Makes tasks of the names of a large directory; gives any other one back.
    pub(super) fn split<'w>(
        &'w self,
        opened: Opened,
        names: &mut Names,
        tasks: &Tasks<Task<'w>>,
    ) -> Result<(), Opened> {
        if names.all.len() <= CHUNK || self.options.detail == Detail::Kinds {
            return Err(opened);
        }
        names.all.sort_unstable_by_key(|name| {
            let is_directory = name.kind == Some(FileKind::Directory);
            (!is_directory, name.inode)
        });
        let is_directory = |name: &Name| name.kind == Some(FileKind::Directory);
        let directories = names.all.partition_point(is_directory);
        if names.all.len() - directories <= CHUNK {
            return Err(opened);
        }
        let Opened {
            directory,
            path,
            metadata,
            ancestors,
        } = opened;
        let parent = match self.openings.hold(directory) {
            Ok(parent) => Arc::new(parent),
            Err(directory) => {
                return Err(Opened {
                    directory,
                    path,
                    metadata,
                    ancestors,
                });
            }
        };
        let mut found = Found::with_capacity(0);
        let bytes = std::mem::take(&mut names.bytes);
        let mut all = std::mem::take(&mut names.all);
        let first: Vec<Name> = all.drain(..directories).collect();
        self.look_at_all(&parent, &path, (&bytes, &first), &mut found);
        let split = Arc::new(Split {
            parent,
            path,
            metadata,
            ancestors,
            bytes,
            done: Mutex::new(Done {
                entries: Vec::with_capacity(all.len()),
                is_empty: found.is_empty,
            }),
            names: all,
        });
        tasks.extend(split.below().tasks(&mut found.subdirectories, &split.bytes));
        // Above the subdirectories: done before them, so that few directories are split at a time.
        let firsts = (0..split.names.len()).step_by(CHUNK).rev();
        tasks.extend(firsts.map(|first| {
            Task::Chunk(Chunk {
                split: Arc::clone(&split),
                first,
            })
        }));
        // The others may be done with all of it by now.
        self.leave(split);
        Ok(())
    }

    pub(super) fn run_chunk<'w>(&'w self, chunk: Chunk<'w>, tasks: &Tasks<Task<'w>>) {
        let Chunk { split, first } = chunk;
        let last = split.names.len().min(first + CHUNK);
        let names = &split.names[first..last];
        let mut found = Found::with_capacity(names.len());
        let directory = &split.parent;
        self.look_at_all(directory, &split.path, (&split.bytes, names), &mut found);
        // Of a file system that does not tell kinds with the names.
        if !found.subdirectories.is_empty() {
            tasks.extend(split.below().tasks(&mut found.subdirectories, &split.bytes));
        }
        split.add(&found);
        self.leave(split);
    }

    /// Every holder of a split directory leaves it so, and the last one hands it over.
    fn leave(&self, split: Arc<Split<'_>>) {
        if let Some(split) = Arc::into_inner(split) {
            self.hand_over(split.into_listing());
        }
    }
}

impl<'w> Split<'w> {
    fn below(&self) -> Below<'_, 'w> {
        Below {
            path: &self.path,
            parent: Some(&self.parent),
            ancestors: self.ancestors.as_ref(),
        }
    }

    fn add(&self, found: &Found) {
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        done.entries.extend_from_slice(&found.entries);
        done.is_empty &= found.is_empty;
    }

    fn into_listing(self) -> Listing {
        let done = self.done.into_inner();
        let Done { entries, is_empty } = done.unwrap_or_else(PoisonError::into_inner);
        let mut listing = Listing {
            path: self.path,
            metadata: self.metadata,
            entries,
            is_empty,
            names: self.bytes,
        };
        drop(self.names);
        listing.names.shrink_to_fit();
        listing
    }
}
