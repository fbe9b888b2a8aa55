//! The words of the index as types: ids, rows, volumes, settings.
//!
//! Numbers that could be mixed up are newtypes. Rows come in three forms: borrowed while
//! streaming, owned, and not yet stored.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use crate::mtime::Mtime;

/// The greatest format this program reads and the one it writes.
pub(crate) const FORMAT: i64 = 2;

/// How the bytes of a volume lie in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VolumeEncoding {
    /// As they are: `.tar`.
    Plain,
    /// In frames of zstd: `.tar.zst`.
    Zstd,
}

impl VolumeEncoding {
    /// All there are.
    pub const ALL: [Self; 2] = [Self::Plain, Self::Zstd];

    /// Returns what follows the number in a file name.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Plain => ".tar",
            Self::Zstd => ".tar.zst",
        }
    }
}

/// A volume: its number, and how it is stored. Prints as the volume's file name: `00000a.tar`, or `00000a.tar.zst` if it is
/// compressed.
///
/// Two are equal if their numbers are: an archive never has both, and offsets are those in the uncompressed volume either way.
#[derive(Debug, Clone, Copy)]
pub struct VolumeId(
    /// Its number.
    pub u64,
    VolumeEncoding,
);

impl PartialEq for VolumeId {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for VolumeId {}

impl Ord for VolumeId {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}

impl PartialOrd for VolumeId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for VolumeId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl fmt::Display for VolumeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:06x}{}", self.0, self.1.suffix())
    }
}

impl VolumeId {
    /// Largest number read back from a name: the one after it still fits.
    const LAST: u64 = i64::MAX as u64;

    /// Returns the volume of a number that is not compressed; or whose encoding does not matter, because only the number is
    /// compared.
    pub const fn plain(number: u64) -> Self {
        Self(number, VolumeEncoding::Plain)
    }

    /// Returns the volume of the same number that is stored in this way.
    #[must_use]
    pub const fn stored_as(self, encoding: VolumeEncoding) -> Self {
        Self(self.0, encoding)
    }

    /// Returns how it is stored.
    pub const fn encoding(self) -> VolumeEncoding {
        self.1
    }

    /// Returns true if it is compressed.
    pub fn is_compressed(self) -> bool {
        self.1 == VolumeEncoding::Zstd
    }

    /// Returns the number behind this one; `None` if no volume can have it.
    pub fn next(self) -> Option<Self> {
        (self.0 < Self::LAST).then(|| Self(self.0 + 1, self.1))
    }

    /// Reads a volume's file name; `None` unless it is exactly as [`VolumeId`] prints it.
    pub(crate) fn from_name(name: &[u8]) -> Option<Self> {
        VolumeEncoding::ALL.into_iter().find_map(|encoding| {
            let digits = name.strip_suffix(encoding.suffix().as_bytes())?;
            Some(Self(Self::number(digits)?, encoding))
        })
    }

    /// Reads the number in front of a volume's suffix.
    fn number(digits: &[u8]) -> Option<u64> {
        let canonical =
            digits.len() == 6 || (digits.len() > 6 && digits.len() <= 16 && digits[0] != b'0');
        if !canonical {
            return None;
        }
        let mut number = 0_u64;
        for &digit in digits {
            let value = match digit {
                b'0'..=b'9' => digit - b'0',
                b'a'..=b'f' => digit - b'a' + 10,
                _ => return None,
            };
            number = number << 4 | u64::from(value);
        }
        (number <= Self::LAST).then_some(number)
    }
}

/// A text that is not the name of a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a volume's name is six or more lower-case hexadecimal digits and `.tar` or `.tar.zst`")]
pub struct BadVolumeName;

impl FromStr for VolumeId {
    type Err = BadVolumeName;

    fn from_str(text: &str) -> Result<Self, BadVolumeName> {
        Self::from_name(text.as_bytes()).ok_or(BadVolumeName)
    }
}

/// The id of a row of `files`. A greater id means archived later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowId(pub i64);

/// The number of a run: one `create` or `update` that wrote, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(pub i64);

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One member as the index knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Its id.
    pub id: RowId,
    /// Its path in the tree, as the real bytes.
    pub name: Vec<u8>,
    /// Bytes of data.
    pub size: u64,
    /// Its modification time.
    pub mtime: Mtime,
    /// MD5 of the data; `None` for what has no data.
    pub md5: Option<[u8; 16]>,
    /// The volume it lies in.
    pub volume: VolumeId,
    /// Where its first header block lies in the volume.
    pub offset: u64,
}

