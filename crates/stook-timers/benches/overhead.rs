//! What a scope costs: switched off, on, nested, with details; and what reading the records costs.
//!
//! Each figure is for entering and leaving. A timer that shares the machine measures the machine, so
//! take the fastest column.

use divan::Bencher;
use stook_timers::{Callsite, Detail, Scope, scope};

fn main() {
    divan::main();
}

#[divan::bench(sample_size = 10_000)]
fn scope_off(bencher: Bencher<'_, '_>) {
    stook_timers::disable();
    bencher.bench_local(|| {
        let _scope = scope!("off");
    });
}

#[divan::bench(sample_size = 10_000)]
fn scope_on(bencher: Bencher<'_, '_>) {
    stook_timers::enable();
    bencher.bench_local(|| {
        let _scope = scope!("on");
    });
}

#[divan::bench(sample_size = 10_000)]
fn scope_on_3_deep(bencher: Bencher<'_, '_>) {
    stook_timers::enable();
    bencher.bench_local(|| {
        let _outer = scope!("outer");
        let _middle = scope!("middle");
        let _inner = scope!("inner");
    });
}

#[divan::bench(sample_size = 1_000)]
fn scope_on_with_cpu(bencher: Bencher<'_, '_>) {
    stook_timers::enable_with(Detail::Cpu);
    bencher.bench_local(|| {
        let _scope = scope!("cpu");
    });
}

#[divan::bench(sample_size = 100, sample_count = 100)]
fn scope_on_with_events(bencher: Bencher<'_, '_>) {
    stook_timers::enable_with(Detail::Events);
    stook_timers::reset();
    bencher.bench_local(|| {
        let _scope = scope!("event");
    });
}

#[divan::bench]
fn snapshot_of_1000_records(bencher: Bencher<'_, '_>) {
    stook_timers::enable();
    stook_timers::reset();
    make_1000_records();
    bencher.bench_local(stook_timers::snapshot);
}

/// Makes 10 paths, 9 below each of them, and 10 below each of those.
fn make_1000_records() {
    let callsites = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    let callsites = callsites.map(|name| &*Box::leak(Box::new(Callsite::new(name))));
    for phase in callsites {
        let _phase = Scope::enter(phase);
        for step in &callsites[1..] {
            let _step = Scope::enter(step);
            for call in callsites {
                drop(Scope::enter(call));
            }
        }
    }
}
