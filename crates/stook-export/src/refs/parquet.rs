//! References as a folder of Parquet files, which fsspec reads when a chunk is asked for.
//!
//! ```text
//!   PAR1 | path: dictionary, levels and numbers in runs | offset | size | footer | its length | PAR1
//! ```
//! No more of the format than that: three columns, one group of rows, nothing compressed. Consecutive chunks mostly lie in one
//! volume, so their paths are a few runs.
//!
//! # Source
//! <https://parquet.apache.org/docs/file-format/>; the compact protocol of Thrift.

use std::path::Path;

use serde_json::json;
use stook_archive::{Archive, VolumeId};
use stook_sys::{SysError, create_directory, exists, write_file};

use super::zarr::{Arrays, Part};
use super::{Found, Piece, refused};
use crate::{ExportError, Refusal};

/// References in one file, as kerchunk has them.
const RECORD: u64 = 10_000;

/// More files of one array are not written: a mistake in its shape, most likely.
const MOST_RECORDS: u64 = 100_000;

/// A chunk and where it lies.
type Chunk = ((u32, u64), Piece);

pub(super) fn write(
    archive: &mut Archive,
    prefix: &str,
    found: &mut Found<'_>,
    folder: &Path,
) -> Result<(), ExportError> {
    let arrays = Arrays::read(archive, found.list, found.below)?;
    if arrays.each().next().is_none() {
        return Err(ExportError::NoArray);
    }
    let chunks = chunks_of(archive, &arrays, found)?;
    found.require_volumes()?;
    create_new_folder(folder)?;
    for (field, array, count) in arrays.each() {
        let records = count.div_ceil(RECORD);
        if records > MOST_RECORDS {
            return Err(ExportError::BadZarr {
                path: format!("{field}/.zarray"),
                why: format!("it has {count} chunks"),
            });
        }
        create_directory(&folder.join(field))?;
        for record in 0..records {
            found.require_going_on()?;
            let range = record * RECORD..((record + 1) * RECORD).min(count);
            let from = chunks.partition_point(|&(key, _)| key < (array, range.start));
            let to = chunks.partition_point(|&(key, _)| key < (array, range.end));
            let file = file_of(&chunks[from..to], &range, prefix);
            write_file(
                &folder.join(field).join(format!("refs.{record}.parq")),
                &file,
            )?;
        }
    }
    // The last one: without it the rest is nothing.
    let metadata = json!({"metadata": arrays.metadata, "record_size": RECORD});
    Ok(write_file(
        &folder.join(".zmetadata"),
        metadata.to_string().as_bytes(),
    )?)
}

/// A folder that is there already may hold anything.
fn create_new_folder(folder: &Path) -> Result<(), SysError> {
    if exists(folder)?.is_some() {
        return Err(SysError {
            operation: "create",
            path: folder.to_owned(),
            source: std::io::ErrorKind::AlreadyExists.into(),
        });
    }
    create_directory(folder)
}

/// Returns the chunks in their order; reports what is none.
fn chunks_of(
    archive: &mut Archive,
    arrays: &Arrays,
    found: &mut Found<'_>,
) -> Result<Vec<Chunk>, ExportError> {
    let mut chunks = Vec::new();
    found.each(archive, |found, row, path, piece| {
        match arrays.part(path) {
            Part::Metadata => found.count_inlined(piece),
            Part::Chunk { array, number } => {
                chunks.push(((array, number), piece));
                found.count(piece);
            }
            Part::Other => found.fail(row.name, refused(Refusal::NotZarr)),
        }
        found.require_going_on()
    })?;
    chunks.sort_unstable_by_key(|chunk| chunk.0);
    Ok(chunks)
}

/// Returns the file of a range of chunks, those that are not there without a path.
fn file_of(chunks: &[Chunk], range: &std::ops::Range<u64>, prefix: &str) -> Vec<u8> {
    let mut columns = Columns::default();
    let mut next = range.start;
    for &((_, number), piece) in chunks {
        columns.push_missing(number - next);
        columns.push(piece);
        next = number + 1;
    }
    columns.push_missing(range.end - next);
    columns.into_file(prefix)
}

/// The three columns of a file.
#[derive(Debug, Default)]
struct Columns {
    volumes: Vec<VolumeId>,
    /// Runs of rows that have a path, or have none.
    levels: Runs,
    /// Runs of rows with the same volume.
    numbers: Runs,
    offsets: Vec<u8>,
    sizes: Vec<u8>,
    rows: i64,
}

impl Columns {
    fn push(&mut self, piece: Piece) {
        let place = self
            .volumes
            .iter()
            .rposition(|&volume| volume == piece.volume);
        let place = place.unwrap_or_else(|| {
            self.volumes.push(piece.volume);
            self.volumes.len() - 1
        });
        self.levels.push(1, 1);
        self.numbers.push(place as u64, 1);
        self.offsets.extend_from_slice(&piece.offset.to_le_bytes());
        self.sizes.extend_from_slice(&piece.len.to_le_bytes());
        self.rows += 1;
    }

