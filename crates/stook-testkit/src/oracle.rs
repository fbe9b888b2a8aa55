//! Runs `python/zstash_tar.py`, which writes volumes as zstash 1.6 does, to compare our bytes with.
//!
//! The script uses Python's own `tarfile`, the code zstash itself runs, so it is independent of ours.

use crate::failure::Describe;
use serde::Deserialize;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One row of `files`, as zstash's index would hold it, in archive order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OracleRow {
    /// Raw bytes of the path; zstash itself fails on those that are not UTF-8.
    pub name: Vec<u8>,
    /// Bytes of data.
    pub size: u64,
    /// Time as text, to the microsecond.
    pub mtime: String,
    /// MD5 in hex, for regular files and hard links.
    pub md5: Option<String>,
    /// Name of the volume file.
    pub volume: String,
    /// Where the member starts in the volume.
    pub offset: u64,
}

/// What the oracle archives and how.
#[derive(Clone, Debug, Default)]
pub struct Oracle {
    /// Largest size of a volume in bytes; zstash's 256 GiB when not set.
    pub maxsize: Option<u64>,
    /// Number of the first volume, for an update.
    pub first_volume: u64,
    /// Directory that is not archived, usually the archive in its own source.
    pub exclude: Option<PathBuf>,
    /// Archives only these paths, as an update would.
    pub only: Option<Vec<Vec<u8>>>,
}

#[derive(Deserialize)]
struct Row {
    name_hex: String,
    size: u64,
    mtime: String,
    md5: Option<String>,
    tar: String,
    offset: u64,
}

impl Oracle {
    /// Archives the tree at `source` into volumes in the directory `volumes`, which is made if it is missing.
    ///
    /// # Errors
    /// `NotFound` when there is no `python3`; else whatever the script says.
    pub fn write(&self, source: &Path, volumes: &Path) -> io::Result<Vec<OracleRow>> {
        let mut command = Command::new("python3");
        command.arg("-I").arg(script()).arg(source).arg(volumes);
        command.arg(format!("--first-volume={}", self.first_volume));
        if let Some(maxsize) = self.maxsize {
            command.arg(format!("--maxsize={maxsize}"));
        }
        if let Some(exclude) = &self.exclude {
            command.arg("--exclude").arg(exclude);
        }
        for path in self.only.iter().flatten() {
            command.arg(format!("--only-hex={}", hex(path)));
        }
        let output = command.output().describe("run", b"python3")?;
        if !output.status.success() {
            return Err(io::Error::other(
                String::from_utf8_lossy(&output.stderr).into_owned(),
            ));
        }
        output
            .stdout
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(parse_row)
            .collect()
    }
}

/// Returns the path of the script in the checkout.
#[must_use]
pub fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("python/zstash_tar.py")
}

fn parse_row(line: &[u8]) -> io::Result<OracleRow> {
    let row: Row = serde_json::from_slice(line)?;
    let Row {
        name_hex,
        size,
        mtime,
        md5,
        tar,
        offset,
    } = row;
    Ok(OracleRow {
        name: unhex(&name_hex)?,
        size,
        mtime,
        md5,
        volume: tar,
        offset,
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> io::Result<Vec<u8>> {
    let wrong = || io::Error::new(io::ErrorKind::InvalidData, format!("`{text}` is not hex"));
    let digits = text.as_bytes().chunks(2).map(std::str::from_utf8);
    digits
        .map(|pair| {
            pair.ok()
                .and_then(|pair| u8::from_str_radix(pair, 16).ok())
                .ok_or_else(wrong)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{hex, parse_row, unhex};

    #[test]
    fn hex_there_and_back() {
        assert_eq!(unhex(&hex(b"a\xff\0")).unwrap(), b"a\xff\0");
        assert!(unhex("0g").is_err());
    }

    #[test]
    fn rows_are_read_and_others_refused() {
        let line = br#"{"name": null, "name_hex": "ff", "size": 1, "mtime": "t", "md5": null, "tar": "000000.tar", "offset": 512}"#;
        let row = parse_row(line).unwrap();
        assert_eq!(
            (row.name.as_slice(), row.size, row.offset, row.md5),
            (&b"\xff"[..], 1, 512, None)
        );
        assert!(parse_row(b"{}").is_err());
    }
}
