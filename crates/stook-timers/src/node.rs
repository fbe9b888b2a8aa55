//! One record of one thread: a call path's place in the thread's tree, and its numbers.
//!
//! ```text
//! root ─first_child─> create ─next_sibling─> check      owner: appends nodes, stores numbers
//!                       └─first_child─> open            reader: follows the links, loads numbers
//! ```
//! Nodes are leaked boxes: an address never goes away, so guards and readers hold plain references
//! without counting. [`MAX_NODES`] bounds the memory. Numbers have one writer, hence load and store
//! instead of read-modify-write. A `Node` knows nothing of the thread's current position.

use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::clock;

/// Most call paths one thread records; scopes beyond are counted as dropped. At 640 bytes each this
/// bounds a thread to 2.6 MB.
pub const MAX_NODES: u64 = 4096;

/// Deepest nesting recorded. JSON readers stop at 128 levels, and a record takes two.
pub const MAX_DEPTH: u32 = 60;

/// One bucket for each power of two nanoseconds a `u64` can hold.
pub(crate) const BUCKETS: usize = 64;

/// [`Node::opened_at`] of a node no guard holds open.
const CLOSED: u64 = 0;
/// [`Node::opened_at`] of a node entered before the last reset and not left yet.
const FORGOTTEN: u64 = 1;

/// A place in the source that opens a scope; made by [`scope!`](crate::scope!).
#[derive(Debug)]
pub struct Callsite {
    name: &'static str,
}

impl Callsite {
    /// Names a place. Callsites of equal name on the same path share one record in reports.
    pub const fn new(name: &'static str) -> Self {
        Self { name }
    }

    /// Returns the name.
    pub const fn name(&self) -> &'static str {
        self.name
    }
}

/// [`Node::latest`] of a node without calls; no call takes 584 years.
const NO_CALL: u64 = u64::MAX;

/// What a node stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The top of a thread's tree.
    Root,
    /// A scope of this thread.
    Timed,
    /// A scope of the spawning thread, repeated so that this thread's scopes can hang under it.
    /// Apart from `Timed`, or its children would be taken out of the wrong scope's own time.
    Prefix,
    /// The place of scopes for which there is no room.
    Lost,
}

/// One record. Aligned so that threads never share a cache line.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Node {
    opened_at: AtomicU64,
    total: AtomicU64,
    min: AtomicU64,
    max: AtomicU64,
    /// CPU time of finished calls; stays 0 unless that is asked for.
    cpu: AtomicU64,
    /// What the latest entry is to remember on request: CPU time at its start, or its place in the log. Not
    /// in the guard, which would no longer fit into two registers: 28 ns a scope instead of 19 ns (Zen 4).
    detail: AtomicU64,
    /// Time of the latest call, which is not in `histogram` yet.
    latest: AtomicU64,
    callsite: &'static Callsite,
    parent: Option<&'static Node>,
    histogram: [AtomicU64; BUCKETS],
    first_child: OnceLock<&'static Node>,
    next_sibling: OnceLock<&'static Node>,
    kind: Kind,
    depth: u32,
}

/// The numbers of a node at one moment, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Numbers {
    /// Time of finished calls.
    pub(crate) total: u64,
    /// Time so far of a call that has not finished.
    pub(crate) running: Option<u64>,
    pub(crate) min: u64,
    pub(crate) max: u64,
    /// CPU time of finished calls.
    pub(crate) cpu: u64,
    pub(crate) histogram: [u64; BUCKETS],
}