    fn push_missing(&mut self, rows: u64) {
        self.levels.push(0, rows);
        for _ in 0..rows {
            self.offsets.extend_from_slice(&[0; 8]);
            self.sizes.extend_from_slice(&[0; 8]);
            self.rows += 1;
        }
    }

    fn into_file(self, prefix: &str) -> Vec<u8> {
        let mut file = b"PAR1".to_vec();
        let path = self.put_paths(&mut file, prefix);
        let offset = put_plain(&mut file, &self.offsets, self.rows, "offset");
        let size = put_plain(&mut file, &self.sizes, self.rows, "size");
        let footer = footer_of(&[path, offset, size], self.rows);
        file.extend_from_slice(&footer);
        let len = u32::try_from(footer.len()).expect("a footer has some hundred bytes");
        file.extend_from_slice(&len.to_le_bytes());
        file.extend_from_slice(b"PAR1");
        file
    }

    fn put_paths(&self, file: &mut Vec<u8>, prefix: &str) -> Column {
        let start = file.len();
        let mut dictionary = Vec::new();
        for volume in &self.volumes {
            let path = format!("{prefix}{volume}");
            dictionary.extend_from_slice(&length(path.len()).to_le_bytes());
            dictionary.extend_from_slice(path.as_bytes());
        }
        let entries = i64::try_from(self.volumes.len()).unwrap_or(i64::MAX);
        put_page(file, PageKind::Dictionary, &dictionary, entries);
        let data = file.len();
        let mut page = Vec::new();
        let levels = self.levels.encoded(1);
        page.extend_from_slice(&length(levels.len()).to_le_bytes());
        page.extend_from_slice(&levels);
        let most = (self.volumes.len() as u64).saturating_sub(1);
        let bits = (u64::BITS - most.leading_zeros()).max(1);
        page.push(u8::try_from(bits).expect("at most 64"));
        page.extend_from_slice(&self.numbers.encoded(bits));
        put_page(file, PageKind::Numbers, &page, self.rows);
        Column {
            name: "path",
            start,
            data,
            end: file.len(),
        }
    }
}

fn put_plain(file: &mut Vec<u8>, values: &[u8], rows: i64, name: &'static str) -> Column {
    let start = file.len();
    put_page(file, PageKind::Plain, values, rows);
    Column {
        name,
        start,
        data: start,
        end: file.len(),
    }
}

/// Values and how often each follows itself.
#[derive(Debug, Default)]
struct Runs(Vec<(u64, u64)>);

impl Runs {
    fn push(&mut self, value: u64, times: u64) {
        match self.0.last_mut() {
            Some(last) if last.0 == value => last.1 += times,
            _ if times > 0 => self.0.push((value, times)),
            _ => {}
        }
    }

    /// Returns them as Parquet's hybrid of runs and packed bits, of which it uses runs only.
    fn encoded(&self, bits: u32) -> Vec<u8> {
        let mut out = Vec::new();
        for &(value, times) in &self.0 {
            put_varint(&mut out, times << 1);
            let bytes = usize::try_from(bits.div_ceil(8)).expect("at most 8");
            out.extend_from_slice(&value.to_le_bytes()[..bytes]);
        }
        out
    }
}

/// Where a column lies in its file.
#[derive(Debug)]
struct Column {
    name: &'static str,
    start: usize,
    data: usize,
    end: usize,
}

#[derive(Debug, Clone, Copy)]
enum PageKind {
    Dictionary,
    /// Places in the dictionary.
    Numbers,
    Plain,
}

// Numbers of the format.
const INT64: i64 = 2;
const BYTE_ARRAY: i64 = 6;
const REQUIRED: i64 = 0;
const OPTIONAL: i64 = 1;
const UTF8: i64 = 0;
const PLAIN: i64 = 0;
const RLE: i64 = 3;
const RLE_DICTIONARY: i64 = 8;
const DATA_PAGE: i64 = 0;
const DICTIONARY_PAGE: i64 = 2;
const UNCOMPRESSED: i64 = 0;

fn put_page(file: &mut Vec<u8>, kind: PageKind, page: &[u8], values: i64) {
    let mut header = Struct::default();
    let len = i64::from(length(page.len()));
    let (kind_of_page, encoding, field) = match kind {
        PageKind::Dictionary => (DICTIONARY_PAGE, PLAIN, 7),
        PageKind::Numbers => (DATA_PAGE, RLE_DICTIONARY, 5),
        PageKind::Plain => (DATA_PAGE, PLAIN, 5),
    };
    header.int32(1, kind_of_page);
    header.int32(2, len);
    header.int32(3, len);
    let mut of_kind = Struct::default();
    of_kind.int32(1, values);
    of_kind.int32(2, encoding);
    if field == 5 {
        of_kind.int32(3, RLE);
        of_kind.int32(4, RLE);
    }
    header.structure(field, of_kind);
    file.extend_from_slice(&header.finish());
    file.extend_from_slice(page);
}

