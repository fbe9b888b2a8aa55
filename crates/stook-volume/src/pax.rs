//! PAX records: `LENGTH KEYWORD=VALUE\n`, how they are spelled and what they mean.
//!
//! A record that does not keep to the grammar makes the whole header invalid: skipping it would
//! let a damaged size or name pass. Keywords of no use here are read over.

use stook_sys::Timestamp;

use crate::error::VolumeError;
use crate::header::Segment;
use crate::number;

pub(crate) const XATTR_PREFIX: &[u8] = b"SCHILY.xattr.";
pub(crate) const LINK: &[u8] = b"STOOK.link";

/// Says that names are raw bytes, in the order of the interpreter: always first.
pub(crate) const RAW_NAMES: (&[u8], &[u8]) = (b"hdrcharset", b"BINARY");

/// Start of the record that closes the extended header of a member written by stook. Its value is
/// the CRC-32 of the records before it, the header block after it and the sparse map. It is a
/// comment, because GNU tar warns of every keyword that it does not know.
const HEADER_CRC_START: &[u8; 23] = b"32 comment=STOOK.crc32=";
const HEADER_CRC_DIGITS: usize = 8;
pub(crate) const HEADER_CRC_LEN: usize = HEADER_CRC_START.len() + HEADER_CRC_DIGITS + 1;

/// Fewest of the 24 fixed bytes of the closing record that let it be recognised when damaged.
const HEADER_CRC_LIKENESS: usize = 20;

/// Takes records one after the other: a buffer, or a sum of lengths.
pub(crate) trait RecordSink {
    /// Takes one record.
    fn record(&mut self, keyword: &[u8], value: &[u8]);
}

/// Adds up the lengths of records.
#[derive(Debug, Default)]
pub(crate) struct RecordsLen(pub(crate) u64);

impl RecordSink for RecordsLen {
    fn record(&mut self, keyword: &[u8], value: &[u8]) {
        self.0 += record_len(keyword, value) as u64;
    }
}

impl RecordSink for Vec<u8> {
    fn record(&mut self, keyword: &[u8], value: &[u8]) {
        number::put_decimal(record_len(keyword, value) as u64, self);
        self.push(b' ');
        self.extend_from_slice(keyword);
        self.push(b'=');
        self.extend_from_slice(value);
        self.push(b'\n');
    }
}

/// Returns the length of a record, its own digits included.
fn record_len(keyword: &[u8], value: &[u8]) -> usize {
    let rest = keyword.len() + value.len() + 3;
    let mut len = rest;
    loop {
        let next = rest + len.checked_ilog10().map_or(1, |log| log as usize + 1);
        if next == len {
            return len;
        }
        len = next;
    }
}

/// Appends the closing record.
pub(crate) fn put_header_crc(crc: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(HEADER_CRC_START);
    out.extend_from_slice(format!("{crc:08x}\n").as_bytes());
}

/// What the end of an extended header tells about its closing record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HeaderCrc {
    /// There is none: another program wrote the header.
    Absent,
    /// The CRC it states.
    Stated(u32),
    /// It was one before some of its bytes changed.
    Broken,
}

/// Looks for the closing record at the end of the records, by position: so damage to the records
/// before it, or to its own keyword, cannot make it vanish.
pub(crate) fn header_crc(records: &[u8]) -> HeaderCrc {
    let Some(start) = records.len().checked_sub(HEADER_CRC_LEN) else {
        return HeaderCrc::Absent;
    };
    let (keyword, rest) = records[start..].split_at(HEADER_CRC_START.len());
    let (value, end) = rest.split_at(HEADER_CRC_DIGITS);
    let like = keyword
        .iter()
        .zip(HEADER_CRC_START)
        .filter(|(a, b)| a == b)
        .count()
        + usize::from(end == b"\n");
    if like < HEADER_CRC_LIKENESS {
        return HeaderCrc::Absent;
    }
    let is_canonical = value
        .iter()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let stated = std::str::from_utf8(value)
        .ok()
        .and_then(|text| u32::from_str_radix(text, 16).ok());
    match stated {
        Some(crc) if is_canonical && like == HEADER_CRC_START.len() + 1 => HeaderCrc::Stated(crc),
        _ => HeaderCrc::Broken,
    }
}

