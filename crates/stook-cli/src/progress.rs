//! Observes an operation for the user: failures as they come, a progress bar on a terminal, and at the end
//! where the time went, phase by phase.

use std::io::{ErrorKind, IsTerminal};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use stook_archive::{
    ArchiveError, BaseObserver, Damage, Failure, IndexDamage, Interrupt, Note, Observer, SkipReason,
};
use stook_sys::{display_bytes, reset_peak_memory};

use crate::args::Common;
use crate::exit::{CliError, Ending};
use crate::hints;
use crate::mutex::lock;
use crate::number::grouped;
use crate::output;
use crate::report::{
    Damaged, Failed, Line, Noted, Phase, Skipped, Summary, Unmatched, phase_table, with_shares,
};

/// Time before a bar appears: what is over sooner needs none.
const BAR_DELAY: Duration = Duration::from_millis(250);

/// How long an interrupted command waits for the reader of its output.
const READER_TIMEOUT: Duration = Duration::from_secs(2);

/// How often that is asked.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(100);

/// Redraws a second at most.
const BAR_HERTZ: u8 = 20;

/// Raised by a signal, for all that runs in this process.
static ASKED_TO_END: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Returns the flag that signals raise, of which there is one: stores are opened before there is a reporter.
pub(crate) fn asked_to_end() -> Arc<AtomicBool> {
    Arc::clone(ASKED_TO_END.get_or_init(Arc::default))
}

/// Returns true once a signal has asked a command to end that heeds it.
pub(crate) fn is_asked_to_end() -> bool {
    let asked = ASKED_TO_END.get();
    asked.is_some_and(|asked| asked.load(Ordering::Relaxed))
}

pub(crate) struct Reporter {
    verbosity: Verbosity,
    is_json: bool,
    has_bar: bool,
    interrupted: Arc<AtomicBool>,
    /// Raised by the signals of a batch system whose time is up.
    requeue: Arc<AtomicBool>,
    entries: AtomicU64,
    bytes: AtomicU64,
    started: Instant,
    /// Milliseconds after `started` before which the bar is left alone.
    next_draw: AtomicU64,
    state: Mutex<State>,
}

/// How much is printed besides data and errors.
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
        let reporter = Self {
            interrupted: asked_to_end(),
            ..Self::without_signals(common)
        };
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

    /// Has the signals of a batch system end the operation for it to be begun again.
    fn end_for_requeue(&self) {
        for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGUSR1] {
            for flag in [&self.requeue, &self.interrupted] {
                let _ = signal_hook::flag::register(signal, Arc::clone(flag));
            }
        }
    }

    /// Has the process end some time after a signal, whatever it does: a write that nobody reads waits for ever. Only for a
    /// command that leaves nothing half done.
    pub(crate) fn end_when_stalled(&self) {
        let interrupted = Arc::clone(&self.interrupted);
        let watch = move || {
            while !interrupted.load(Ordering::Relaxed) {
                std::thread::sleep(SIGNAL_INTERVAL);
            }
            std::thread::sleep(READER_TIMEOUT);
            signal_hook::low_level::exit(Ending::Interrupted.status().into());
        };
        // Without a thread it takes a second signal.
        let _ = std::thread::Builder::new()
            .name("stalled".to_owned())
            .spawn(watch);
    }

    /// For an operation that a signal may end at once.
    pub(crate) fn without_signals(common: &Common) -> Self {
        Self {
            verbosity: Verbosity::of(common),
            is_json: common.json,
            has_bar: !common.quiet && !common.no_progress && std::io::stderr().is_terminal(),
            interrupted: asked_to_end(),
            requeue: Arc::new(AtomicBool::new(false)),
            entries: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            started: Instant::now(),
            next_draw: AtomicU64::new(0),
            state: Mutex::default(),
        }
    }

    /// Ends the phases and prints what was done: one line of text, and one of JSON if that was asked for.
    ///
    /// # Errors
    /// If stdout cannot be written. A reader that has gone is none: the command has ended as it has.
    pub(crate) fn summary(&self, summary: Summary, text: &str) -> Result<(), CliError> {
        let printed = self.summary_line(summary);
        if self.verbosity != Verbosity::Quiet {
            output::message(text);
        }
        printed
    }

    /// As [`Reporter::summary`], without the text.
    pub(crate) fn summary_line(&self, summary: Summary) -> Result<(), CliError> {
        self.finish();
        if !self.is_json {
            return Ok(());
        }
        match output::line(&Line::Summary(summary)) {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Ends the last phase; with `--verbose`, prints the table of phases. A second call does nothing.
    pub(crate) fn finish(&self) {
        let mut state = self.state();
        self.end_phase(&mut state);
        let phases = with_shares(std::mem::take(&mut state.phases));
        drop(state);
        if phases.is_empty() {
            return;
        }
        if self.is_json {
            self.print_json(&Line::Phases { phases: &phases });
        } else {
            output::message(&phase_table(&phases));
        }
    }

    /// Only then the kernel is asked for the memory of each phase.
    pub(crate) fn shows_phases(&self) -> bool {
        self.verbosity >= Verbosity::Phases
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
        if let Some((name, started)) = state.current.take()
            && self.shows_phases()
        {
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
            bar.set_message(format!("{} files", grouped(entries)));
            bar.set_position(self.bytes.load(Ordering::Relaxed));
        } else {
            bar.set_position(entries);
        }
    }

    fn print_json(&self, line: &Line<'_>) {
        // A reader that has gone needs no more lines; other errors show up at the end of the command.
        let _ = output::line(line);
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn print_note(&self, text: &str, hint: Option<&'static str>) {
        if self.verbosity != Verbosity::Quiet {
            output::message(&format!("note: {text}"));
        }
        self.advise(hint);
        if self.is_json {
            self.print_json(&Line::Note(Noted { text, hint }));
        }
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
            let pattern = String::from_utf8_lossy(pattern).into_owned();
            self.print_json(&Line::Unmatched(Unmatched { pattern }));
        }
    }

    /// Prints that an entry is left out on purpose.
    pub(crate) fn left_out(&self, path: &[u8], why: &str) {
        if self.verbosity != Verbosity::Quiet {
            output::message(&format!("skipped `{}`: {why}", display_bytes(path)));
        }
        if self.is_json {
            self.print_json(&Line::Skipped(Skipped::new(path, why)));
        }
    }

    /// Prints a failure as JSON, if that was asked for.
    pub(crate) fn failed_as_json(&self, failure: &Failure) {
        if self.is_json {
            self.print_json(&Line::Failure(Failed::new(failure)));
        }
    }
}

impl BaseObserver for Reporter {
    type Failure = Failure;

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

    fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }
}