fn footer_of(columns: &[Column], rows: i64) -> Vec<u8> {
    let mut root = Struct::default();
    root.text(4, "schema");
    root.int32(5, i64::try_from(columns.len()).expect("three"));
    let mut schema = vec![root];
    let mut chunks = Vec::new();
    let mut bytes = 0;
    for column in columns {
        let is_path = column.name == "path";
        let mut element = Struct::default();
        element.int32(1, if is_path { BYTE_ARRAY } else { INT64 });
        element.int32(3, if is_path { OPTIONAL } else { REQUIRED });
        element.text(4, column.name);
        if is_path {
            element.int32(6, UTF8);
        }
        schema.push(element);
        bytes += place(column.end - column.start);
        let mut chunk = Struct::default();
        chunk.int64(2, place(column.start));
        chunk.structure(3, metadata_of(column, rows));
        chunks.push(chunk);
    }
    let mut group = Struct::default();
    group.structures(1, chunks);
    group.int64(2, bytes);
    group.int64(3, rows);
    let mut file = Struct::default();
    file.int32(1, 1);
    file.structures(2, schema);
    file.int64(3, rows);
    file.structures(4, vec![group]);
    file.text(6, "stook");
    file.finish()
}

fn metadata_of(column: &Column, rows: i64) -> Struct {
    let is_path = column.name == "path";
    let bytes = place(column.end - column.start);
    let mut metadata = Struct::default();
    metadata.int32(1, if is_path { BYTE_ARRAY } else { INT64 });
    let encodings: &[i64] = if is_path {
        &[PLAIN, RLE, RLE_DICTIONARY]
    } else {
        &[PLAIN]
    };
    metadata.int32s(2, encodings);
    metadata.texts(3, &[column.name]);
    metadata.int32(4, UNCOMPRESSED);
    metadata.int64(5, rows);
    metadata.int64(6, bytes);
    metadata.int64(7, bytes);
    metadata.int64(9, place(column.data));
    if is_path {
        metadata.int64(11, place(column.start));
    } else {
        // Unless it is said that none is missing, fastparquet takes numbers for fractions.
        let mut statistics = Struct::default();
        statistics.int64(3, 0);
        metadata.structure(12, statistics);
    }
    metadata
}

/// A structure in Thrift's compact protocol; fields must ascend.
#[derive(Debug, Default)]
struct Struct {
    bytes: Vec<u8>,
    last: u8,
}

const THRIFT_I32: u8 = 5;
const THRIFT_I64: u8 = 6;
const THRIFT_BINARY: u8 = 8;
const THRIFT_LIST: u8 = 9;
const THRIFT_STRUCT: u8 = 12;

impl Struct {
    fn field(&mut self, number: u8, kind: u8) {
        self.bytes.push((number - self.last) << 4 | kind);
        self.last = number;
    }

    fn int32(&mut self, number: u8, value: i64) {
        self.field(number, THRIFT_I32);
        put_varint(&mut self.bytes, zigzag(value));
    }

    fn int64(&mut self, number: u8, value: i64) {
        self.field(number, THRIFT_I64);
        put_varint(&mut self.bytes, zigzag(value));
    }

    fn text(&mut self, number: u8, text: &str) {
        self.field(number, THRIFT_BINARY);
        put_text(&mut self.bytes, text);
    }

    fn structure(&mut self, number: u8, inner: Self) {
        self.field(number, THRIFT_STRUCT);
        self.bytes.extend_from_slice(&inner.finish());
    }

    fn list(&mut self, number: u8, kind: u8, len: usize) {
        self.field(number, THRIFT_LIST);
        let len = u8::try_from(len).ok().filter(|&len| len < 15);
        self.bytes
            .push(len.expect("lists here are short") << 4 | kind);
    }

    fn int32s(&mut self, number: u8, values: &[i64]) {
        self.list(number, THRIFT_I32, values.len());
        for &value in values {
            put_varint(&mut self.bytes, zigzag(value));
        }
    }

    fn texts(&mut self, number: u8, texts: &[&str]) {
        self.list(number, THRIFT_BINARY, texts.len());
        for text in texts {
            put_text(&mut self.bytes, text);
        }
    }

    fn structures(&mut self, number: u8, list: Vec<Self>) {
        self.list(number, THRIFT_STRUCT, list.len());
        for inner in list {
            self.bytes.extend_from_slice(&inner.finish());
        }
    }

    fn finish(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put_varint(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63).cast_unsigned()
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(u8::try_from(value & 0x7f).expect("seven bits") | 0x80);
        value >>= 7;
    }
    out.push(u8::try_from(value).expect("seven bits"));
}

fn length(len: usize) -> u32 {
    u32::try_from(len).expect("a file of 10,000 references is small")
}

fn place(offset: usize) -> i64 {
    i64::try_from(offset).expect("a file of 10,000 references is small")
}