impl Node {
    /// Makes a node outside any list of children: a root, or the place of the lost.
    pub(crate) fn leak_single(kind: Kind) -> &'static Self {
        static NAMELESS: Callsite = Callsite::new("");
        Self::leak(&NAMELESS, None, kind)
    }

    fn leak(
        callsite: &'static Callsite,
        parent: Option<&'static Self>,
        kind: Kind,
    ) -> &'static Self {
        Box::leak(Box::new(Self {
            opened_at: AtomicU64::new(CLOSED),
            total: AtomicU64::new(0),
            min: AtomicU64::new(u64::MAX),
            max: AtomicU64::new(0),
            cpu: AtomicU64::new(0),
            detail: AtomicU64::new(0),
            latest: AtomicU64::new(NO_CALL),
            callsite,
            parent,
            histogram: [const { AtomicU64::new(0) }; BUCKETS],
            first_child: OnceLock::new(),
            next_sibling: OnceLock::new(),
            kind,
            depth: parent.map_or(0, |parent| parent.depth + 1),
        }))
    }

    /// Returns the child of this callsite and kind, making it if `may_grow` allows.
    pub(crate) fn child(
        &'static self,
        callsite: &'static Callsite,
        kind: Kind,
        may_grow: impl FnOnce() -> bool,
    ) -> Option<&'static Self> {
        let mut link = &self.first_child;
        while let Some(node) = link.get() {
            if ptr::eq(node.callsite, callsite) && node.kind == kind {
                return Some(node);
            }
            link = &node.next_sibling;
        }
        (self.depth < MAX_DEPTH && may_grow())
            .then(|| *link.get_or_init(|| Self::leak(callsite, Some(self), kind)))
    }

    /// Returns whether this node has this callsite and parent, whatever its kind.
    #[inline]
    pub(crate) fn is_scope_of(&self, callsite: &'static Callsite, parent: &'static Self) -> bool {
        ptr::eq(self.callsite, callsite) && self.parent.is_some_and(|mine| ptr::eq(mine, parent))
    }

    #[inline]
    pub(crate) fn callsite(&self) -> &'static Callsite {
        self.callsite
    }

    #[inline]
    pub(crate) fn parent(&self) -> Option<&'static Self> {
        self.parent
    }

    #[inline]
    pub(crate) fn is_timed(&self) -> bool {
        self.kind == Kind::Timed
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.kind == Kind::Lost
    }

    /// Lists the children made so far, in order of first entry.
    pub(crate) fn children(&self) -> impl Iterator<Item = &'static Self> {
        std::iter::successors(self.first_child.get().copied(), |node| {
            node.next_sibling.get().copied()
        })
    }

    /// Lists this node and those above it, ending with the root.
    pub(crate) fn path_upwards(&'static self) -> impl Iterator<Item = &'static Self> {
        std::iter::successors(Some(self), |node| node.parent)
    }

    /// Calls `visit` for this node and all below it.
    pub(crate) fn each(&'static self, visit: &mut impl FnMut(&'static Self)) {
        visit(self);
        for child in self.children() {
            child.each(visit);
        }
    }
}

/// Writing: for the owning thread only.
impl Node {
    /// Marks the node as entered and returns the moment. The place of the lost is never marked, so
    /// that [`Node::is_open_since`] holds for real records only.
    #[inline]
    pub(crate) fn open(&self) -> u64 {
        let start = clock::now();
        if self.kind != Kind::Lost {
            self.opened_at.store(start, Ordering::Relaxed);
        }
        start
    }

    /// Returns whether the entry at `start` is the latest and still open.
    #[inline]
    pub(crate) fn is_open_since(&self, start: u64) -> bool {
        self.opened_at.load(Ordering::Relaxed) == start
    }

    /// Returns whether an entry later than the one at `start` is still open.
    pub(crate) fn is_reopened_since(&self, start: u64) -> bool {
        let opened_at = self.opened_at.load(Ordering::Relaxed);
        opened_at > FORGOTTEN && opened_at != start
    }

    /// Returns whether some guard holds the node open.
    pub(crate) fn is_open(&self) -> bool {
        self.opened_at.load(Ordering::Relaxed) != CLOSED
    }

    #[inline]
    pub(crate) fn close(&self) {
        self.opened_at.store(CLOSED, Ordering::Relaxed);
    }

    /// Remembers something for the entry just made.
    pub(crate) fn set_detail(&self, detail: u64) {
        self.detail.store(detail, Ordering::Relaxed);
    }

    /// Returns what the latest entry remembers, if that is the one at `start` and still open.
    pub(crate) fn detail(&self, start: u64) -> Option<u64> {
        self.is_open_since(start)
            .then(|| self.detail.load(Ordering::Relaxed))
    }

    /// Adds the CPU time of a finished call; to be followed by [`Node::record`].
    #[cold]
    pub(crate) fn record_cpu(&self, cpu: u64) {
        let cpu = self.cpu.load(Ordering::Relaxed).saturating_add(cpu);
        self.cpu.store(cpu, Ordering::Relaxed);
    }

    /// Adds one finished call: first what goes with it, the count last, so that a reader who sees the
    /// call counted sees it in the other numbers too, and no longer as running.
    ///
    /// The histogram is one call behind, as the processor seems to hold back the next reading of the
    /// clock until it knows the address of every store before: with the bucket of this call that
    /// address would depend on the clock itself, and a scope would cost 27 ns instead of 19 ns (Zen 4).
    #[inline]
    pub(crate) fn record(&self, elapsed: u64) {
        if elapsed < self.min.load(Ordering::Relaxed) {
            self.min.store(elapsed, Ordering::Relaxed);
        }
        if elapsed > self.max.load(Ordering::Relaxed) {
            self.max.store(elapsed, Ordering::Relaxed);
        }
        let total = self.total.load(Ordering::Relaxed).wrapping_add(elapsed);
        self.total.store(total, Ordering::Release);
        let previous = self.latest.load(Ordering::Relaxed);
        if previous != NO_CALL {
            let bucket = &self.histogram[bucket_of(previous)];
            bucket.store(bucket.load(Ordering::Relaxed) + 1, Ordering::Release);
        }
        self.latest.store(elapsed, Ordering::Release);
    }

