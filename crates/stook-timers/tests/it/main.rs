//! The timers as their users see them: scopes in, reports out.
//!
//! The switch and the records belong to the whole process, so tests take turns.

mod cpu;
mod events;
mod guards;
mod limits;
mod paths;
mod reports;
mod threads;

use std::sync::{Mutex, MutexGuard, PoisonError};

use stook_timers::{Detail, Record, Report};

/// Gives one test at a time empty records and recording switched on.
fn turn() -> MutexGuard<'static, ()> {
    turn_with(Detail::Wall)
}

/// The same, with more than wall time.
fn turn_with(detail: Detail) -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    stook_timers::enable_with(detail);
    stook_timers::reset();
    turn
}

/// Draws a report as `name:calls` with children in brackets, in order of name.
fn shape(report: &Report) -> String {
    fn draw(records: &[Record]) -> String {
        let mut parts: Vec<_> = records
            .iter()
            .map(|record| match record.children.as_slice() {
                [] => format!("{}:{}", record.name, record.calls),
                children => format!("{}:{}({})", record.name, record.calls, draw(children)),
            })
            .collect();
        parts.sort();
        parts.join(" ")
    }
    draw(&report.roots)
}

/// Checks what holds for every record that no thread is writing.
fn assert_sound(records: &[Record]) {
    for record in records {
        assert!(record.own <= record.total, "{record:?}");
        assert_eq!(
            record.calls,
            record.histogram.iter().sum::<u64>(),
            "{record:?}"
        );
        assert_ne!(record.histogram.last(), Some(&0), "{record:?}");
        if record.calls > 0 {
            assert!(
                record.min <= record.mean() && record.mean() <= record.max,
                "{record:?}"
            );
            assert!(record.max <= record.total, "{record:?}");
        }
        assert_sound(&record.children);
    }
}
