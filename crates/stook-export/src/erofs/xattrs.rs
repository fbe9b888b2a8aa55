//! Extended attributes of an inode, behind it.
//!
//! ```text
//!   12 bytes | length of the name, prefix, length of the value | rest of the name | value | to a multiple of 4 | ...
//! ```

use stook_sys::Xattr;

use crate::Refusal;

const HEAD: usize = 12;

/// Prefixes that have a number.
const PREFIXES: [(&[u8], u8); 3] = [(b"user.", 1), (b"trusted.", 4), (b"security.", 6)];
/// Access control lists: whole names that have one.
const LISTS: [(&[u8], u8); 2] = [
    (b"system.posix_acl_access", 2),
    (b"system.posix_acl_default", 3),
];

/// An inode counts them in units of 4 bytes, in 16 bits.
const MOST_BYTES: usize = HEAD + 4 * (u16::MAX as usize - 1);

/// Extended attributes as an inode has them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Body {
    pub(super) bytes: Vec<u8>,
    /// Whether there is an access control list that the kernel heeds, if it heeds any.
    pub(super) has_list: bool,
    /// Whether there is one of another kind, which it does not.
    pub(super) has_other_list: bool,
}

impl Body {
    pub(super) fn of(xattrs: &[Xattr]) -> Result<Self, Refusal> {
        let mut body = Self::default();
        for (name, value) in xattrs {
            match coded(name) {
                Some((prefix, rest)) => body.push(prefix, rest, value)?,
                None => body.has_other_list |= name.starts_with(b"system."),
            }
            body.has_list |= LISTS.iter().any(|(list, _)| list == name);
        }
        if body.bytes.len() > MOST_BYTES {
            return Err(Refusal::LongXattrs);
        }
        Ok(body)
    }

    fn push(&mut self, prefix: u8, rest: &[u8], value: &[u8]) -> Result<(), Refusal> {
        let name_len = u8::try_from(rest.len()).ok();
        let value_len = u16::try_from(value.len()).ok();
        let (name_len, value_len) = name_len.zip(value_len).ok_or(Refusal::LongXattrs)?;
        if self.bytes.is_empty() {
            self.bytes.resize(HEAD, 0);
        }
        self.bytes.extend_from_slice(&[name_len, prefix]);
        self.bytes.extend_from_slice(&value_len.to_le_bytes());
        self.bytes.extend_from_slice(rest);
        self.bytes.extend_from_slice(value);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        Ok(())
    }

    /// Returns the number by which an inode knows how long they are.
    pub(super) fn units(&self) -> u16 {
        match self.bytes.len() {
            0 => 0,
            len => u16::try_from((len - HEAD) / 4 + 1).expect("the length was looked at"),
        }
    }
}

fn coded(name: &[u8]) -> Option<(u8, &[u8])> {
    if let Some(&(_, number)) = LISTS.iter().find(|(list, _)| *list == name) {
        return Some((number, b""));
    }
    PREFIXES.iter().find_map(|(prefix, number)| {
        let rest = name.strip_prefix(*prefix)?;
        (!rest.is_empty()).then_some((*number, rest))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn xattr(name: &str, value: &[u8]) -> Xattr {
        (name.as_bytes().to_vec(), value.to_vec())
    }

    #[test]
    fn attributes_are_padded_and_counted() {
        let body = Body::of(&[xattr("user.a", b"12345"), xattr("other.b", b"x")]).unwrap();
        assert_eq!(body.bytes[HEAD..], *b"\x01\x01\x05\0a12345\0\0");
        assert_eq!(body.units(), 4);
        assert!(!body.has_list && !body.has_other_list);
        assert_eq!(Body::of(&[]).unwrap().units(), 0);
    }

    #[test]
    fn lists_are_known_by_their_names() {
        let body = Body::of(&[xattr("system.posix_acl_access", b"acl!")]).unwrap();
        assert_eq!(body.bytes[HEAD..], *b"\0\x02\x04\0acl!");
        assert!(body.has_list);
        let other = Body::of(&[xattr("system.nfs4_acl", b"acl!")]).unwrap();
        assert!(other.has_other_list && other.bytes.is_empty());
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let long = vec![0; 65_536];
        assert_eq!(
            Body::of(&[xattr("user.a", &long)]),
            Err(Refusal::LongXattrs)
        );
        let many: Vec<Xattr> = (0..5)
            .map(|n| xattr(&format!("user.{n}"), &long[1..]))
            .collect();
        assert_eq!(Body::of(&many), Err(Refusal::LongXattrs));
        assert!(Body::of(&many[..3]).unwrap().units() > 40_000);
    }
}
