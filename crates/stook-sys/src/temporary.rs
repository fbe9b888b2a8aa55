//! Names for what is not under its own name yet.
//!
//! ```text
//!   .stook-0123456789abcdef0123456789abcdef.partial
//!          └ random token ┘└─── check ────┘
//! ```
//! A run that was killed leaves such names, and a later one may remove them. So a name must prove where it comes from:
//! the check is a hash of the token and of the inode number of the directory. A name that a user made up passes with a
//! probability of 2^-64, and a name that was made in another directory, and copied or moved from there, does not
//! pass. Where inode numbers change, stale files stay: nothing is removed without this proof.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

const PREFIX: &[u8] = b".stook-";
const DIGITS: usize = 16;

/// Makes names that no other run, and no user, has.
#[derive(Debug)]
pub struct TemporaryNames {
    suffix: &'static str,
    random: RandomState,
    count: AtomicU64,
}

impl TemporaryNames {
    /// Returns a maker of names that end in a dot and `suffix`.
    pub fn new(suffix: &'static str) -> Self {
        Self {
            suffix,
            random: RandomState::new(),
            count: AtomicU64::new(0),
        }
    }

    /// Returns a new name for the directory with this inode number.
    pub fn next(&self, directory: u64) -> Vec<u8> {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let token = self.random.hash_one((std::process::id(), number));
        let check = check(token, directory);
        format!(".stook-{token:016x}{check:016x}.{}", self.suffix).into_bytes()
    }
}

/// Returns true if stook made this name, with this suffix, in the directory with this inode number.
pub fn is_temporary_name(name: &[u8], suffix: &str, directory: u64) -> bool {
    let digits = name
        .strip_prefix(PREFIX)
        .and_then(|rest| rest.strip_suffix(suffix.as_bytes()))
        .and_then(|rest| rest.strip_suffix(b"."))
        .filter(|digits| digits.len() == 2 * DIGITS);
    let number = |digits: &[u8]| {
        // Written in one way only: `from_str_radix` also takes capitals and signs.
        let is_plain = digits
            .iter()
            .all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
        let text = std::str::from_utf8(digits).ok().filter(|_| is_plain)?;
        u64::from_str_radix(text, 16).ok()
    };
    digits.is_some_and(|digits| {
        let (token, found) = digits.split_at(DIGITS);
        number(token).is_some_and(|token| number(found) == Some(check(token, directory)))
    })
}

/// FNV-1a with a final mix: the same in every version, as names outlive the program.
///
/// # Source
/// Fowler, Noll and Vo, draft-eastlake-fnv; the mix is the one of `splitmix64` (Vigna).
fn check(token: u64, directory: u64) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let bytes = [token.to_le_bytes(), directory.to_le_bytes()];
    for &byte in b"stook".iter().chain(bytes.iter().flatten()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_name_proves_its_directory_and_its_suffix() {
        let names = TemporaryNames::new("partial");
        let mut all = HashSet::new();
        for directory in 0..500 {
            let name = names.next(directory);
            assert!(is_temporary_name(&name, "partial", directory));
            assert!(!is_temporary_name(&name, "partial", directory + 1));
            assert!(!is_temporary_name(&name, "removed", directory));
            assert!(all.insert(name));
        }
    }

    #[test]
    fn a_changed_name_proves_nothing() {
        let name = TemporaryNames::new("partial").next(7);
        for at in 0..name.len() {
            for byte in [b'0', b'A', b'+', b'f', b'.'] {
                let mut changed = name.clone();
                changed[at] = byte;
                let is_same = changed == name;
                assert_eq!(is_temporary_name(&changed, "partial", 7), is_same);
            }
        }
        for name in [
            &b".stook-my-notes.partial"[..],
            b".stook-.partial",
            b".stook-1-2.partial",
            b".stook-00000000000000000000000000000000.partial",
            b"",
        ] {
            assert!(!is_temporary_name(name, "partial", 7));
        }
    }

    #[test]
    fn the_check_is_the_same_in_every_version() {
        assert_eq!(check(0x0123_4567_89ab_cdef, 42), 0x0e76_28b6_684c_0249);
    }
}
