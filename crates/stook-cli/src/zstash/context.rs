//! What all parts of one command share: its log, its phases, and whether the user has ended it.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};

use super::log::Log;
use super::messages;
use super::phases::Phases;
use crate::progress::asked_to_end;

/// How often the watcher looks for a signal.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How long a command may take to end by itself after the user has asked for it.
const GRACE: Duration = Duration::from_millis(700);

/// How long after a signal of a batch system, whose time is up: what was archived till then is saved.
const LONG_GRACE: Duration = Duration::from_secs(25);

pub(crate) struct Context {
    pub(crate) log: Log,
    pub(crate) phases: Phases,
    pub(crate) interrupted: Arc<AtomicBool>,
    /// Files failed, or damage was found.
    has_failed: AtomicBool,
}

impl Context {
    pub(crate) fn new(log: Log) -> Self {
        Self {
            phases: Phases::new(log.shows_debug()),
            log,
            interrupted: asked_to_end(),
            has_failed: AtomicBool::new(false),
        }
    }

    /// A signal asks to end; what has not ended a little later is ended. Nothing that was done is lost by that.
    pub(crate) fn watch_signals(&self) {
        let by_user = Arc::new(AtomicBool::new(false));
        // Without a handler the default holds, which ends at once.
        let _ = signal_hook::flag::register(SIGINT, Arc::clone(&by_user));
        for signal in [SIGINT, SIGTERM, SIGUSR1] {
            let _ = signal_hook::flag::register(signal, Arc::clone(&self.interrupted));
        }
        let interrupted = Arc::clone(&self.interrupted);
        let watch = move || {
            while !interrupted.load(Ordering::Relaxed) {
                std::thread::sleep(LOOK_EVERY);
            }
            let (begun, mut grace) = (Instant::now(), LONG_GRACE);
            while begun.elapsed() < grace {
                std::thread::sleep(LOOK_EVERY);
                if by_user.load(Ordering::Relaxed) {
                    grace = grace.min(GRACE);
                }
            }
            say_interrupted();
            signal_hook::low_level::exit(1);
        };
        // Without a thread the command ends by itself.
        let _ = std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(watch);
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    pub(crate) fn note_failure(&self) {
        self.has_failed.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }
}

/// Says that the user has ended the command, on stdout as zstash does.
pub(crate) fn say_interrupted() {
    let mut stdout = std::io::stdout().lock();
    // Nowhere is left to say that stdout is gone.
    let _ = writeln!(stdout, "{}", messages::INTERRUPTED).and_then(|()| stdout.flush());
}
