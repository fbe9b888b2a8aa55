//! Tells the user what an operation tells: failures as they come, a bar on a terminal, and at the end
//! where the time went, phase by phase.

use std::io::IsTerminal;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use stook_archive::{Damage, Failure, IndexDamage, Interrupt, Note, Observer};
use stook_sys::{display_bytes, peak_memory, reset_peak_memory};

use crate::args::Common;
use crate::hints;
use crate::output::{self, Data, JsonPath, hex};

/// Time before a bar appears: what is over sooner needs none.
const BAR_DELAY: Duration = Duration::from_millis(250);

/// Redraws a second at most.
const BAR_HERTZ: u8 = 20;

pub(crate) struct Reporter {
    verbosity: Verbosity,
    is_json: bool,
    has_bar: bool,
    interrupted: Arc<AtomicBool>,
    entries: AtomicU64,
    bytes: AtomicU64,
    started: Instant,
    /// Milliseconds after `started` before which the bar is left alone.
    next_draw: AtomicU64,
    state: Mutex<State>,
}

/// How much is told besides data and errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Verbosity {
    /// Nothing.
    Quiet,
    /// What was done, in one line.
    Default,
    /// The phases, too.
    Phases,
    /// Every file, too.
    Files,
}

impl Verbosity {
    fn of(common: &Common) -> Self {
        match (common.quiet, common.verbose) {
            (true, _) => Self::Quiet,
            (false, 0) => Self::Default,
            (false, 1) => Self::Phases,
            (false, _) => Self::Files,
        }
    }
}

#[derive(Default)]
struct State {
    phases: Vec<Phase>,
    current: Option<(&'static str, Instant)>,
    bar: Option<Bar>,
    /// Advice that was printed.
    hints: Vec<&'static str>,
}

struct Bar {
    bar: ProgressBar,
    counts_bytes: bool,
}

/// A finished phase.
#[derive(Debug, Clone, Serialize)]
struct Phase {
    name: &'static str,
    seconds: f64,
    share: f64,
    files: u64,
    bytes: u64,
    files_per_second: f64,
    megabytes_per_second: f64,
    peak_memory_bytes: Option<u64>,
}

/// Whether this process was started to outlive its terminal, as by `nohup`.
///
/// # Source
/// `proc(5)`: `SigIgn` of `/proc/pid/status`, a hexadecimal mask whose first bit is signal 1.
fn is_hangup_ignored() -> bool {
    let status = stook_sys::read_text(Path::new("/proc/self/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 1 == 1)
}

impl Reporter {
    /// For an operation that asks whether it is to end.
    pub(crate) fn new(common: &Common) -> Self {
        let reporter = Self::without_signals(common);
        let interrupted = &reporter.interrupted;
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            // The first signal asks to end; a second one ends at once. Without a handler the default
            // holds, which ends at once, too.
            let _ = signal_hook::flag::register_conditional_shutdown(
                signal,
                130,
                Arc::clone(interrupted),
            );
            let _ = signal_hook::flag::register(signal, Arc::clone(interrupted));
        }
        if !is_hangup_ignored() {
            // The terminal is gone. Shell and kernel may both say so, so a second one must not end what is removed now.
            let hangup = signal_hook::consts::SIGHUP;
            let _ = signal_hook::flag::register(hangup, Arc::clone(interrupted));
        }
        reporter
    }

    /// For an operation that a signal may end at once.
    pub(crate) fn without_signals(common: &Common) -> Self {
        Self {
            verbosity: Verbosity::of(common),
            is_json: common.json,
            has_bar: !common.quiet && !common.no_progress && std::io::stderr().is_terminal(),
            interrupted: Arc::new(AtomicBool::new(false)),
            entries: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            started: Instant::now(),
            next_draw: AtomicU64::new(0),
            state: Mutex::default(),
        }
    }

    /// Prints one line that says what was done.
    pub(crate) fn summary(&self, text: &str) {
        if self.verbosity != Verbosity::Quiet {
            output::message(text);
        }
    }

    /// Ends the last phase; with `--verbose`, prints the table of phases.
    pub(crate) fn finish(&self) {
        let mut state = self.state();
        self.end_phase(&mut state);
        let phases = with_shares(std::mem::take(&mut state.phases));
        drop(state);
        if self.verbosity < Verbosity::Phases || phases.is_empty() {
            return;
        }
        if self.is_json {
            self.print_json(&serde_json::json!({ "type": "phases", "phases": phases }));
        } else {
            output::message(&phase_table(&phases));
        }
    }

    fn end_phase(&self, state: &mut State) {
        if let Some(Bar { bar, .. }) = state.bar.take() {
            bar.finish_and_clear();
            output::set_bar(None);
        }
        let (files, bytes) = (
            self.entries.swap(0, Ordering::Relaxed),
            self.bytes.swap(0, Ordering::Relaxed),
        );
        if let Some((name, started)) = state.current.take() {
            state
                .phases
                .push(Phase::new(name, started.elapsed(), files, bytes));
        }
    }

    fn begin_bar(
        &self,
        name: &'static str,
        entries: Option<u64>,
        bytes: Option<u64>,
    ) -> Option<Bar> {
        if !self.has_bar {
            return None;
        }
        let (total, counts_bytes) = match (entries, bytes) {
            (_, Some(bytes)) if bytes > 0 => (Some(bytes), true),
            (entries, _) => (entries, false),
        };
        let template = match (total.is_some(), counts_bytes) {
            (true, true) => {
                "{prefix} {wide_bar} {decimal_bytes}/{decimal_total_bytes}  {msg}  {decimal_bytes_per_sec}  {eta}"
            }
            (true, false) => "{prefix} {wide_bar} {human_pos}/{human_len}  {msg}  {per_sec}  {eta}",
            (false, _) => "{prefix} {human_pos} files  {msg}  {per_sec}  {elapsed}",
        };
        let style =
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden())
            .with_style(style)
            .with_prefix(name);
        output::set_bar(Some(bar.clone()));
        Some(Bar { bar, counts_bytes })
    }

    fn draw(&self) {
        // Looked at now and then only: a lock for every file would be felt.
        let now = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        if now < self.next_draw.load(Ordering::Relaxed) {
            return;
        }
        self.next_draw
            .store(now + 1000 / u64::from(BAR_HERTZ), Ordering::Relaxed);
        let entries = self.entries.load(Ordering::Relaxed);
        let Ok(state) = self.state.try_lock() else {
            return;
        };
        let (Some(Bar { bar, counts_bytes }), Some((_, started))) = (&state.bar, state.current)
        else {
            return;
        };
        if bar.is_hidden() && started.elapsed() >= BAR_DELAY {
            bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(BAR_HERTZ));
        }
        if *counts_bytes {
            bar.set_message(format!("{} files", crate::size::grouped(entries)));
            bar.set_position(self.bytes.load(Ordering::Relaxed));
        } else {
            bar.set_position(entries);
        }
    }

