//! Making a copy: directories before what is in them, and their owners, modes and times after it.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use stook_sys::{
    Directory, FileKind, Links as Follow, Metadata, Xattr, get_xattrs, is_no_directory,
};
use stook_timers::scope;

use super::content::Ways;
use super::dress::{
    ACCESS_ACL, Born, DEFAULT_ACL, Has, Owner, User, remove_inherited, without_shadows,
};
use super::errand::{ATTRIBUTES, At, Errand, Fault, Side};
use super::links::Links;
use super::node::{Node, Pair};
use super::places::{IS_ARCHIVE, would_change_archive};
use super::task::Later;
use super::work::{Entrance, Entry, Outcome, Work};
use crate::names::Names;

/// A file system, by its device.
type FileSystem = (u32, u32);

/// What is known of a directory while it is copied.
#[derive(Debug)]
pub(super) struct Facts {
    /// Those of the directory in the tree.
    pub(super) metadata: Metadata,
    /// Attributes that the copy is given at the end, and names of those that it loses.
    attributes: Vec<Xattr>,
    foreign_lists: Vec<&'static [u8]>,
    /// True if this run makes the copy: nobody else is in there yet.
    pub(super) is_made: bool,
    /// True if what is made in the copy gets an access control list from it.
    pub(super) lends_lists: bool,
    copy_filesystem: FileSystem,
    pub(super) born: Arc<Born>,
    pub(super) ways: Arc<Ways>,
}

pub(super) struct Making<'a, 'h> {
    pub(super) errand: &'a Errand<'a>,
    pub(super) user: User,
    pub(super) links: Links<'h>,
    ways: Mutex<HashMap<(FileSystem, FileSystem), Arc<Ways>>>,
    /// True if directories of the copy may be there, made by this run.
    pub(super) is_made_ahead: bool,
    pub(super) has_lost_links: AtomicBool,
    temporary: AtomicU64,
}

/// Names of files that are not under their own name yet; what an interrupted run left of them goes.
const TEMPORARY: (&[u8], &[u8]) = (b".stook-", b".partial");

impl Facts {
    /// Returns what is known of a directory that is only looked at.
    pub(super) fn of_seen(metadata: Metadata) -> Self {
        Self {
            metadata,
            attributes: Vec::new(),
            foreign_lists: Vec::new(),
            is_made: false,
            lends_lists: false,
            copy_filesystem: (0, 0),
            born: Arc::default(),
            ways: Arc::default(),
        }
    }

    /// Returns the owner of what was just made; `look` asks for it.
    pub(super) fn owner_of_new(
        &self,
        look: impl FnOnce() -> io::Result<Metadata>,
    ) -> Result<Owner, Fault> {
        if let Some(owner) = self.born.owner() {
            return Ok(owner);
        }
        let made = look().at(Side::Copy, "look at")?;
        self.born.learn(0, &made);
        Ok((made.uid, made.gid))
    }
}

