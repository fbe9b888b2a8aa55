//! Past the limits scopes are dropped and counted, and the rest stays right.

use std::thread;

use stook_timers::{Callsite, MAX_DEPTH, MAX_NODES, Scope, scope, snapshot, spawner};

use crate::{assert_sound, shape, turn};

fn descend(levels: u32) {
    let _scope = scope!("descend");
    if levels > 1 {
        descend(levels - 1);
    }
}

#[test]
fn scopes_nested_too_deep_are_dropped_and_counted() {
    let _turn = turn();
    for _ in 0..2 {
        descend(MAX_DEPTH + 10);
        drop(scope!("after"));
    }
    let report = snapshot();
    assert_eq!(report.dropped, 20);
    assert_eq!(report.at(&["after"]).map(|record| record.calls), Some(2));
    let deepest = ["descend"].repeat(MAX_DEPTH as usize);
    assert_eq!(
        report
            .at(&deepest)
            .map(|record| (record.calls, record.children.len())),
        Some((2, 0))
    );
    assert_sound(&report.roots);
}

#[test]
fn the_deepest_report_survives_json() {
    let _turn = turn();
    descend(MAX_DEPTH);
    let report = snapshot();
    assert_eq!(report.dropped, 0);
    assert_eq!(
        serde_json::from_str::<stook_timers::Report>(&report.json()).unwrap(),
        report
    );
}

/// Enters `count` scopes of the same name, each of them a callsite, hence a node, of its own.
fn enter_many(count: u64, inside: impl Fn()) {
    for _ in 0..count {
        let _scope = Scope::enter(Box::leak(Box::new(Callsite::new("many"))));
        inside();
    }
}

#[test]
fn scopes_beyond_the_room_of_a_thread_are_dropped_with_all_inside() {
    let _turn = turn();
    let inside = || drop(scope!("inside"));
    thread::spawn(move || {
        // `inside` is known at the top, and must not be found there from inside a dropped scope.
        inside();
        enter_many(MAX_NODES, || ());
        enter_many(10, inside);
        inside();
        let spawner = spawner();
        let _dropped = Scope::enter(Box::leak(Box::new(Callsite::new("many"))));
        let lost = stook_timers::spawner();
        thread::spawn(move || {
            let attached = lost.attach();
            inside();
            drop(attached);
            let _attached = spawner.attach();
            inside();
        })
        .join()
        .unwrap();
    })
    .join()
    .unwrap();
    let report = snapshot();
    let many = report.at(&["many"]).unwrap();
    let inside = report.at(&["inside"]).unwrap();
    // A thread may start in the tree of a dead one, which holds paths of earlier tests.
    assert!(many.calls < MAX_NODES && many.calls >= MAX_NODES / 2 - 1);
    assert_eq!(many.calls + report.dropped, MAX_NODES + 10 + 10 + 1 + 1);
    assert_eq!(inside.calls, 3);
    assert!(many.children.is_empty());
    assert_sound(&report.roots);
}

#[test]
fn a_full_tree_is_not_handed_to_the_next_thread() {
    let _turn = turn();
    thread::spawn(|| enter_many(MAX_NODES + 1, || ()))
        .join()
        .unwrap();
    let dropped = snapshot().dropped;
    assert!(dropped >= 1);
    thread::spawn(|| enter_many(MAX_NODES / 2 - 1, || ()))
        .join()
        .unwrap();
    assert_eq!(snapshot().dropped, dropped);
    assert_eq!(
        shape(&snapshot()),
        format!("many:{}", MAX_NODES + 1 + MAX_NODES / 2 - 1 - dropped)
    );
}

#[test]
fn a_leaked_guard_without_room_is_cut_off_too() {
    let _turn = turn();
    thread::spawn(|| {
        let outer = || scope!("outer");
        drop(outer());
        enter_many(MAX_NODES, || ());
        {
            let _outer = outer();
            std::mem::forget(Scope::enter(Box::leak(Box::new(Callsite::new("many")))));
        }
        drop(outer());
    })
    .join()
    .unwrap();
    assert_eq!(
        snapshot().at(&["outer"]).map(|record| record.calls),
        Some(3)
    );
}

#[test]
fn dropped_scopes_take_no_room() {
    fn descend_to_many(levels: u32) {
        let _scope = scope!("descend");
        if levels > 1 {
            descend_to_many(levels - 1);
        } else {
            enter_many(MAX_NODES, || ());
        }
    }
    let _turn = turn();
    thread::spawn(|| {
        descend_to_many(MAX_DEPTH + 1);
        enter_many(MAX_NODES / 2 - 2 * u64::from(MAX_DEPTH), || ());
    })
    .join()
    .unwrap();
    let report = snapshot();
    assert_eq!(report.dropped, MAX_NODES + 1);
    assert_eq!(
        report.at(&["many"]).map(|record| record.calls),
        Some(MAX_NODES / 2 - 2 * u64::from(MAX_DEPTH))
    );
}