    fn print_json(&self, value: &impl Serialize) {
        let mut data = Data::new();
        // A reader that has gone needs no more lines; the end of the command tells other errors.
        let _ = data.json(value).and_then(|()| data.flush());
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prints advice, each piece once.
    pub(crate) fn advise(&self, hint: Option<&'static str>) {
        let Some(hint) = hint.filter(|_| self.verbosity != Verbosity::Quiet) else {
            return;
        };
        let mut state = self.state();
        if state.hints.contains(&hint) {
            return;
        }
        state.hints.push(hint);
        drop(state);
        output::message(&format!("hint: {hint}"));
    }

    /// Warns of a pattern that matches nothing.
    pub(crate) fn unmatched(&self, pattern: &[u8]) {
        if self.verbosity != Verbosity::Quiet {
            let pattern = display_bytes(pattern);
            output::message(&format!("warning: the pattern `{pattern}` matches nothing"));
        }
        self.unmatched_as_json(pattern);
    }

    /// Prints a pattern that matches nothing as JSON, if that was asked for.
    pub(crate) fn unmatched_as_json(&self, pattern: &[u8]) {
        if self.is_json {
            let text = String::from_utf8_lossy(pattern);
            self.print_json(&JsonEvent {
                kind: "unmatched",
                path: None,
                fields: serde_json::json!({ "pattern": text }),
            });
        }
    }

    /// Prints a failure as JSON, if that was asked for.
    pub(crate) fn failed_as_json(&self, failure: &Failure) {
        if self.is_json {
            let path = JsonPath::new(&failure.path);
            let Failure {
                operation, cause, ..
            } = failure;
            let fields = serde_json::json!({
                "operation": operation, "cause": cause.to_string(), "errno": cause.errno(),
            });
            self.print_json(&JsonEvent {
                kind: "failure",
                path: Some(path),
                fields,
            });
        }
    }
}

impl Observer for Reporter {
    fn phase(&self, name: &'static str, entries: Option<u64>, bytes: Option<u64>) {
        let mut state = self.state();
        self.end_phase(&mut state);
        reset_peak_memory();
        state.current = Some((name, Instant::now()));
        state.bar = self.begin_bar(name, entries, bytes);
    }

