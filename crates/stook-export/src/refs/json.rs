//! References as one file of JSON, a line for each file.

use std::io::{self, Write};
use std::path::Path;

use stook_archive::Archive;
use stook_sys::Context;

use super::{Found, Piece};
use crate::ExportError;
use crate::new_file::{NewFile, require_not_of};

/// Writes a file, which gets its name when it is whole.
pub(super) fn write_file(
    archive: &mut Archive,
    prefix: &str,
    found: &mut Found<'_>,
    path: &Path,
) -> Result<(), ExportError> {
    require_not_of(archive.path(), path)?;
    let mut file = NewFile::create(path)?;
    match write(archive, prefix, found, &mut file.out) {
        Err(ExportError::Output(error)) => Err(error).context("write", path)?,
        written => written?,
    }
    Ok(file.finish()?)
}

pub(super) fn write(
    archive: &mut Archive,
    prefix: &str,
    found: &mut Found<'_>,
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    // Without the quotation mark at its end.
    let prefix = quoted(prefix);
    let prefix = &prefix[..prefix.len() - 1];
    out.write_all(b"{\"version\":1,\"refs\":{")
        .map_err(ExportError::Output)?;
    let mut separator = "\n";
    found.each(archive, |found, _, path, piece| {
        write_piece(&mut *out, separator, &quoted(path), prefix, piece)
            .map_err(ExportError::Output)?;
        separator = ",\n";
        found.count(piece);
        found.require_going_on()
    })?;
    found.require_volumes()?;
    out.write_all(b"\n}}\n").map_err(ExportError::Output)
}

fn write_piece(
    out: &mut dyn Write,
    separator: &str,
    path: &str,
    prefix: &str,
    piece: Piece,
) -> io::Result<()> {
    let Piece {
        volume,
        offset,
        len,
    } = piece;
    if len == 0 {
        // No server gives a range without bytes.
        return write!(out, "{separator}{path}:\"\"");
    }
    write!(out, "{separator}{path}:[{prefix}{volume}\",{offset},{len}]")
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
