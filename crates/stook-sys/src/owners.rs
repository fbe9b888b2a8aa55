//! Names of users and groups, each looked up once.
//!
//! The lookup goes through the C library, since sites keep their users in LDAP or SSSD, which
//! `/etc/passwd` does not show. rustix has no such call: this is why unsafe code is here.

use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::hash::Hash;
use std::sync::Mutex;

use crate::lock;

/// A table of names and numbers of users and groups, filled as they are asked for.
#[derive(Debug, Default)]
pub struct Owners {
    user_names: Table<u32, Vec<u8>>,
    group_names: Table<u32, Vec<u8>>,
    user_ids: Table<Vec<u8>, Option<u32>>,
    group_ids: Table<Vec<u8>, Option<u32>>,
}

type Table<K, V> = Mutex<HashMap<K, V>>;

impl Owners {
    /// Returns the user's name, or an empty one if the number has none.
    pub fn user_name(&self, uid: u32) -> Vec<u8> {
        remember(&self.user_names, &uid, || {
            lookup_user_name(uid).unwrap_or_default()
        })
    }

    /// Returns the group's name, or an empty one if the number has none.
    pub fn group_name(&self, gid: u32) -> Vec<u8> {
        remember(&self.group_names, &gid, || {
            lookup_group_name(gid).unwrap_or_default()
        })
    }

    /// Gives a user the name that another machine knows it by.
    pub fn define_user(&self, uid: u32, name: Vec<u8>) {
        define(&self.user_names, uid, name);
    }

    /// Gives a group the name that another machine knows it by.
    pub fn define_group(&self, gid: u32, name: Vec<u8>) {
        define(&self.group_names, gid, name);
    }

    /// Returns the number of a user known here by that name.
    pub fn user_id(&self, name: &[u8]) -> Option<u32> {
        remember(&self.user_ids, &name.to_vec(), || lookup_user_id(name))
    }

    /// Returns the number of a group known here by that name.
    pub fn group_id(&self, name: &[u8]) -> Option<u32> {
        remember(&self.group_ids, &name.to_vec(), || lookup_group_id(name))
    }
}

fn define(table: &Table<u32, Vec<u8>>, id: u32, name: Vec<u8>) {
    crate::lock(table).insert(id, name);
}

fn remember<K: Hash + Eq + Clone, V: Clone>(
    table: &Table<K, V>,
    key: &K,
    lookup: impl FnOnce() -> V,
) -> V {
    let mut table = lock(table);
    if let Some(value) = table.get(key) {
        return value.clone();
    }
    let value = lookup();
    table.insert(key.clone(), value.clone());
    value
}

/// Buffer for one record; enough for groups of several thousand members.
const RECORD_BYTES: usize = 256 << 10;

fn lookup_user_name(uid: u32) -> Option<Vec<u8>> {
    with_user(|record, buffer, result| {
        // SAFETY: all four pointers are valid for the call, and the length is the buffer's.
        unsafe { libc::getpwuid_r(uid, record, buffer.as_mut_ptr(), buffer.len(), result) }
    })
    .map(|(name, _)| name)
}

fn lookup_user_id(name: &[u8]) -> Option<u32> {
    let name = CString::new(name).ok()?;
    with_user(|record, buffer, result| {
        // SAFETY: all five pointers are valid for the call, and the length is the buffer's.
        unsafe {
            libc::getpwnam_r(
                name.as_ptr(),
                record,
                buffer.as_mut_ptr(),
                buffer.len(),
                result,
            )
        }
    })
    .map(|(_, id)| id)
}

fn lookup_group_name(gid: u32) -> Option<Vec<u8>> {
    with_group(|record, buffer, result| {
        // SAFETY: all four pointers are valid for the call, and the length is the buffer's.
        unsafe { libc::getgrgid_r(gid, record, buffer.as_mut_ptr(), buffer.len(), result) }
    })
    .map(|(name, _)| name)
}

fn lookup_group_id(name: &[u8]) -> Option<u32> {
    let name = CString::new(name).ok()?;
    with_group(|record, buffer, result| {
        // SAFETY: all five pointers are valid for the call, and the length is the buffer's.
        unsafe {
            libc::getgrnam_r(
                name.as_ptr(),
                record,
                buffer.as_mut_ptr(),
                buffer.len(),
                result,
            )
        }
    })
    .map(|(_, id)| id)
}

fn with_user(
    call: impl FnOnce(*mut libc::passwd, &mut [libc::c_char], *mut *mut libc::passwd) -> libc::c_int,
) -> Option<(Vec<u8>, u32)> {
    let mut record = std::mem::MaybeUninit::<libc::passwd>::uninit();
    let mut buffer = vec![0; RECORD_BYTES];
    let mut result = std::ptr::null_mut();
    let status = call(record.as_mut_ptr(), &mut buffer, &raw mut result);
    if status != 0 || result.is_null() {
        return None;
    }
    // SAFETY: the call succeeded, so `record` is filled in.
    let record = unsafe { record.assume_init() };
    // SAFETY: a filled record's name is a C string inside `buffer`, which is still alive.
    let name = unsafe { CStr::from_ptr(record.pw_name) };
    Some((name.to_bytes().to_vec(), record.pw_uid))
}

fn with_group(
    call: impl FnOnce(*mut libc::group, &mut [libc::c_char], *mut *mut libc::group) -> libc::c_int,
) -> Option<(Vec<u8>, u32)> {
    let mut record = std::mem::MaybeUninit::<libc::group>::uninit();
    let mut buffer = vec![0; RECORD_BYTES];
    let mut result = std::ptr::null_mut();
    let status = call(record.as_mut_ptr(), &mut buffer, &raw mut result);
    if status != 0 || result.is_null() {
        return None;
    }
    // SAFETY: the call succeeded, so `record` is filled in.
    let record = unsafe { record.assume_init() };
    // SAFETY: a filled record's name is a C string inside `buffer`, which is still alive.
    let name = unsafe { CStr::from_ptr(record.gr_name) };
    Some((name.to_bytes().to_vec(), record.gr_gid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_known_both_ways() {
        let owners = Owners::default();
        assert_eq!(owners.user_name(0), b"root");
        assert_eq!(owners.user_id(b"root"), Some(0));
        assert_eq!(owners.group_name(0), b"root");
        assert_eq!(owners.group_id(b"root"), Some(0));
        assert_eq!(owners.user_name(0), b"root");
    }

    #[test]
    fn a_name_of_another_machine_is_not_looked_up() {
        let owners = Owners::default();
        owners.define_user(0, b"toor".to_vec());
        owners.define_group(3_999_999_999, b"elsewhere".to_vec());
        assert_eq!(owners.user_name(0), b"toor");
        assert_eq!(owners.group_name(3_999_999_999), b"elsewhere");
    }

    #[test]
    fn unknown_owners_have_no_name() {
        let owners = Owners::default();
        assert_eq!(owners.user_name(3_999_999_999), b"");
        assert_eq!(owners.user_id(b"no such user"), None);
        assert_eq!(owners.group_id(b"nul\0inside"), None);
    }
}
