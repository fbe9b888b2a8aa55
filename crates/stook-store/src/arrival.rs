//! Where files arrive that a program brings: a folder beside their targets, which goes with all that is left in it.
//!
//! ```text
//!   FOLDER/.stook-....partial/files/NAME   under the names that they have in the store
//!   FOLDER/TARGET                          one by one, once the size is right
//! ```

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use stook_sys::{
    Context, Directory, TemporaryNames, create_directory, exists, install, look_at, open_file,
    remove_file,
};

use crate::error::{Difference, StoreCause};
use crate::store::Download;

/// What holds what a program was told, beside the files.
pub(crate) const COMMANDS: &str = "commands";

/// A folder where files arrive.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) folder: PathBuf,
    pub(crate) names: Vec<String>,
}

/// Returns the downloads that can come together: into one folder, under different names.
pub(crate) fn groups<'a>(
    downloads: &[Download<'a>],
    mut left: Vec<usize>,
) -> Vec<(&'a Path, Vec<usize>)> {
    let mut groups = Vec::new();
    while let Some(&first) = left.first() {
        let folder = folder_of(downloads[first].path);
        let mut names = HashSet::new();
        let (group, others) = left.into_iter().partition(|&place| {
            let download = &downloads[place];
            folder_of(download.path) == folder && names.insert(download.name)
        });
        groups.push((folder, group));
        left = others;
    }
    groups
}

impl Arrival {
    pub(crate) fn create(folder: &Path, names: Vec<String>) -> Result<Self, StoreCause> {
        let inode = look_at(folder)?.identity().1;
        let name = TemporaryNames::new("partial").next(inode);
        let folder = folder.join(OsStr::from_bytes(&name));
        create_directory(&folder.join("files"))?;
        Ok(Self { folder, names })
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join("files").join(name)
    }

    /// Returns how many bytes have arrived.
    pub(crate) fn bytes(&self) -> u64 {
        let size = |name: &String| match exists(&self.file(name)) {
            Ok(Some(metadata)) => metadata.size,
            _ => 0,
        };
        self.names.iter().map(size).sum()
    }

    /// Gives a file its name, durably, if it has this size; returns what it lacks otherwise.
    pub(crate) fn settle(
        &self,
        download: &Download<'_>,
        size: Option<u64>,
    ) -> Result<Option<StoreCause>, StoreCause> {
        let path = self.file(download.name);
        let Some(found) = exists(&path)?.map(|metadata| metadata.size) else {
            return Ok(Some(StoreCause::NotFound));
        };
        match size {
            Some(expected) if expected == found => {
                open_file(&path)?.sync_all().context("sync", &path)?;
                install(&path, download.path)?;
                Ok(None)
            }
            Some(expected) => {
                let different = Difference::Size { expected, found };
                Ok(Some(StoreCause::Different(different)))
            }
            // Nobody knows whether it is whole.
            None => Ok(Some(StoreCause::NotFound)),
        }
    }
}

impl Drop for Arrival {
    /// Removes what is left. What cannot be removed stays, under a name that tells whose it is.
    fn drop(&mut self) {
        for name in &self.names {
            let _ = remove_file(&self.file(name));
        }
        let _ = remove_file(&self.folder.join(COMMANDS));
        if let Ok(folder) = Directory::open(&self.folder) {
            let _ = folder.remove_directory(b"files");
        }
        let above = Directory::open(folder_of(&self.folder));
        if let (Ok(above), Some(name)) = (above, self.folder.file_name()) {
            let _ = above.remove_directory(name.as_bytes());
        }
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
