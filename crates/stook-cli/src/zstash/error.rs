//! What ends a command, printed as the Python exception that a script may look for.

use std::io;

use stook_archive::{ArchiveError, Cause, Failure};
use stook_store::{Advice, StoreError};
use stook_sys::{SysError, display_path};

use super::argparse::{display, repr};
use crate::exit::CliError;
use crate::hints;

/// What ends a command.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrontError {
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    #[error(transparent)]
    Sys(#[from] SysError),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What the rest of the program says.
    #[error("{0}")]
    Program(String),
    /// zstash raises this exception, with this text.
    #[error("{text}")]
    Raised { class: &'static str, text: String },
    /// stdout cannot be written.
    #[error("cannot write the output: {0}")]
    Output(io::Error),
    /// The user has ended the command.
    #[error("interrupted")]
    Interrupted,
}

impl From<CliError> for FrontError {
    fn from(error: CliError) -> Self {
        match error {
            CliError::Archive(error) => Self::Archive(error),
            CliError::Sys(error) => Self::Sys(error),
            CliError::Output(error) => Self::Output(error),
            other => Self::Program(other.text()),
        }
    }
}

impl FrontError {
    pub(crate) fn raised(class: &'static str, text: impl Into<String>) -> Self {
        Self::Raised {
            class,
            text: text.into(),
        }
    }

    /// Returns how to log in, if a login is what was missing.
    pub(crate) fn login_hint(&self) -> Option<String> {
        let (Self::Store(error) | Self::Archive(ArchiveError::Store(error))) = self else {
            return None;
        };
        let is_login = error.advice() == Advice::Login;
        is_login.then(|| hints::of_store(error)).flatten()
    }

    pub(crate) fn is_interruption(&self) -> bool {
        matches!(
            self,
            Self::Interrupted | Self::Archive(ArchiveError::Interrupted)
        )
    }

    /// Returns true if the reader of the output has gone.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Output(error) | Self::Archive(ArchiveError::Output(error))
            if error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// Returns the lines that Python prints of an exception that nobody has caught.
    pub(crate) fn traceback(&self) -> String {
        let (class, text) = match self {
            Self::Raised { class, text } => (*class, text.clone()),
            Self::Archive(ArchiveError::Sys(error)) | Self::Sys(error) => of_sys(error),
            other => ("RuntimeError", other.to_string()),
        };
        traceback(class, &text)
    }
}

fn of_sys(error: &SysError) -> (&'static str, String) {
    let path = display_path(&error.path);
    match error.source.raw_os_error() {
        Some(number) => of_errno(number, path.as_bytes()),
        None => ("OSError", error.to_string()),
    }
}

/// Returns the lines of an exception.
pub(crate) fn traceback(class: &str, text: &str) -> String {
    format!("Traceback (most recent call last):\n{class}: {text}")
}

/// Returns the lines that Python prints of a file that failed.
pub(crate) fn traceback_of(failure: &Failure) -> String {
    let (class, text) = match failure.cause.errno() {
        Some(number) => of_errno(number, &failure.path),
        None => ("Exception", said(&failure.cause)),
    };
    traceback(class, &text)
}

fn said(cause: &Cause) -> String {
    cause.to_string()
}

/// Returns class and text of the exception that Python makes of an error number.
fn of_errno(number: i32, path: &[u8]) -> (&'static str, String) {
    let class = match number {
        1 | 13 => "PermissionError",
        2 => "FileNotFoundError",
        4 => "InterruptedError",
        17 => "FileExistsError",
        20 => "NotADirectoryError",
        21 => "IsADirectoryError",
        110 => "TimeoutError",
        _ => "OSError",
    };
    let text = io::Error::from_raw_os_error(number).to_string();
    let text = text
        .rsplit_once(" (os error")
        .map_or(text.as_str(), |(text, _)| text);
    (class, format!("[Errno {number}] {text}: {}", repr(path)))
}

/// Returns the exception of a path that is not there.
pub(crate) fn not_found(path: &str) -> FrontError {
    let (class, text) = of_errno(2, path.as_bytes());
    FrontError::Raised { class, text }
}

/// Returns why something was left out.
pub(crate) fn skipped(path: &[u8], why: &str) -> String {
    format!("skipped {}: {why}", display(path))
}
