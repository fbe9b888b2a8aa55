//! Gives what was extracted its owner, rights, attributes and time.
//!
//! ```text
//!   1. owner       clears set-id bits and drops capabilities
//!   2. attributes  all but these two: the list, closed by its mask; capabilities
//!   3. mode        opens the list and sets the set-id bits, at once
//!   4. capabilities, then the time
//! ```
//! Until step 3 only the owner may open it: files are made so, and directories closed first. The rules for mode and list
//! are those of `copy`, see [`Rights`]: what cannot be set leaves narrower rights, never wider ones.
//!
//! - An ordinary user's files keep the archived mode, as with tar, though they belong to another group; only a list, which
//!   names users, is narrowed then.
//! - A list that the target's directory lends to new files is removed, as by `copy` and `tar --acls`: an archived file
//!   without one has none. Without attributes it stays, as with plain tar, and the archived mode is its mask.

use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};

use stook_sys::{FileKind, Metadata, Owners, get_xattrs, is_root, is_unsupported};
use stook_tree::{ACCESS_ACL, CAPABILITY, DEFAULT_ACL, MetadataTarget, Owner, Rights};
use stook_volume::{Header, Kind};

use crate::observer::{Note, Observer};

/// Set-user-id and set-group-id.
const SET_ID_BITS: u32 = 0o6000;

/// What an extraction may replace and restore.
#[derive(Debug, Clone, Copy)]
pub(super) struct TargetOptions {
    pub(super) no_overwrite: bool,
    pub(super) same_permissions: bool,
    pub(super) xattrs: bool,
    pub(super) time_tolerance: u64,
}

/// What something extracted has already.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Given {
    pub(super) owner: bool,
    pub(super) mode: bool,
    /// It may have a list that is not the archive's.
    pub(super) list: bool,
}

/// Sets what this user may set.
#[derive(Debug)]
pub(super) struct Restorer {
    options: TargetOptions,
    pub(super) is_root: bool,
    owners: Owners,
    refused_attributes: AtomicU64,
    withheld_capabilities: AtomicU64,
}

impl Restorer {
    pub(super) fn new(options: TargetOptions) -> Self {
        Self {
            options,
            is_root: is_root(),
            owners: Owners::default(),
            refused_attributes: AtomicU64::new(0),
            withheld_capabilities: AtomicU64::new(0),
        }
    }

    /// Tells what was left out.
    pub(super) fn tell_notes(&self, observer: &dyn Observer) {
        let refused = self.refused_attributes.load(Ordering::Relaxed);
        let withheld = self.withheld_capabilities.load(Ordering::Relaxed);
        match refused {
            0 => {}
            1 => observer.noted("an attribute that only the superuser may set was left out"),
            number => observer.noted(&format!(
                "{number} attributes that only the superuser may set were left out"
            )),
        }
        if withheld > 0 {
            observer.note(&Note::CapabilitiesLeftOut(withheld));
        }
    }

    /// Returns the owner that an entry is given; `None` for an ordinary user, who gives nothing away.
    pub(super) fn owner_of(&self, header: &Header) -> Option<Owner> {
        self.is_root.then(|| self.archived_owner(header))
    }

    fn archived_owner(&self, header: &Header) -> Owner {
        let number = |id: u64| u32::try_from(id).unwrap_or(u32::MAX - 1);
        let user = self.owners.user_id(&header.uname);
        let group = self.owners.group_id(&header.gname);
        (
            user.unwrap_or(number(header.uid)),
            group.unwrap_or(number(header.gid)),
        )
    }

    fn keeps_set_id(&self) -> bool {
        self.is_root && self.options.same_permissions
    }

    pub(super) fn mode_of(&self, header: &Header) -> u32 {
        if self.keeps_set_id() {
            header.mode
        } else {
            header.mode & !SET_ID_BITS
        }
    }

    /// Returns true if this may be the mode of an entry that was extracted with all that could be set.
    pub(super) fn is_mode_of(&self, header: &Header, found: u32) -> bool {
        let wanted = self.mode_of(header);
        // A list that could not be set in full leaves less for group and others.
        let is_narrower = found & !wanted == 0 && (found ^ wanted) & !0o077 == 0;
        found == wanted || (list_of(header).is_some() && is_narrower)
    }

