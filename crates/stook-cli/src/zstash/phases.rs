//! Where the time of a command went, for `-v`: always in one of six phases, so their parts make up all of it.

use std::fmt::Write;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use stook_sys::{peak_memory, reset_peak_memory};

use crate::mutex::lock;
use crate::number::{part, rate, rounded, size};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    OpenIndex,
    Gather,
    Compare,
    Plan,
    AddFiles,
    Commit,
}

/// In the order of the table.
const PHASES: [(Phase, &str); 6] = [
    (Phase::OpenIndex, "open index"),
    (Phase::Gather, "gather"),
    (Phase::Compare, "compare"),
    (Phase::Plan, "plan"),
    (Phase::AddFiles, "add files"),
    (Phase::Commit, "commit"),
];

#[derive(Debug, Clone, Copy, Default)]
struct Figures {
    time: Duration,
    files: u64,
    bytes: u64,
    peak: u64,
    current: u64,
}

#[derive(Debug)]
pub(crate) struct Phases {
    is_shown: bool,
    state: Mutex<State>,
    files: AtomicU64,
    bytes: AtomicU64,
    checked: AtomicU64,
    new: AtomicU64,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    begun: Instant,
    figures: [Figures; PHASES.len()],
}

impl Phases {
    pub(crate) fn new(is_shown: bool) -> Self {
        Self {
            is_shown,
            state: Mutex::new(State {
                phase: Phase::OpenIndex,
                begun: Instant::now(),
                figures: Default::default(),
            }),
            files: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            checked: AtomicU64::new(0),
            new: AtomicU64::new(0),
        }
    }

    /// Ends the phase that is under way, and begins one, for the first time or again.
    pub(crate) fn begin(&self, phase: Phase) {
        let mut state = lock(&self.state);
        let elapsed = state.begun.elapsed();
        let ended = state.phase as usize;
        let figures = &mut state.figures[ended];
        figures.time += elapsed;
        figures.files += self.files.swap(0, Relaxed);
        figures.bytes += self.bytes.swap(0, Relaxed);
        if self.is_shown {
            figures.peak = figures.peak.max(peak_memory().unwrap_or(0));
            figures.current = current_memory().unwrap_or(0);
            reset_peak_memory();
        }
        state.phase = phase;
        state.begun = Instant::now();
    }

    pub(crate) fn advance(&self, files: u64, bytes: u64) {
        self.files.fetch_add(files, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
    }

    /// How many files were compared or checked, and how many of them are new.
    pub(crate) fn count(&self, checked: u64, new: u64) {
        self.checked.fetch_add(checked, Relaxed);
        self.new.fetch_add(new, Relaxed);
    }

    /// Returns the table, if it is shown.
    pub(crate) fn table(&self) -> Option<String> {
        if !self.is_shown {
            return None;
        }
        self.begin(Phase::Commit);
        let figures = lock(&self.state).figures;
        let mut total = Figures::default();
        for row in &figures {
            total.time += row.time;
            total.files += row.files;
            total.bytes += row.bytes;
            total.peak = total.peak.max(row.peak);
            total.current = total.current.max(row.current);
        }
        total.current = current_memory().unwrap_or(total.current);
        let mut text = String::from(
            "phase          seconds   share     files/s       MB/s       peak    current\n",
        );
        let names = PHASES.iter().map(|(_, name)| *name);
        for (name, row) in names.zip(&figures).chain([("total", &total)]) {
            push_row(&mut text, name, row, total.time.as_secs_f64());
        }
        let (checked, new) = (self.checked.load(Relaxed), self.new.load(Relaxed));
        let _ = write!(text, "files checked: {checked}, new: {new}");
        Some(text)
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "rates are shown with three digits"
)]
fn push_row(text: &mut String, name: &str, row: &Figures, total: f64) {
    let seconds = row.time.as_secs_f64();
    let _ = writeln!(
        text,
        "{name:<12} {seconds:>9.3} {:>5.0} % {:>11} {:>10.1} {:>10} {:>10}",
        part(seconds, total) * 100.0,
        rounded(rate(row.files as f64, seconds)),
        rate(row.bytes as f64, seconds) / 1e6,
        size(row.peak),
        size(row.current),
    );
}

/// Returns the memory that the process holds; None where `/proc` is not there.
fn current_memory() -> Option<u64> {
    let text = stook_sys::read_text(Path::new("/proc/self/status")).ok()?;
    let line = text.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1024)
}
