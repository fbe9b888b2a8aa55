//! The directory that a member belongs into.

use std::io::{self, ErrorKind};

use stook_sys::Directory;
use stook_tree::split;
use stook_volume::Header;

use super::Target;
use super::last_parent::{LastParent, NewFiles, Parent};
use super::made::PathHash;
use crate::cause::Cause;
use crate::observer::Failure;
use crate::safe_path::safe_path;

impl Target {
    /// Opens the directory that a member belongs into; it is made if it is not there.
    pub(super) fn parent_of<'l>(
        &self,
        header: &Header,
        last: &'l mut LastParent,
    ) -> Result<(&'l mut Parent, Vec<u8>), Failure> {
        let path = safe_path(&header.name)
            .map_err(|cause| Failure::new("extract", &header.name, cause))?;
        let (parent, name) = split(&path);
        let reused = last.0.take().filter(|last| last.path == parent);
        let opened = match reused {
            Some(reused) => reused,
            None => {
                let directory = self
                    .ensure(parent)
                    .map_err(|error| Failure::io("open the directory of", &header.name, &error))?;
                let own = directory.own_metadata().map_err(|error| {
                    Failure::io("look at the directory of", &header.name, &error)
                })?;
                if self.own_folder.has(own.identity()) {
                    return Err(Failure::new("extract", &header.name, Cause::IntoArchive));
                }
                let lends_lists = self.restorer.lends_lists(&directory).map_err(|error| {
                    Failure::io(
                        "read the attributes of the directory of",
                        &header.name,
                        &error,
                    )
                })?;
                Parent {
                    path: parent.to_vec(),
                    lends_lists,
                    is_ours: own.uid == self.user,
                    directory,
                    new_files: NewFiles::default(),
                }
            }
        };
        Ok((last.0.insert(opened), name.to_vec()))
    }

    pub(super) fn beneath(&self, path: &[u8]) -> io::Result<Directory> {
        self.root.open_beneath(path)
    }

    fn ensure(&self, path: &[u8]) -> io::Result<Directory> {
        match self.beneath(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            other => return other,
        }
        let mut directory = self.root.try_clone()?;
        let mut hash = PathHash::default();
        let mut has_made = false;
        for component in path.split(|&byte| byte == b'/') {
            hash.down(component);
            directory = match directory.open_beneath(component) {
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    if !has_made && self.own_folder.is(&directory)? {
                        return Err(Cause::IntoArchive.into());
                    }
                    has_made = true;
                    match directory.create_directory(component, self.made.mode(&hash)) {
                        Ok(()) => self.made.insert(&hash),
                        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                        Err(error) => return Err(error),
                    }
                    directory.open_beneath(component)?
                }
                other => other?,
            };
        }
        Ok(directory)
    }
}
