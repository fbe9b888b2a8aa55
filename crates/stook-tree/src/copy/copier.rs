//! Copier a copy: directories before what is in them, and their owners, modes and times after it.

use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use stook_sys::{
    Directory, FileKind, Links as Follow, Metadata, TemporaryNames, Xattr, get_xattrs,
    is_no_directory, is_temporary_name, lock,
};
use stook_timers::scope;

use super::content::Methods;
use super::context::CopyContext;
use super::fault::{At, Fault, READ_ATTRIBUTES, Side};
use super::links::Links;
use super::roots::would_change_archive;
use super::state::{DirectoryState, Existing, FileSystem, Pair, PairNode, reach};
use super::visitor::{Entrance, Entry, Later, Outcome, PairVisitor};
use crate::Reason;
use crate::metadata::{
    ACCESS_ACL, Current, DEFAULT_ACL, OWNER_BITS, OpenTarget, SET_ATTRIBUTES, User, find,
    remove_inherited, without_shadows,
};
use crate::names::Names;

pub(super) struct Copier<'a, 'h> {
    pub(super) context: &'a CopyContext<'a>,
    pub(super) user: User,
    pub(super) links: Links<'h>,
    methods: Mutex<HashMap<(FileSystem, FileSystem), Arc<Methods>>>,
    /// True if directories of the copy may be there, made by this run.
    pub(super) is_made_ahead: bool,
    pub(super) has_lost_links: AtomicBool,
    temporary: TemporaryNames,
}

/// The ending of names of files that are not under their own name yet; what an interrupted run left of them goes.
const TEMPORARY: &str = "partial";

