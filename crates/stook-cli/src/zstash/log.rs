//! What is printed, as Python's `logging` does it: `LEVEL: message`, on stderr.
//!
//! A line for each of a million files would be a million writes, so those lines wait up to a tenth of a second; all others
//! come out at once, with what waits before them.

use std::io::{self, Write};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::mutex::lock;

/// How long lines about single files wait.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// Bytes that wait at most.
const MOST_WAITING: usize = 64 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    Debug,
    Info,
    Warning,
    Error,
    /// Without a level in front of it.
    Plain,
}

/// A line that was not printed yet.
pub(crate) type Line = (Level, String);

#[derive(Debug)]
pub(crate) struct Log {
    shows_debug: bool,
    /// Lines go to stdout, as those of zstash's workers.
    uses_stdout: bool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    waiting: Vec<u8>,
    written: Instant,
}

impl Log {
    pub(crate) fn new(shows_debug: bool) -> Self {
        Self::to(shows_debug, false)
    }

    /// Returns a log as several workers of zstash write it.
    pub(crate) fn of_workers() -> Self {
        Self::to(true, true)
    }

    fn to(shows_debug: bool, uses_stdout: bool) -> Self {
        Self {
            shows_debug,
            uses_stdout,
            state: Mutex::new(State {
                waiting: Vec::new(),
                written: Instant::now(),
            }),
        }
    }

    pub(crate) fn shows_debug(&self) -> bool {
        self.shows_debug
    }

    pub(crate) fn debug(&self, text: &str) {
        self.line(Level::Debug, text);
    }

    pub(crate) fn info(&self, text: &str) {
        self.line(Level::Info, text);
    }

    pub(crate) fn warning(&self, text: &str) {
        self.line(Level::Warning, text);
    }

    pub(crate) fn error(&self, text: &str) {
        self.line(Level::Error, text);
    }

    pub(crate) fn line(&self, level: Level, text: &str) {
        let mut state = lock(&self.state);
        self.push(&mut state, level, text);
        self.write(&mut state);
    }

    /// Prints a line about one of many files, or of what was kept.
    pub(crate) fn often(&self, level: Level, text: &str) {
        let mut state = lock(&self.state);
        self.push(&mut state, level, text);
        if state.waiting.len() >= MOST_WAITING || state.written.elapsed() >= LONGEST_WAIT {
            self.write(&mut state);
        }
    }

    pub(crate) fn lines(&self, lines: &[Line]) {
        for (level, text) in lines {
            self.often(*level, text);
        }
    }

    fn push(&self, state: &mut State, level: Level, text: &str) {
        let label = match level {
            Level::Debug if !self.shows_debug => return,
            Level::Debug => "DEBUG: ",
            Level::Info => "INFO: ",
            Level::Warning => "WARNING: ",
            Level::Error => "ERROR: ",
            Level::Plain => "",
        };
        state.waiting.extend_from_slice(label.as_bytes());
        state.waiting.extend_from_slice(text.as_bytes());
        state.waiting.push(b'\n');
    }

    fn write(&self, state: &mut State) {
        // Nowhere is left to say that the stream is gone.
        let _ = if self.uses_stdout {
            let mut stdout = io::stdout().lock();
            stdout
                .write_all(&state.waiting)
                .and_then(|()| stdout.flush())
        } else {
            io::stderr().lock().write_all(&state.waiting)
        };
        state.waiting.clear();
        state.written = Instant::now();
    }

    /// Writes what waits.
    pub(crate) fn flush(&self) {
        self.write(&mut lock(&self.state));
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.flush();
    }
}
