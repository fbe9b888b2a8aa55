//! Guards that end in the wrong order, never, or across a reset.

use std::cell::RefCell;
use std::mem;

use proptest::prelude::*;
use stook_timers::{Callsite, Scope, reset, scope, snapshot};

use crate::{assert_sound, shape, turn};

#[test]
fn guards_may_end_in_any_order() {
    let _turn = turn();
    let outer = scope!("outer");
    let inner = scope!("inner");
    drop(outer);
    drop(scope!("after"));
    drop(inner);
    drop(scope!("last"));
    let report = snapshot();
    assert_eq!(shape(&report), "after:1 last:1 outer:1(inner:1)");
    assert_sound(&report.roots);
}

#[test]
fn a_leaked_guard_is_cut_off_when_the_scope_around_it_ends() {
    let _turn = turn();
    for _ in 0..2 {
        let _outer = scope!("outer");
        mem::forget(scope!("leaked"));
    }
    drop(scope!("after"));
    let report = snapshot();
    assert_eq!(shape(&report), "after:1 outer:2(leaked:0)");
    assert_eq!(
        report.at(&["outer", "leaked"]).map(|record| record.running),
        Some(1)
    );
}

#[test]
fn a_leaked_guard_stops_running_with_its_thread() {
    let _turn = turn();
    std::thread::spawn(|| mem::forget(scope!("leaked")))
        .join()
        .unwrap();
    assert_eq!(shape(&snapshot()), "");
}

#[test]
fn a_late_guard_leaves_a_later_one_of_the_same_path_open() {
    let _turn = turn();
    let enter = || scope!("outer");
    let inside = || scope!("inner");
    let outer = enter();
    let late = inside();
    drop(outer);
    let outer = enter();
    let inner = inside();
    drop(late);
    drop(scope!("leaf"));
    drop(inner);
    drop(outer);
    assert_eq!(shape(&snapshot()), "outer:2(inner:2(leaf:1))");
}

#[test]
fn reset_forgets_calls_but_not_the_path_they_are_on() {
    let _turn = turn();
    {
        let _outer = scope!("outer");
        drop(scope!("inner"));
        reset();
        assert_eq!(shape(&snapshot()), "");
        drop(scope!("inner"));
        assert_eq!(shape(&snapshot()), "outer:0(inner:1)");
    }
    drop(scope!("after"));
    let report = snapshot();
    assert_eq!(shape(&report), "after:1 outer:0(inner:1)");
    assert_eq!(report.at(&["outer"]).map(|record| record.running), Some(0));
    assert_eq!(report.threads, 1);
}

#[test]
fn a_scope_of_a_dying_thread_is_dropped_and_counted() {
    struct Farewell;
    impl Drop for Farewell {
        fn drop(&mut self) {
            drop(scope!("farewell"));
        }
    }
    thread_local! {
        static FAREWELL: RefCell<Option<Farewell>> = const { RefCell::new(None) };
    }
    let _turn = turn();
    let thread = std::thread::spawn(|| {
        // Thread-locals may end in any order; entered on both sides of the first scope, one comes after.
        FAREWELL.with(|farewell| farewell.replace(Some(Farewell)));
        drop(scope!("work"));
    });
    thread.join().unwrap();
    let report = snapshot();
    let recorded = report.at(&["farewell"]).map_or(0, |record| record.calls);
    assert_eq!(recorded + report.dropped, 1);
    assert_eq!(report.at(&["work"]).map(|record| record.calls), Some(1));
}

static NAMES: [Callsite; 4] = [
    Callsite::new("a"),
    Callsite::new("b"),
    Callsite::new("c"),
    Callsite::new("d"),
];

proptest! {
    /// Whatever is done to guards, every one dropped is recorded once, and afterwards a new scope is a root.
    #[test]
    fn every_dropped_guard_is_one_call(steps in prop::collection::vec((any::<bool>(), 0_usize..64), 1..64)) {
        let _turn = turn();
        let mut open = Vec::new();
        let mut entered = 0_u64;
        for (enter, which) in steps {
            if enter {
                open.push(Scope::enter(&NAMES[which % NAMES.len()]));
                entered += 1;
            } else if !open.is_empty() {
                drop(open.swap_remove(which % open.len()));
            }
        }
        while !open.is_empty() {
            drop(open.swap_remove(0));
        }
        drop(scope!("probe"));
        let report = snapshot();
        let mut calls = 0;
        let mut pending: Vec<_> = report.roots.iter().collect();
        while let Some(record) = pending.pop() {
            prop_assert_eq!(record.calls, record.histogram.iter().sum::<u64>());
            prop_assert_eq!(record.running, 0);
            calls += record.calls;
            pending.extend(&record.children);
        }
        prop_assert_eq!(calls, entered + 1);
        prop_assert_eq!(report.dropped, 0);
        prop_assert_eq!(report.at(&["probe"]).map(|record| record.calls), Some(1));
    }
}