    /// Returns true if new files in this directory get a list from it that is not to stay.
    pub(super) fn lends_lists(&self, directory: impl AsFd) -> io::Result<bool> {
        self.has(directory, DEFAULT_ACL)
    }

    /// Returns true if this directory has a list that is not to stay.
    pub(super) fn has_list(&self, directory: impl AsFd) -> io::Result<bool> {
        self.has(directory, ACCESS_ACL)
    }

    fn has(&self, directory: impl AsFd, name: &[u8]) -> io::Result<bool> {
        if !self.options.xattrs {
            return Ok(false);
        }
        let found = get_xattrs(directory)?;
        Ok(found.iter().any(|(found, _)| found == name))
    }

    /// Sets all that can be set, and returns the first failure: the entry is there and stays.
    ///
    /// `look` is called where the rights depend on who has it now.
    pub(super) fn apply(
        &self,
        to: &impl MetadataTarget,
        header: &Header,
        given: Given,
        look: impl FnOnce() -> io::Result<Metadata>,
    ) -> io::Result<()> {
        let owner = match self.owner_of(header) {
            Some((uid, gid)) if !given.owner => to.set_owner(uid, gid),
            _ => Ok(()),
        };
        let is_owner_set = owner.is_ok();
        let xattrs = self.set_xattrs(to, header);
        let opened = if header.kind == Kind::Symlink || given.mode {
            Ok(())
        } else {
            self.rights(header, is_owner_set, look)
                .and_then(|rights| self.open(to, rights, given))
        };
        let raised = self.set_capability(to, header, is_owner_set);
        let time = to.set_mtime(header.mtime);
        owner.and(xattrs).and(opened).and(raised).and(time)
    }

    fn rights(
        &self,
        header: &Header,
        is_owner_set: bool,
        look: impl FnOnce() -> io::Result<Metadata>,
    ) -> io::Result<Rights> {
        let mode = self.mode_of(header);
        let list = list_of(header);
        if is_owner_set && (list.is_none() || self.is_root) {
            let list = list.map(<[u8]>::to_vec);
            return Ok(Rights { mode, list });
        }
        let (uid, gid) = self.archived_owner(header);
        let original = Metadata {
            mode,
            uid,
            gid,
            ..Metadata::of_kind(FileKind::File)
        };
        let there = look()?;
        Ok(Rights::of(&original, list, (there.uid, there.gid)))
    }

    /// Sets list and mode.
    fn open(&self, to: &impl MetadataTarget, mut rights: Rights, given: Given) -> io::Result<()> {
        if !self.options.xattrs {
            return to.set_mode(rights.without_list());
        }
        let mut listed = Ok(());
        let mut is_list_left = given.list;
        if let Some(list) = rights.closed_list() {
            match to.set_xattr(ACCESS_ACL, &list) {
                Ok(()) => is_list_left = false,
                Err(error) => {
                    rights.mode = rights.without_list();
                    listed = self.excuse(ACCESS_ACL, error);
                }
            }
        }
        if is_list_left {
            // The mode would open it.
            match to.remove_xattr(ACCESS_ACL) {
                Err(error) if !is_unsupported(&error) => return Err(error),
                _ => {}
            }
        }
        listed.and(to.set_mode(rights.mode))
    }

    fn set_xattrs(&self, to: &impl MetadataTarget, header: &Header) -> io::Result<()> {
        if !self.options.xattrs {
            return Ok(());
        }
        let mut first = Ok(());
        for (name, value) in &header.xattrs {
            if name != ACCESS_ACL && name != CAPABILITY {
                let set = to.set_xattr(name, value);
                first = first.and(set.or_else(|error| self.excuse(name, error)));
            }
        }
        first
    }

