//! Access control lists and capabilities, as the attributes that the kernel takes.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

/// The attribute of an access control list.
pub const ACCESS: &[u8] = b"system.posix_acl_access";
/// The attribute of the list that a directory gives to what is made in it.
pub const DEFAULT: &[u8] = b"system.posix_acl_default";
/// The attribute of the capabilities of a program.
pub const CAPABILITY: &[u8] = b"security.capability";

const OWNER: u16 = 1;
const NAMED_USER: u16 = 2;
const GROUP: u16 = 4;
const MASK: u16 = 16;
const OTHERS: u16 = 32;

/// Returns a list with a named user.
pub fn list(owner: u16, named: (u32, u16), group: u16, mask: u16, others: u16) -> Vec<u8> {
    let entries = [
        (OWNER, owner, u32::MAX),
        (NAMED_USER, named.1, named.0),
        (GROUP, group, u32::MAX),
        (MASK, mask, u32::MAX),
        (OTHERS, others, u32::MAX),
    ];
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, rights, id) in entries {
        list.extend(tag.to_le_bytes());
        list.extend(rights.to_le_bytes());
        list.extend(id.to_le_bytes());
    }
    list
}

/// Returns `cap_net_raw` of version 2, permitted and effective.
pub fn capability() -> Vec<u8> {
    let words = [0x0200_0001_u32, 1 << 13, 0, 0, 0];
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Returns the permission bits of a file, with set-id and sticky bits.
///
/// # Panics
/// If it cannot be looked at.
pub fn mode(path: &Path) -> u32 {
    let metadata = fs::metadata(path).expect("it can be looked at");
    metadata.mode() & 0o7777
}

/// Sets the permission bits of a file.
///
/// # Panics
/// If they cannot be set.
pub fn set_mode(path: &Path, mode: u32) {
    let permissions = fs::Permissions::from_mode(mode);
    fs::set_permissions(path, permissions).expect("it belongs to the test");
}
