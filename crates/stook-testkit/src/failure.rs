//! Adds the operation and the path to the errors of system calls, and shows byte paths as text.

use std::io;

/// Longest path shown in full; longer ones keep their two ends.
const SHOWN_CHARACTERS: usize = 160;

/// Turns an error number into an [`io::Error`] that names what was done and where.
pub(crate) trait Describe<T> {
    /// Keeps the error kind and puts `operation` and `path` before its text.
    fn describe(self, operation: &str, path: &[u8]) -> io::Result<T>;
}

impl<T, E: Into<io::Error>> Describe<T> for Result<T, E> {
    fn describe(self, operation: &str, path: &[u8]) -> io::Result<T> {
        self.map_err(|error| {
            let error: io::Error = error.into();
            io::Error::new(
                error.kind(),
                format!("cannot {operation} `{}`: {error}", shown(path)),
            )
        })
    }
}

/// Returns `path` as printable text, shortened in the middle when it is very long.
pub(crate) fn shown(path: &[u8]) -> String {
    let text = match std::str::from_utf8(path) {
        Ok(text) => text
            .escape_debug()
            .to_string()
            .replace("\\'", "'")
            .replace("\\\"", "\""),
        Err(_) => path.escape_ascii().to_string(),
    };
    let count = text.chars().count();
    if count <= SHOWN_CHARACTERS {
        return text;
    }
    let head: String = text.chars().take(SHOWN_CHARACTERS / 2).collect();
    let tail: String = text.chars().skip(count - SHOWN_CHARACTERS / 2).collect();
    format!("{head}...{tail}")
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn shows_odd_bytes_and_shortens_long_paths() {
        assert_eq!(shown("ünï 'q'\n".as_bytes()), "ünï 'q'\\n");
        assert_eq!(shown(b"a\xff"), "a\\xff");
        let long = shown(&[b'd'; 5000]);
        assert_eq!(long.chars().count(), 163);
        assert!(long.contains("..."));
    }
}
