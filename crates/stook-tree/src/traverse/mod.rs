//! The one way through a tree, under walk, remove and copy: which names there are, and which worker takes them.
//!
//! ```text
//!   task: a directory ──> enter: open it below its parent ──> its names (getdents64) ──┬─> few: each by this worker
//!                                                                                      ├─> many: a task for each chunk
//!                                                                                      ├─> an entry that is put off: a task
//!                                                                                      └─> a task for each directory
//!   last to leave a directory: leave, then the one above
//! ```
//! - Every name is reached relative to an open directory. As many directories stay open for what is below them as the
//!   process may have; of the others those used last are open, and a directory that is left opens the one above again
//!   (`recent.rs`). So a chain of any length takes as many system calls for a level as a short one. What is open nowhere
//!   near is opened from the nearest open one above.
//! - The youngest task is taken first, so that few directories are begun and not ended.
//! - Once the operation is interrupted, no task begins, no name is taken, and no directory is left: those that are then
//!   not done stay as they are.
//!
//! What is done about a directory and a name is up to the operation, a [`Traverse`]. No names are sorted here, and
//! nothing is printed or counted but units of work for the pool.

mod handles;
mod node;
mod recent;
mod stem;
mod task;

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use stook_pool::{Jobs, Tasks, WorkerPool, advance};

pub(crate) use handles::{DirectoryRef, HandleBudget, Handles, Identity};
pub(crate) use node::Node;
pub(crate) use task::{Found, Task, Waiting};

use crate::names::{Name, Names};
use recent::{Recent, STRIDE};
use task::{Chunk, SharedBatch};

/// Names that one task goes through; a directory of more is split. So 16,000 names are work for 128 workers, and to hand
/// over a chunk is still less than a hundredth of the work on it.
pub(crate) const CHUNK: usize = 128;

/// The same where workers have nothing to do while others wait for the storage: to hand over a chunk costs about as much as
/// the system calls for one name, and these take a tenth of its latency.
const SMALL_CHUNK: usize = 8;

/// Most names read at a time where a directory may be read in parts.
pub(crate) const MOST_NAMES: usize = 1 << 20;

/// What an operation does in a traversal, on several threads at once.
pub(crate) trait Traverse<'t>: Sized + Sync {
    /// What is open of a directory.
    type Open: Handles;
    /// What is known of a directory until it is left.
    type Data: Send + Sync;
    /// What is collected of names that were read together.
    type Collected: Send + Sync;
    /// What came of a few names, by one worker.
    type Step;

    /// Names between two calls of [`Self::end_step`].
    const STEP: usize;

    /// Returns true once the operation should end, and from then on.
    fn is_interrupted(&self) -> bool;

    /// Begins with the root of this number; returns the name that is to be entered, in the directory that holds it.
    fn begin_root(&self, _number: usize) -> Option<Waiting<'t, Self::Open, Self::Data>> {
        None
    }

    /// Enters a directory; None if nothing more is to be done about it.
    fn enter(
        &self,
        waiting: &Waiting<'t, Self::Open, Self::Data>,
    ) -> Option<Entered<Self::Open, Self::Data>>;

    /// Returns how many names of a directory are read at a time, about.
    fn most_names(&self, _node: &NodeOf<'t, Self>) -> usize {
        MOST_NAMES
    }

    /// Names could not be read; returns true if those that were are to be gone through.
    fn list_failed(&self, node: &NodeOf<'t, Self>, error: io::Error) -> bool;

    /// Begins with the names that were read; None if nothing is to be done about them, and the rest is not read.
    fn begin_names(
        &self,
        node: &NodeOf<'t, Self>,
        open: &Self::Open,
        names: &Names,
        part: Part,
    ) -> Option<Self::Collected>;

    /// Puts the names in the order in which they are taken; returns how many at the front are not to be split into
    /// chunks.
    fn order(&self, names: &mut Names) -> usize;

    /// Calls `run`, which goes through names, within a scope of the timers.
    fn timed(&self, run: impl FnOnce());

    /// Begins a step of so many names.
    fn begin_step(&self, names: usize) -> Self::Step;

    /// Takes one name. Directories go to `found`.
    fn entry(
        &self,
        at: &At<'_, 't, Self>,
        name: &Name,
        step: &mut Self::Step,
        found: &mut FoundOf<'t, Self>,
    );

    /// Ends a step.
    fn end_step(&self, at: &At<'_, 't, Self>, step: Self::Step);

    /// All names that were read together are done.
    fn end_names(
        &self,
        _node: &NodeOf<'t, Self>,
        _collected: Self::Collected,
        _bytes: Cow<'_, [u8]>,
    ) {
    }

    /// Takes an entry that was put off.
    fn late_entry(
        &self,
        _waiting: &Waiting<'t, Self::Open, Self::Data>,
        _found: &mut FoundOf<'t, Self>,
    ) {
    }

    /// All in a directory is done; returns the one above. `open` is what is open of it, unless it is kept open.
    fn leave(
        &self,
        node: NodeOf<'t, Self>,
        open: Option<Self::Open>,
        tasks: &TasksOf<'t, Self>,
    ) -> Option<Arc<NodeOf<'t, Self>>>;
}

