//! The directory that a file set is made in: made, or taken if it is empty.
//!
//! Only a directory that was made here is removed if the set cannot be completed. In one that was there others may have
//! put something meanwhile, another run of the same command above all.

use std::path::{Path, PathBuf};

use stook_sys::{Context, Directory, NameBuffer, display_path};

use crate::Observer;
use crate::error::BenchError;
use crate::fileset::fill::DIRECTORY_MODE;
use crate::remedy::Remedy;
use crate::scratch::remove_tree;

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
        let what = format!("`{}` is not empty", display_path(path));
        Err(BenchError::refused_with(Remedy::NameEmptyDirectory, what))
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
        observer.progress("removing what was made");
        if let Err(error) = remove_tree(&self.path, None) {
            observer.warning(&error.to_string());
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
