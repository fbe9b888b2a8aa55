//! Where a thread stands in its tree, and how entering and leaving scopes moves it.
//!
//! The hot path touches two thread-local words, a cache slot and one node; everything else is cold.
//! Guards may end in any order, or never. When a scope ends, the position is cut at its parent, so a
//! forgotten guard inside it does no harm; a guard that ends later than the scope around it still
//! records its time on its old path, but no longer moves the position.

use std::cell::{Cell, OnceCell};
use std::ptr;

use crate::clock;
use crate::node::{Callsite, Kind, Node};
use crate::registry::{self, CPU, DETAILS, EVENTS, Tree};

/// Slots of the cache from (parent, callsite) to node; enough for the loops of one phase.
const SLOTS: usize = 64;

/// An entered scope: what a guard has to remember.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Open {
    node: &'static Node,
    start: u64,
}

/// A place to come back to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    current: &'static Node,
    resume: Option<&'static Node>,
}

/// Has no destructor, so access needs no check and works to the very end of the thread.
struct Position {
    /// The innermost open scope; `None` before the first scope and after the thread's tree is gone.
    current: Cell<Option<&'static Node>>,
    /// The innermost scope that found room, while `current` is the place of the lost.
    resume: Cell<Option<&'static Node>>,
    /// The [`registry::STATE`] this thread's tree is good for.
    state: Cell<u32>,
    /// The thread's number since the last reset.
    thread: Cell<usize>,
    /// When the tree was last cleared.
    cleared_at: Cell<u64>,
    /// Holds `Timed` nodes only.
    recent: [Cell<Option<&'static Node>>; SLOTS],
}

/// The thread's tree, given back when the thread ends.
struct Seat(OnceCell<&'static Tree>);

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(tree) = self.0.take() {
            POSITION.with(Position::end);
            registry::leave(tree);
        }
    }
}

thread_local! {
    static POSITION: Position = const {
        Position {
            current: Cell::new(None),
            resume: Cell::new(None),
            state: Cell::new(0),
            thread: Cell::new(0),
            cleared_at: Cell::new(0),
            recent: [const { Cell::new(None) }; SLOTS],
        }
    };
    static SEAT: Seat = const { Seat(OnceCell::new()) };
}

/// Enters a scope, given the [`registry::STATE`] it saw; `None` if there is nothing to leave again.
pub(crate) fn enter(callsite: &'static Callsite, state: u32) -> Option<Open> {
    POSITION.with(|position| {
        let node = match position.recall(callsite, state) {
            Some(node) => node,
            None => position.locate(callsite, state)?,
        };
        position.current.set(Some(node));
        let start = node.open();
        if state & DETAILS != 0 {
            position.begin_detail(node, start, state);
        }
        Some(Open { node, start })
    })
}

/// Leaves a scope and records its time.
pub(crate) fn leave(open: Open) {
    let details = POSITION.with(|position| position.state.get() & DETAILS);
    if details != 0 {
        end_detail(open, details);
    }
    let elapsed = clock::nanoseconds(open.start, clock::now());
    let Open { node, start } = open;
    POSITION.with(|position| {
        let is_innermost = position
            .current
            .get()
            .is_some_and(|current| ptr::eq(current, node));
        if is_innermost && node.is_open_since(start) {
            position.current.set(node.parent());
            node.close();
            node.record(elapsed);
        } else {
            position.leave_out_of_order(open, elapsed);
        }
    });
}

/// Adds what was measured besides wall time.
///
/// The wall clock is read first at the start and last at the end: wall time encloses CPU time, and is never less
/// but by the rates of the two clocks.
#[cold]
fn end_detail(open: Open, details: u32) {
    let Open { node, start } = open;
    let detail = node.detail(start);
    if details & CPU != 0
        && let Some(cpu_start) = detail
    {
        node.record_cpu(clock::thread_cpu().saturating_sub(cpu_start));
    }
    if details & EVENTS != 0 && !node.is_lost() {
        let end = clock::now();
        with_own_tree(|tree| tree.events().end(detail, start, end));
    }
}

