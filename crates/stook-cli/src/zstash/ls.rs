//! `ls`: every version of the files that match, in the order of the volumes.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::Path;

use stook_archive::{Archive, RowRef, Silent, Volume, VolumeId};

use super::argparse::Values;
use super::context::Context;
use super::error::FrontError;
use super::glob::Glob;
use super::messages;
use super::phases::Phase;
use super::settings::{Cache, hpss};
use super::store::{recorded_place, store};
use super::update::{open, require_index};
use crate::output::{Data, hex};

pub(crate) fn ls(values: &Values, context: &Context) -> Result<(), FrontError> {
    let log = &context.log;
    let cache = Cache::of(values, Path::new(""));
    let typed = hpss(values);
    log.debug("Opening index database");
    let typed_place = typed.as_deref().unwrap_or("none");
    let typed_store = store(typed_place, true)?;
    require_index(&cache, typed_store.as_ref(), context, &Silent)?;
    let archive = open(&cache)?;
    archive.config()?;
    log.debug(&messages::running("ls"));
    let hpss = match typed {
        Some(typed) => typed,
        None => recorded_place(&archive)?,
    };
    log.debug(&format!("HPSS path  : {hpss}"));
    context.phases.begin(Phase::Gather);
    let patterns = values.texts("files").iter();
    let mut list = List {
        patterns: patterns.map(|text| Glob::new(text)).collect(),
        is_long: values.switch("long"),
        data: Data::new(),
        volume: (None, Vec::new()),
        line: Vec::new(),
        rows: 0,
        bytes: 0,
    };
    let listed = list.rows(&archive, context);
    context.phases.advance(list.rows, list.bytes);
    listed?;
    if values.switch("tars") {
        let records = archive.volume_records()?;
        list.tars(records).map_err(FrontError::Output)?;
    }
    list.data.flush().map_err(FrontError::Output)
}

struct List {
    patterns: Vec<Glob>,
    is_long: bool,
    data: Data,
    /// The volume of the last row, and its name.
    volume: (Option<VolumeId>, Vec<u8>),
    /// The line that is put together.
    line: Vec<u8>,
    rows: u64,
    bytes: u64,
}

impl List {
    fn rows(&mut self, archive: &Archive, context: &Context) -> Result<(), FrontError> {
        let mut outcome = Ok(());
        archive.rows_by_place(|row| {
            outcome = self.row(&row);
            if outcome.is_err() || context.is_interrupted() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })?;
        outcome.map_err(FrontError::Output)?;
        if self.rows == 0 {
            let text = messages::NOTHING_TO_LIST;
            return Err(FrontError::raised("FileNotFoundError", text));
        }
        Ok(())
    }

    fn row(&mut self, row: &RowRef<'_>) -> io::Result<()> {
        if self.volume.0 != Some(row.volume) {
            self.volume = (Some(row.volume), row.volume.to_string().into_bytes());
        }
        let volume = &self.volume.1;
        let is_wanted = |glob: &Glob| glob.matches(row.name) || glob.matches(volume);
        if !self.patterns.iter().any(is_wanted) {
            return Ok(());
        }
        self.rows += 1;
        self.bytes += row.size;
        let out = self.data.bytes();
        if self.is_long && self.rows == 1 {
            out.write_all(b"id\tname\tsize\tmtime\tmd5\ttar\toffset\n")?;
        }
        if !self.is_long {
            out.write_all(row.name)?;
            return out.write_all(b"\n");
        }
        let line = &mut self.line;
        line.clear();
        push_number(line, row.id.0.unsigned_abs());
        line.push(b'\t');
        line.extend_from_slice(row.name);
        line.push(b'\t');
        push_number(line, row.size);
        write!(line, "\t{}\t", row.mtime)?;
        match row.md5 {
            Some(md5) => push_hex(line, &md5),
            None => line.extend_from_slice(b"None"),
        }
        line.push(b'\t');
        line.extend_from_slice(volume);
        line.push(b'\t');
        push_number(line, row.offset);
        // zstash ends every row with a tab.
        line.extend_from_slice(b"\t\n");
        out.write_all(line)
    }

    fn tars(&mut self, records: Option<Vec<(i64, Volume)>>) -> io::Result<()> {
        let Some(mut records) = records else {
            return self.data.line(messages::NO_TARS_TABLE);
        };
        if records.is_empty() {
            return Ok(());
        }
        records.sort_by_key(|(id, volume)| (volume.id, *id));
        self.data.line("\nTars:")?;
        if self.is_long {
            self.data.line("id\tname\tsize\tmd5")?;
        }
        for (id, volume) in records {
            let name = volume.id;
            if self.is_long {
                let md5 = volume
                    .md5
                    .map_or_else(|| "None".to_owned(), |md5| hex(&md5));
                let line = format!("{id}\t{name}\t{}\t{md5}\t", volume.size);
                self.data.line(&line)?;
            } else {
                self.data.line(&name.to_string())?;
            }
        }
        Ok(())
    }
}

/// Rust's own formatting takes several times as long, which is felt in a million rows.
fn push_number(line: &mut Vec<u8>, mut number: u64) {
    let start = line.len();
    loop {
        line.push(b'0' + u8::try_from(number % 10).unwrap_or(0));
        number /= 10;
        if number == 0 {
            break;
        }
    }
    line[start..].reverse();
}

fn push_hex(line: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for &byte in bytes {
        line.push(DIGITS[usize::from(byte >> 4)]);
        line.push(DIGITS[usize::from(byte & 15)]);
    }
}
