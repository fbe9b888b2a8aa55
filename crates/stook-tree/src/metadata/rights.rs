//! Who may do what with a copy, or an extracted file: its mode and its access control list, taken together.
//!
//! The group bits of a mode are the mask of the list, if there is one. So neither means anything without the other: the
//! mode alone would give the owning group what the mask allows to others, and a change of the mode alone may bring
//! back to life an entry of the list that the mask kept out.

use stook_sys::{Metadata, Xattr};

/// Numbers of a user and a group.
pub type Owner = (u32, u32);

/// The list that a directory gives to what is made in it, as an attribute.
pub const DEFAULT_ACL: &[u8] = b"system.posix_acl_default";
/// The access control list, as an attribute.
pub const ACCESS_ACL: &[u8] = b"system.posix_acl_access";

pub(crate) const SET_USER_ID: u32 = 0o4000;
pub(crate) const SET_GROUP_ID: u32 = 0o2000;

/// Tags of the entries of a list.
///
/// # Source
/// `include/uapi/linux/posix_acl.h` and `posix_acl_xattr.h` of Linux: a version, then entries of tag, rights and id.
const NAMED_USER: u16 = 0x02;
const GROUP: u16 = 0x04;
const NAMED_GROUP: u16 = 0x08;
const MASK: u16 = 0x10;
const OTHERS: u16 = 0x20;
const VERSION_BYTES: usize = 4;
const ENTRY_BYTES: usize = 8;

/// The mode and the access control list of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rights {
    /// The mode.
    pub mode: u32,
    /// The value of [`ACCESS_ACL`].
    pub list: Option<Vec<u8>>,
}

impl Rights {
    /// Returns the rights for a copy that belongs to `owner`: those of the original, and less where it belongs to others.
    ///
    /// Set-id bits lend the rights of an owner, so no one else gets them. A group other than the original's gets what
    /// others have, and others no more than the original's group current, because its members are now among them.
    pub fn of(original: &Metadata, list: Option<&[u8]>, owner: Owner) -> Self {
        let mut rights = Self {
            mode: original.mode,
            list: list.map(<[u8]>::to_vec),
        };
        if owner.0 != original.uid {
            rights.mode &= !SET_USER_ID;
        }
        if owner.1 != original.gid {
            rights.mode &= !SET_GROUP_ID;
            rights.level_group_and_others();
        }
        rights
    }

    fn level_group_and_others(&mut self) {
        let Some(list) = &mut self.list else {
            let shared = self.mode & (self.mode >> 3) & 0o7;
            self.mode = self.mode & !0o077 | shared << 3 | shared;
            return;
        };
        let mask = rights_of(list, MASK).unwrap_or(0o7);
        let shared =
            rights_of(list, GROUP).unwrap_or(0) & mask & rights_of(list, OTHERS).unwrap_or(0);
        change(list, |tag, rights| {
            if matches!(tag, GROUP | OTHERS) {
                shared
            } else {
                rights
            }
        });
        self.mode = self.mode & !0o007 | u32::from(shared);
    }

    /// Returns the mode for a file system without lists: it allows nobody more than mode and list together do.
    pub fn without_list(&self) -> u32 {
        let Some(list) = &self.list else {
            return self.mode;
        };
        let mask = rights_of(list, MASK).unwrap_or(0o7);
        let mut group = rights_of(list, GROUP).unwrap_or(0) & mask;
        let mut others = rights_of(list, OTHERS).unwrap_or(0);
        for (tag, rights) in entries(list) {
            match tag {
                // May be a member of the group, or not.
                NAMED_USER => {
                    group &= rights & mask;
                    others &= rights & mask;
                }
                NAMED_GROUP => others &= rights & mask,
                _ => {}
            }
        }
        self.mode & !0o077 | u32::from(group) << 3 | u32::from(others)
    }

    /// Returns the list as it may be set before the mode opens it: only the owner is let in.
    pub fn closed_list(&self) -> Option<Vec<u8>> {
        let mut list = self.list.clone()?;
        let has_mask = rights_of(&list, MASK).is_some();
        change(&mut list, |tag, rights| match tag {
            MASK | OTHERS => 0,
            GROUP if !has_mask => 0,
            _ => rights,
        });
        Some(list)
    }
}

pub(crate) fn find<'a>(attributes: &'a [Xattr], name: &[u8]) -> Option<&'a [u8]> {
    let mut found = attributes.iter().filter(|(found, _)| found == name);
    found.next().map(|(_, value)| value.as_slice())
}

/// Returns tag and rights of each entry.
fn entries(list: &[u8]) -> impl Iterator<Item = (u16, u16)> {
    let entries = list.get(VERSION_BYTES..).unwrap_or_default();
    let number = |bytes: &[u8]| u16::from_le_bytes([bytes[0], bytes[1]]);
    let entries = entries.chunks_exact(ENTRY_BYTES);
    entries.map(move |entry| (number(&entry[..2]), number(&entry[2..4])))
}

