//! Writes the header of a member: extended header, records, header block, sparse map.
//!
//! ```text
//! [x header 512][records, padded][header block 512][sparse map, padded] then the caller's data
//! ```
//! Every member has an extended header, as Python's `tarfile` gives every file whose time is a
//! float. The length is a function of the header alone, so offsets can be planned beforehand.

use std::borrow::Cow;

use crate::block::{self, NAME, SIZE};
use crate::error::VolumeError;
use crate::header::{Header, Kind, Segment};
use crate::pax::{self, RecordSink, RecordsLen};
use crate::{BLOCK, BLOCK_LEN, MAX_HEADER, number, padding, sparse};

/// Who the member shall look as if written by.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// Exact times, sparse files, extended attributes, link identity, and a CRC of it all.
    #[default]
    Stook,
    /// Byte for byte what zstash writes under Python 3.9 and later. Extended attributes and link
    /// identity are not written, and sparse files are dense.
    Zstash,
}

/// Widths of the numbers in a header block.
const ID_WIDTH: u32 = 8;
const SIZE_WIDTH: u32 = 12;

/// Appends the header of a member; `stored_len` bytes of data, less the sparse map, and their
/// padding are the caller's to add.
///
/// # Errors
/// [`VolumeError::Unstorable`] if the header breaks a rule stated at [`Header`], or takes more
/// than [`MAX_HEADER`]; `out` is then as before.
pub fn encode(header: &Header, dialect: Dialect, out: &mut Vec<u8>) -> Result<(), VolumeError> {
    let unstorable = |problem| VolumeError::Unstorable {
        name: header.name.clone(),
        problem,
    };
    check(header, dialect).map_err(unstorable)?;
    if header_len(header, dialect) + map_len(header, dialect) > MAX_HEADER {
        return Err(unstorable("its headers are too long"));
    }
    let start = out.len();
    out.resize(start + BLOCK_LEN, 0);
    put_records(header, dialect, out);
    let records_end = out.len();
    let main = main_block(header, dialect);
    let map = map_of(header, dialect);
    if dialect == Dialect::Stook {
        let mut crc = crc32fast::Hasher::new();
        crc.update(&out[start + BLOCK_LEN..records_end]);
        crc.update(&main);
        crc.update(&map);
        pax::put_header_crc(crc.finalize(), out);
    }
    let records_len = (out.len() - start - BLOCK_LEN) as u64;
    out[start..start + BLOCK_LEN].copy_from_slice(&block::extended(records_len));
    out.resize(start + (out.len() - start).next_multiple_of(BLOCK_LEN), 0);
    out.extend_from_slice(&main);
    out.extend_from_slice(&map);
    Ok(())
}

/// Returns the bytes of a member before its stored data: extended header and header block.
///
/// The sparse map is not among them, it counts as stored data.
pub fn header_len(header: &Header, dialect: Dialect) -> u64 {
    let mut records = RecordsLen::default();
    put_records(header, dialect, &mut records);
    let len = records.0
        + if dialect == Dialect::Stook {
            pax::HEADER_CRC_LEN as u64
        } else {
            0
        };
    2 * BLOCK + len + padding(len)
}

/// Returns the bytes of data a member stores, the sparse map included, the padding not.
pub fn stored_len(header: &Header, dialect: Dialect) -> u64 {
    match segments(header, dialect) {
        Some(segments) => sparse::data_len(segments).saturating_add(map_len(header, dialect)),
        None if header.kind.has_content() => header.size,
        None => 0,
    }
}

/// Returns the bytes from the first of a member to the first of the next one.
pub fn member_len(header: &Header, dialect: Dialect) -> u64 {
    let stored = stored_len(header, dialect);
    header_len(header, dialect)
        .saturating_add(stored)
        .saturating_add(padding(stored))
}

fn map_len(header: &Header, dialect: Dialect) -> u64 {
    segments(header, dialect).map_or(0, |segments| sparse::map_len(segments, header.size))
}

fn map_of(header: &Header, dialect: Dialect) -> Vec<u8> {
    let mut map = Vec::new();
    if let Some(segments) = segments(header, dialect) {
        sparse::put_map(segments, header.size, &mut map);
    }
    map
}

/// Returns the segments to write if the member becomes a sparse one.
fn segments(header: &Header, dialect: Dialect) -> Option<&[Segment]> {
    match (dialect, header.kind) {
        (Dialect::Stook, Kind::File) => header.sparse.as_deref(),
        _ => None,
    }
}