/// Returns the keyword of an extended attribute. `%` and `=` are escaped as GNU tar does.
pub(crate) fn xattr_keyword(name: &[u8]) -> Vec<u8> {
    let mut keyword = XATTR_PREFIX.to_vec();
    for byte in name {
        match byte {
            b'%' => keyword.extend_from_slice(b"%25"),
            b'=' => keyword.extend_from_slice(b"%3D"),
            _ => keyword.push(*byte),
        }
    }
    keyword
}

fn xattr_name(escaped: &[u8]) -> Vec<u8> {
    let mut name = Vec::with_capacity(escaped.len());
    let mut rest = escaped;
    while let Some((first, tail)) = rest.split_first() {
        let (byte, tail) = match tail {
            [b'2', b'5', tail @ ..] if *first == b'%' => (b'%', tail),
            [b'3', b'D', tail @ ..] if *first == b'%' => (b'=', tail),
            _ => (*first, tail),
        };
        name.push(byte);
        rest = tail;
    }
    name
}

/// What the records in front of a member say.
#[derive(Debug, Default, Clone)]
pub(crate) struct Records {
    pub(crate) path: Option<Vec<u8>>,
    pub(crate) linkpath: Option<Vec<u8>>,
    pub(crate) uname: Option<Vec<u8>>,
    pub(crate) gname: Option<Vec<u8>>,
    pub(crate) uid: Option<u64>,
    pub(crate) gid: Option<u64>,
    pub(crate) size: Option<u64>,
    pub(crate) mtime: Option<Timestamp>,
    pub(crate) link: Option<Vec<u8>>,
    pub(crate) xattrs: Vec<(Vec<u8>, Vec<u8>)>,
    pub(crate) sparse: SparseRecords,
}

/// The `GNU.sparse.*` records of all three versions.
#[derive(Debug, Default, Clone)]
pub(crate) struct SparseRecords {
    pub(crate) name: Option<Vec<u8>>,
    /// `GNU.sparse.major` and `.minor`.
    pub(crate) version: (Option<u64>, Option<u64>),
    /// Size of the file: `realsize` in version 1.0, `size` before.
    pub(crate) size: Option<u64>,
    /// The map of versions 0.0 and 0.1.
    pub(crate) map: Option<Vec<Segment>>,
    /// Start of a segment of version 0.0 whose length comes in the next record.
    open: Option<u64>,
}

impl Records {
    /// Adds the records of one extended header, at `offset` of the volume; a later record
    /// replaces an earlier one.
    pub(crate) fn read(&mut self, payload: &[u8], offset: u64) -> Result<(), VolumeError> {
        let mut rest = payload;
        while !rest.is_empty() {
            let (keyword, value, tail) =
                split(rest).map_err(|problem| VolumeError::Record { offset, problem })?;
            self.set(keyword, value)
                .map_err(|problem| VolumeError::Record { offset, problem })?;
            rest = tail;
        }
        Ok(())
    }

    fn set(&mut self, keyword: &[u8], value: &[u8]) -> Result<(), &'static str> {
        match keyword {
            b"path" => self.path = text(value),
            b"linkpath" => self.linkpath = text(value),
            b"uname" => self.uname = text(value),
            b"gname" => self.gname = text(value),
            b"uid" => self.uid = count(value)?,
            b"gid" => self.gid = count(value)?,
            b"size" => self.size = count(value)?,
            b"mtime" if value.is_empty() => self.mtime = None,
            b"mtime" => self.mtime = Some(number::time(value).ok_or("an `mtime` that is no time")?),
            LINK => self.link = Some(value.to_vec()),
            _ => {
                if let Some(name) = keyword.strip_prefix(XATTR_PREFIX) {
                    self.xattrs.push((xattr_name(name), value.to_vec()));
                } else if let Some(keyword) = keyword.strip_prefix(b"GNU.sparse.") {
                    self.sparse.set(keyword, value)?;
                }
            }
        }
        Ok(())
    }

    /// Returns a keyword that would change what a member is, if it stood in a global header. Such as `comment`, which
    /// `git archive` writes, do not.
    pub(crate) fn global_keyword(&self) -> Option<&'static str> {
        let is_set = [
            ("path", self.path.is_some()),
            ("linkpath", self.linkpath.is_some()),
            ("size", self.size.is_some()),
            ("mtime", self.mtime.is_some()),
            ("uid", self.uid.is_some()),
            ("gid", self.gid.is_some()),
            ("uname", self.uname.is_some()),
            ("gname", self.gname.is_some()),
            ("SCHILY.xattr", !self.xattrs.is_empty()),
        ];
        let mut set = is_set.into_iter().filter(|(_, is_set)| *is_set);
        set.next().map(|(keyword, _)| keyword)
    }

    /// Returns the extended attributes sorted by name, the last of each name.
    pub(crate) fn take_xattrs(&mut self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut xattrs = std::mem::take(&mut self.xattrs);
        xattrs.reverse();
        xattrs.sort_by(|a, b| a.0.cmp(&b.0));
        xattrs.dedup_by(|a, b| a.0 == b.0);
        xattrs
    }
}

