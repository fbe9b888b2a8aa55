//! Making a copy: directories before what is in them, and their owners, modes and times after it.

use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use stook_sys::{
    Directory, FileKind, Links as Follow, Metadata, TemporaryNames, Xattr, get_xattrs,
    is_no_directory, is_temporary_name,
};
use stook_timers::scope;

use super::apply::{OWNER_BITS, Original};
use super::content::Ways;
use super::dress::{Born, Has, Owner, User, remove_inherited, without_shadows};
use super::errand::{ATTRIBUTES, At, Errand, Fault, READ_ATTRIBUTES, Side};
use super::links::Links;
use super::node::{Node, Pair};
use super::places::{IS_ARCHIVE, would_change_archive};
use super::rights::{ACCESS_ACL, DEFAULT_ACL, find};
use super::settable::Open;
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
    /// Attributes that the copy is given at the end.
    attributes: Vec<Xattr>,
    /// True if this run makes the copy: nobody else is in there yet.
    pub(super) is_made: bool,
    /// True if what is made in the copy gets an access control list from it.
    pub(super) lends_lists: bool,
    /// The inode number of a copy that was there already.
    pub(super) copy_inode: u64,
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
    temporary: TemporaryNames,
}

/// The copy of a directory, as it was found.
pub(super) struct Seen {
    metadata: Metadata,
    attributes: Vec<Xattr>,
}

impl Seen {
    pub(super) fn at(copy: &Directory) -> Result<Self, Fault> {
        Ok(Self {
            metadata: copy.own_metadata().at(Side::Copy, "look at")?,
            attributes: without_shadows(get_xattrs(copy).at(Side::Copy, READ_ATTRIBUTES)?),
        })
    }

    pub(super) fn has(&self) -> Has<'_> {
        Has::all_of(&self.metadata, &self.attributes)
    }
}

/// The ending of names of files that are not under their own name yet; what an interrupted run left of them goes.
const TEMPORARY: &str = "partial";

impl Facts {
    /// Returns what is known of a directory that is only looked at.
    pub(super) fn of_seen(metadata: Metadata) -> Self {
        Self {
            metadata,
            attributes: Vec::new(),
            is_made: false,
            lends_lists: false,
            copy_inode: 0,
            copy_filesystem: (0, 0),
            born: Arc::default(),
            ways: Arc::default(),
        }
    }

    fn original(&self) -> Original<'_> {
        Original {
            metadata: &self.metadata,
            attributes: &self.attributes,
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
            temporary: TemporaryNames::new(TEMPORARY),
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
        }
        let seen = Seen::at(copy)?;
        let facts = self.facts_of_seen_copy(metadata, attributes, &seen, is_made);
        if !is_made && !self.errand.options.is_dry_run {
            self.get_ready(&facts, &pair.source, copy, &seen)?;
        }
        Ok(facts)
    }

    /// Returns what is known of the two directories that hold a single file and its copy.
    pub(super) fn facts_of_holders(&self, pair: &Pair) -> Result<Facts, Fault> {
        let metadata = pair.source.own_metadata().at(Side::Source, "look at")?;
        match &pair.copy {
            Some(copy) => {
                let seen = Seen::at(copy)?;
                Ok(self.facts_of_seen_copy(metadata, Vec::new(), &seen, false))
            }
            None => Ok(Facts::of_seen(metadata)),
        }
    }

    fn attributes(&self, source: &Directory) -> Result<Vec<Xattr>, Fault> {
        if self.errand.options.is_dry_run {
            return Ok(Vec::new());
        }
        let attributes = get_xattrs(source).at(Side::Source, READ_ATTRIBUTES)?;
        Ok(without_shadows(attributes))
    }

    /// Returns what is known of a directory whose copy was not made in a directory of this run.
    fn facts_of_seen_copy(
        &self,
        metadata: Metadata,
        attributes: Vec<Xattr>,
        seen: &Seen,
        is_made: bool,
    ) -> Facts {
        let there = &seen.metadata;
        Facts {
            attributes,
            is_made,
            lends_lists: find(&seen.attributes, DEFAULT_ACL).is_some(),
            copy_inode: there.inode,
            copy_filesystem: there.filesystem,
            born: Arc::default(),
            ways: self.ways(metadata.filesystem, there.filesystem),
            metadata,
        }
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
            is_made: true,
            lends_lists: false,
            copy_inode: 0,
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

    /// Makes sure that the user can write in a copy that was there already, that nobody finds in it what the original
    /// would not show, and that no leftover is in it.
    fn get_ready(
        &self,
        facts: &Facts,
        source: &Directory,
        copy: &Directory,
        seen: &Seen,
    ) -> Result<(), Fault> {
        refuse_archive(source, copy)?;
        let has = seen.has();
        let changes = self.user.changes(facts.original(), &has, &facts.ways);
        let mode = self.user.mode_while_filled(&changes, seen.metadata.mode);
        if mode != seen.metadata.mode {
            let set = copy.set_own_mode(mode);
            // An ordinary user cannot change another owner's directory; what is made in there then tells why.
            if self.user.is_root {
                set.at(Side::Copy, "set the mode of")?;
            }
        }
        remove_leftovers(source, copy, facts.copy_inode).at(Side::Copy, "list")
    }

    /// Returns a name for a file that is not under its own name yet.
    pub(super) fn temporary_name(&self, facts: &Facts) -> Vec<u8> {
        self.temporary.next(facts.copy_inode)
    }

    fn end_directory(&self, facts: &Facts, copy: &Directory) -> Result<(), Fault> {
        let to = Open(copy.as_fd());
        if facts.is_made {
            let owner = facts.owner_of_new(|| copy.own_metadata())?;
            let has = Has::new(owner, OWNER_BITS);
            return self.user.apply(&to, facts.original(), &has, &facts.ways);
        }
        let seen = Seen::at(copy)?;
        self.user
            .apply(&to, facts.original(), &seen.has(), &facts.ways)
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
                }
                let attributes = self.attributes(source)?;
                let seen = Seen::at(&copy)?;
                let facts = self.facts_of_seen_copy(metadata, attributes, &seen, false);
                if !is_dry_run {
                    self.get_ready(&facts, source, &copy, &seen)?;
                }
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

fn inherited_lists(copy: &Directory) -> Result<Vec<&'static [u8]>, Fault> {
    let found = get_xattrs(copy).at(Side::Copy, ATTRIBUTES)?;
    let lists = [ACCESS_ACL, DEFAULT_ACL].into_iter();
    Ok(lists.filter(|name| find(&found, name).is_some()).collect())
}

/// Removes files that an interrupted run left under names that are not theirs.
fn remove_leftovers(source: &Directory, copy: &Directory, inode: u64) -> io::Result<()> {
    Names::with(|names| {
        names.read(copy)?;
        for each in &names.all {
            let name = each.place.of(&names.bytes);
            let is_leftover = is_temporary_name(name, TEMPORARY, inode)
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
