//! Which files a command may read: those that the user named, with all that is in the trees among them, and words of the
//! command that are paths.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use stook_sys::{FileKind, into_inner, lock};
use stook_tree::Detail;

use crate::Observer;
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
/// [`BenchError::Sys`] if one that was named cannot be resolved or read, [`BenchError::Refused`] if there are too many,
/// [`BenchError::Interrupted`].
pub(crate) fn named_paths(
    named: &[PathBuf],
    observer: &dyn Observer,
) -> Result<Vec<PathBuf>, BenchError> {
    at_most(MOST_PATHS, named, observer)
}

fn at_most(
    most: usize,
    named: &[PathBuf],
    observer: &dyn Observer,
) -> Result<Vec<PathBuf>, BenchError> {
    let found = Found {
        observer,
        most,
        paths: Mutex::default(),
        is_full: AtomicBool::new(false),
    };
    let added = named.iter().try_for_each(|path| found.add(path));
    if found.is_full.into_inner() {
        let what = format!("the trees of the command hold more than {most} files");
        return Err(BenchError::refused_with(Remedy::NameInputs, what));
    }
    added?;
    let mut paths = into_inner(found.paths);
    paths.sort();
    paths.dedup();
    Ok(paths)
}

/// Paths found so far. As the observer of a walk it ends that once there are too many.
struct Found<'a> {
    observer: &'a dyn Observer,
    most: usize,
    paths: Mutex<Vec<PathBuf>>,
    is_full: AtomicBool,
}

impl Observer for Found<'_> {
    fn is_stopped(&self) -> bool {
        self.is_full.load(Ordering::Relaxed) || self.observer.is_stopped()
    }
}

impl Found<'_> {
    fn add(&self, path: &Path) -> Result<(), BenchError> {
        let path = stook_sys::absolute(path)?;
        match stook_sys::look_at(&path)?.kind {
            FileKind::Directory => self.add_tree(&path)?,
            _ => self.extend([path]),
        }
        Ok(())
    }

    fn add_tree(&self, tree: &Path) -> Result<(), BenchError> {
        each_directory(tree, Detail::Kinds, self, |listing| {
            let directory = match listing.path.as_slice() {
                b"" => tree.to_owned(),
                path => tree.join(OsStr::from_bytes(path)),
            };
            let files = listing.entries.iter();
            let files = files.filter(|entry| entry.kind() == FileKind::File);
            let files = files.map(|file| directory.join(OsStr::from_bytes(listing.name(file))));
            self.extend(files.chain([directory.clone()]));
        })
    }

    /// Takes no more than are refused: one directory alone may hold any number.
    fn extend(&self, found: impl IntoIterator<Item = PathBuf>) {
        let mut paths = lock(&self.paths);
        let room = (self.most + 1).saturating_sub(paths.len());
        paths.extend(found.into_iter().take(room));
        if paths.len() > self.most {
            self.is_full.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Quiet;
    use stook_testkit::TempDir;

    /// Counts how often a walk asks whether to end.
    #[derive(Default)]
    struct Asked(std::sync::atomic::AtomicUsize);

    impl Observer for Asked {
        fn is_stopped(&self) -> bool {
            self.0.fetch_add(1, Ordering::Relaxed);
            false
        }
    }

    #[test]
    fn a_tree_with_too_many_files_is_not_walked_to_its_end() {
        let folder = TempDir::new().unwrap();
        for number in 0..400 {
            let directory = folder.join(format!("{number}"));
            std::fs::create_dir(&directory).unwrap();
            std::fs::write(directory.join("a"), "").unwrap();
        }
        let named = [folder.path().to_owned()];
        let all = Asked::default();
        assert_eq!(at_most(801, &named, &all).unwrap().len(), 801);
        let few = Asked::default();
        let error = at_most(20, &named, &few).unwrap_err();
        assert_eq!(error.remedy(), Some(&Remedy::NameInputs));
        assert!(error.to_string().ends_with("more than 20 files"), "{error}");
        let [few, all] = [few, all].map(|asked| asked.0.into_inner());
        assert!(few * 2 < all, "asked {few} times of {all}");
        // One directory, of which the walk knows all names at once.
        let named = [folder.join("7")];
        assert!(at_most(2, &named, &()).is_ok() && at_most(1, &named, &()).is_err());
    }

    #[test]
    fn the_user_may_end_the_walk() {
        let folder = TempDir::new().unwrap();
        let found = named_paths(&[folder.path().to_owned()], &Quiet::stopped());
        assert!(matches!(found, Err(BenchError::Interrupted)));
    }
}