impl SparseRecords {
    fn set(&mut self, keyword: &[u8], value: &[u8]) -> Result<(), &'static str> {
        match keyword {
            b"name" => self.name = text(value),
            b"major" => self.version.0 = count(value)?,
            b"minor" => self.version.1 = count(value)?,
            b"realsize" | b"size" => self.size = count(value)?,
            b"map" => self.map = Some(pairs(value)?),
            b"offset" => self.open = count(value)?,
            b"numbytes" => {
                let offset = self
                    .open
                    .take()
                    .ok_or("a `GNU.sparse.numbytes` without its offset")?;
                let len = count(value)?.ok_or("an empty `GNU.sparse.numbytes`")?;
                self.map
                    .get_or_insert_default()
                    .push(Segment { offset, len });
            }
            _ => {}
        }
        Ok(())
    }
}

/// Returns the value of a record; an empty one takes an earlier value back.
fn text(value: &[u8]) -> Option<Vec<u8>> {
    (!value.is_empty()).then(|| value.to_vec())
}

fn count(value: &[u8]) -> Result<Option<u64>, &'static str> {
    if value.is_empty() {
        return Ok(None);
    }
    number::decimal(value)
        .map(Some)
        .ok_or("a number that is malformed or too big")
}

/// Reads the map of sparse version 0.1: offsets and lengths, separated by commas.
fn pairs(value: &[u8]) -> Result<Vec<Segment>, &'static str> {
    const MALFORMED: &str = "a malformed `GNU.sparse.map`";
    let mut segments = Vec::new();
    let mut numbers = value.split(|byte| *byte == b',').map(number::decimal);
    if value.is_empty() {
        return Ok(segments);
    }
    while let Some(offset) = numbers.next() {
        match (offset, numbers.next().flatten()) {
            (Some(offset), Some(len)) => segments.push(Segment { offset, len }),
            _ => return Err(MALFORMED),
        }
    }
    Ok(segments)
}

/// Keyword and value of a record, and what comes after it.
type Split<'a> = (&'a [u8], &'a [u8], &'a [u8]);

/// Splits the first record off.
fn split(bytes: &[u8]) -> Result<Split<'_>, &'static str> {
    let space =
        memchr::memchr(b' ', &bytes[..bytes.len().min(21)]).ok_or("a record without a length")?;
    let len = number::decimal(&bytes[..space]).ok_or("a record whose length is no number")?;
    let len = usize::try_from(len)
        .ok()
        .filter(|len| (space + 1..=bytes.len()).contains(len));
    let (record, rest) = bytes.split_at(len.ok_or("a record whose length does not fit")?);
    let record = record[space + 1..]
        .strip_suffix(b"\n")
        .ok_or("a record without its newline")?;
    let equals = memchr::memchr(b'=', record).ok_or("a record without `=`")?;
    if equals == 0 {
        return Err("a record without a keyword");
    }
    Ok((&record[..equals], &record[equals + 1..], rest))
}