impl Row {
    /// Returns the same row with a name that is borrowed from it.
    pub fn to_ref(&self) -> RowRef<'_> {
        RowRef {
            id: self.id,
            name: &self.name,
            size: self.size,
            mtime: self.mtime,
            md5: self.md5,
            volume: self.volume,
            offset: self.offset,
        }
    }
}

/// A [`Row`] while it is being read; its name lives as long as the visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowRef<'a> {
    /// Its id.
    pub id: RowId,
    /// Its path in the tree, as the real bytes.
    pub name: &'a [u8],
    /// Bytes of data.
    pub size: u64,
    /// Its modification time.
    pub mtime: Mtime,
    /// MD5 of the data; `None` for what has no data.
    pub md5: Option<[u8; 16]>,
    /// The volume it lies in.
    pub volume: VolumeId,
    /// Where its first header block lies in the volume.
    pub offset: u64,
}

impl RowRef<'_> {
    /// Returns the same row with a name of its own.
    pub fn to_row(&self) -> Row {
        Row {
            id: self.id,
            name: self.name.to_vec(),
            size: self.size,
            mtime: self.mtime,
            md5: self.md5,
            volume: self.volume,
            offset: self.offset,
        }
    }
}

/// A row to be stored; its volume is named once, when the volume is committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewRow<'a> {
    /// Its path in the tree, as the real bytes.
    pub name: &'a [u8],
    /// Bytes of data.
    pub size: u64,
    /// Its modification time.
    pub mtime: Mtime,
    /// MD5 of the data; `None` for what has no data.
    pub md5: Option<[u8; 16]>,
    /// Where its first header block lies in the volume.
    pub offset: u64,
}

/// One volume: a row of `tars`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Volume {
    /// Its number.
    pub id: VolumeId,
    /// Bytes of the whole file, end marker and padding included.
    pub size: u64,
    /// MD5 of the whole file. `None` is stored as NULL: zstash reads the size and never the MD5.
    pub md5: Option<[u8; 16]>,
}

/// The settings an archive carries from its creation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The remote store in zstash's spelling; `none` if there is none.
    pub hpss: String,
    /// Bytes after which a volume is closed.
    pub maxsize: u64,
    /// Absolute path of the tree at creation; informational.
    pub path: Vec<u8>,
}

/// One `create` or `update` that wrote to the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Its number.
    pub id: RunId,
    /// The command line, for people.
    pub command: String,
    /// When it began.
    pub started: Mtime,
    /// When it ended; `None` while it has not.
    pub finished: Option<Mtime>,
    /// The first row it could write: one past the greatest id at its start.
    pub first_file: RowId,
    /// The greatest row id at its end; `None` while it has not ended.
    pub last_file: Option<RowId>,
    /// Entries it could not archive.
    pub failed: u64,
}

/// A name that a run found gone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deletion<'a> {
    /// Its row in `stook_deleted`.
    pub(crate) row: i64,
    /// The run.
    pub(crate) run: i64,
    /// The real bytes.
    pub(crate) name: &'a [u8],
    /// The last row of `files` that it hides.
    pub(crate) last_file: i64,
}

/// Which state of the archive is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AsOf {
    /// All rows, also those zstash added after the last run.
    Now,
    /// The rows there were when this run ended.
    Run(RunId),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volume_names_round_trip_and_only_in_one_spelling() {
        for number in [0, 10, 0xff_ffff, 0x100_0000, VolumeId::LAST] {
            let id = VolumeId::plain(number);
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        for wrong in [
            "",
            ".tar",
            "00000a",
            "00000A.tar",
            "0000000.tar",
            "00000g.tar",
            "00000.tar",
            "../../.tar",
            "00000a.tar.tar",
            "8000000000000000.tar",
            "00000000000000000.tar",
            "+00001.tar",
        ] {
            assert_eq!(wrong.parse::<VolumeId>(), Err(BadVolumeName), "{wrong}");
        }
    }
    #[test]
    fn a_compressed_volume_has_the_number_of_a_plain_one() {
        let plain = VolumeId::plain(0x1b);
        let compressed: VolumeId = "00001b.tar.zst".parse().unwrap();
        assert_eq!(compressed, plain);
        assert_eq!(compressed.to_string(), "00001b.tar.zst");
        assert_eq!(compressed.next().unwrap().to_string(), "00001c.tar.zst");
        assert!(compressed.is_compressed() && !plain.is_compressed());
        let stored_as = compressed.stored_as(VolumeEncoding::Plain);
        assert_eq!(stored_as.to_string(), "00001b.tar");
        for wrong in [
            "00001b.zst",
            "1b.tar.zst",
            "00001b.tar.zst.tar",
            "00001b.tar.ZST",
        ] {
            assert_eq!(wrong.parse::<VolumeId>(), Err(BadVolumeName), "{wrong}");
        }
    }
}
