//! What goes wrong with a store: which operation, on which file, why, and what may help.

use std::io;

use stook_sys::{SysError, cause};

use crate::globus::EndpointError;

/// An operation of a store that failed.
///
/// Prints as ``cannot put `000001.tar` to `s3://bucket/run`: access denied``, or ``cannot list `s3://bucket/run`: ...``.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation} {}: {cause}", object(operation, file, store))]
pub struct StoreError {
    /// What was tried, as a verb: "put", "get", "list".
    pub operation: &'static str,
    /// The file it was tried on; empty where it is the whole place.
    pub file: String,
    /// The place, as [`Store::name`](crate::Store::name).
    pub store: String,
    /// Why it failed.
    #[source]
    pub cause: StoreCause,
}

fn object(operation: &str, file: &str, store: &str) -> String {
    let word = match operation {
        _ if file.is_empty() => return format!("`{store}`"),
        "put" => "to",
        "get" | "delete" => "from",
        _ => "in",
    };
    format!("`{file}` {word} `{store}`")
}

/// Why an operation failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreCause {
    /// A system call on this machine failed.
    #[error(transparent)]
    Sys(#[from] SysError),
    /// The connection failed, or the system call of a store that is a directory.
    #[error("{}", cause(.0))]
    Io(#[source] io::Error),
    /// It is not there.
    #[error("no such file")]
    NotFound,
    /// The place itself is not there: the bucket, say.
    #[error("no such place")]
    NoPlace,
    /// Another file is there already, or it was changed by somebody else.
    #[error("somebody else has changed it")]
    Exists,
    /// What arrived is not what was sent.
    #[error("what arrived is not what was sent: {0}")]
    Different(Difference),
    /// The file is not the one that it was when it was looked at.
    #[error("the file has changed in the store")]
    Changed,
    /// The name is no plain name.
    #[error("this is no name of a file")]
    Name,
    /// The store cannot hold a name with this character, or cannot be told it without danger.
    #[error("names there cannot have {0:?}")]
    Character(char),
    /// The store cannot read a part of a file.
    #[error("the store cannot read a part of a file")]
    NoRanges,
    /// The store cannot say what it holds.
    #[error("the store cannot list its files")]
    NoList,
    /// The store cannot be written to.
    #[error("the store is read-only")]
    ReadOnly,
    /// What a location calls an endpoint of Globus is none, or the settings do not say which one this machine has.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// The URL is none, or none that files can be below.
    #[error("this is no URL of a directory")]
    Url,
    /// The server sends to another one, which is named.
    #[error("the server redirects to `{0}`, another server")]
    Redirect(String),
    /// The server does not say how long the file is, so that it cannot be known to be whole.
    #[error("the server does not say how long the file is")]
    NoSize,
    /// Nobody is logged in, or the login has expired.
    #[error("not logged in")]
    Login {
        /// What logs in, as it is typed; None if that is not known.
        command: Option<String>,
    },
    /// Another machine does not let us in, in the words of ssh.
    #[error("ssh says: {text}")]
    NotLetIn {
        /// One line of them.
        text: String,
        /// What shows more, or logs in, as it is typed.
        command: String,
    },
    /// Who is logged in may not do this.
    #[error("access denied")]
    Denied,
    /// No room is left.
    #[error("the store is full")]
    Full,
    /// It took longer than allowed.
    #[error("no answer within {0} seconds")]
    Timeout(u64),
    /// The program that reaches the store is not installed.
    #[error("the program `{0}` was not found")]
    NoProgram(String),
    /// The program or the server said so, in its words.
    #[error("{program} says: {text}")]
    Said {
        /// Who says it.
        program: String,
        /// One line of it.
        text: String,
    },
    /// The program or the server gave an answer that this store does not know.
    #[error("{program} gave an unknown answer: {text}")]
    Answer {
        /// Who gave it.
        program: String,
        /// One line of it, or what it lacks.
        text: String,
    },
    /// It was asked to end.
    #[error("interrupted")]
    Interrupted,
}

/// How a file in a store differs from the local one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Difference {
    /// It has another length.
    #[error("{found} bytes instead of {expected}")]
    Size {
        /// Bytes that there should be.
        expected: u64,
        /// Bytes that there are.
        found: u64,
    },
    /// It has another hash.
    #[error("its hash differs")]
    Hash,
}

/// What may help after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// The same again, a while later.
    Retry,
    /// Logging in again.
    Login,
    /// Nothing that a program could do.
    GiveUp,
}

impl StoreCause {
    /// Returns what may help.
    pub fn advice(&self) -> Advice {
        match self {
            Self::Login { .. } | Self::NotLetIn { .. } => Advice::Login,
            Self::Io(error) if is_lasting(error) => Advice::GiveUp,
            Self::Io(_)
            | Self::Different(_)
            | Self::Timeout(_)
            | Self::Said { .. }
            | Self::Answer { .. } => Advice::Retry,
            _ => Advice::GiveUp,
        }
    }
}

/// Returns true for an error that waiting does not mend: something else is in the place.
fn is_lasting(error: &io::Error) -> bool {
    use io::ErrorKind::{
        FileTooLarge, InvalidFilename, InvalidInput, IsADirectory, NotADirectory, Unsupported,
    };
    matches!(
        error.kind(),
        FileTooLarge | InvalidFilename | InvalidInput | IsADirectory | NotADirectory | Unsupported
    )
}

impl StoreError {
    /// Returns that the operation was ended while it waited to be tried again.
    #[must_use]
    pub fn interrupted(self) -> Self {
        Self {
            cause: StoreCause::Interrupted,
            ..self
        }
    }

    /// Returns what may help.
    pub fn advice(&self) -> Advice {
        self.cause.advice()
    }
}

impl StoreError {
    /// Returns the error of an operation on a file of a store.
    pub(crate) fn new(
        operation: &'static str,
        file: &str,
        store: &str,
        cause: impl Into<StoreCause>,
    ) -> Self {
        Self {
            operation,
            file: file.to_owned(),
            store: store.to_owned(),
            cause: cause.into(),
        }
    }
}

impl From<Difference> for StoreCause {
    fn from(difference: Difference) -> Self {
        Self::Different(difference)
    }
}

impl From<io::Error> for StoreCause {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::NotFound,
            io::ErrorKind::AlreadyExists => Self::Exists,
            io::ErrorKind::PermissionDenied => Self::Denied,
            io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full,
            _ => Self::Io(error),
        }
    }
}
