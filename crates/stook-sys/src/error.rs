//! Errors of system calls: which operation, on which path, and why.

use rustix::io::Errno;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A system call that failed.
///
/// Prints as ``cannot open `a/b`: permission denied``.
#[derive(Debug)]
pub struct SysError {
    /// What was tried, as a verb: "open", "read", "rename".
    pub operation: &'static str,
    /// What it was tried on.
    pub path: PathBuf,
    /// Why it failed.
    pub source: io::Error,
}

impl fmt::Display for SysError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "cannot {} `{}`: {}",
            self.operation,
            display_path(&self.path),
            cause(&self.source)
        )
    }
}

impl std::error::Error for SysError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

impl SysError {
    /// Returns true if the named file or a directory on the way to it does not exist.
    pub fn is_not_found(&self) -> bool {
        self.source.kind() == io::ErrorKind::NotFound
    }

    /// Returns true if the file system or the quota has no room left.
    pub fn is_no_space(&self) -> bool {
        matches!(
            self.source.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
        )
    }
}

/// Adds the operation and the path to a bare error.
pub trait Context<T> {
    /// Turns the error into a [`SysError`].
    fn context(self, operation: &'static str, path: impl AsRef<Path>) -> Result<T, SysError>;
}

impl<T, E: Into<io::Error>> Context<T> for Result<T, E> {
    fn context(self, operation: &'static str, path: impl AsRef<Path>) -> Result<T, SysError> {
        self.map_err(|error| SysError {
            operation,
            path: path.as_ref().to_owned(),
            source: error.into(),
        })
    }
}

/// Returns true if a directory was not opened because something else is mounted there.
pub fn is_mount_point(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::XDEV.raw_os_error())
}

/// Returns true if something other than a directory was in its place, a symbolic link included.
pub fn is_no_directory(error: &io::Error) -> bool {
    [Errno::NOTDIR, Errno::LOOP]
        .map(|errno| Some(errno.raw_os_error()))
        .contains(&error.raw_os_error())
}

/// Returns the error of something that is not there, for those who found so by other means.
pub fn not_found() -> io::Error {
    Errno::NOENT.into()
}

/// Returns the error of removing a mount point, for those who only say what would happen.
pub fn busy() -> io::Error {
    Errno::BUSY.into()
}

/// Returns true if no permission helps: the file is immutable, or another owner's in a shared directory.
pub fn is_not_permitted(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::PERM.raw_os_error())
}

/// Returns true if a file cannot get a further name where it was wanted: it has as many as it can, the place is on another
/// file system, or there are no such links. Anything else is a failure, such as a full disk.
pub fn is_link_refused(error: &io::Error) -> bool {
    [
        Errno::MLINK,
        Errno::XDEV,
        Errno::PERM,
        Errno::OPNOTSUPP,
        Errno::NOSYS,
    ]
    .map(|errno| Some(errno.raw_os_error()))
    .contains(&error.raw_os_error())
}

/// Returns true if the file system does not know such a thing at all.
pub fn is_unsupported(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::NOTSUP.raw_os_error())
}

/// Returns the reason alone, in lower case and without the error's number.
pub fn cause(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_lowercase().chain(chars).collect(),
        None => String::new(),
    }
}

/// Returns a path fit for one line of a terminal: control characters and bytes that are not
/// UTF-8 are written as `\n`, `\t`, `\\` or `\xNN`.
pub fn display_path(path: impl AsRef<Path>) -> String {
    use std::os::unix::ffi::OsStrExt;
    display_bytes(path.as_ref().as_os_str().as_bytes())
}

/// As [`display_path`], for a path held as bytes.
pub fn display_bytes(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\n' => text.push_str("\\n"),
                '\t' => text.push_str("\\t"),
                '\\' => text.push_str("\\\\"),
                c if c.is_control() => {
                    write!(text, "\\x{:02x}", u32::from(c)).expect("a String takes all");
                }
                c => text.push(c),
            }
        }
        for byte in chunk.invalid() {
            write!(text, "\\x{byte:02x}").expect("a String takes all");
        }
    }
    text
}
