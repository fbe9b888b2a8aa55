//! Reads the `expected.json` of the golden zstash archives into a [`Snapshot`].

use super::{Fact, Facts, Kind, Snapshot};
use crate::failure::Describe;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    kind: String,
    mode: String,
    mtime_ns: i64,
    #[serde(default)]
    size: u64,
    md5: Option<String>,
    target: Option<String>,
}

impl Snapshot {
    /// Reads a JSON object that maps each path to `kind`, `mode` (octal text), `mtime_ns`, `size`, `md5`, `target`.
    ///
    /// The snapshot knows modes, sizes, times, contents and targets. Directories with contents are not in such
    /// files, so compare with [`Compare::zstash`](super::Compare::zstash).
    ///
    /// # Errors
    /// When the file cannot be read or is not of that form (`InvalidData`).
    pub fn read_expected(file: &Path) -> io::Result<Self> {
        let shown_path = file.as_os_str().as_bytes();
        let text = std::fs::read(file).describe("read", shown_path)?;
        Self::parse_expected(&text).describe("understand", shown_path)
    }

    fn parse_expected(text: &[u8]) -> io::Result<Self> {
        let expected: BTreeMap<String, Expected> = serde_json::from_slice(text)?;
        let mut entries = BTreeMap::new();
        for (path, expected) in expected {
            entries.insert(path.into_bytes(), facts(expected)?);
        }
        let known = [
            Fact::Mode,
            Fact::Size,
            Fact::Mtime,
            Fact::DirectoryMtime,
            Fact::Content,
            Fact::Target,
        ];
        Ok(Self {
            entries,
            known: known.into(),
        })
    }
}

fn facts(expected: Expected) -> io::Result<Facts> {
    let wrong = |text: String| io::Error::new(io::ErrorKind::InvalidData, text);
    let kind = match expected.kind.as_str() {
        "file" => Kind::File,
        "dir" => Kind::Directory,
        "symlink" => Kind::Symlink,
        "fifo" => Kind::Fifo,
        "socket" => Kind::Socket,
        other => return Err(wrong(format!("unknown kind `{other}`"))),
    };
    let mode = u32::from_str_radix(expected.mode.trim_start_matches("0o"), 8)
        .map_err(|error| wrong(format!("mode `{}`: {error}", expected.mode)))?;
    Ok(Facts {
        kind,
        mode,
        owner: (0, 0),
        size: expected.size,
        mtime_ns: expected.mtime_ns.into(),
        md5: expected.md5,
        target: expected.target.map(String::into_bytes),
        device: None,
        xattrs: BTreeMap::new(),
        first_link: None,
        has_holes: false,
    })
}

#[cfg(test)]
mod tests {
    use super::Snapshot;
    use crate::{Compare, Kind};

    #[test]
    fn reads_the_fixture_form() {
        let text =
            br#"{"a\nb": {"kind": "file", "md5": "00", "mode": "0o755", "mtime_ns": -5, "size": 3},
            "l": {"kind": "symlink", "mode": "0o777", "mtime_ns": 1, "target": "x"}}"#;
        let snapshot = Snapshot::parse_expected(text).unwrap();
        let file = snapshot.get("a\nb").unwrap();
        assert_eq!(
            (file.kind, file.mode, file.size, file.mtime_ns),
            (Kind::File, 0o755, 3, -5)
        );
        assert_eq!(
            snapshot.get("l").unwrap().target.as_deref(),
            Some(&b"x"[..])
        );
        assert_eq!(snapshot.difference(&snapshot, &Compare::zstash()), [""; 0]);
    }

    #[test]
    fn refuses_what_it_does_not_know() {
        for text in [
            "{",
            r#"{"a": {"kind": "door", "mode": "0o1", "mtime_ns": 0}}"#,
            r#"{"a": {"kind": "file", "mode": "rwx", "mtime_ns": 0}}"#,
            r#"{"a": {"kind": "file", "mode": "0o1", "mtime_ns": 0, "colour": 1}}"#,
        ] {
            let error = Snapshot::parse_expected(text.as_bytes()).unwrap_err();
            assert!(matches!(
                error.kind(),
                std::io::ErrorKind::InvalidData | std::io::ErrorKind::UnexpectedEof
            ));
        }
    }
}
