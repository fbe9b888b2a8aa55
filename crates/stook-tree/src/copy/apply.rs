//! Giving a copy the owner, rights, attributes and time of its original, in an order that lets nobody in too early.
//!
//! ```text
//!   1. close      rights of the owner alone, and no more than both old and new    if owner or list differ
//!   2. remove     attributes that the original does not have
//!   3. owner      clears set-id bits and drops capabilities
//!   4. attributes all but these two: the list, closed by its mask; capabilities
//!   5. mode       opens the list and sets the set-id bits, at once
//!   6. capabilities, then the time
//! ```
//! So at every moment a user who may open the copy has that right from its old mode or from its new one. If only the mode differs,
//! step 5 is all there is. What cannot be set leaves narrower rights, never wider ones.

use std::io;

use stook_sys::{FileKind, Metadata, Xattr};

use super::content::Ways;
use super::dress::{Has, Owner, User, excuse, space_of};
use super::errand::{ATTRIBUTES, At, Fault, Side};
use super::rights::{ACCESS_ACL, DEFAULT_ACL, Rights, find};
use super::settable::Settable;

/// What a copy is to be like.
#[derive(Clone, Copy)]
pub(super) struct Original<'o> {
    pub(super) metadata: &'o Metadata,
    pub(super) attributes: &'o [Xattr],
}

/// How a copy differs from what it is to be like.
pub(super) struct Changes<'c> {
    original: Original<'c>,
    has: &'c Has<'c>,
    /// Whom to give it to.
    owner: Option<Owner>,
    rights: Rights,
    set: Vec<&'c Xattr>,
    remove: Vec<&'c [u8]>,
    /// What the capabilities of the original are.
    capability: Option<&'c [u8]>,
}

/// Capabilities of a program, as an attribute.
pub const CAPABILITY: &[u8] = b"security.capability";
/// The permission bits of the owner.
pub(super) const OWNER_BITS: u32 = 0o700;
/// What it takes to set an attribute of one's own file.
const OWNER_WRITES: u32 = 0o200;

impl Original<'_> {
    fn is_link(&self) -> bool {
        self.metadata.kind == FileKind::Symlink
    }

    /// Returns the rights for a copy of this owner, on a file system that may have no lists.
    fn rights(&self, owner: Owner, ways: &Ways) -> Rights {
        let rights = Rights::of(self.metadata, find(self.attributes, ACCESS_ACL), owner);
        if rights.list.is_some() && ways.refuse(ACCESS_ACL) {
            return Rights {
                mode: rights.without_list(),
                list: None,
            };
        }
        rights
    }
}

impl User {
    /// Compares a copy with what it is to be like. What this user cannot set is no difference.
    pub(super) fn changes<'c>(
        &self,
        original: Original<'c>,
        has: &'c Has<'c>,
        ways: &Ways,
    ) -> Changes<'c> {
        let Original {
            metadata,
            attributes,
        } = original;
        let owner = self.owner_to_give(metadata, has.owner);
        let is_other = |name: &[u8]| name != ACCESS_ACL && name != CAPABILITY;
        let differs = |(name, value): &&Xattr| {
            is_other(name)
                && self.keeps(name, has.is_new, ways)
                && find(has.attributes, name) != Some(value)
        };
        let is_foreign = |name: &&[u8]| {
            // Others may be the file system's own, such as labels and layouts.
            let is_users = space_of(name) == b"user" || *name == DEFAULT_ACL;
            (is_users || (*name == CAPABILITY && self.is_root)) && find(attributes, name).is_none()
        };
        let found = has.attributes.iter().map(|(name, _)| name.as_slice());
        Changes {
            original,
            has,
            owner,
            rights: original.rights(owner.unwrap_or(has.owner), ways),
            set: attributes.iter().filter(differs).collect(),
            remove: found.filter(is_foreign).collect(),
            capability: find(attributes, CAPABILITY).filter(|_| self.is_root),
        }
    }

    /// Returns true for an attribute that is compared, or tried on something new.
    fn keeps(&self, name: &[u8], is_new: bool, ways: &Ways) -> bool {
        let is_set_by = match space_of(name) {
            b"user" => true,
            b"trusted" | b"security" => self.is_root || is_new,
            _ => name == DEFAULT_ACL || is_new,
        };
        is_set_by && (is_new || !ways.refuse(name))
    }

    /// Gives a copy what it is to be like.
    ///
    /// The time is set last, and not if the mode could not be set: the next update tries again then. Attributes and an
    /// owner that could not be set are seen by the next update anyway.
    pub(super) fn apply(
        &self,
        to: &impl Settable,
        original: Original<'_>,
        has: &Has<'_>,
        ways: &Ways,
    ) -> Result<(), Fault> {
        let changes = self.changes(original, has, ways);
        let metadata = original.metadata;
        let mut first = Ok(());
        if changes.are_needed() {
            let mode = self.close(to, &changes)?;
            first = changes.remove_foreign(to);
            let given = self.give(metadata, has.owner, |uid, gid| to.set_owner(uid, gid));
            let owner = *given.as_ref().unwrap_or(&has.owner);
            let set = set_attributes(&changes.set, ways, |name, value| to.set_xattr(name, value));
            first = first.and(set);
            if !original.is_link() {
                let opened = changes.open(to, owner, mode, ways)?;
                let raised = changes.set_capability(to, owner, ways);
                first = first.and(opened).and(raised);
            }
            first = first.and(given.at(Side::Copy, "set the owner of").map(drop));
        }
        if has.mtime != Some(metadata.mtime) {
            to.set_mtime(metadata.mtime)
                .at(Side::Copy, "set the time of")?;
        }
        first
    }

    /// Lets nobody in but the owner where the way to the new rights is more than one step; returns the mode, if known.
    fn close(&self, to: &impl Settable, changes: &Changes<'_>) -> Result<Option<u32>, Fault> {
        let has = changes.has;
        let Some(most) = has.most.filter(|_| !changes.original.is_link()) else {
            return Ok(has.mode);
        };
        let closed = if changes.is_rebuilt() {
            self.closed_mode(most, &changes.rights)
        } else if !self.is_root && changes.has_attributes() {
            most | OWNER_WRITES
        } else {
            most
        };
        if closed == most {
            return Ok(has.mode);
        }
        to.set_mode(closed).at(Side::Copy, "set the mode of")?;
        Ok(Some(closed))
    }

    /// Returns the mode of something that is about to change hands.
    fn closed_mode(&self, most: u32, rights: &Rights) -> u32 {
        if self.is_root {
            most & rights.mode & OWNER_BITS
        } else {
            // It stays the user's own.
            most & OWNER_BITS | OWNER_WRITES
        }
    }

    /// Returns the mode of a directory that others may enter while it is filled: no wider than before, nor than at the end.
    pub(super) fn mode_while_filled(&self, changes: &Changes<'_>, mode: u32) -> u32 {
        let allowed = if changes.is_rebuilt() {
            OWNER_BITS
        } else {
            changes.rights.mode | OWNER_BITS
        };
        let own = if self.is_root { 0 } else { OWNER_BITS };
        mode & (allowed | !0o777) | own
    }
}

