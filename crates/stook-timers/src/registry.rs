//! All threads' trees, dead and running, and the switch every scope looks at.
//!
//! A thread's tree outlives it: when the thread ends, the tree becomes vacant, records and all, and
//! the next new thread goes on adding to it. Memory thus follows the number of threads alive at the
//! same time, and nothing is copied when one ends. The lock is taken when a thread records for the first
//! time, when it ends, and by readers; never between.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::clock;
use crate::events::Events;
use crate::node::{Callsite, Kind, MAX_NODES, Node};

/// Bit 0: recording is on. Bits 1 and 2: what is measured besides wall time. The bits above: the number
/// of resets, so that one load tells a scope both whether and what to record, and whether the thread's
/// records are out of date.
pub(crate) static STATE: AtomicU32 = AtomicU32::new(0);
/// The bit of [`STATE`] that switches recording on.
pub(crate) const ON: u32 = 1;
/// The bit of [`STATE`] for CPU time.
pub(crate) const CPU: u32 = 2;
/// The bit of [`STATE`] for single calls.
pub(crate) const EVENTS: u32 = 4;
/// What costs more than the time of day.
pub(crate) const DETAILS: u32 = CPU | EVENTS;
const ONE_RESET: u32 = 8;

/// Scopes entered on threads too far in their end to have a tree.
static HOMELESS: AtomicU64 = AtomicU64::new(0);

static REGISTRY: Mutex<Registry> = Mutex::new(Registry {
    all: Vec::new(),
    vacant: Vec::new(),
    threads: 0,
    cpu_before: 0,
});

#[derive(Debug)]
struct Registry {
    all: Vec<&'static Tree>,
    vacant: Vec<&'static Tree>,
    threads: usize,
    /// CPU time of the process when records were last forgotten; 0 before, so that the start of the process counts.
    cpu_before: u64,
}

/// The records of one thread at a time.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) root: &'static Node,
    pub(crate) lost: &'static Node,
    nodes: AtomicU64,
    dropped: AtomicU64,
    resets: AtomicU32,
    events: Mutex<Events>,
}

/// What a reader gets to see while the registry is locked.
#[derive(Debug)]
pub(crate) struct Records<'a> {
    pub(crate) trees: &'a [&'static Tree],
    pub(crate) dropped: u64,
    /// CPU time of the process since records were last forgotten, if CPU time is measured.
    pub(crate) process_cpu: Option<u64>,
    pub(crate) threads: usize,
}

impl Tree {
    fn leak() -> &'static Self {
        Box::leak(Box::new(Self {
            root: Node::leak_single(Kind::Root),
            lost: Node::leak_single(Kind::Lost),
            nodes: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            resets: AtomicU32::new(0),
            events: Mutex::new(Events::EMPTY),
        }))
    }

    /// Locks the log of single calls; it has one writer, so there is hardly ever a wait.
    pub(crate) fn events(&self) -> MutexGuard<'_, Events> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the child of `parent`, or `None` if there is no room for another node.
    pub(crate) fn child(
        &self,
        parent: &'static Node,
        callsite: &'static Callsite,
        kind: Kind,
    ) -> Option<&'static Node> {
        parent.child(callsite, kind, || {
            let nodes = self.nodes.load(Ordering::Relaxed);
            let has_room = nodes < MAX_NODES;
            self.nodes
                .store(nodes + u64::from(has_room), Ordering::Relaxed);
            has_room
        })
    }

    /// Counts one scope for which there was no room.
    pub(crate) fn drop_one(&self) {
        self.dropped
            .store(self.dropped.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    fn clear(&self) {
        self.root.each(&mut Node::clear);
        self.dropped.store(0, Ordering::Relaxed);
        *self.events() = Events::EMPTY;
    }
}

fn lock() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Brings a thread's tree up to date with the last reset, finding it one if it has none yet; returns
/// the tree, the [`STATE`] it is good for, and the thread's number, from 1.
pub(crate) fn join(seat: Option<&'static Tree>) -> (&'static Tree, u32, usize) {
    let mut registry = lock();
    let tree = seat.unwrap_or_else(|| registry.seat());
    let state = STATE.load(Ordering::Relaxed) | ON;
    if tree.resets.load(Ordering::Relaxed) != state {
        tree.clear();
        tree.resets.store(state, Ordering::Relaxed);
    }
    registry.threads += 1;
    (tree, state, registry.threads)
}

impl Registry {
    fn forget(&mut self) {
        STATE.fetch_add(ONE_RESET, Ordering::Relaxed);
        HOMELESS.store(0, Ordering::Relaxed);
        self.threads = 0;
        self.cpu_before = clock::process_cpu();
    }

    /// Takes a vacant tree that has room for another thread's paths, or makes one.
    fn seat(&mut self) -> &'static Tree {
        let roomy = self
            .vacant
            .iter()
            .rposition(|tree| tree.nodes.load(Ordering::Relaxed) <= MAX_NODES / 2);
        roomy
            .map(|at| self.vacant.swap_remove(at))
            .unwrap_or_else(|| {
                let tree = Tree::leak();
                self.all.push(tree);
                tree
            })
    }
}

/// Takes back the tree of a thread that ends; scopes it never left count as not running.
pub(crate) fn leave(tree: &'static Tree) {
    tree.root.each(&mut Node::close);
    tree.events().end_all(clock::now());
    lock().vacant.push(tree);
}

/// Counts a scope of a thread that has already given its tree back.
pub(crate) fn drop_homeless() {
    HOMELESS.fetch_add(1, Ordering::Relaxed);
}

/// Switches recording on with these [`DETAILS`]; if they are other ones than before, present records are
/// out of date. Returns whether they are.
pub(crate) fn switch_on(details: u32) -> bool {
    let mut registry = lock();
    let has_changed = STATE.load(Ordering::Relaxed) & DETAILS != details;
    if has_changed {
        let (has_records, cpu_before) = (registry.threads > 0, registry.cpu_before);
        STATE.fetch_and(!DETAILS, Ordering::Relaxed);
        registry.forget();
        if !has_records {
            registry.cpu_before = cpu_before;
        }
    }
    STATE.fetch_or(details | ON, Ordering::Relaxed);
    has_changed
}

/// Makes all present records out of date.
pub(crate) fn reset() {
    lock().forget();
}

/// Shows the records since the last reset to `read`; no thread joins, ends or resets meanwhile.
pub(crate) fn with_records<T>(read: impl FnOnce(&Records<'_>) -> T) -> T {
    let registry = lock();
    let state = STATE.load(Ordering::Relaxed) | ON;
    let is_present = |tree: &&Tree| tree.resets.load(Ordering::Relaxed) == state;
    let trees: Vec<_> = registry.all.iter().copied().filter(is_present).collect();
    let dropped: u64 = trees
        .iter()
        .map(|tree| tree.dropped.load(Ordering::Relaxed))
        .sum();
    read(&Records {
        trees: &trees,
        dropped: dropped + HOMELESS.load(Ordering::Relaxed),
        process_cpu: (state & CPU != 0)
            .then(|| clock::process_cpu().saturating_sub(registry.cpu_before)),
        threads: registry.threads,
    })
}
