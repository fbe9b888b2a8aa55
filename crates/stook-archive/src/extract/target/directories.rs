//! Directories: made private, and given what they are to be like at the end.

use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::sync::Mutex;

use stook_pool::WorkerPool;
use stook_sys::{Directory, Links, OpenPath};
use stook_tree::{OpenTarget, join};
use stook_volume::Header;

use super::last_parent::LastParent;
use super::{Outcome, Target};
use crate::cause::Cause;
use crate::extract::metadata::{Given, list_of};
use crate::mutex::lock;
use crate::observer::{Failure, Observer};
use crate::safe_path::safe_path;

/// The permission bits of the owner.
const OWNER_BITS: u32 = 0o700;

impl Target {
    pub(super) fn place_directory(
        &self,
        header: &Header,
        last: &mut LastParent<'_>,
    ) -> Result<Outcome, Failure> {
        let (parent, name) = self.parent_of(header, last)?;
        let path = &parent.facts.path;
        let parent = parent.directory;
        let outcome = match parent.create_directory(&name, 0o700) {
            Ok(()) => Outcome::Written,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                self.open_up(parent, &name)
                    .map_err(|error| Failure::io("open", &header.name, &error))?;
                if self.made.take(&join(path, &name)) {
                    Outcome::Written
                } else {
                    Outcome::Unchanged
                }
            }
            Err(error) => return Err(Failure::io("create", &header.name, &error)),
        };
        lock(&self.directories).push(header.clone());
        Ok(outcome)
    }

    /// Makes sure that files can be made in a directory that is there already; its real mode is set at
    /// the end.
    fn open_up(&self, parent: &Directory, name: &[u8]) -> io::Result<()> {
        let directory = parent.open_beneath(name)?;
        let own = directory.own_metadata()?;
        if self.own_folder.has(own.identity()) {
            return Err(Cause::IntoArchive.into());
        }
        let mode = own.mode;
        if !self.restorer.is_root && mode & 0o700 != 0o700 {
            directory.set_own_mode(mode | 0o700)?;
        }
        Ok(())
    }

    /// Sets modes, owners and times of the directories, those below before those above: what is above may
    /// lose the permission to go down.
    pub(in crate::extract) fn finish_directories(
        &self,
        pool: &WorkerPool<'_>,
        observer: &dyn Observer,
    ) {
        let depth = |header: &Header| header.name.iter().filter(|&&byte| byte == b'/').count();
        let mut directories = std::mem::take(&mut *lock(&self.directories));
        directories.sort_by_cached_key(|header| std::cmp::Reverse(depth(header)));
        // A directory is mostly near the one that the same worker has finished before.
        let ways = Mutex::new(Vec::new());
        for level in directories.chunk_by(|a, b| depth(a) == depth(b)) {
            pool.at_most(level.len()).for_each(level.iter(), |header| {
                let way = lock(&ways).pop();
                let mut way = way.unwrap_or_else(|| OpenPath::new(&self.root));
                if let Err(error) = self.finish_directory(header, &mut way) {
                    let failure = Failure::io("set the metadata of", &header.name, &error);
                    observer.failed(&failure);
                }
                lock(&ways).push(way);
            });
        }
    }

    fn finish_directory(&self, header: &Header, way: &mut OpenPath<'_>) -> io::Result<()> {
        let path = safe_path(&header.name)?;
        let directory = way.open(&path, Links::Refuse)?;
        let there = directory.own_metadata()?;
        let list = self.restorer.has_list(directory)?;
        let owner = self.restorer.owner_of(header);
        let given = Given {
            owner: owner.is_none_or(|owner| owner == (there.uid, there.gid)),
            mode: false,
            list,
        };
        let is_rebuilt = !given.owner || list || list_of(header).is_some();
        if is_rebuilt && there.mode & 0o077 != 0 {
            // Neither the old rights nor the new ones are meant for another owner or another list.
            directory.set_own_mode(there.mode & OWNER_BITS)?;
        }
        self.restorer
            .apply(&OpenTarget(directory.as_fd()), header, given, || Ok(there))
    }
}