impl Changes<'_> {
    /// Returns true if anything but the time is to be set.
    fn are_needed(&self) -> bool {
        self.why().is_some()
    }

    /// Returns what differs besides content and time.
    pub(super) fn why(&self) -> Option<&'static str> {
        let is_link = self.original.is_link();
        if self.owner.is_some() {
            Some("its owner differs")
        } else if !is_link && self.is_list_changed() {
            Some("its access control list differs")
        } else if !is_link && self.has.mode != Some(self.rights.mode) {
            Some("its mode differs")
        } else if self.has_attributes() || self.is_capability_changed() {
            Some("its attributes differ")
        } else {
            None
        }
    }

    /// Returns true if attributes other than list and capabilities differ.
    fn has_attributes(&self) -> bool {
        !self.set.is_empty() || !self.remove.is_empty()
    }

    /// Returns true if it takes several steps until the rights are right.
    fn is_rebuilt(&self) -> bool {
        self.owner.is_some() || self.is_list_changed()
    }

    fn is_list_changed(&self) -> bool {
        self.rights.list.as_deref() != find(self.has.attributes, ACCESS_ACL)
    }

    fn is_capability_changed(&self) -> bool {
        self.capability.is_some() && self.capability != find(self.has.attributes, CAPABILITY)
    }

    fn remove_foreign(&self, to: &impl Settable) -> Result<(), Fault> {
        for name in &self.remove {
            to.remove_xattr(name).at(Side::Copy, ATTRIBUTES)?;
        }
        Ok(())
    }

    /// Sets list and mode; the inner result is that of the list.
    fn open(
        &self,
        to: &impl Settable,
        owner: Owner,
        mut mode: Option<u32>,
        ways: &Ways,
    ) -> Result<Result<(), Fault>, Fault> {
        let mut rights = self.original.rights(owner, ways);
        let there = find(self.has.attributes, ACCESS_ACL);
        let mut listed = Ok(());
        if rights.list.as_deref() != there {
            let set = match rights.closed_list() {
                Some(list) => to.set_xattr(ACCESS_ACL, &list),
                None => to.remove_xattr(ACCESS_ACL),
            };
            if let Err(error) = set {
                listed = excuse(ACCESS_ACL, error, ways).at(Side::Copy, ATTRIBUTES);
                if there.is_some() {
                    // The mode would open the old list again.
                    return Ok(listed);
                }
                rights.mode = rights.without_list();
            }
            mode = None;
        }
        if mode != Some(rights.mode) {
            to.set_mode(rights.mode).at(Side::Copy, "set the mode of")?;
        }
        Ok(listed)
    }

    /// Sets the capabilities, which the kernel drops with every change of the owner.
    fn set_capability(&self, to: &impl Settable, owner: Owner, ways: &Ways) -> Result<(), Fault> {
        let metadata = self.original.metadata;
        let is_lent_by_owner = owner == (metadata.uid, metadata.gid);
        let is_dropped = owner != self.has.owner;
        let Some(capability) = self
            .capability
            .filter(|_| is_lent_by_owner && (is_dropped || self.is_capability_changed()))
        else {
            return Ok(());
        };
        let set = to.set_xattr(CAPABILITY, capability);
        set.or_else(|error| excuse(CAPABILITY, error, ways))
            .at(Side::Copy, ATTRIBUTES)
    }
}

/// Sets attributes by `set`, and returns the first failure.
fn set_attributes(
    attributes: &[&Xattr],
    ways: &Ways,
    set: impl Fn(&[u8], &[u8]) -> io::Result<()>,
) -> Result<(), Fault> {
    let mut first = Ok(());
    for (name, value) in attributes {
        let done = set(name, value).or_else(|error| excuse(name, error, ways));
        first = first.and(done.at(Side::Copy, ATTRIBUTES));
    }
    first
}