pub(crate) type NodeOf<'t, W> = Node<'t, <W as Traverse<'t>>::Open, <W as Traverse<'t>>::Data>;
pub(crate) type FoundOf<'t, W> = Found<'t, <W as Traverse<'t>>::Open, <W as Traverse<'t>>::Data>;
pub(crate) type TaskOf<'t, W> =
    Task<'t, <W as Traverse<'t>>::Open, <W as Traverse<'t>>::Data, <W as Traverse<'t>>::Collected>;
pub(crate) type TasksOf<'t, W> = Tasks<TaskOf<'t, W>>;

/// A directory that was entered.
pub(crate) struct Entered<O, D> {
    pub(crate) open: O,
    pub(crate) data: D,
    /// False if what is in it is not gone through.
    pub(crate) is_listed: bool,
}

/// Which of the names of a directory were read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    pub(crate) is_first: bool,
    pub(crate) has_more: bool,
}

/// Where names are.
pub(crate) struct At<'a, 't, W: Traverse<'t>> {
    pub(crate) node: &'a Arc<NodeOf<'t, W>>,
    pub(crate) open: &'a W::Open,
    pub(crate) collected: &'a W::Collected,
    /// The bytes of the names.
    pub(crate) bytes: &'a [u8],
}

/// How to traverse.
pub(crate) struct TraverseOptions {
    /// For timings and traces.
    pub(crate) name: &'static str,
    pub(crate) jobs: Jobs,
    /// Files and directories that a worker has open at a time, besides those that are kept open.
    pub(crate) open_files: usize,
}

/// Runs the first tasks, the last of them first, and all that follow from them.
pub(crate) fn traverse<'t, W: Traverse<'t>>(
    work: &W,
    budget: &'t HandleBudget,
    options: &TraverseOptions,
    first: impl IntoIterator<Item = TaskOf<'t, W>>,
) {
    let is_interrupted = || work.is_interrupted();
    let traversal = Traversal {
        work,
        budget,
        recent: Recent::new(budget.most_recent),
    };
    WorkerPool::new(options.name, options.jobs)
        .at_most(budget.most_workers(options.open_files))
        .until(&is_interrupted)
        .recursive(first, |task, tasks| traversal.run(task, tasks));
}

struct Traversal<'a, 't, W: Traverse<'t>> {
    work: &'a W,
    budget: &'t HandleBudget,
    recent: Recent<W::Open>,
}

impl<'t, W: Traverse<'t>> Traversal<'_, 't, W> {
    fn run(&self, task: TaskOf<'t, W>, tasks: &TasksOf<'t, W>) {
        match task {
            Task::Root(number) => {
                tasks.extend(self.work.begin_root(number).map(Task::Directory));
            }
            Task::Directory(waiting) => self.run_directory(waiting, tasks),
            Task::Rest(node) => Names::with(|names| self.list(node, None, names, tasks)),
            Task::Chunk(chunk) => self.run_chunk(chunk, tasks),
            Task::Entry(waiting) => {
                self.come_near(&waiting.node);
                let mut found = Found::new();
                self.work.late_entry(&waiting, &mut found);
                self.hand_on(&waiting.node, found, tasks);
                self.leave(waiting.node, None, tasks);
            }
        }
    }