    /// Zeroes the numbers; a node that is open stays so, but its call is forgotten.
    pub(crate) fn clear(&self) {
        if self.is_open() {
            self.opened_at.store(FORGOTTEN, Ordering::Relaxed);
        }
        self.total.store(0, Ordering::Relaxed);
        self.min.store(u64::MAX, Ordering::Relaxed);
        self.max.store(0, Ordering::Relaxed);
        self.cpu.store(0, Ordering::Relaxed);
        self.latest.store(NO_CALL, Ordering::Relaxed);
        for bucket in &self.histogram {
            bucket.store(0, Ordering::Relaxed);
        }
    }
}

/// Reading: from any thread.
impl Node {
    /// Returns the numbers as they stand at the moment `now`.
    ///
    /// Reads again while calls end in between, so that total and histogram belong to the same calls;
    /// under a stream of very short calls the last try has to do, and may be a few calls apart.
    pub(crate) fn numbers(&self, now: u64) -> Numbers {
        const TRIES: usize = 4;
        let mut numbers = self.load(now);
        for _ in 1..TRIES {
            if self.total.load(Ordering::Relaxed) == numbers.total {
                break;
            }
            numbers = self.load(now);
        }
        numbers
    }

    /// The fields in the reverse of the order `record` writes them.
    fn load(&self, now: u64) -> Numbers {
        let mut histogram =
            std::array::from_fn(|bucket| self.histogram[bucket].load(Ordering::Acquire));
        let latest = self.latest.load(Ordering::Acquire);
        if latest != NO_CALL {
            histogram[bucket_of(latest)] += 1;
        }
        let total = self.total.load(Ordering::Acquire);
        let opened_at = self.opened_at.load(Ordering::Relaxed);
        Numbers {
            total,
            running: (opened_at > FORGOTTEN).then(|| clock::nanoseconds(opened_at, now)),
            min: self.min.load(Ordering::Relaxed),
            max: self.max.load(Ordering::Relaxed),
            cpu: self.cpu.load(Ordering::Relaxed),
            histogram,
        }
    }
}

#[inline]
fn bucket_of(elapsed: u64) -> usize {
    (elapsed | 1).ilog2() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    static OPEN: Callsite = Callsite::new("open");
    static READ: Callsite = Callsite::new("read");

    #[test]
    fn a_child_is_made_once_for_each_callsite_and_kind() {
        let root = Node::leak_single(Kind::Root);
        let open = root.child(&OPEN, Kind::Timed, || true).unwrap();
        let read = root.child(&READ, Kind::Timed, || true).unwrap();
        let prefix = root.child(&OPEN, Kind::Prefix, || true).unwrap();
        assert!(ptr::eq(
            open,
            root.child(&OPEN, Kind::Timed, || false).unwrap()
        ));
        assert!(!ptr::eq(open, prefix));
        assert!(open.child(&OPEN, Kind::Timed, || false).is_none());
        let names: Vec<_> = root
            .children()
            .map(|child| child.callsite().name())
            .collect();
        assert_eq!(names, ["open", "read", "open"]);
        assert!(read.is_scope_of(&READ, root));
        assert!(!read.is_scope_of(&OPEN, root) && !read.is_scope_of(&READ, open));
    }

    #[test]
    fn depth_is_bounded() {
        let mut node = Node::leak_single(Kind::Root);
        for _ in 0..MAX_DEPTH {
            node = node.child(&OPEN, Kind::Timed, || true).unwrap();
        }
        assert!(node.child(&OPEN, Kind::Timed, || true).is_none());
    }

    #[test]
    fn calls_fall_into_the_bucket_of_their_power_of_two() {
        let node = Node::leak_single(Kind::Timed);
        for elapsed in [0, 1, 2, 3, 4, 1023, 1024, 1 << 63] {
            node.record(elapsed);
        }
        let numbers = node.numbers(clock::now());
        for (bucket, calls) in [(0, 2), (1, 2), (2, 1), (9, 1), (10, 1), (63, 1)] {
            assert_eq!(numbers.histogram[bucket], calls, "bucket {bucket}");
        }
        assert_eq!(numbers.histogram.iter().sum::<u64>(), 8);
        assert_eq!(
            (numbers.min, numbers.max, numbers.total),
            (0, 1 << 63, (1 << 63) + 2057)
        );
        assert_eq!(numbers.running, None);
    }

    #[test]
    fn clearing_an_open_node_forgets_its_call_but_not_that_it_is_open() {
        clock::calibrate();
        let node = Node::leak_single(Kind::Timed);
        let start = node.open();
        node.record(5);
        assert!(node.numbers(clock::now()).running.is_some());
        node.clear();
        assert!(node.is_open() && !node.is_open_since(start) && !node.is_reopened_since(start));
        let numbers = node.numbers(clock::now());
        assert_eq!((numbers.total, numbers.max, numbers.running), (0, 0, None));
    }
}
