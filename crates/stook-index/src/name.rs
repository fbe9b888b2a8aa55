//! Names as the `files` table can hold them, and hashes of names.
//!
//! `files.name` is valid UTF-8, because zstash fails on anything else. A name that is not gets
//! its bad bytes percent-escaped there, and its real bytes go to `stook_raw_names`. Nothing here
//! undoes the escape: two names may share one escaped form, and the raw bytes tell them apart.

use std::borrow::Cow;
use std::fmt::Write;
use std::hash::{BuildHasher, Hasher, RandomState};

use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128_with_seed};

/// Returns the text under which a name is stored: the name itself if it is valid UTF-8; else
/// every byte outside valid UTF-8 as `%XX` and every `%` as `%25`.
pub fn escape_name(name: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(name) {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(name.len() + 16);
    for chunk in name.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '%' => text.push_str("%25"),
                c => text.push(c),
            }
        }
        for byte in chunk.invalid() {
            write!(text, "%{byte:02X}").expect("a String takes all");
        }
    }
    Cow::Owned(text)
}

/// Returns 64 bits that stand for a path, the same in every run and on every machine. Paths that share them can be made on
/// purpose.
pub fn path_hash(path: &[u8]) -> u64 {
    xxh3_64_with_seed(path, 0)
}

/// 128 bits that stand for a name: 32 of its directory's hash, 96 of its own.
///
/// In this order the names of a directory lie together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NameHash(pub(crate) u64, pub(crate) u64);

/// Hashes names under a seed of its own, so that nobody can prepare names that collide.
#[derive(Debug)]
pub(crate) struct NameHasher {
    seed: u64,
}

impl NameHasher {
    pub(crate) fn new() -> Self {
        Self {
            seed: RandomState::new().build_hasher().finish(),
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "the upper and lower bits are taken on purpose"
    )]
    pub(crate) fn hash(&self, name: &[u8]) -> NameHash {
        let directory = name.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
        let directory = xxh3_64_with_seed(&name[..directory], self.seed);
        let own = xxh3_128_with_seed(name, self.seed);
        NameHash(directory & !0xffff_ffff | (own >> 96) as u64, own as u64)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn valid_names_stay_as_they_are() {
        for name in ["a/b", "100%", "%FF", "日本語", "new\nline"] {
            assert!(matches!(escape_name(name.as_bytes()), Cow::Borrowed(text) if text == name));
        }
    }

    #[test]
    fn bad_bytes_and_percent_signs_are_escaped() {
        assert_eq!(escape_name(b"a\xff"), "a%FF");
        assert_eq!(escape_name(b"100%\xff"), "100%25%FF");
        assert_eq!(escape_name("é\u{e9}".as_bytes()), "éé");
        assert_eq!(escape_name(b"\xc3\xa9\xc3/x"), "é%C3/x");
        assert_eq!(escape_name(b"\xed\xa0\x80"), "%ED%A0%80");
    }

    proptest! {
        #[test]
        fn different_bad_names_have_different_escapes(
            a in proptest::collection::vec(any::<u8>(), 0..12),
            b in proptest::collection::vec(any::<u8>(), 0..12),
        ) {
            prop_assume!(std::str::from_utf8(&a).is_err() && std::str::from_utf8(&b).is_err());
            prop_assert_eq!(escape_name(&a) == escape_name(&b), a == b);
        }
    }
}