fn check(header: &Header, dialect: Dialect) -> Result<(), &'static str> {
    let has_nul = |text: &[u8]| memchr::memchr(0, text).is_some();
    if header.name.is_empty() || header.name.ends_with(b"/") || header.name.starts_with(b"./") {
        return Err("its name is empty, or begins with `./`, or ends with `/`");
    }
    if [&header.name, &header.target, &header.uname, &header.gname]
        .iter()
        .any(|text| has_nul(text))
    {
        return Err("a name with a NUL byte");
    }
    if header.kind.has_target() && header.target.is_empty() {
        return Err("a link without a target");
    }
    if header.mtime.nanoseconds >= 1_000_000_000 {
        return Err("a time with more than a second of nanoseconds");
    }
    if i64::try_from(header.size).is_err() {
        return Err("a size past all file systems");
    }
    let (major, minor) = header.device;
    if header.kind.is_device()
        && [major, minor]
            .iter()
            .any(|n| !number::fits_octal(u64::from(*n), ID_WIDTH))
    {
        return Err("a device number past 2,097,151");
    }
    if dialect == Dialect::Stook
        && header
            .xattrs
            .iter()
            .any(|(name, _)| name.is_empty() || has_nul(name))
    {
        return Err("an extended attribute whose name is empty or has a NUL byte");
    }
    segments(header, dialect).map_or(Ok(()), |segments| {
        sparse::check_writable(segments, header.size)
    })
}

/// Returns the name as a tar file has it: that of a directory ends with a slash.
fn stored_name(header: &Header) -> Cow<'_, [u8]> {
    match header.kind {
        Kind::Directory => Cow::Owned([&header.name, &b"/"[..]].concat()),
        _ => Cow::Borrowed(&header.name),
    }
}

/// Writes all records but the closing one, in the order of Python's `tarfile`.
fn put_records(header: &Header, dialect: Dialect, sink: &mut impl RecordSink) {
    let name = stored_name(header);
    let segments = segments(header, dialect);
    let target: &[u8] = if header.kind.has_target() {
        &header.target
    } else {
        &[]
    };
    let link = header.link.as_deref().filter(|_| dialect == Dialect::Stook);
    let names = [
        &name,
        target,
        &header.uname,
        &header.gname,
        link.unwrap_or_default(),
    ];
    if names.iter().any(|text| std::str::from_utf8(text).is_err()) {
        let (keyword, value) = pax::RAW_NAMES;
        sink.record(keyword, value);
    }
    let texts: [(&[u8], &[u8], usize); 4] = [
        (b"path", if segments.is_some() { &[] } else { &name }, 100),
        (b"linkpath", target, 100),
        (b"uname", &header.uname, 32),
        (b"gname", &header.gname, 32),
    ];
    for (keyword, text, limit) in texts {
        if text.len() > limit || !text.is_ascii() {
            sink.record(keyword, text);
        }
    }
    let stored = stored_len(header, dialect);
    let numbers: [(&[u8], u64, u32); 3] = [
        (b"uid", header.uid, ID_WIDTH),
        (b"gid", header.gid, ID_WIDTH),
        (b"size", stored, SIZE_WIDTH),
    ];
    for (keyword, value, width) in numbers {
        if !number::fits_octal(value, width) {
            put_number(keyword, value, sink);
        }
    }
    let mtime = match dialect {
        Dialect::Stook => number::exact_time(header.mtime),
        Dialect::Zstash => number::python_float(header.mtime.as_float()),
    };
    sink.record(b"mtime", mtime.as_bytes());
    if segments.is_some() {
        sink.record(b"GNU.sparse.major", b"1");
        sink.record(b"GNU.sparse.minor", b"0");
        sink.record(b"GNU.sparse.name", &name);
        put_number(b"GNU.sparse.realsize", header.size, sink);
    }
    if dialect == Dialect::Stook {
        put_xattrs(&header.xattrs, sink);
    }
    if let Some(link) = link {
        sink.record(pax::LINK, link);
    }
}

fn put_number(keyword: &[u8], value: u64, sink: &mut impl RecordSink) {
    let mut digits = Vec::new();
    number::put_decimal(value, &mut digits);
    sink.record(keyword, &digits);
}

fn put_xattrs(xattrs: &[(Vec<u8>, Vec<u8>)], sink: &mut impl RecordSink) {
    let mut sorted: Vec<_> = xattrs.iter().collect();
    sorted.sort();
    for (name, value) in sorted {
        sink.record(&pax::xattr_keyword(name), value);
    }
}

/// Returns the header block. The name of a sparse member says so to readers that do not know
/// the format, as GNU tar does.
fn main_block(header: &Header, dialect: Dialect) -> block::Block {
    let mut main = block::of_header(header);
    if segments(header, dialect).is_some() {
        let base = header
            .name
            .rsplit(|byte| *byte == b'/')
            .next()
            .unwrap_or_default();
        NAME.put_text(&mut main, &[b"GNUSparseFile.0/", base].concat());
    } else {
        NAME.put_text(&mut main, &stored_name(header));
    }
    SIZE.put_number(&mut main, stored_len(header, dialect));
    block::set_checksum(&mut main);
    main
}
