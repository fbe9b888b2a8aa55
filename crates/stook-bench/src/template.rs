//! Commands as lines with places such as `{source}`, which are filled before a run: how benches declare what they measure.
//!
//! Nothing else in a bench tells one program from another. Braces around any other text stay.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::job::Job;

/// What the places of a line stand for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places(Vec<(&'static str, OsString)>);

impl Places {
    /// Adds a place.
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.0.push((name, value.into()));
        self
    }

    /// Returns the command whose words stand in the line, one blank apart. A value is one word, or a part of one.
    pub(crate) fn words(&self, line: &str) -> Job {
        let words = line.split(' ');
        Job::new(words.map(|word| self.filled(word, |value| value.as_bytes().to_vec())))
    }

    /// Returns the line as a command of the shell, with its values quoted: as [`Job::shell`], for any paths.
    pub(crate) fn shell(&self, line: &str) -> Job {
        Job::new(["sh".into(), "-c".into(), self.filled(line, quoted)])
    }

    fn filled(&self, line: &str, written: fn(&OsStr) -> Vec<u8>) -> OsString {
        let mut text = Vec::new();
        let mut rest = line;
        while let Some(at) = rest.find('{') {
            text.extend_from_slice(&rest.as_bytes()[..at]);
            let inner = &rest[at + 1..];
            let named = inner.split_once('}').and_then(|(name, behind)| {
                let (_, value) = self.0.iter().find(|(known, _)| *known == name)?;
                Some((value, behind))
            });
            rest = match named {
                Some((value, behind)) => {
                    text.extend(written(value));
                    behind
                }
                None => {
                    text.push(b'{');
                    inner
                }
            };
        }
        text.extend_from_slice(rest.as_bytes());
        OsString::from_vec(text)
    }
}

/// The word as the shell takes it for itself; plain ones stay as they are.
fn quoted(word: &OsStr) -> Vec<u8> {
    if !word.is_empty() && word.as_bytes().iter().all(u8::is_ascii_alphanumeric) {
        return word.as_bytes().to_vec();
    }
    let parts: Vec<&[u8]> = word.as_bytes().split(|byte| *byte == b'\'').collect();
    [b"'", parts.join(br"'\''".as_slice()).as_slice(), b"'"].concat()
}
