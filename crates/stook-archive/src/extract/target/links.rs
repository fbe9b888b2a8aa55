//! Further names of files that were extracted.

use std::io::{self, ErrorKind};

use stook_index::Mtime;
use stook_sys::{Directory, Links, Metadata, is_link_refused, is_no_directory};
use stook_tree::split;
use stook_volume::Header;

use super::{Outcome, Target, is_same_file};
use crate::mutex::lock;
use crate::observer::Failure;
use crate::safe_path::safe_path;

impl Target {
    /// Gives an extracted file the further name that `header` says; None if there is no such file, or
    /// its name has another content in the archive.
    pub(in crate::extract) fn place_link(
        &self,
        header: &Header,
        mtime: Mtime,
        has_same_content: impl Fn(&[u8]) -> bool,
    ) -> Result<Option<Outcome>, Failure> {
        let Some(first) = &header.link else {
            return Ok(None);
        };
        let first = lock(&self.first_names).get(first).unwrap_or(first).clone();
        if !has_same_content(&first) {
            return Ok(None);
        }
        let Some((first_parent, source)) = self.first_name(header, &first)? else {
            return Ok(None);
        };
        let first_name = split(&first).1;
        let is_the_file = is_same_file(&source, header.size, mtime, 0)
            && self.restorer.is_mode_of(header, source.mode);
        if !is_the_file || first == header.name {
            return Ok(None);
        }
        let fail = |operation| move |error: io::Error| Failure::io(operation, &header.name, &error);
        let mut last = self.last_parent();
        let (parent, name) = self.parent_of(header, &mut last)?;
        let parent = parent.directory;
        match first_parent.hard_link(first_name, parent, &name) {
            Ok(()) => return Ok(Some(Outcome::Written)),
            Err(error) if is_link_refused(&error) => return Ok(None),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(fail("link")(error)),
        }
        let there = parent
            .metadata(&name, Links::Refuse)
            .map_err(fail("look at"))?;
        if there.is_same_file(&source) {
            return Ok(Some(Outcome::Unchanged));
        }
        self.require_replaceable(header, &there)?;
        let temporary = self.temporary_name();
        match first_parent.hard_link(first_name, parent, &temporary) {
            Ok(()) => {}
            Err(error) if is_link_refused(&error) => return Ok(None),
            Err(error) => return Err(fail("link")(error)),
        }
        if let Err(error) = parent.rename(&temporary, &name) {
            // Nothing half done may stay.
            let _ = parent.remove(&temporary);
            return Err(fail("replace")(error));
        }
        Ok(Some(Outcome::Written))
    }

    /// Returns the first name of a file, and the directory that it is in; None if it is not there, or not of this tree.
    fn first_name(
        &self,
        header: &Header,
        first: &[u8],
    ) -> Result<Option<(Directory, Metadata)>, Failure> {
        if safe_path(first).is_err() {
            return Ok(None);
        }
        let (parent, name) = split(first);
        let found = self.beneath(parent).and_then(|directory| {
            if self.own_folder.is(&directory)? {
                return Ok(None);
            }
            let metadata = directory.metadata(name, Links::Refuse)?;
            Ok(Some((directory, metadata)))
        });
        match found {
            Err(error) if error.kind() == ErrorKind::NotFound || is_no_directory(&error) => {
                Ok(None)
            }
            other => other
                .map_err(|error| Failure::io("look at the first name of", &header.name, &error)),
        }
    }

    /// The name got the content itself, so further names link to it.
    pub(in crate::extract) fn remember_first(&self, header: &Header) {
        if let Some(first) = &header.link {
            lock(&self.first_names).insert(first.clone(), header.name.clone());
        }
    }
}
