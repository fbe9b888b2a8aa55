//! Where the time of a command went, phase by phase.

use std::time::Duration;

use serde::Serialize;
use stook_sys::peak_memory;

use crate::number::{part, rate, rounded, size};

/// A finished phase.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Phase {
    name: &'static str,
    seconds: f64,
    /// Of the time of all phases, from 0 to 1.
    share: f64,
    entries: u64,
    bytes: u64,
    entries_per_second: f64,
    bytes_per_second: f64,
    peak_bytes: Option<u64>,
}

impl Phase {
    #[expect(
        clippy::cast_precision_loss,
        reason = "rates are shown with three digits"
    )]
    pub(crate) fn new(name: &'static str, elapsed: Duration, entries: u64, bytes: u64) -> Self {
        let seconds = elapsed.as_secs_f64();
        Self {
            name,
            seconds,
            share: 0.0,
            entries,
            bytes,
            entries_per_second: rate(entries as f64, seconds),
            bytes_per_second: rate(bytes as f64, seconds),
            peak_bytes: peak_memory(),
        }
    }
}

/// Completes the shares of all phases of a command.
pub(crate) fn with_shares(mut phases: Vec<Phase>) -> Vec<Phase> {
    let total: f64 = phases.iter().map(|phase| phase.seconds).sum();
    for phase in &mut phases {
        phase.share = part(phase.seconds, total);
    }
    phases
}

/// Returns the phases as a table for people.
pub(crate) fn phase_table(phases: &[Phase]) -> String {
    let mut lines = vec![format!(
        "{:<10} {:>9} {:>6} {:>11} {:>9} {:>10}",
        "phase", "seconds", "share", "files/s", "MB/s", "peak"
    )];
    for phase in phases {
        let peak = phase.peak_bytes.map_or_else(|| "-".to_owned(), size);
        lines.push(format!(
            "{:<10} {:>9.3} {:>4.0} % {:>11} {:>9.1} {:>10}",
            phase.name,
            phase.seconds,
            phase.share * 100.0,
            rounded(phase.entries_per_second),
            phase.bytes_per_second / 1e6,
            peak,
        ));
    }
    lines.join("\n")
}