    fn run_directory(&self, waiting: Waiting<'t, W::Open, W::Data>, tasks: &TasksOf<'t, W>) {
        self.come_near(&waiting.node);
        let entered = self.work.enter(&waiting);
        let Waiting {
            node: parent, name, ..
        } = waiting;
        if let Some(Entered {
            open,
            data,
            is_listed,
        }) = entered
        {
            let node = Arc::new(Node::below(&parent, name, data));
            if is_listed {
                Names::with(|names| self.list(node, Some(open), names, tasks));
            } else {
                self.leave(node, Some(open), tasks);
            }
        }
        self.leave(parent, None, tasks);
    }

    /// Goes through the names of a directory that have not been read yet. Without `own`, the node keeps it open.
    fn list(
        &self,
        node: Arc<NodeOf<'t, W>>,
        mut own: Option<W::Open>,
        names: &mut Names,
        tasks: &TasksOf<'t, W>,
    ) {
        let mut found = Found::new();
        let mut is_first = true;
        while !self.work.is_interrupted()
            && let Some(open) = own.as_ref().or(node.open())
        {
            let read = names.read_up_to(open.listed(), self.work.most_names(&node));
            let has_more = match read {
                Ok(has_more) => has_more,
                Err(error) => {
                    if !self.work.list_failed(&node, error) {
                        break;
                    }
                    false
                }
            };
            let part = Part { is_first, has_more };
            let Some(collected) = self.work.begin_names(&node, open, names, part) else {
                break;
            };
            let unsplit = self.work.order(names);
            let splittable = names.all.len() - unsplit;
            if splittable > CHUNK || splittable > SMALL_CHUNK && tasks.is_wanted() {
                let kept = own.take().map(|open| node.keep_open(open, self.budget));
                match kept.unwrap_or(Ok(())) {
                    Ok(()) => {
                        let batch = SharedBatch {
                            bytes: std::mem::take(&mut names.bytes),
                            names: std::mem::take(&mut names.all),
                            collected,
                        };
                        return self.split(node, batch, unsplit, has_more, found, tasks);
                    }
                    Err(open) => own = Some(open),
                }
            }
            let Some(open) = own.as_ref().or(node.open()) else {
                break;
            };
            let at = At {
                node: &node,
                open,
                collected: &collected,
                bytes: &names.bytes,
            };
            self.go_through(&at, &names.all, &mut found);
            let bytes = Cow::Borrowed(names.bytes.as_slice());
            self.work.end_names(&node, collected, bytes);
            if !has_more {
                break;
            }
            is_first = false;
        }
        if !found.is_empty() {
            own = own.and_then(|open| node.keep_open_if_useful(open, self.budget).err());
            if let Some(open) = own.take() {
                self.recent.open(node.make_slot(), open);
            }
        }
        self.hand_on(&node, found, tasks);
        self.leave(node, own, tasks);
    }

    /// Makes tasks of the names of a large directory, which is kept open.
    fn split(
        &self,
        node: Arc<NodeOf<'t, W>>,
        mut batch: SharedBatch<W::Collected>,
        unsplit: usize,
        has_more: bool,
        mut found: FoundOf<'t, W>,
        tasks: &TasksOf<'t, W>,
    ) {
        let split = batch.names.split_off(unsplit);
        let unsplit = std::mem::replace(&mut batch.names, split);
        self.go_through_shared(&node, &batch, &unsplit, &mut found);
        drop(unsplit);
        let batch = Arc::new(batch);
        let rest = has_more.then(|| Task::Rest(Arc::clone(&node)));
        // Above the others: done before them, so that few directories are split at a time.
        let len = if tasks.is_wanted() {
            SMALL_CHUNK
        } else {
            CHUNK
        };
        let firsts = (0..batch.names.len()).step_by(len).rev();
        let chunks = firsts.map(|first| {
            Task::Chunk(Chunk {
                node: Arc::clone(&node),
                batch: Arc::clone(&batch),
                first,
                len,
            })
        });
        let new = rest.into_iter().chain(found.into_tasks(&node));
        tasks.extend(new.chain(chunks).collect::<Vec<_>>());
        // The others may be done with all of it by now.
        self.release(&node, batch);
        self.leave(node, None, tasks);
    }