impl<'a> Making<'a, '_> {
    pub(super) fn new(errand: &'a Errand<'a>, is_made_ahead: bool) -> Self {
        Self {
            errand,
            is_made_ahead,
            user: User::current(),
            links: Links::default(),
            ways: Mutex::default(),
            has_lost_links: AtomicBool::new(false),
            temporary: AtomicU64::new(0),
        }
    }

    /// Returns what is known of the roots.
    pub(super) fn facts_of_roots(&self, pair: &Pair, is_made: bool) -> Result<Facts, Fault> {
        let metadata = pair.source.own_metadata().at(Side::Source, "look at")?;
        let Some(copy) = &pair.copy else {
            return Ok(Facts {
                is_made: true,
                ..Facts::of_seen(metadata)
            });
        };
        let attributes = self.attributes(&pair.source)?;
        if is_made {
            // The directory that holds it may lend lists; what is made in the root then has none.
            remove_inherited(copy, &inherited_lists(copy)?)?;
        } else if !self.errand.options.is_dry_run {
            self.open_up(&pair.source, copy)?;
        }
        self.facts_of_seen_copy(metadata, attributes, copy, is_made)
    }

    /// Returns what is known of the two directories that hold a single file and its copy.
    pub(super) fn facts_of_holders(&self, pair: &Pair) -> Result<Facts, Fault> {
        let metadata = pair.source.own_metadata().at(Side::Source, "look at")?;
        match &pair.copy {
            Some(copy) => self.facts_of_seen_copy(metadata, Vec::new(), copy, false),
            None => Ok(Facts::of_seen(metadata)),
        }
    }

    fn attributes(&self, source: &Directory) -> Result<Vec<Xattr>, Fault> {
        if self.errand.options.is_dry_run {
            return Ok(Vec::new());
        }
        let attributes = get_xattrs(source).at(Side::Source, "read the attributes of")?;
        Ok(without_shadows(attributes))
    }

    /// Returns what is known of a directory whose copy was not made in a directory of this run.
    fn facts_of_seen_copy(
        &self,
        metadata: Metadata,
        mut attributes: Vec<Xattr>,
        copy: &Directory,
        is_made: bool,
    ) -> Result<Facts, Fault> {
        let there = copy.own_metadata().at(Side::Copy, "look at")?;
        let found = get_xattrs(copy).at(Side::Copy, "read the attributes of")?;
        let is_foreign = |name: &&'static [u8]| {
            holds(&found, name) && !attributes.iter().any(|(wanted, _)| wanted == name)
        };
        let foreign_lists = [ACCESS_ACL, DEFAULT_ACL]
            .into_iter()
            .filter(is_foreign)
            .collect();
        attributes.retain(|wanted| !found.contains(wanted));
        Ok(Facts {
            attributes,
            foreign_lists,
            is_made,
            lends_lists: holds(&found, DEFAULT_ACL),
            copy_filesystem: there.filesystem,
            born: Arc::default(),
            ways: self.ways(metadata.filesystem, there.filesystem),
            metadata,
        })
    }

    /// Returns what works between two file systems.
    fn ways(&self, source: FileSystem, copy: FileSystem) -> Arc<Ways> {
        let mut ways = self.ways.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(ways.entry((source, copy)).or_default())
    }

    fn make(
        &self,
        entrance: &Entrance<'_, '_>,
        above: &Directory,
        source: &Directory,
        metadata: Metadata,
    ) -> Result<(Directory, Facts), Fault> {
        let _scope = scope!("mkdir");
        let parent = &entrance.parent.facts;
        let attributes = self.attributes(source)?;
        let copy = self.made(above, entrance.name)?;
        if parent.lends_lists {
            remove_inherited(&copy, &[ACCESS_ACL, DEFAULT_ACL])?;
        }
        let is_same = parent.metadata.filesystem == metadata.filesystem;
        let ways = if is_same {
            Arc::clone(&parent.ways)
        } else {
            self.ways(metadata.filesystem, parent.copy_filesystem)
        };
        let facts = Facts {
            metadata,
            attributes,
            foreign_lists: Vec::new(),
            is_made: true,
            lends_lists: false,
            copy_filesystem: parent.copy_filesystem,
            born: Arc::clone(&parent.born),
            ways,
        };
        Ok((copy, facts))
    }

    /// Makes the copy of a directory, unless this run has done so already.
    fn made(&self, above: &Directory, name: &[u8]) -> Result<Directory, Fault> {
        if self.is_made_ahead
            && let Ok(copy) = above.open_beneath(name)
        {
            return Ok(copy);
        }
        // Until it is done, it is for its maker alone.
        above
            .create_directory(name, 0o700)
            .at(Side::Copy, "create")?;
        above.open_beneath(name).at(Side::Copy, "open")
    }

    /// Opens the copy of a directory that may be there; None if it must be made.
    fn open_copy(&self, above: &Directory, name: &[u8]) -> Result<Option<Directory>, Fault> {
        match above.open_beneath(name) {
            Ok(copy) => Ok(Some(copy)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) if is_no_directory(&error) => {
                if !self.errand.options.is_dry_run {
                    above.remove(name).at(Side::Copy, "replace")?;
                }
                Ok(None)
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.open_closed(above, name, error).map(Some)
            }
            Err(error) => Err(error).at(Side::Copy, "open"),
        }
    }

    /// Gives the user a way into a directory of the user's own; its mode is set again at the end.
    fn open_closed(
        &self,
        above: &Directory,
        name: &[u8],
        error: io::Error,
    ) -> Result<Directory, Fault> {
        let opened = if self.errand.options.is_dry_run {
            Err(error)
        } else {
            above
                .metadata(name, Follow::Refuse)
                .and_then(|there| above.set_mode(name, there.mode | 0o700))
                .and_then(|()| above.open_beneath(name))
        };
        opened.at(Side::Copy, "open")
    }

    /// Makes sure that the user can write in a copy that was there already, and that no leftover is in it.
    fn open_up(&self, source: &Directory, copy: &Directory) -> Result<(), Fault> {
        let there = copy.own_metadata().at(Side::Copy, "look at")?;
        if !self.user.is_root && there.mode & 0o700 != 0o700 {
            // Of another owner's it fails, and what is made in there tells why.
            let _ = copy.set_own_mode(there.mode | 0o700);
        }
        refuse_archive(source, copy)?;
        remove_leftovers(source, copy).at(Side::Copy, "list")
    }

    /// Returns a name for a file that is not under its own name yet.
    pub(super) fn temporary_name(&self) -> Vec<u8> {
        let number = self.temporary.fetch_add(1, Ordering::Relaxed);
        let middle = format!("{}-{number}", std::process::id());
        [TEMPORARY.0, middle.as_bytes(), TEMPORARY.1].concat()
    }

    fn end_directory(&self, facts: &Facts, copy: &Directory) -> Result<(), Fault> {
        let has = if facts.is_made {
            Has {
                owner: facts.owner_of_new(|| copy.own_metadata())?,
                mode: None,
                mtime: None,
            }
        } else {
            Has::all_of(&copy.own_metadata().at(Side::Copy, "look at")?)
        };
        remove_inherited(copy, &facts.foreign_lists)?;
        let Facts {
            metadata,
            attributes,
            ways,
            ..
        } = facts;
        self.user.dress(copy, metadata, attributes, has, ways)
    }

    /// Removes a directory in which nothing was to be copied.
    fn remove_unused(node: &Node<'_>) -> Result<(), Fault> {
        let Some(parent) = node.parent() else {
            return Ok(());
        };
        let above = parent.reach(Side::Copy).at(Side::Copy, "open")?;
        let removed = above.map_or(Ok(()), |above| above.remove_directory(&node.name));
        removed.at(Side::Copy, "remove")
    }

    fn is_wanted(&self, node: &Node<'_>) -> bool {
        let errand = self.errand;
        !errand.has_patterns
            || node.is_used()
            || node.parent().is_none()
            || errand.options.filter.selects(&node.way_below_root(b""))
    }
}