/// Calls `work` with this thread's tree, if it has one still.
fn with_own_tree(work: impl FnOnce(&'static Tree)) {
    if let Ok(Some(tree)) = SEAT.try_with(|seat| seat.0.get().copied()) {
        work(tree);
    }
}

/// Returns the callsites from the outermost scope to the current one, and its node; `None` outside
/// all scopes.
pub(crate) fn path() -> (Vec<&'static Callsite>, Option<&'static Node>) {
    let current = POSITION
        .with(|position| position.current.get())
        .filter(|current| current.parent().is_some() || current.is_lost());
    let scopes = current
        .into_iter()
        .flat_map(Node::path_upwards)
        .filter(|node| node.parent().is_some());
    let mut callsites: Vec<_> = scopes.map(Node::callsite).collect();
    callsites.reverse();
    (callsites, current)
}

/// Moves this thread under the path of another; returns the place to come back to, or `None` if
/// that path is empty, or the thread stands there already, or has no tree any more.
pub(crate) fn attach(
    path: &[&'static Callsite],
    origin: Option<&'static Node>,
    state: u32,
) -> Option<Place> {
    POSITION.with(|position| {
        let (tree, current) = position.settle(state)?;
        let origin = origin.filter(|origin| !ptr::eq(*origin, current))?;
        let mut node = (!origin.is_lost()).then_some(tree.root);
        for callsite in path {
            node = node.and_then(|node| tree.child(node, callsite, Kind::Prefix));
        }
        let place = Place {
            current,
            resume: position.resume.get(),
        };
        position.resume.set(None);
        position.current.set(Some(node.unwrap_or(tree.lost)));
        Some(place)
    })
}

/// Comes back from [`attach`], to the innermost scope of that place that is still open.
pub(crate) fn detach(place: Place) {
    POSITION.with(|position| {
        if position.current.get().is_none() {
            return;
        }
        let mut current = place.current;
        while let (true, false, Some(parent)) =
            (current.is_timed(), current.is_open(), current.parent())
        {
            current = parent;
        }
        position.current.set(Some(current));
        position.resume.set(place.resume);
    });
}

impl Position {
    #[cold]
    fn begin_detail(&self, node: &'static Node, start: u64, state: u32) {
        if node.is_lost() {
            return;
        }
        if state & EVENTS != 0 {
            with_own_tree(|tree| {
                let thread = self.thread.get();
                node.set_detail(tree.events().begin(node.callsite(), thread, start));
            });
        }
        if state & CPU != 0 {
            node.set_detail(clock::thread_cpu());
        }
    }

    /// Finds the node among those entered recently.
    #[inline]
    fn recall(&self, callsite: &'static Callsite, state: u32) -> Option<&'static Node> {
        let current = self.current.get()?;
        let node = self.slot(current, callsite).get()?;
        (self.state.get() == state && node.is_scope_of(callsite, current)).then_some(node)
    }

    /// Nodes are 640 bytes apart and callsites 16, hence the shifts.
    #[inline]
    fn slot(
        &self,
        parent: &'static Node,
        callsite: &'static Callsite,
    ) -> &Cell<Option<&'static Node>> {
        let hash = (ptr::from_ref(parent).addr() >> 7) ^ (ptr::from_ref(callsite).addr() >> 4);
        &self.recent[hash % SLOTS]
    }

    /// Finds or makes the node of a scope, or counts the scope as dropped.
    #[cold]
    fn locate(&self, callsite: &'static Callsite, state: u32) -> Option<&'static Node> {
        let Some((tree, current)) = self.settle(state) else {
            registry::drop_homeless();
            return None;
        };
        if current.is_lost() {
            tree.drop_one();
            return None;
        }
        if let Some(node) = tree.child(current, callsite, Kind::Timed) {
            self.slot(current, callsite).set(Some(node));
            return Some(node);
        }
        tree.drop_one();
        self.resume.set(Some(current));
        Some(tree.lost)
    }

    /// Makes sure this thread has a tree without records from before the last reset.
    fn settle(&self, state: u32) -> Option<(&'static Tree, &'static Node)> {
        let seat = |seat: &Seat| {
            let known = seat.0.get().copied();
            if let Some(tree) = known.filter(|_| self.state.get() == state) {
                return tree;
            }
            // The switch is read without ordering: it may show before the clock does.
            clock::calibrate();
            let (tree, state, thread) = registry::join(known);
            self.thread.set(thread);
            self.cleared_at.set(clock::now());
            self.state.set(state);
            seat.0.get_or_init(|| tree)
        };
        let tree = SEAT.try_with(seat).ok()?;
        let current = self.current.get().unwrap_or(tree.root);
        self.current.set(Some(current));
        Some((tree, current))
    }

    /// Ends a scope that is not the innermost one, or whose record was cleared or re-entered since.
    #[cold]
    fn leave_out_of_order(&self, open: Open, elapsed: u64) {
        let node = open.node;
        let Some(current) = self.current.get() else {
            return;
        };
        if node.is_lost() {
            if ptr::eq(current, node) && self.resume.get().is_some() {
                self.current.set(self.resume.take());
            }
            return;
        }
        if !node.is_reopened_since(open.start) {
            node.close();
            let innermost = self
                .resume
                .get()
                .filter(|_| current.is_lost())
                .unwrap_or(current);
            if innermost.path_upwards().any(|above| ptr::eq(above, node)) {
                self.current.set(node.parent());
            }
        }
        if open.start > self.cleared_at.get() {
            node.record(elapsed);
        }
    }

    /// Lets go of the tree, which another thread may take over.
    fn end(&self) {
        self.current.set(None);
        self.resume.set(None);
        self.state.set(0);
        for slot in &self.recent {
            slot.set(None);
        }
    }
}
