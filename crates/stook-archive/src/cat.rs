//! `cat`: the content of one member.

use std::io::{self, Write};
use std::path::Path;

use stook_index::{AsOf, Index, Row};
use stook_timers::scope;

use crate::ArchiveError;
use crate::batch::{RowBatch, Volumes, Window, disagreement};
use crate::cause::Cause;
use crate::content_md5::ContentMd5;
use crate::deleted::explain_missing_name;
use crate::folder::Folder;
use crate::observer::Silent;

/// Writes the content of the member `name` to `output`.
///
/// # Errors
/// `NotInState` if only other states have the name, `NoSuchMember` if none has; `NotAFile` for a link, directory or
/// device; `Damaged` if the index does not tell where it is, or if the content, all of which has been written by then,
/// does not have its MD5 or may not be the newest; `Output` if the output fails.
pub fn cat(
    archive: &Path,
    name: &[u8],
    as_of: AsOf,
    output: &mut dyn Write,
) -> Result<(), ArchiveError> {
    let _scope = scope!("cat");
    let folder = Folder::new(archive);
    let index = folder.open_index()?;
    let damaged = |cause: Cause| ArchiveError::Damaged {
        name: name.to_vec(),
        cause,
    };
    let (row, doubt) = find(&index, name, as_of)?;
    let Some(row) = row else {
        if let Some(doubt) = doubt {
            return Err(damaged(doubt));
        }
        let missing = explain_missing_name(&folder, &index, name, as_of)?;
        return Err(missing.unwrap_or_else(|| ArchiveError::NoSuchMember {
            name: name.to_vec(),
            archive: archive.to_owned(),
        }));
    };
    let Some(expected) = row.md5 else {
        return Err(ArchiveError::NotAFile {
            name: name.to_vec(),
        });
    };
    let batch = RowBatch {
        volume: row.volume,
        rows: vec![row.clone()],
    };
    let volumes = Volumes::new(&folder);
    let file = volumes.get(row.volume)?;
    let window =
        Window::of(&batch, &file, &volumes.buffers).map_err(|error| damaged(error.into()))?;
    let member = window.member(row.offset).map_err(damaged)?;
    if let Some(cause) = disagreement(&row, &member) {
        return Err(damaged(cause));
    }
    let mut md5 = ContentMd5::new(name, row.size, &Silent);
    let mut position = 0;
    window
        .content(&member, |offset, bytes| -> Result<(), CatError> {
            md5.update(offset, bytes).map_err(io::Error::from)?;
            write_zeros(output, offset - position).map_err(CatError::Output)?;
            position = offset + bytes.len() as u64;
            output.write_all(bytes).map_err(CatError::Output)
        })
        .and_then(|()| {
            write_zeros(output, row.size.saturating_sub(position)).map_err(CatError::Output)
        })
        .and_then(|()| output.flush().map_err(CatError::Output))
        .map_err(|error| match error {
            CatError::Output(error) => ArchiveError::Output(error),
            CatError::Volume(error) => damaged(error.into()),
        })?;
    if md5.finish() != Ok(expected) {
        return Err(damaged(Cause::WrongMd5));
    }
    doubt.map_or(Ok(()), |doubt| Err(damaged(doubt)))
}

/// Returns the newest row of the name, and what stands against its being that.
fn find(
    index: &Index,
    name: &[u8],
    as_of: AsOf,
) -> Result<(Option<Row>, Option<Cause>), ArchiveError> {
    let found = index.find(name, as_of)?;
    let doubt = found.damage.map(|damage| {
        if damage.name.is_some() {
            Cause::Index(Box::new(damage))
        } else {
            Cause::MayBeNewer(Box::new(damage))
        }
    });
    Ok((found.row, doubt))
}

enum CatError {
    Output(io::Error),
    Volume(io::Error),
}

impl From<io::Error> for CatError {
    fn from(error: io::Error) -> Self {
        Self::Volume(error)
    }
}

fn write_zeros(output: &mut dyn Write, len: u64) -> io::Result<()> {
    io::copy(&mut io::Read::take(io::repeat(0), len), output).map(drop)
}
