//! What a command is about, from what was typed: the folder of the archive, the place on HPSS, the exit codes.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::argparse::{Values, display};

/// The name of an index.
pub(crate) const INDEX: &str = "index.db";

/// The folder of an archive.
#[derive(Debug)]
pub(crate) struct Cache {
    /// As messages name it.
    typed: Vec<u8>,
    pub(crate) folder: PathBuf,
}

impl Cache {
    /// Returns the folder that was named, `zstash` if none was, below `base`.
    pub(crate) fn of(values: &Values, base: &Path) -> Self {
        let typed = values.text("cache").filter(|text| !text.is_empty());
        let typed = typed.unwrap_or(b"zstash").to_vec();
        Self {
            folder: base.join(OsStr::from_bytes(&typed)),
            typed,
        }
    }

    /// Returns how messages name a file in it.
    pub(crate) fn path_of(&self, name: impl std::fmt::Display) -> String {
        let typed = display(&self.typed);
        let slash = if typed.ends_with('/') { "" } else { "/" };
        format!("{typed}{slash}{name}")
    }

    pub(crate) fn index(&self) -> PathBuf {
        self.folder.join(INDEX)
    }
}

/// Returns the place that was named: `none` in any case, and nothing at all, mean none. None if the option is absent.
pub(crate) fn hpss(values: &Values) -> Option<String> {
    let given = values.is_given("hpss");
    let text = values.text("hpss").unwrap_or_default();
    given.then(|| place(text))
}

pub(crate) fn place(text: &[u8]) -> String {
    if text.is_empty() || text.eq_ignore_ascii_case(b"none") {
        "none".to_owned()
    } else {
        String::from_utf8_lossy(text).into_owned()
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the program, not a library, reads the environment"
)]
pub(crate) fn variable(name: &str) -> Option<Vec<u8>> {
    std::env::var_os(name).map(|value| value.as_bytes().to_vec())
}

/// Whether files that failed, and damage, count for the exit code: they do, unless zstash's own codes are asked for.
pub(crate) fn failures_count() -> bool {
    variable("STOOK_ZSTASH_EXIT").as_deref() != Some(b"0")
}