    fn advanced(&self, entries: u64, bytes: u64) {
        self.entries.fetch_add(entries, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if self.has_bar {
            self.draw();
        }
    }

    fn failed(&self, failure: &Failure) {
        output::error(&failure.to_string(), None);
        self.advise(hints::of_failure(&failure.cause));
        self.failed_as_json(failure);
    }

    fn skipped(&self, path: &[u8], why: &str) {
        if self.verbosity != Verbosity::Quiet {
            output::message(&format!("skipped `{}`: {why}", display_bytes(path)));
        }
        if self.is_json {
            self.print_json(&JsonEvent {
                kind: "skipped",
                path: Some(JsonPath::new(path)),
                fields: serde_json::json!({ "cause": why }),
            });
        }
    }

    fn damaged(&self, damage: &Damage) {
        output::error(&damage.to_string(), None);
        if self.is_json {
            let Damage {
                volume,
                offset,
                cause,
                ..
            } = damage;
            let fields = serde_json::json!({
                "volume": volume.to_string(), "offset": offset, "cause": cause.to_string(), "errno": cause.errno(),
            });
            let path = damage.member.as_deref().map(JsonPath::new);
            self.print_json(&JsonEvent {
                kind: "damage",
                path,
                fields,
            });
        }
    }

    fn index_damaged(&self, damage: &IndexDamage) {
        output::error(&damage.to_string(), None);
        if self.is_json {
            let IndexDamage {
                table,
                rows,
                column,
                what,
                ..
            } = damage;
            let rows = rows.as_ref().map(|rows| [*rows.start(), *rows.end()]);
            let fields = serde_json::json!({
                "index": true, "table": table, "rows": rows, "column": column, "cause": what.to_string(),
            });
            self.print_json(&JsonEvent {
                kind: "damage",
                path: damage.name.as_deref().map(JsonPath::new),
                fields,
            });
        }
    }

    fn noted(&self, text: &str) {
        if self.verbosity != Verbosity::Quiet {
            output::message(&format!("note: {text}"));
        }
        if self.is_json {
            self.print_json(&JsonEvent {
                kind: "note",
                path: None,
                fields: serde_json::json!({ "text": text }),
            });
        }
    }

    fn note(&self, note: &Note) {
        self.noted(&note.to_string());
        self.advise(hints::of_note(note));
    }

    fn done(&self, path: &[u8]) {
        if self.verbosity == Verbosity::Files && !self.is_json {
            output::message(&display_bytes(path));
        }
    }

    fn hashing_holes(&self, path: &[u8], done: u64, size: u64) {
        if !self.has_bar {
            return;
        }
        self.draw();
        let share = u128::from(done) * 100 / u128::from(size.max(1));
        if let Some(Bar { bar, .. }) = &self.state().bar {
            bar.set_message(format!("holes of `{}`: {share} %", display_bytes(path)));
        }
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    fn interrupt(&self) -> Interrupt {
        Arc::clone(&self.interrupted).into()
    }
}

/// One line of `--json`.
#[derive(Serialize)]
struct JsonEvent {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    path: Option<JsonPath>,
    #[serde(flatten)]
    fields: serde_json::Value,
}

/// Returns the MD5 as zstash prints it.
pub(crate) fn md5_text(md5: Option<[u8; 16]>) -> String {
    md5.map_or_else(|| "-".to_owned(), |md5| hex(&md5))
}

impl Phase {
    #[expect(
        clippy::cast_precision_loss,
        reason = "rates are shown with three digits"
    )]
    fn new(name: &'static str, elapsed: Duration, files: u64, bytes: u64) -> Self {
        let seconds = elapsed.as_secs_f64();
        let rate = |count: f64| if seconds > 0.0 { count / seconds } else { 0.0 };
        Self {
            name,
            seconds,
            share: 0.0,
            files,
            bytes,
            files_per_second: rate(files as f64),
            megabytes_per_second: rate(bytes as f64 / 1e6),
            peak_memory_bytes: peak_memory(),
        }
    }
}

fn with_shares(mut phases: Vec<Phase>) -> Vec<Phase> {
    let total: f64 = phases.iter().map(|phase| phase.seconds).sum();
    for phase in &mut phases {
        phase.share = if total > 0.0 {
            phase.seconds / total
        } else {
            0.0
        };
    }
    phases
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rates are positive and rounded"
)]
fn phase_table(phases: &[Phase]) -> String {
    let mut lines = vec![format!(
        "{:<10} {:>9} {:>6} {:>11} {:>9} {:>10}",
        "phase", "seconds", "share", "files/s", "MB/s", "peak"
    )];
    for phase in phases {
        let peak = phase
            .peak_memory_bytes
            .map_or_else(|| "-".to_owned(), crate::size::show);
        lines.push(format!(
            "{:<10} {:>9.3} {:>4.0} % {:>11} {:>9.1} {:>10}",
            phase.name,
            phase.seconds,
            phase.share * 100.0,
            crate::size::grouped(phase.files_per_second.round() as u64),
            phase.megabytes_per_second,
            peak,
        ));
    }
    lines.join("\n")
}
