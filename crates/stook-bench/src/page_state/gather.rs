//! Which files a command may read: those that the user named, with all that is in the trees among them, and words of the
//! command that are paths.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use stook_sys::{FileKind, into_inner, lock};
use stook_tree::Detail;

use crate::error::BenchError;
use crate::remedy::Remedy;
use crate::trees::each_directory;

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
    let paths = Mutex::new(Vec::new());
    for path in named {
        let path = stook_sys::absolute(path)?;
        match stook_sys::look_at(&path)?.kind {
            FileKind::Directory => add_tree(&path, &paths)?,
            _ => lock(&paths).push(path),
        }
    }
    let mut paths = into_inner(paths);
    if paths.len() > MOST_PATHS {
        let what = format!("the trees of the command hold more than {MOST_PATHS} files");
        return Err(BenchError::refused_with(Remedy::NameInputs, what));
    }
    paths.sort();
    paths.dedup();
    Ok(paths)
}

fn add_tree(tree: &Path, paths: &Mutex<Vec<PathBuf>>) -> Result<(), BenchError> {
    each_directory(tree, Detail::Kinds, |listing| {
        let directory = match listing.path.as_slice() {
            b"" => tree.to_owned(),
            path => tree.join(OsStr::from_bytes(path)),
        };
        let mut paths = lock(paths);
        // Beyond that all are refused anyway.
        if paths.len() > MOST_PATHS {
            return;
        }
        let files = listing.entries.iter();
        let files = files.filter(|entry| entry.kind() == FileKind::File);
        let files = files.map(|file| directory.join(OsStr::from_bytes(listing.name(file))));
        paths.extend(files);
        paths.push(directory);
    })
}