/// Returns true if the bytes, up to zeros at their end, close with a whole record: then a header
/// block right after them belongs to an extended header in front of it.
pub(crate) fn ends_in_record(bytes: &[u8]) -> bool {
    let len = bytes
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(0, |last| last + 1);
    let Some(text) = bytes[..len].strip_suffix(b"\n") else {
        return false;
    };
    let start = memchr::memrchr(b'\n', text).map_or(0, |newline| newline + 1);
    // The first of the bytes may lie within a record that starts before them.
    matches!(split(&bytes[start..len]), Ok((_, _, [])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_count_their_own_digits() {
        for value_len in 0..2000 {
            let value = vec![b'v'; value_len];
            let mut out = Vec::new();
            out.record(b"path", &value);
            let mut len = RecordsLen::default();
            len.record(b"path", &value);
            assert_eq!(out.len() as u64, len.0);
            assert_eq!(split(&out), Ok((&b"path"[..], &value[..], &b""[..])));
        }
    }

    #[test]
    fn malformed_records_are_refused() {
        for (bytes, problem) in [
            (&b"path=x\n"[..], "a record without a length"),
            (b"x path=x\n", "a record whose length is no number"),
            (b"-9 path=x\n", "a record whose length is no number"),
            (b"11 path=x\n", "a record whose length does not fit"),
            (b"0 path=x\n", "a record whose length does not fit"),
            (b"2 path=x\n", "a record without its newline"),
            (
                b"99999999999999999999 a=b\n",
                "a record whose length is no number",
            ),
            (b"8 path=x\n", "a record without its newline"),
            (b"8 pathx\n", "a record without `=`"),
            (b"5 =x\n", "a record without a keyword"),
            (b"10 path=x\n\0\0", "a record without a length"),
            (b"11 size=-1\n", "a number that is malformed or too big"),
            (
                b"29 size=18446744073709551616\n",
                "a number that is malformed or too big",
            ),
            (b"13 mtime=now\n", "an `mtime` that is no time"),
            (b"22 GNU.sparse.map=1,2,3\n", "a record without its newline"),
            (b"24 GNU.sparse.map=1,2,3\n", "a malformed `GNU.sparse.map`"),
        ] {
            match Records::default().read(bytes, 512) {
                Err(VolumeError::Record {
                    offset: 512,
                    problem: found,
                }) => {
                    assert_eq!(found, problem, "{}", bytes.escape_ascii());
                }
                other => panic!("{}: {other:?}", bytes.escape_ascii()),
            }
        }
    }

    #[test]
    fn the_last_record_counts_and_an_empty_one_takes_back() {
        let mut records = Records::default();
        records
            .read(b"10 path=a\n10 path=b\n12 uname=me\n9 uname=\n", 0)
            .unwrap();
        assert_eq!(records.path.as_deref(), Some(&b"b"[..]));
        assert_eq!(records.uname, None);
    }

    #[test]
    fn attribute_names_are_escaped() {
        for name in [&b"user.a"[..], b"user.%=%%25", b"user.\n\xff"] {
            let keyword = xattr_keyword(name);
            assert!(!keyword.contains(&b'='));
            assert_eq!(
                xattr_name(keyword.strip_prefix(XATTR_PREFIX).unwrap()),
                name
            );
        }
        assert_eq!(xattr_keyword(b"user.%=a"), b"SCHILY.xattr.user.%25%3Da");
    }

    #[test]
    fn a_changed_closing_record_is_still_recognised() {
        let mut records = b"10 path=a\n".to_vec();
        assert_eq!(header_crc(&records), HeaderCrc::Absent);
        put_header_crc(0x00c0_ffee, &mut records);
        assert_eq!(header_crc(&records), HeaderCrc::Stated(0x00c0_ffee));
        for at in records.len() - HEADER_CRC_LEN..records.len() {
            for bit in 0..8 {
                let mut flipped = records.clone();
                flipped[at] ^= 1 << bit;
                assert_ne!(header_crc(&flipped), HeaderCrc::Absent);
                assert_ne!(header_crc(&flipped), HeaderCrc::Stated(0x00c0_ffee));
            }
        }
    }

    #[test]
    fn the_end_of_an_extended_header_is_recognised() {
        assert!(ends_in_record(
            b"ue of a long path\n16 mtime=1.2345\n\0\0\0"
        ));
        assert!(ends_in_record(b"10 path=a\n"));
        assert!(!ends_in_record(b"10 path=a\nx\0\0"));
        assert!(!ends_in_record(b"some text\n\0"));
        assert!(!ends_in_record(b"\0\0\0"));
        assert!(!ends_in_record(b""));
    }
}