impl<'h> Work<'h> for Making<'_, 'h> {
    fn enter(
        &self,
        entrance: &Entrance<'_, 'h>,
        source: &Directory,
        metadata: Metadata,
    ) -> Result<(Option<Directory>, Facts), Fault> {
        let is_dry_run = self.errand.options.is_dry_run;
        let there = match entrance.copy {
            Some(above) if !entrance.parent.facts.is_made => {
                self.open_copy(above, entrance.name)?
            }
            _ => None,
        };
        match (there, entrance.copy) {
            (Some(copy), _) => {
                if is_dry_run {
                    refuse_archive(source, &copy)?;
                } else {
                    self.open_up(source, &copy)?;
                }
                let attributes = self.attributes(source)?;
                let facts = self.facts_of_seen_copy(metadata, attributes, &copy, false)?;
                Ok((Some(copy), facts))
            }
            (None, Some(above)) if !is_dry_run => {
                let (copy, facts) = self.make(entrance, above, source, metadata)?;
                Ok((Some(copy), facts))
            }
            _ => {
                let facts = Facts {
                    is_made: true,
                    ..Facts::of_seen(metadata)
                };
                Ok((None, facts))
            }
        }
    }

    fn entry(&self, entry: &Entry<'_, 'h>, later: &mut Vec<Later<'h>>) -> Result<Outcome, Fault> {
        self.copy_entry(entry, later)
    }

    fn leave(&self, node: &Node<'h>, copy: Option<Directory>) -> Result<(), Fault> {
        if node.is_partial() {
            return Ok(());
        }
        let _scope = scope!("directories");
        let facts = &node.facts;
        let is_dry_run = self.errand.options.is_dry_run;
        if facts.is_made && !self.is_wanted(node) {
            drop(copy);
            return if is_dry_run {
                Ok(())
            } else {
                Self::remove_unused(node)
            };
        }
        if let Some(parent) = node.parent() {
            parent.use_it();
        }
        if is_dry_run {
            if facts.is_made {
                self.errand.would_copy(node, b"");
            }
        } else if let Some(copy) = &copy {
            self.end_directory(facts, copy)?;
        } else if let Some(copy) = node.reach(Side::Copy).at(Side::Copy, "open")? {
            self.end_directory(facts, &copy)?;
        }
        self.errand.count_directory(facts.is_made);
        Ok(())
    }
}

/// Refuses to write into an archive that is there, unless one is copied to it.
fn refuse_archive(source: &Directory, copy: &Directory) -> Result<(), Fault> {
    if would_change_archive(source, copy).at(Side::Copy, "look at")? {
        return Err(io::Error::other(IS_ARCHIVE)).at(Side::Copy, "copy to");
    }
    Ok(())
}

fn holds(attributes: &[Xattr], name: &[u8]) -> bool {
    attributes.iter().any(|(found, _)| found == name)
}

fn inherited_lists(copy: &Directory) -> Result<Vec<&'static [u8]>, Fault> {
    let found = get_xattrs(copy).at(Side::Copy, ATTRIBUTES)?;
    let lists = [ACCESS_ACL, DEFAULT_ACL].into_iter();
    Ok(lists.filter(|name| holds(&found, name)).collect())
}

/// Removes files that an interrupted run left under names that are not theirs.
fn remove_leftovers(source: &Directory, copy: &Directory) -> io::Result<()> {
    Names::with(|names| {
        names.read(copy)?;
        for each in &names.all {
            let name = each.place.of(&names.bytes);
            let is_leftover = name.starts_with(TEMPORARY.0)
                && name.ends_with(TEMPORARY.1)
                && each.kind != Some(FileKind::Directory)
                // Unless it is a copy of what has such a name.
                && source.metadata(name, Follow::Refuse).is_err();
            if is_leftover {
                // What stays is there for the next run.
                let _ = copy.remove(name);
            }
        }
        // Names are read from the beginning again.
        Ok(())
    })
}
