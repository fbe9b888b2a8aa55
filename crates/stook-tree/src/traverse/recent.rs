//! Directories that are too many to stay open, or too deep: those used last are open, and the way back up is `..`.
//!
//! A chain of directories may be longer than a process may have descriptors. To open what is far down by its path costs
//! as many steps as it is deep, and so for all of a chain the square of its length; checkpoints every so many levels
//! only divide that by their number. `fts`, under `rm`, keeps a ring of the last descriptors and goes up by `..`; `bfs`
//! keeps those used last in a cache, for all that wait. Here it is both:
//! - **Down**, a directory is still open when those in it are entered: it was used last. The oldest is closed for the
//!   youngest. They belong to no worker: the one that takes what is below finds it open.
//! - **Up**, a directory that is left opens one above by `../..` and so on, in one system call at any depth. Only one
//!   level in 16 is opened so, and `fts` does it for each: those between are opened by their names from there, if they
//!   are needed at all. It is done before the directory is left, which may end what leads up: nothing is above a directory
//!   that was removed, and nobody but its owner passes a copy of mode 700.
//! - **From afar**, as when one worker is at work far down and another one takes what waits above it level by level,
//!   directories on the way are opened: at half of it, at half of the rest and so on. The next ones that are reached are
//!   near one of those: with enough descriptors each takes steps by the logarithm of the length, not by the length.
//!
//! `..` leads elsewhere if somebody moved a directory meanwhile. So device and inode of such a level are noted when it is
//! closed, and compared with those of what `..` led to. If they differ, it is opened by its names from the nearest open
//! directory above, without links, as if `..` were not there: slow, but within the tree. A directory that has the same
//! numbers is the same one, or has taken the place of one that was removed meanwhile, and holds what is gone through: who
//! can do that can do to it whatever would be done here.

use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, Mutex};

use stook_sys::lock;

use super::handles::{Handles, Identity};

/// Levels from one that `..` leads to, to the next.
pub(super) const STRIDE: usize = 16;

/// Returns true if directories at this depth are opened by `..` when something below them is left.
pub(super) fn is_way_up(depth: usize) -> bool {
    depth.is_multiple_of(STRIDE)
}

/// Where a directory is open if it was used lately.
#[derive(Debug)]
pub(crate) struct Slot<O> {
    is_way_up: bool,
    content: Mutex<Content<O>>,
}

#[derive(Debug)]
enum Content<O> {
    Open(Arc<O>),
    /// None if it could not be looked at, is done, or is no way up.
    Closed(Option<Identity>),
}

impl<O> Slot<O> {
    pub(super) fn new(depth: usize) -> Self {
        Self {
            is_way_up: is_way_up(depth),
            content: Mutex::new(Content::Closed(None)),
        }
    }

    #[cfg(test)]
    pub(super) fn opened(open: O) -> Self {
        Self {
            is_way_up: true,
            content: Mutex::new(Content::Open(Arc::new(open))),
        }
    }

    pub(super) fn get(&self) -> Option<Arc<O>> {
        match &*lock(&self.content) {
            Content::Open(open) => Some(Arc::clone(open)),
            Content::Closed(_) => None,
        }
    }

    /// Returns what a closed directory was.
    pub(super) fn identity_of_closed(&self) -> Option<Identity> {
        match &*lock(&self.content) {
            Content::Open(_) => None,
            Content::Closed(identity) => *identity,
        }
    }

    pub(super) fn open(&self, open: Arc<O>) {
        self.replace(Content::Open(open));
    }

    /// Closes a directory that is done.
    pub(super) fn close(&self) {
        self.replace(Content::Closed(None));
    }

    fn replace(&self, content: Content<O>) {
        let before = mem::replace(&mut *lock(&self.content), content);
        // Not under the lock: to close may take long.
        drop(before);
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(&*lock(&self.content), Content::Open(_))
    }
}

impl<O: Handles> Slot<O> {
    /// Closes a directory that is needed again.
    fn close_for_now(&self) {
        if let Some(open) = self.get() {
            let identity = self.is_way_up.then(|| open.identity().ok());
            self.replace(Content::Closed(identity.flatten()));
        }
    }
}

/// The directories that were used last.
pub(super) struct Recent<O> {
    /// Descriptors at most.
    most: usize,
    queue: Mutex<Queue<O>>,
}

struct Queue<O> {
    /// The oldest first, each with its descriptors.
    slots: VecDeque<(Arc<Slot<O>>, usize)>,
    /// Descriptors of all of them.
    files: usize,
}

impl<O: Handles> Recent<O> {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            queue: Mutex::new(Queue {
                slots: VecDeque::new(),
                files: 0,
            }),
        }
    }

    /// Makes an open directory the one used last.
    pub(super) fn touch(&self, slot: &Arc<Slot<O>>) {
        let slots = &mut lock(&self.queue).slots;
        let place = slots
            .iter()
            .rposition(|(other, _)| Arc::ptr_eq(other, slot));
        if let Some(entry) = place.and_then(|place| slots.remove(place)) {
            slots.push_back(entry);
        }
    }

    /// Makes this directory the one used last, and closes those that are too many then.
    pub(super) fn open(&self, slot: &Arc<Slot<O>>, open: O) {
        let count = open.count();
        slot.open(Arc::new(open));
        let mut queue = lock(&self.queue);
        queue.remove_closed();
        queue.slots.push_back((Arc::clone(slot), count));
        queue.files += count;
        let mut oldest = Vec::new();
        while queue.files > self.most && queue.slots.len() > 1 {
            oldest.extend(queue.remove_oldest());
        }
        drop(queue);
        for slot in oldest {
            slot.close_for_now();
        }
    }
}

impl<O> Queue<O> {
    /// Those that are done were used last, in a tree that is gone through depth first.
    fn remove_closed(&mut self) {
        while let Some((slot, count)) = self.slots.back()
            && !slot.is_open()
        {
            self.files -= count;
            self.slots.pop_back();
        }
    }

    fn remove_oldest(&mut self) -> Option<Arc<Slot<O>>> {
        let (slot, count) = self.slots.pop_front()?;
        self.files -= count;
        Some(slot)
    }
}