fn rights_of(list: &[u8], tag: u16) -> Option<u16> {
    entries(list)
        .find(|(found, _)| *found == tag)
        .map(|(_, rights)| rights)
}

/// Gives each entry the rights that `rights` returns for its tag and its present rights.
fn change(list: &mut [u8], rights: impl Fn(u16, u16) -> u16) {
    let entries = list.get_mut(VERSION_BYTES..).unwrap_or_default();
    for entry in entries.chunks_exact_mut(ENTRY_BYTES) {
        let tag = u16::from_le_bytes([entry[0], entry[1]]);
        let new = rights(tag, u16::from_le_bytes([entry[2], entry[3]]));
        entry[2..4].copy_from_slice(&new.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use stook_sys::FileKind;

    use super::*;

    const OWNER: u16 = 0x01;

    fn metadata(mode: u32, uid: u32, gid: u32) -> Metadata {
        Metadata {
            mode,
            uid,
            gid,
            ..Metadata::of_kind(FileKind::File)
        }
    }

    fn list(entries: &[(u16, u16)]) -> Vec<u8> {
        let mut list = 2_u32.to_le_bytes().to_vec();
        for (tag, rights) in entries {
            list.extend(tag.to_le_bytes());
            list.extend(rights.to_le_bytes());
            list.extend(u32::MAX.to_le_bytes());
        }
        list
    }

    #[test]
    fn rights_are_lent_by_their_owner_only() {
        let wanted = metadata(0o6755, 1, 2);
        let mode = |owner| Rights::of(&wanted, None, owner).mode;
        assert_eq!(mode((1, 2)), 0o6755);
        assert_eq!(mode((3, 2)), 0o2755);
        assert_eq!(mode((1, 4)), 0o4755);
        assert_eq!(
            Rights::of(&metadata(0o1777, 1, 2), None, (3, 4)).mode,
            0o1777
        );
    }

    #[test]
    fn another_group_gets_what_everybody_has() {
        let mode = |mode| Rights::of(&metadata(mode, 1, 2), None, (1, 4)).mode;
        assert_eq!(mode(0o660), 0o600);
        assert_eq!(mode(0o664), 0o644);
        assert_eq!(mode(0o604), 0o600);
        let full = list(&[
            (OWNER, 6),
            (NAMED_USER, 6),
            (GROUP, 4),
            (MASK, 6),
            (OTHERS, 0),
        ]);
        let rights = Rights::of(&metadata(0o660, 1, 2), Some(&full), (1, 4));
        let expected = list(&[
            (OWNER, 6),
            (NAMED_USER, 6),
            (GROUP, 0),
            (MASK, 6),
            (OTHERS, 0),
        ]);
        assert_eq!(rights.list, Some(expected));
        assert_eq!(rights.mode, 0o660);
    }

    #[test]
    fn a_mode_without_its_list_allows_nobody_more() {
        let without = |mode: u32, entries: &[(u16, u16)]| {
            Rights::of(&metadata(mode, 1, 2), Some(&list(entries)), (1, 2)).without_list()
        };
        let named = [
            (OWNER, 6),
            (NAMED_USER, 6),
            (GROUP, 0),
            (MASK, 6),
            (OTHERS, 0),
        ];
        assert_eq!(without(0o660, &named), 0o600);
        let kept_out = [
            (OWNER, 6),
            (NAMED_USER, 0),
            (GROUP, 4),
            (MASK, 4),
            (OTHERS, 4),
        ];
        assert_eq!(without(0o644, &kept_out), 0o600);
        let group_kept_out = [
            (OWNER, 6),
            (GROUP, 4),
            (NAMED_GROUP, 0),
            (MASK, 4),
            (OTHERS, 4),
        ];
        assert_eq!(without(0o644, &group_kept_out), 0o640);
        let masked = [
            (OWNER, 6),
            (NAMED_USER, 6),
            (GROUP, 6),
            (MASK, 4),
            (OTHERS, 4),
        ];
        assert_eq!(without(0o644, &masked), 0o644);
    }

    #[test]
    fn a_closed_list_lets_the_owner_in_alone() {
        let full = list(&[
            (OWNER, 6),
            (NAMED_USER, 6),
            (GROUP, 4),
            (MASK, 6),
            (OTHERS, 4),
        ]);
        let rights = Rights::of(&metadata(0o664, 1, 2), Some(&full), (1, 2));
        let closed = list(&[
            (OWNER, 6),
            (NAMED_USER, 6),
            (GROUP, 4),
            (MASK, 0),
            (OTHERS, 0),
        ]);
        assert_eq!(rights.closed_list(), Some(closed));
        assert_eq!(
            Rights::of(&metadata(0, 1, 2), None, (1, 2)).closed_list(),
            None
        );
    }

    #[test]
    fn a_list_that_is_cut_short_is_no_reason_to_panic() {
        for len in 0..20 {
            let rights = Rights {
                mode: 0o777,
                list: Some(vec![1; len]),
            };
            assert_eq!(rights.without_list() & 0o077, 0);
            assert_eq!(rights.closed_list().map(|list| list.len()), Some(len));
        }
    }
}
