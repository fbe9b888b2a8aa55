//! Call-path timers: where the time went, per path of nested scopes.
//!
//! Records belong to call paths, not to scopes, because "`open` is slow" helps nobody until it says
//! for whom. Each thread writes only its own records, with plain loads and stores; [`snapshot`] reads
//! them from outside at any moment, so a running program can be asked too. Records live until the
//! process ends. Sums only: there is no log of single events, but of the rare changes of a [`gauge`]; the
//! clock is wall time. In a tight loop a scope costs 0.3 ns off and 19 ns on, nested or not, as long as reading the clock
//! twice; a snapshot of 1000 records 0.15 ms (AMD EPYC Zen 4, 2 virtual CPUs, `benches/overhead.rs`).

#![forbid(unsafe_code)]

mod clock;
mod gauge;
mod merge;
mod node;
mod position;
mod registry;
mod report;
mod scope;
mod table;

pub use gauge::gauge;
pub use node::{Callsite, MAX_DEPTH, MAX_NODES};
pub use report::{Gauge, Record, Report};
pub use scope::{Attached, Scope, Spawner, spawner};

use std::sync::atomic::Ordering;

/// Times the code from here to the end of the returned guard's life under the given constant name.
///
/// The guard is a [`Scope`]; bind it to a name (`_scope`), since `_` alone drops it at once.
///
/// # Examples
/// ```
/// stook_timers::enable();
/// {
///     let _create = stook_timers::scope!("create");
///     let _open = stook_timers::scope!("open");
/// }
/// let report = stook_timers::snapshot();
/// assert_eq!(report.at(&["create", "open"]).map(|record| record.calls), Some(1));
/// ```
#[macro_export]
macro_rules! scope {
    ($name:expr) => {{
        static CALLSITE: $crate::Callsite = $crate::Callsite::new($name);
        $crate::Scope::enter(&CALLSITE)
    }};
}

/// Switches recording on, for all threads.
///
/// Scopes already open stay unrecorded; scopes inside them appear as if those were absent.
///
/// # Cost
/// The first call calibrates the clock: below 1 ms as a rule, 200 ms at most.
pub fn enable() {
    clock::calibrate();
    if !is_enabled() {
        gauge::begin_anew();
    }
    registry::STATE.fetch_or(registry::ON, Ordering::Relaxed);
}

/// Switches recording off. Scopes that are open finish their records.
pub fn disable() {
    registry::STATE.fetch_and(!registry::ON, Ordering::Relaxed);
}

/// Returns whether scopes entered now are recorded.
#[inline]
pub fn is_enabled() -> bool {
    registry::STATE.load(Ordering::Relaxed) & registry::ON != 0
}

/// Merges the records of all threads, dead and running.
///
/// Calls and histograms are exact for every thread that is not writing at this moment; of one that
/// is, a single call may be missing.
///
/// # Cost
/// About 150 ns for each record of each thread; the timed threads do not wait.
pub fn snapshot() -> Report {
    let (gauges, dropped_samples) = gauge::collect();
    Report {
        gauges,
        dropped_samples,
        ..registry::with_records(merge::merge)
    }
}

/// Forgets all records, on all threads. Scopes open at this moment are not recorded when they end,
/// yet stay part of the path of those inside them.
///
/// # Cost
/// A thread clears its own records when it next enters a scope; until then they are just ignored.
pub fn reset() {
    gauge::begin_anew();
    registry::reset();
}