impl<'a> Copier<'a, '_> {
    pub(super) fn new(context: &'a CopyContext<'a>, is_made_ahead: bool) -> Self {
        Self {
            context,
            is_made_ahead,
            user: User::current(),
            links: Links::default(),
            methods: Mutex::default(),
            has_lost_links: AtomicBool::new(false),
            temporary: TemporaryNames::new(TEMPORARY),
        }
    }

    /// Returns what is known of the roots.
    pub(super) fn state_of_roots(
        &self,
        pair: &Pair,
        is_made: bool,
    ) -> Result<DirectoryState, Fault> {
        let metadata = pair.source.own_metadata().at(Side::Source, "look at")?;
        let Some(copy) = &pair.copy else {
            return Ok(DirectoryState {
                is_made: true,
                ..DirectoryState::of_source(metadata)
            });
        };
        let attributes = self.attributes(&pair.source)?;
        if is_made {
            // The directory that holds it may lend lists; what is made in the root then has none.
            remove_inherited(copy, &inherited_lists(copy)?)?;
        }
        let existing = Existing::at(copy)?;
        let state = self.state_of_existing(metadata, attributes, &existing, is_made);
        if !is_made && !self.context.options.is_dry_run {
            self.get_ready(&state, &pair.source, copy, &existing)?;
        }
        Ok(state)
    }

    /// Returns what is known of the two directories that hold a single file and its copy.
    pub(super) fn state_of_holders(&self, pair: &Pair) -> Result<DirectoryState, Fault> {
        let metadata = pair.source.own_metadata().at(Side::Source, "look at")?;
        match &pair.copy {
            Some(copy) => {
                let existing = Existing::at(copy)?;
                Ok(self.state_of_existing(metadata, Vec::new(), &existing, false))
            }
            None => Ok(DirectoryState::of_source(metadata)),
        }
    }

    fn attributes(&self, source: &Directory) -> Result<Vec<Xattr>, Fault> {
        if self.context.options.is_dry_run {
            return Ok(Vec::new());
        }
        let attributes = get_xattrs(source).at(Side::Source, READ_ATTRIBUTES)?;
        Ok(without_shadows(attributes))
    }

    /// Returns what is known of a directory whose copy was not made in a directory of this run.
    fn state_of_existing(
        &self,
        metadata: Metadata,
        attributes: Vec<Xattr>,
        existing: &Existing,
        is_made: bool,
    ) -> DirectoryState {
        let there = &existing.metadata;
        DirectoryState {
            attributes,
            is_made,
            lends_lists: find(&existing.attributes, DEFAULT_ACL).is_some(),
            copy_inode: there.inode,
            copy_filesystem: there.filesystem,
            defaults: Arc::default(),
            is_used: AtomicBool::new(false),
            methods: self.methods(metadata.filesystem, there.filesystem),
            metadata,
        }
    }

    /// Returns what works between two file systems.
    fn methods(&self, source: FileSystem, copy: FileSystem) -> Arc<Methods> {
        let mut methods = lock(&self.methods);
        Arc::clone(methods.entry((source, copy)).or_default())
    }

    fn make(
        &self,
        entrance: &Entrance<'_, '_>,
        above: &Directory,
        source: &Directory,
        metadata: Metadata,
    ) -> Result<(Directory, DirectoryState), Fault> {
        let _scope = scope!("mkdir");
        let parent = &entrance.parent.data;
        let attributes = self.attributes(source)?;
        let copy = self.made(above, entrance.name)?;
        if parent.lends_lists {
            remove_inherited(&copy, &[ACCESS_ACL, DEFAULT_ACL])?;
        }
        let is_same = parent.metadata.filesystem == metadata.filesystem;
        let methods = if is_same {
            Arc::clone(&parent.methods)
        } else {
            self.methods(metadata.filesystem, parent.copy_filesystem)
        };
        let state = DirectoryState {
            metadata,
            attributes,
            is_made: true,
            lends_lists: false,
            copy_inode: 0,
            copy_filesystem: parent.copy_filesystem,
            defaults: Arc::clone(&parent.defaults),
            is_used: AtomicBool::new(false),
            methods,
        };
        Ok((copy, state))
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
                if !self.context.options.is_dry_run {
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
        let opened = if self.context.options.is_dry_run {
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
    /// would not show, and that no temporary file is in it.
    fn get_ready(
        &self,
        state: &DirectoryState,
        source: &Directory,
        copy: &Directory,
        existing: &Existing,
    ) -> Result<(), Fault> {
        refuse_archive(source, copy)?;
        let has = existing.current();
        let changes = self
            .user
            .changes(state.original(), &has, &state.methods.refused);
        let mode = self
            .user
            .mode_while_filled(&changes, existing.metadata.mode);
        if mode != existing.metadata.mode {
            let set = copy.set_own_mode(mode);
            // Fails for another owner's directory; creating entries in it then reports why.
            if self.user.is_root {
                set.at(Side::Copy, "set the mode of")?;
            }
        }
        remove_leftovers(source, copy, state.copy_inode).at(Side::Copy, "list")
    }

    /// Returns a name for a file that is not under its own name yet.
    pub(super) fn temporary_name(&self, state: &DirectoryState) -> Vec<u8> {
        self.temporary.next(state.copy_inode)
    }

    fn end_directory(&self, state: &DirectoryState, copy: &Directory) -> Result<(), Fault> {
        let to = OpenTarget(copy.as_fd());
        if state.is_made {
            let owner = state.owner_of_new(|| copy.own_metadata())?;
            let has = Current::new(owner, OWNER_BITS);
            let applied = self
                .user
                .apply(&to, state.original(), &has, &state.methods.refused);
            return Ok(applied?);
        }
        let existing = Existing::at(copy)?;
        let current = existing.current();
        let applied = self
            .user
            .apply(&to, state.original(), &current, &state.methods.refused);
        Ok(applied?)
    }

    /// Removes a directory in which nothing was to be copied.
    fn remove_unused(node: &PairNode<'_>) -> Result<(), Fault> {
        let Some(parent) = node.parent() else {
            return Ok(());
        };
        let above = reach(parent, Side::Copy)?;
        let removed = above.map_or(Ok(()), |above| above.remove_directory(node.name()));
        removed.at(Side::Copy, "remove")
    }

    fn is_wanted(&self, node: &PairNode<'_>) -> bool {
        let context = self.context;
        !context.has_patterns
            || node.data.is_used()
            || node.parent().is_none()
            || context.options.filter.selects(&node.path(b""))
    }
}

impl<'h> PairVisitor<'h> for Copier<'_, 'h> {
    fn enter(
        &self,
        entrance: &Entrance<'_, 'h>,
        source: &Directory,
        metadata: Metadata,
    ) -> Result<(Option<Directory>, DirectoryState), Fault> {
        let is_dry_run = self.context.options.is_dry_run;
        let there = match entrance.copy {
            Some(above) if !entrance.parent.data.is_made => self.open_copy(above, entrance.name)?,
            _ => None,
        };
        match (there, entrance.copy) {
            (Some(copy), _) => {
                if is_dry_run {
                    refuse_archive(source, &copy)?;
                }
                let attributes = self.attributes(source)?;
                let existing = Existing::at(&copy)?;
                let state = self.state_of_existing(metadata, attributes, &existing, false);
                if !is_dry_run {
                    self.get_ready(&state, source, &copy, &existing)?;
                }
                Ok((Some(copy), state))
            }
            (None, Some(above)) if !is_dry_run => {
                let (copy, state) = self.make(entrance, above, source, metadata)?;
                Ok((Some(copy), state))
            }
            _ => {
                let state = DirectoryState {
                    is_made: true,
                    ..DirectoryState::of_source(metadata)
                };
                Ok((None, state))
            }
        }
    }

    fn entry(&self, entry: &Entry<'_, 'h>, later: &mut Vec<Later<'h>>) -> Result<Outcome, Fault> {
        self.copy_entry(entry, later)
    }

    fn leave(&self, node: &PairNode<'h>, copy: Option<Directory>) -> Result<(), Fault> {
        let _scope = scope!("directories");
        let state = &node.data;
        let is_dry_run = self.context.options.is_dry_run;
        if state.is_made && !self.is_wanted(node) {
            drop(copy);
            return if is_dry_run {
                Ok(())
            } else {
                Self::remove_unused(node)
            };
        }
        if let Some(parent) = node.parent() {
            parent.data.use_it();
        }
        if is_dry_run {
            if state.is_made {
                self.context.would_copy(node, b"");
            }
        } else if let Some(copy) = &copy {
            self.end_directory(state, copy)?;
        } else if let Some(copy) = reach(node, Side::Copy)? {
            self.end_directory(state, &copy)?;
        }
        self.context.count_directory(state.is_made);
        Ok(())
    }
}

/// Refuses to write into an archive that is there, unless one is copied to it.
fn refuse_archive(source: &Directory, copy: &Directory) -> Result<(), Fault> {
    if would_change_archive(source, copy).at(Side::Copy, "look at")? {
        return Err(Reason::WouldChangeArchive.into()).at(Side::Copy, "copy to");
    }
    Ok(())
}

fn inherited_lists(copy: &Directory) -> Result<Vec<&'static [u8]>, Fault> {
    let found = get_xattrs(copy).at(Side::Copy, SET_ATTRIBUTES)?;
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
