//! Which files a command may read: those that the user named, with all that is in the trees among them, and words of the
//! command that are paths.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use stook_sys::{Context, Directory, FileKind, Links, NameBuffer};

use crate::error::BenchError;
use crate::remedy::Remedy;

/// So many paths are kept in memory, some 100 MB; nobody needs more for a proof.
const MOST_PATHS: usize = 1_000_000;

/// Returns the words of a command that name files or directories; the program itself is not among them.
pub(crate) fn words_that_are_paths(command: &[OsString], directory: Option<&Path>) -> Vec<PathBuf> {
    let words = command.iter().skip(1);
    let paths = words.map(|word| directory.unwrap_or(Path::new("")).join(word));
    let is_there = |path: &PathBuf| matches!(stook_sys::exists(path), Ok(Some(_)));
    paths.filter(is_there).collect()
}

/// Returns these files and all that is in these trees, with all links on the way to them resolved. Trees are not left
/// through links in them; what is neither a file nor a directory is passed over.
///
/// # Errors
/// [`BenchError::Sys`] if one that was named cannot be resolved or read, [`BenchError::Refused`] if there are too many.
pub(crate) fn named_paths(named: &[PathBuf]) -> Result<Vec<PathBuf>, BenchError> {
    let mut paths = Vec::new();
    let mut directories = Vec::new();
    for path in named {
        let path = stook_sys::absolute(path)?;
        match stook_sys::look_at(&path)?.kind {
            FileKind::Directory => directories.push(path),
            _ => paths.push(path),
        }
    }
    let mut buffer = NameBuffer::default();
    while let Some(path) = directories.pop() {
        add_names(&path, &mut buffer, &mut paths, &mut directories)?;
        paths.push(path);
        if paths.len() + directories.len() > MOST_PATHS {
            let what = format!("the trees of the command hold more than {MOST_PATHS} files");
            return Err(BenchError::refused_with(Remedy::NameInputs, what));
        }
    }
    paths.sort();
    paths.dedup();
    Ok(paths)
}

fn add_names(
    path: &Path,
    buffer: &mut NameBuffer,
    paths: &mut Vec<PathBuf>,
    directories: &mut Vec<PathBuf>,
) -> Result<(), BenchError> {
    let directory = Directory::open(path)?;
    let visited = directory.names(buffer, |found| {
        let path = path.join(OsStr::from_bytes(found.name));
        let kind = found.kind.or_else(|| {
            let metadata = directory.metadata(found.name, Links::Refuse);
            metadata.ok().map(|metadata| metadata.kind)
        });
        match kind {
            Some(FileKind::File) => paths.push(path),
            Some(FileKind::Directory) => directories.push(path),
            _ => {}
        }
    });
    Ok(visited.context("read", path)?)
}