    /// Sets the capabilities of a program: like the set-id bits they lend the rights of its owner.
    fn set_capability(
        &self,
        to: &impl MetadataTarget,
        header: &Header,
        is_owner_set: bool,
    ) -> io::Result<()> {
        let Some(capability) = find(header, CAPABILITY).filter(|_| self.options.xattrs) else {
            return Ok(());
        };
        if self.keeps_set_id() && is_owner_set {
            return to
                .set_xattr(CAPABILITY, capability)
                .or_else(|error| self.excuse(CAPABILITY, error));
        }
        let count = if self.is_root {
            &self.withheld_capabilities
        } else {
            &self.refused_attributes
        };
        count.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Counts what only the superuser may set, and returns any other failure.
    fn excuse(&self, name: &[u8], error: io::Error) -> io::Result<()> {
        if error.kind() == ErrorKind::PermissionDenied && !name.starts_with(b"user.") {
            self.refused_attributes.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        Err(error)
    }
}

pub(super) fn list_of(header: &Header) -> Option<&[u8]> {
    find(header, ACCESS_ACL)
}

fn find<'h>(header: &'h Header, name: &[u8]) -> Option<&'h [u8]> {
    let mut found = header.xattrs.iter().filter(|(found, _)| found == name);
    found.next().map(|(_, value)| value.as_slice())
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use stook_sys::Timestamp;

    use super::*;

    /// A file that belongs to root, on a file system that refuses some calls.
    #[derive(Default)]
    struct Refusing {
        owner: bool,
        list: bool,
        mode: Cell<u32>,
        attributes: RefCell<Vec<Vec<u8>>>,
    }

    impl MetadataTarget for Refusing {
        fn set_owner(&self, _: u32, _: u32) -> io::Result<()> {
            if self.owner {
                return Err(ErrorKind::PermissionDenied.into());
            }
            Ok(())
        }

        fn set_mode(&self, mode: u32) -> io::Result<()> {
            self.mode.set(mode);
            Ok(())
        }

        fn set_xattr(&self, name: &[u8], _: &[u8]) -> io::Result<()> {
            if self.list && name == ACCESS_ACL {
                // EOPNOTSUPP
                return Err(io::Error::from_raw_os_error(95));
            }
            self.attributes.borrow_mut().push(name.to_vec());
            Ok(())
        }

        fn remove_xattr(&self, _: &[u8]) -> io::Result<()> {
            Ok(())
        }

        fn set_mtime(&self, _: Timestamp) -> io::Result<()> {
            Ok(())
        }
    }

    fn restorer() -> Restorer {
        let options = TargetOptions {
            no_overwrite: false,
            same_permissions: true,
            xattrs: true,
            time_tolerance: 0,
        };
        Restorer {
            is_root: true,
            ..Restorer::new(options)
        }
    }

    fn apply(to: &Refusing, header: &Header) -> io::Result<()> {
        let of_root = || Ok(Metadata::of_kind(FileKind::File));
        restorer().apply(to, header, Given::default(), of_root)
    }

    /// A list that lets user 1001 read and write, and the group nothing.
    fn list() -> Vec<u8> {
        let mut list = 2_u32.to_le_bytes().to_vec();
        let entries = [(1, 6, 0), (2, 6, 1001), (4, 0, 0), (16, 6, 0), (32, 0, 0)];
        for (tag, rights, id) in entries {
            list.extend(u16::to_le_bytes(tag));
            list.extend(u16::to_le_bytes(rights));
            list.extend(u32::to_le_bytes(id));
        }
        list
    }

    #[test]
    fn without_its_owner_a_program_lends_no_rights() {
        let header = Header {
            mode: 0o6775,
            uid: 1001,
            gid: 1002,
            xattrs: vec![(CAPABILITY.to_vec(), vec![1])],
            ..Header::default()
        };
        let to = Refusing {
            owner: true,
            ..Refusing::default()
        };
        assert!(apply(&to, &header).is_err());
        // The group of the copy is another one, too.
        assert_eq!(to.mode.get(), 0o755);
        assert_eq!(to.attributes.take(), [b""; 0]);
        let to = Refusing::default();
        apply(&to, &header).unwrap();
        assert_eq!(to.mode.get(), 0o6775);
        assert_eq!(to.attributes.take(), [CAPABILITY]);
    }

    #[test]
    fn where_no_list_is_taken_the_group_does_not_get_its_mask() {
        let header = Header {
            mode: 0o660,
            xattrs: vec![(ACCESS_ACL.to_vec(), list())],
            ..Header::default()
        };
        let to = Refusing {
            list: true,
            ..Refusing::default()
        };
        assert!(apply(&to, &header).is_err());
        assert_eq!(to.mode.get(), 0o600);
        let to = Refusing::default();
        apply(&to, &header).unwrap();
        assert_eq!(to.mode.get(), 0o660);
        assert_eq!(to.attributes.take(), [ACCESS_ACL]);
    }
}
