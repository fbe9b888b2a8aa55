//! The directory that a file set is made in: made, or taken if it is empty.
//!
//! Only a directory that was made here is removed if the set cannot be completed. In one that was there others may have
//! put something meanwhile, another run of the same command above all.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use stook_sys::{Context, Directory, NameBuffer, display_path, free_space};
use stook_tree::{Guard, RemoveObserver, RemoveOptions, TreeError, remove};

use crate::Observer;
use crate::error::BenchError;
use crate::fileset::fill::DIRECTORY_MODE;
use crate::fileset::properties::Need;

/// A directory for a file set.
pub(super) struct Claimed {
    path: PathBuf,
    directory: Directory,
    was_there: bool,
}

impl Claimed {
    /// Makes the directory, or makes sure that it is empty.
    pub(super) fn new(path: &Path) -> Result<Self, BenchError> {
        let was_there = stook_sys::exists(path)?.is_some();
        if !was_there {
            make_directory(path)?;
        }
        let claimed = Self {
            path: path.to_owned(),
            directory: Directory::open(path)?,
            was_there,
        };
        if !was_there {
            let set = claimed.directory.set_own_mode(DIRECTORY_MODE);
            set.context("set the mode of", path)?;
        }
        if claimed.is_empty()? {
            return Ok(claimed);
        }
        Err(BenchError::Refused {
            what: format!("`{}` is not empty", display_path(path)),
            hint: Some("a file set needs a new or empty directory".to_owned()),
        })
    }

    fn is_empty(&self) -> Result<bool, BenchError> {
        let mut is_empty = true;
        // Opened anew: a descriptor goes on reading where it was.
        Directory::open(&self.path)?
            .names_up_to(&mut NameBuffer::default(), 1, |_| is_empty = false)
            .context("read", &self.path)?;
        Ok(is_empty)
    }

    pub(super) fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Refuses what the file system has no free space for.
    pub(super) fn require_free_space(&self, need: Need) -> Result<(), BenchError> {
        let free = free_space(&self.path)?;
        let refused = |needed, left, what| {
            Err(BenchError::Refused {
                what: format!(
                    "`{}` has too little free space: {needed} {what} are needed, {left} are left",
                    display_path(&self.path)
                ),
                hint: Some("ask for fewer files, or free some space".to_owned()),
            })
        };
        if need.bytes > free.bytes {
            return refused(need.bytes, free.bytes, "bytes");
        }
        match free.inodes {
            Some(inodes) if need.inodes > inodes => refused(need.inodes, inodes, "inodes"),
            _ => Ok(()),
        }
    }

    /// Removes it and all that is in it, if it was made here; tells of what stays.
    pub(super) fn give_back(self, observer: &dyn Observer) {
        if self.was_there {
            if matches!(self.is_empty(), Ok(false)) {
                let path = display_path(&self.path);
                observer.warning(&format!(
                    "`{path}` was there before: what was made in it stays"
                ));
            }
            return;
        }
        let given = Giving::default();
        observer.progress("removing what was made");
        // No refusals: it was made here, so it is neither the root nor above the working directory.
        match Guard::new(false, false).and_then(|guard| guard.admit(&self.path)) {
            Ok(tree) => drop(remove(&[tree], &RemoveOptions::default(), None, &given)),
            Err(error) => observer.warning(&error.to_string()),
        }
        let failed = given.failed.into_inner();
        if let Some(first) = given.first.into_inner().ok().flatten() {
            observer.warning(&format!("{failed} entries are left: {first}"));
        }
    }
}

/// Makes a directory, and none of those above it.
fn make_directory(path: &Path) -> Result<(), BenchError> {
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    let above = Directory::open_handle(above.unwrap_or(Path::new(".")))?;
    let name = path.file_name().unwrap_or(path.as_os_str());
    let made = above.create_directory(name.as_encoded_bytes(), DIRECTORY_MODE);
    Ok(made.context("create", path)?)
}

/// What could not be removed.
#[derive(Default)]
struct Giving {
    failed: AtomicU64,
    first: Mutex<Option<String>>,
}

impl stook_pool::Observer for Giving {
    type Failure = TreeError;

    fn failed(&self, error: &TreeError) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        let text = format!(
            "cannot {} `{}`: {}",
            error.operation,
            stook_sys::display_bytes(&error.path),
            stook_sys::cause(&error.source)
        );
        if let Ok(mut first) = self.first.lock() {
            first.get_or_insert(text);
        }
    }
}

impl RemoveObserver for Giving {}