impl Observer for Reporter {
    fn phase(&self, name: &'static str, entries: Option<u64>, bytes: Option<u64>) {
        let mut state = self.state();
        self.end_phase(&mut state);
        if self.shows_phases() {
            reset_peak_memory();
        }
        state.current = Some((name, Instant::now()));
        state.bar = self.begin_bar(name, entries, bytes);
    }

    fn skipped(&self, path: &[u8], reason: SkipReason) {
        self.left_out(path, &reason.to_string());
    }

    fn damaged(&self, damage: &Damage) {
        output::error(&damage.to_string(), None);
        if self.is_json {
            self.print_json(&Line::Damage(Damaged::volume(damage)));
        }
    }

    fn index_damaged(&self, damage: &IndexDamage) {
        output::error(&damage.to_string(), None);
        self.advise(Some(hints::REINDEX));
        if self.is_json {
            self.print_json(&Line::Damage(Damaged::index(damage)));
        }
    }

    fn noted(&self, text: &str) {
        self.print_note(text, None);
    }

    fn note(&self, note: &Note) {
        self.print_note(&note.to_string(), hints::of_note(note));
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

    fn interrupt(&self) -> Interrupt {
        Arc::clone(&self.interrupted).into()
    }
}

/// Calls an operation with a reporter, and prints the phases however it ends.
pub(crate) fn observed<T, E>(
    common: &Common,
    operation: impl FnOnce(&Reporter) -> Result<T, E>,
) -> Result<(T, Reporter), CliError>
where
    CliError: From<E>,
{
    let reporter = Reporter::new(common);
    let result = operation(&reporter);
    reporter.finish();
    Ok((result?, reporter))
}

/// As [`observed`], for an operation that may send to a store: where it does, SIGTERM and SIGUSR1 end it with a status of
/// their own, by which a batch job knows that it is to be queued again.
pub(crate) fn observed_sending<T, E>(
    common: &Common,
    sends: bool,
    operation: impl FnOnce(&Reporter) -> Result<T, E>,
) -> Result<(T, Reporter), CliError>
where
    CliError: From<E>,
{
    let mut requeue = None;
    let result = observed(common, |reporter| {
        if sends {
            reporter.end_for_requeue();
            requeue = Some(Arc::clone(&reporter.requeue));
        }
        operation(reporter)
    });
    let is_requeue = requeue.is_some_and(|requeue| requeue.load(Ordering::Relaxed));
    match result {
        Err(CliError::Archive(ArchiveError::Interrupted)) if is_requeue => Err(CliError::Requeue),
        other => other,
    }
}
