//! The directory that a member belongs into.

use std::io::{self, ErrorKind};

use stook_sys::{Directory, Links, OpenPath};
use stook_tree::split;
use stook_volume::Header;

use super::Target;
use super::last_parent::{LastParent, NewFiles, Parent, ParentFacts};
use super::made::PathHash;
use crate::cause::Cause;
use crate::observer::Failure;
use crate::safe_path::safe_path;

impl Target {
    /// Returns what begins at the target itself.
    pub(in crate::extract) fn last_parent(&self) -> LastParent<'_> {
        LastParent {
            way: OpenPath::new(&self.root),
            facts: None,
        }
    }

    /// Opens the directory that a member belongs into; it is made if it is not there.
    pub(super) fn parent_of<'l>(
        &self,
        header: &Header,
        last: &'l mut LastParent<'_>,
    ) -> Result<(Parent<'l>, Vec<u8>), Failure> {
        let path = safe_path(&header.name)
            .map_err(|cause| Failure::new("extract", &header.name, cause))?;
        let (parent, name) = split(&path);
        let LastParent { way, facts } = last;
        let found = match facts.take().filter(|facts| facts.path == parent) {
            Some(facts) => facts,
            None => self.enter(header, parent, way)?,
        };
        let parent = Parent {
            directory: way.last(),
            facts: facts.insert(found),
        };
        Ok((parent, name.to_vec()))
    }

    /// Opens the directory of a member, and looks at it.
    fn enter(
        &self,
        header: &Header,
        path: &[u8],
        way: &mut OpenPath<'_>,
    ) -> Result<ParentFacts, Failure> {
        let fail = |operation| move |error: io::Error| Failure::io(operation, &header.name, &error);
        self.ensure(path, way)
            .map_err(fail("open the directory of"))?;
        let directory = way.last();
        let own = directory
            .own_metadata()
            .map_err(fail("look at the directory of"))?;
        if self.own_folder.has(own.identity()) {
            return Err(Failure::new("extract", &header.name, Cause::IntoArchive));
        }
        let lends_lists = self
            .restorer
            .lends_lists(directory)
            .map_err(fail("read the attributes of the directory of"))?;
        Ok(ParentFacts {
            path: path.to_vec(),
            is_ours: own.uid == self.user,
            lends_lists,
            new_files: NewFiles::default(),
        })
    }

    pub(super) fn beneath(&self, path: &[u8]) -> io::Result<Directory> {
        self.root.open_beneath(path)
    }

    /// Goes to a directory; what is not there of the way is made.
    fn ensure(&self, path: &[u8], way: &mut OpenPath<'_>) -> io::Result<()> {
        match way.open(path, Links::Refuse) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            other => return other.map(drop),
        }
        let (above, missing) = path.split_at(way.below());
        let mut hash = PathHash::of_beginning(above);
        let mut has_made = false;
        for component in missing.split(|&byte| byte == b'/') {
            hash.down(component);
            way.open_or_make(component, |directory| {
                if !has_made && self.own_folder.is(directory)? {
                    return Err(Cause::IntoArchive.into());
                }
                has_made = true;
                // It was not there a moment ago. Noted first: its own member may come right behind.
                self.made.insert(&hash);
                match directory.create_directory(component, self.made.mode(&hash)) {
                    Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
                    _ => Ok(()),
                }
            })?;
        }
        Ok(())
    }
}
