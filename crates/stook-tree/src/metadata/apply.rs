//! Gives a copy owner, rights, attributes and time of its original, in an order that never grants access too early.
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

use super::error::{During, MetadataError, SET_ATTRIBUTES};
use super::rights::{ACCESS_ACL, DEFAULT_ACL, Owner, Rights, find};
use super::target::MetadataTarget;
use super::user::{Current, RefusedAttributes, User, excuse, space_of};
use crate::Reason;

/// What a copy is to be like.
#[derive(Clone, Copy)]
pub(crate) struct Original<'o> {
    pub(crate) metadata: &'o Metadata,
    pub(crate) attributes: &'o [Xattr],
}

/// How a copy differs from what it is to be like.
pub(crate) struct Changes<'c> {
    original: Original<'c>,
    current: &'c Current<'c>,
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
pub(crate) const OWNER_BITS: u32 = 0o700;
/// What it takes to set an attribute of one's own file.
const OWNER_WRITES: u32 = 0o200;

impl Original<'_> {
    fn is_link(&self) -> bool {
        self.metadata.kind == FileKind::Symlink
    }

    /// Returns the rights for a copy of this owner, on a file system that may have no lists.
    fn rights(&self, owner: Owner, refused: &RefusedAttributes) -> Rights {
        let rights = Rights::of(self.metadata, find(self.attributes, ACCESS_ACL), owner);
        if rights.list.is_some() && refused.contains(ACCESS_ACL) {
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
    pub(crate) fn changes<'c>(
        &self,
        original: Original<'c>,
        current: &'c Current<'c>,
        refused: &RefusedAttributes,
    ) -> Changes<'c> {
        let Original {
            metadata,
            attributes,
        } = original;
        let owner = self.owner_to_give(metadata, current.owner);
        let is_other = |name: &[u8]| name != ACCESS_ACL && name != CAPABILITY;
        let differs = |(name, value): &&Xattr| {
            is_other(name)
                && self.keeps(name, current.is_new, refused)
                && find(current.attributes, name) != Some(value)
        };
        let is_foreign = |name: &&[u8]| {
            // Others may be the file system's own, such as labels and layouts.
            let is_users = space_of(name) == b"user" || *name == DEFAULT_ACL;
            (is_users || (*name == CAPABILITY && self.is_root)) && find(attributes, name).is_none()
        };
        let found = current.attributes.iter().map(|(name, _)| name.as_slice());
        Changes {
            original,
            current,
            owner,
            rights: original.rights(owner.unwrap_or(current.owner), refused),
            set: attributes.iter().filter(differs).collect(),
            remove: found.filter(is_foreign).collect(),
            capability: find(attributes, CAPABILITY).filter(|_| self.is_root),
        }
    }

    /// Returns true for an attribute that is compared, or tried on something new.
    fn keeps(&self, name: &[u8], is_new: bool, refused: &RefusedAttributes) -> bool {
        let is_set_by = match space_of(name) {
            b"user" => true,
            b"trusted" | b"security" => self.is_root || is_new,
            _ => name == DEFAULT_ACL || is_new,
        };
        is_set_by && (is_new || !refused.contains(name))
    }

    /// Gives a copy what it is to be like.
    ///
    /// The time is set last, and not if the mode could not be set: the next update tries again then. Attributes and an
    /// owner that could not be set are seen by the next update anyway.
    pub(crate) fn apply(
        &self,
        to: &impl MetadataTarget,
        original: Original<'_>,
        current: &Current<'_>,
        refused: &RefusedAttributes,
    ) -> Result<(), MetadataError> {
        let changes = self.changes(original, current, refused);
        let metadata = original.metadata;
        let mut first = Ok(());
        if changes.are_needed() {
            let mode = self.close(to, &changes)?;
            first = changes.remove_foreign(to);
            let given = self.give(metadata, current.owner, |uid, gid| to.set_owner(uid, gid));
            let owner = *given.as_ref().unwrap_or(&current.owner);
            let set = set_attributes(&changes.set, refused, |name, value| {
                to.set_xattr(name, value)
            });
            first = first.and(set);
            if !original.is_link() {
                let opened = changes.open(to, owner, mode, refused)?;
                let raised = changes.set_capability(to, owner, refused);
                first = first.and(opened).and(raised);
            }
            first = first.and(given.during("set the owner of").map(drop));
        }
        if current.mtime != Some(metadata.mtime) {
            to.set_mtime(metadata.mtime).during("set the time of")?;
        }
        first
    }

    /// Lets in only the owner where the way to the new rights is more than one step; returns the mode, if known.
    fn close(
        &self,
        to: &impl MetadataTarget,
        changes: &Changes<'_>,
    ) -> Result<Option<u32>, MetadataError> {
        let current = changes.current;
        let Some(most) = current.most.filter(|_| !changes.original.is_link()) else {
            return Ok(current.mode);
        };
        let closed = if changes.is_rebuilt() {
            self.closed_mode(most, &changes.rights)
        } else if !self.is_root && changes.has_attributes() {
            most | OWNER_WRITES
        } else {
            most
        };
        if closed == most {
            return Ok(current.mode);
        }
        to.set_mode(closed).during("set the mode of")?;
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
    pub(crate) fn mode_while_filled(&self, changes: &Changes<'_>, mode: u32) -> u32 {
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
    pub(crate) fn why(&self) -> Option<Reason> {
        let is_link = self.original.is_link();
        if self.owner.is_some() {
            Some(Reason::OwnerDiffers)
        } else if !is_link && self.is_list_changed() {
            Some(Reason::AccessListDiffers)
        } else if !is_link && self.current.mode != Some(self.rights.mode) {
            Some(Reason::ModeDiffers)
        } else if self.has_attributes() || self.is_capability_changed() {
            Some(Reason::AttributesDiffer)
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
        self.rights.list.as_deref() != find(self.current.attributes, ACCESS_ACL)
    }

    fn is_capability_changed(&self) -> bool {
        self.capability.is_some() && self.capability != find(self.current.attributes, CAPABILITY)
    }

    fn remove_foreign(&self, to: &impl MetadataTarget) -> Result<(), MetadataError> {
        for name in &self.remove {
            to.remove_xattr(name).during(SET_ATTRIBUTES)?;
        }
        Ok(())
    }

    /// Sets list and mode; the inner result is that of the list.
    fn open(
        &self,
        to: &impl MetadataTarget,
        owner: Owner,
        mut mode: Option<u32>,
        refused: &RefusedAttributes,
    ) -> Result<Result<(), MetadataError>, MetadataError> {
        let mut rights = self.original.rights(owner, refused);
        let there = find(self.current.attributes, ACCESS_ACL);
        let mut listed = Ok(());
        if rights.list.as_deref() != there {
            let set = match rights.closed_list() {
                Some(list) => to.set_xattr(ACCESS_ACL, &list),
                None => to.remove_xattr(ACCESS_ACL),
            };
            if let Err(error) = set {
                listed = excuse(ACCESS_ACL, error, refused).during(SET_ATTRIBUTES);
                if there.is_some() {
                    // The mode would open the old list again.
                    return Ok(listed);
                }
                rights.mode = rights.without_list();
            }
            mode = None;
        }
        if mode != Some(rights.mode) {
            to.set_mode(rights.mode).during("set the mode of")?;
        }
        Ok(listed)
    }

    /// Sets the capabilities, which the kernel drops with every change of the owner.
    fn set_capability(
        &self,
        to: &impl MetadataTarget,
        owner: Owner,
        refused: &RefusedAttributes,
    ) -> Result<(), MetadataError> {
        let metadata = self.original.metadata;
        let is_lent_by_owner = owner == (metadata.uid, metadata.gid);
        let is_dropped = owner != self.current.owner;
        let Some(capability) = self
            .capability
            .filter(|_| is_lent_by_owner && (is_dropped || self.is_capability_changed()))
        else {
            return Ok(());
        };
        let set = to.set_xattr(CAPABILITY, capability);
        set.or_else(|error| excuse(CAPABILITY, error, refused))
            .during(SET_ATTRIBUTES)
    }
}

/// Sets attributes by `set`, and returns the first failure.
fn set_attributes(
    attributes: &[&Xattr],
    refused: &RefusedAttributes,
    set: impl Fn(&[u8], &[u8]) -> io::Result<()>,
) -> Result<(), MetadataError> {
    let mut first = Ok(());
    for (name, value) in attributes {
        let done = set(name, value).or_else(|error| excuse(name, error, refused));
        first = first.and(done.during(SET_ATTRIBUTES));
    }
    first
}
