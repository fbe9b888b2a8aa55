//! What the user who copies may set, what a copy has already, and which attributes are passed over.
//!
//! What new files are like anyway is looked at on one of them, and not set again.

use std::collections::HashSet;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

use stook_sys::{Metadata, Timestamp, Xattr, is_unsupported, lock, remove_xattr};

use super::error::{During, MetadataError, SET_ATTRIBUTES};
use super::rights::{ACCESS_ACL, DEFAULT_ACL, Owner};
use crate::Reason;

/// What files made in a directory are like: their group may come from the directory, their mode from the umask.
#[derive(Debug, Default)]
pub(crate) struct NewFileDefaults {
    owner: OnceLock<Owner>,
    /// Permission bits that new files get when they are asked for, and those that they do not get.
    granted: AtomicU32,
    denied: AtomicU32,
}

impl NewFileDefaults {
    pub(crate) fn owner(&self) -> Option<Owner> {
        self.owner.get().copied()
    }

    /// Returns the mode of a new file for which `asked` was asked, if that is known.
    pub(crate) fn mode(&self, asked: u32) -> Option<u32> {
        let granted = self.granted.load(Ordering::Relaxed);
        let denied = self.denied.load(Ordering::Relaxed);
        let is_known = asked & !(granted | denied) == 0;
        is_known.then_some(asked & !denied)
    }

    /// Takes note of a new file.
    pub(crate) fn learn(&self, asked: u32, got: &Metadata) {
        let _ = self.owner.set((got.uid, got.gid));
        self.granted.fetch_or(asked & got.mode, Ordering::Relaxed);
        self.denied.fetch_or(asked & !got.mode, Ordering::Relaxed);
    }
}

/// What a copy has already.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Current<'h> {
    pub(crate) owner: Owner,
    /// `None` if it is not known exactly.
    pub(crate) mode: Option<u32>,
    /// What the mode may allow at most; `None` if no one else can reach the copy yet.
    pub(crate) most: Option<u32>,
    pub(crate) mtime: Option<Timestamp>,
    pub(crate) attributes: &'h [Xattr],
    /// True if this run made it.
    pub(crate) is_new: bool,
}

impl<'h> Current<'h> {
    pub(crate) fn all_of(metadata: &Metadata, attributes: &'h [Xattr]) -> Self {
        Self {
            owner: (metadata.uid, metadata.gid),
            mode: Some(metadata.mode),
            most: Some(metadata.mode),
            mtime: Some(metadata.mtime),
            attributes,
            is_new: false,
        }
    }

    /// Returns what something has that was just made with at most this mode.
    pub(crate) fn new(owner: Owner, most: u32) -> Self {
        Self {
            owner,
            mode: None,
            most: Some(most),
            mtime: None,
            attributes: &[],
            is_new: true,
        }
    }
}

/// Who copies, and what that user may do.
#[derive(Debug)]
pub(crate) struct User {
    pub(crate) is_root: bool,
    /// Groups that the user belongs to: a file can be given to no other.
    groups: Vec<u32>,
    /// Those of them that a file could not be given to all the same.
    refused_groups: Mutex<HashSet<u32>>,
}

impl User {
    pub(crate) fn current() -> Self {
        Self {
            is_root: stook_sys::is_root(),
            groups: stook_sys::groups(),
            refused_groups: Mutex::default(),
        }
    }

    /// Returns the owner that something is to be given; an ordinary user can change the group at most.
    pub(crate) fn owner_to_give(&self, wanted: &Metadata, current: Owner) -> Option<Owner> {
        let owner = if self.is_root {
            (wanted.uid, wanted.gid)
        } else {
            (current.0, wanted.gid)
        };
        let is_refused =
            || !self.groups.contains(&owner.1) || lock(&self.refused_groups).contains(&owner.1);
        (owner != current && (self.is_root || !is_refused())).then_some(owner)
    }

    /// Gives something to its owner, if that is to be; returns who has it then.
    pub(crate) fn give(
        &self,
        wanted: &Metadata,
        current: Owner,
        set: impl FnOnce(u32, u32) -> io::Result<()>,
    ) -> io::Result<Owner> {
        let Some(owner) = self.owner_to_give(wanted, current) else {
            return Ok(current);
        };
        match set(owner.0, owner.1) {
            Ok(()) => Ok(owner),
            // An unprivileged user cannot chown; not an error.
            Err(error) if !self.is_root && error.kind() == io::ErrorKind::PermissionDenied => {
                lock(&self.refused_groups).insert(owner.1);
                Ok(current)
            }
            Err(error) => Err(error),
        }
    }
}

/// Takes the access control lists that something got from the directory it was made in.
pub(crate) fn remove_inherited(fd: impl AsFd, names: &[&[u8]]) -> Result<(), MetadataError> {
    for name in names {
        remove_xattr(fd.as_fd(), name).during(SET_ATTRIBUTES)?;
    }
    Ok(())
}

/// Returns the attributes that a copy gets: not those in which XFS shows access control lists a second time, nor those in
/// which Lustre says where the content lies.
pub(crate) fn without_shadows(mut attributes: Vec<Xattr>) -> Vec<Xattr> {
    let is_of_file_system = |name: &[u8]| {
        let shadow = name.strip_prefix(b"trusted.").unwrap_or_default();
        shadow.starts_with(b"SGI_ACL_")
            || [&b"lov"[..], b"lma", b"lmv", b"link", b"fid"].contains(&shadow)
    };
    attributes.retain(|(name, _)| !is_of_file_system(name));
    attributes
}

