//! The guards: a timed scope, and the link from a helper thread to the scope that spawned it.
//!
//! Only the off path is inlined into callers: one relaxed load and a branch to enter, a branch to leave.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::node::{Callsite, Node};
use crate::position::{self, Open, Place};
use crate::registry::{ON, STATE};

/// Keeps a guard on the thread that made it.
type NotSend = PhantomData<*const ()>;

/// A timed section of code; it ends when this guard is dropped. Made by [`scope!`](crate::scope!).
///
/// Guards may be dropped in any order. One that is never dropped shows as running until its path is
/// timed again or its thread ends. A guard stays on its thread:
///
/// ```compile_fail,E0277
/// fn send(_: impl Send) {}
/// send(stook_timers::scope!("open"));
/// ```
#[derive(Debug)]
#[must_use = "the scope ends where this guard is dropped"]
pub struct Scope {
    open: Option<Open>,
    thread: NotSend,
}

impl Scope {
    /// Enters a scope; callers whose names are known only at run time keep their own [`Callsite`]s.
    #[inline]
    pub fn enter(callsite: &'static Callsite) -> Self {
        let state = STATE.load(Ordering::Relaxed);
        let open = if state & ON == 0 {
            None
        } else {
            position::enter(callsite, state)
        };
        Self {
            open,
            thread: PhantomData,
        }
    }
}

impl Drop for Scope {
    #[inline]
    fn drop(&mut self) {
        if let Some(open) = self.open {
            position::leave(open);
        }
    }
}

/// Remembers the call path of one thread, for its helper threads.
#[derive(Debug, Clone)]
pub struct Spawner {
    path: Arc<[&'static Callsite]>,
    origin: Option<&'static Node>,
}

/// Remembers the calling thread's current path; outside all scopes, or while recording is off, there is
/// nothing to remember, and attaching changes nothing.
pub fn spawner() -> Spawner {
    let (path, origin) = if crate::is_enabled() {
        position::path()
    } else {
        (Vec::new(), None)
    };
    Spawner {
        path: path.into(),
        origin,
    }
}

impl Spawner {
    /// Hangs the calling thread's scopes under the remembered path until the guard is dropped.
    ///
    /// On the spawning thread itself, still in the same scope, this changes nothing: its scopes go
    /// there anyway, and count as the scope's own thread.
    ///
    /// # Cost
    /// One lookup for each scope of the path: attach once per thread or task, not per file.
    pub fn attach(&self) -> Attached {
        let state = STATE.load(Ordering::Relaxed);
        let place = if state & ON == 0 {
            None
        } else {
            position::attach(&self.path, self.origin, state)
        };
        Attached {
            place,
            thread: PhantomData,
        }
    }
}

/// Holds a thread under the path of the one that spawned it; made by [`Spawner::attach`].
#[derive(Debug)]
#[must_use = "the thread is detached where this guard is dropped"]
pub struct Attached {
    place: Option<Place>,
    thread: NotSend,
}

impl Drop for Attached {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            position::detach(place);
        }
    }
}