    fn run_chunk(&self, chunk: Chunk<'t, W::Open, W::Data, W::Collected>, tasks: &TasksOf<'t, W>) {
        let Chunk {
            node,
            batch,
            first,
            len,
        } = chunk;
        let last = batch.names.len().min(first + len);
        let mut found = Found::new();
        self.go_through_shared(&node, &batch, &batch.names[first..last], &mut found);
        self.hand_on(&node, found, tasks);
        self.release(&node, batch);
        self.leave(node, None, tasks);
    }

    fn go_through_shared(
        &self,
        node: &Arc<NodeOf<'t, W>>,
        batch: &SharedBatch<W::Collected>,
        names: &[Name],
        found: &mut FoundOf<'t, W>,
    ) {
        let Some(open) = node.open() else {
            unreachable!("a directory that is split is kept open");
        };
        let at = At {
            node,
            open,
            collected: &batch.collected,
            bytes: &batch.bytes,
        };
        self.go_through(&at, names, found);
    }

    /// Every worker releases what it shared with others, and the last one ends it.
    fn release(&self, node: &NodeOf<'t, W>, batch: Arc<SharedBatch<W::Collected>>) {
        if let Some(batch) = Arc::into_inner(batch) {
            drop(batch.names);
            let bytes = Cow::Owned(batch.bytes);
            self.work.end_names(node, batch.collected, bytes);
        }
    }

    fn go_through(&self, at: &At<'_, 't, W>, names: &[Name], found: &mut FoundOf<'t, W>) {
        self.work.timed(|| {
            for names in names.chunks(W::STEP) {
                let mut step = self.work.begin_step(names.len());
                for name in names {
                    // Where each name takes long, a step must not be finished first.
                    if self.work.is_interrupted() {
                        break;
                    }
                    let before = found.len();
                    self.work.entry(at, name, &mut step, found);
                    // What is put off has cost nothing yet; its own task counts.
                    advance(u64::from(found.len() == before));
                }
                self.work.end_step(at, step);
            }
        });
    }

    fn hand_on(&self, node: &Arc<NodeOf<'t, W>>, found: FoundOf<'t, W>, tasks: &TasksOf<'t, W>) {
        if !found.is_empty() {
            tasks.extend(found.into_tasks(node).collect::<Vec<_>>());
        }
    }

    /// Leaves a directory; the last one to do so ends it, and leaves the one above.
    fn leave(&self, node: Arc<NodeOf<'t, W>>, open: Option<W::Open>, tasks: &TasksOf<'t, W>) {
        let mut leaving = Arc::into_inner(node).map(|node| (node, open));
        while let Some((node, open)) = leaving {
            // What is in it may not be done.
            if self.work.is_interrupted() {
                return;
            }
            self.open_above(&node, open.as_ref());
            let parent = self.work.leave(node, open, tasks);
            leaving = parent.and_then(Arc::into_inner).map(|node| (node, None));
        }
    }

    /// Opens directories on the way to one that is far from any open one.
    fn come_near(&self, node: &NodeOf<'t, W>) {
        let mut levels = node.levels_to_open();
        while levels > 2 * STRIDE
            && let Some((halfway, slot)) = node.way_up_beyond(levels / 2)
        {
            let (base, path) = halfway.nearest(b"");
            // Another worker opened it, or it fails: the one that needs it reports that.
            let Some(Ok(open)) = (!path.is_empty()).then(|| base.open_beneath(&path)) else {
                return;
            };
            self.recent.open(slot, open);
            // Others may close it at once.
            let before = std::mem::replace(&mut levels, node.levels_to_open());
            if levels >= before {
                return;
            }
        }
    }

    /// Opens one above a directory that is left, if it was open and is not any more.
    fn open_above(&self, node: &NodeOf<'t, W>, own: Option<&W::Open>) {
        let Some((slot, levels)) = node.way_up() else {
            return;
        };
        if slot.is_open() {
            return self.recent.touch(slot);
        }
        let opened = slot.identity_of_closed().and_then(|identity| {
            let above = |open: &W::Open| open.open_above(levels, &identity).ok().flatten();
            match own {
                Some(open) => above(open),
                None => above(&*node.open_now()?),
            }
        });
        match (opened, node.parent()) {
            (Some(above), _) => self.recent.open(slot, above),
            (None, Some(parent)) => self.come_near(parent),
            (None, None) => {}
        }
    }
}