/// Returns the name space of an attribute.
pub(crate) fn space_of(name: &[u8]) -> &[u8] {
    name.split(|&byte| byte == b'.').next().unwrap_or(name)
}

fn is_list(name: &[u8]) -> bool {
    name == DEFAULT_ACL || name == ACCESS_ACL
}

/// Returns the bit for a name space in [`RefusedAttributes`].
fn bit_of(name: &[u8]) -> u8 {
    match space_of(name) {
        b"user" => 1,
        b"system" if is_list(name) => 2,
        b"trusted" => 4,
        _ => 8,
    }
}

/// The name spaces of attributes that a file system refused, each of which is reported once.
#[derive(Debug, Default)]
pub(crate) struct RefusedAttributes(AtomicU8);

impl RefusedAttributes {
    /// Returns true if the file system refused an attribute of this name space before.
    pub(crate) fn contains(&self, name: &[u8]) -> bool {
        self.0.load(Ordering::Relaxed) & bit_of(name) != 0
    }
}

/// Skips what need not be reported, and all but the first report of what a file system never accepts.
pub(crate) fn excuse(name: &[u8], error: io::Error, refused: &RefusedAttributes) -> io::Result<()> {
    let space = space_of(name);
    if space == b"system" && !is_list(name) {
        // Another file system's own lists; the mode says the same.
        return Ok(());
    }
    let is_for_root = space != b"user" && !is_list(name);
    if error.kind() == io::ErrorKind::PermissionDenied && is_for_root {
        // Names that only the superuser may set are for the superuser.
        return Ok(());
    }
    if !is_unsupported(&error) {
        return Err(error);
    }
    let bit = bit_of(name);
    let was_told = refused.0.fetch_or(bit, Ordering::Relaxed) & bit != 0;
    if was_told {
        return Ok(());
    }
    Err(if is_list(name) {
        Reason::NoAccessLists
    } else {
        Reason::NoAttributes(space.to_vec())
    }
    .into())
}

#[cfg(test)]
mod tests {
    use stook_sys::FileKind;

    use super::*;

    fn metadata(mode: u32, uid: u32, gid: u32) -> Metadata {
        Metadata {
            mode,
            uid,
            gid,
            ..Metadata::of_kind(FileKind::File)
        }
    }

    #[test]
    fn modes_of_new_files_are_known_once_every_bit_was_seen() {
        let defaults = NewFileDefaults::default();
        assert_eq!(defaults.mode(0o644), None);
        defaults.learn(0o664, &metadata(0o644, 7, 8));
        assert_eq!(defaults.mode(0o644), Some(0o644));
        assert_eq!(defaults.mode(0o660), Some(0o640));
        assert_eq!(defaults.mode(0o755), None);
        assert_eq!(defaults.owner(), Some((7, 8)));
    }

    #[test]
    fn a_user_gives_away_no_file_and_asks_for_a_group_once() {
        let user = User {
            is_root: false,
            groups: vec![2],
            refused_groups: Mutex::default(),
        };
        let wanted = metadata(0o644, 1, 2);
        assert_eq!(user.owner_to_give(&wanted, (9, 9)), Some((9, 2)));
        assert_eq!(user.owner_to_give(&metadata(0o644, 1, 3), (9, 9)), None);
        let refused = || Err(io::ErrorKind::PermissionDenied.into());
        assert_eq!(
            user.give(&wanted, (9, 9), |_, _| refused()).unwrap(),
            (9, 9)
        );
        assert_eq!(user.owner_to_give(&wanted, (9, 9)), None);
        let root = User {
            is_root: true,
            ..user
        };
        assert_eq!(root.owner_to_give(&wanted, (9, 9)), Some((1, 2)));
        assert!(root.give(&wanted, (9, 9), |_, _| refused()).is_err());
        assert_eq!(root.owner_to_give(&wanted, (1, 2)), None);
    }

    #[test]
    fn the_shadows_of_lists_on_xfs_are_left_out() {
        let attribute = |name: &[u8]| (name.to_vec(), Vec::new());
        let found = [
            ACCESS_ACL,
            b"trusted.SGI_ACL_FILE",
            b"trusted.a",
            b"trusted.lov",
        ];
        let found = found.map(attribute);
        let kept = [ACCESS_ACL, b"trusted.a"].map(attribute);
        assert_eq!(without_shadows(found.to_vec()), kept);
    }

    #[test]
    fn attributes_that_are_never_taken_are_told_once() {
        let refused = RefusedAttributes::default();
        let unsupported = || io::Error::from_raw_os_error(95);
        assert!(excuse(b"user.a", unsupported(), &refused).is_err());
        assert!(excuse(b"user.b", unsupported(), &refused).is_ok());
        assert!(excuse(ACCESS_ACL, unsupported(), &refused).is_err());
        assert!(excuse(DEFAULT_ACL, unsupported(), &refused).is_ok());
        assert!(excuse(b"system.nfs4_acl", unsupported(), &refused).is_ok());
        let denied = || io::ErrorKind::PermissionDenied.into();
        assert!(excuse(b"security.capability", denied(), &refused).is_ok());
        assert!(excuse(b"user.c", denied(), &refused).is_err());
        let full = || io::ErrorKind::StorageFull.into();
        assert!(excuse(b"user.d", full(), &refused).is_err());
    }
}
