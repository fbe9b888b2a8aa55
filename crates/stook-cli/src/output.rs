//! What is printed: data on stdout, messages on stderr, each by one function.

use std::io::{self, StdoutLock, Write};
use std::sync::Mutex;

use serde::Serialize;

use crate::mutex::lock;

/// The progress bar that is on the screen, which must give way while a line is printed.
static BAR: Mutex<Option<indicatif::ProgressBar>> = Mutex::new(None);

/// Names the progress bar that messages must not run into.
pub(crate) fn set_bar(bar: Option<indicatif::ProgressBar>) {
    *lock(&BAR) = bar;
}

/// Prints a message.
pub(crate) fn message(text: &str) {
    let bar = lock(&BAR).clone();
    let print = || {
        // Nowhere is left to say that stderr is gone.
        let _ = writeln!(io::stderr().lock(), "{text}");
    };
    match bar {
        Some(bar) => bar.suspend(print),
        None => print(),
    }
}

/// Prints an error, and advice if there is some.
pub(crate) fn error(text: &str, hint: Option<&str>) {
    message(&format!("error: {text}"));
    if let Some(hint) = hint {
        message(&format!("hint: {hint}"));
    }
}

/// Fails if stdout cannot be written: Rust's own takes that for written.
pub(crate) fn require_stdout() -> io::Result<()> {
    if stook_sys::is_stdout_unwritable() {
        Err(io::Error::other("stdout is closed"))
    } else {
        Ok(())
    }
}

/// stdout, of which it is known if it cannot be written.
pub(crate) struct Stdout(StdoutLock<'static>);

impl Stdout {
    pub(crate) fn lock() -> Self {
        Self(io::stdout().lock())
    }
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        require_stdout()?;
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// stdout for data, buffered.
pub(crate) struct Data {
    out: io::BufWriter<Stdout>,
}

impl Data {
    pub(crate) fn new() -> Self {
        Self {
            out: io::BufWriter::with_capacity(64 << 10, Stdout::lock()),
        }
    }

    pub(crate) fn line(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())?;
        self.out.write_all(b"\n")
    }

    /// Prints lines that are ended already.
    pub(crate) fn text(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())
    }

    pub(crate) fn json(&mut self, value: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.out, value)?;
        self.out.write_all(b"\n")
    }

    pub(crate) fn bytes(&mut self) -> &mut impl Write {
        &mut self.out
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Prints one line of JSON at once.
pub(crate) fn line(line: &impl Serialize) -> io::Result<()> {
    let mut data = Data::new();
    data.json(line)?;
    data.flush()
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a String takes all");
        text
    })
}
