//! Records belong to call paths.

use std::time::{Duration, Instant};

use stook_timers::{disable, enable, is_enabled, scope, snapshot};

use crate::{assert_sound, shape, turn};

fn open() {
    let _scope = scope!("open");
}

fn spin(at_least: Duration) {
    let start = Instant::now();
    while start.elapsed() < at_least {
        std::hint::spin_loop();
    }
}

#[test]
fn nested_scopes_make_a_tree() {
    let _turn = turn();
    for _ in 0..3 {
        let _create = scope!("create");
        for _ in 0..2 {
            let _file = scope!("file");
            open();
        }
        open();
    }
    let report = snapshot();
    assert_eq!(shape(&report), "create:3(file:6(open:6) open:3)");
    assert_eq!((report.dropped, report.threads), (0, 1));
    assert_sound(&report.roots);
}

#[test]
fn one_scope_reached_by_two_paths_has_two_records() {
    let _turn = turn();
    {
        let _create = scope!("create");
        open();
    }
    {
        let _check = scope!("check");
        open();
        open();
    }
    open();
    assert_eq!(
        shape(&snapshot()),
        "check:1(open:2) create:1(open:1) open:1"
    );
}

#[test]
fn recursion_nests() {
    fn descend(levels: u32) {
        let _scope = scope!("descend");
        if levels > 1 {
            descend(levels - 1);
        }
    }
    let _turn = turn();
    descend(3);
    descend(2);
    let report = snapshot();
    assert_eq!(shape(&report), "descend:2(descend:2(descend:1))");
    assert_sound(&report.roots);
}

#[test]
fn callsites_of_one_name_share_a_record() {
    let _turn = turn();
    drop(scope!("read"));
    drop(scope!("read"));
    assert_eq!(shape(&snapshot()), "read:2");
}

#[test]
fn own_time_is_total_without_the_scopes_inside() {
    let _turn = turn();
    {
        let _outer = scope!("outer");
        spin(Duration::from_millis(2));
        let _inner = scope!("inner");
        spin(Duration::from_millis(3));
    }
    let report = snapshot();
    let (outer, inner) = (
        report.at(&["outer"]).unwrap(),
        report.at(&["outer", "inner"]).unwrap(),
    );
    assert_eq!(outer.own, outer.total.saturating_sub(inner.total));
    assert_eq!(inner.own, inner.total);
    // Half, because the tick rate is measured: this is about the unit.
    assert!(outer.own >= Duration::from_micros(1_000), "{outer:?}");
    assert!(inner.min >= Duration::from_micros(1_500), "{inner:?}");
}

#[test]
fn scopes_cost_nothing_in_the_report_when_off() {
    let _turn = turn();
    disable();
    assert!(!is_enabled());
    {
        let _create = scope!("create");
        open();
        std::thread::spawn(open).join().unwrap();
    }
    let report = snapshot();
    assert_eq!(
        (report.roots.len(), report.dropped, report.threads),
        (0, 0, 0)
    );
    enable();
    assert!(is_enabled());
}

#[test]
fn switching_on_inside_a_scope_records_the_scopes_inside() {
    let _turn = turn();
    disable();
    {
        let _create = scope!("create");
        enable();
        open();
    }
    open();
    assert_eq!(shape(&snapshot()), "open:2");
}

#[test]
fn switching_off_inside_a_scope_still_finishes_it() {
    let _turn = turn();
    {
        let _create = scope!("create");
        disable();
        open();
    }
    assert_eq!(shape(&snapshot()), "create:1");
    enable();
    open();
    assert_eq!(shape(&snapshot()), "create:1 open:1");
}
