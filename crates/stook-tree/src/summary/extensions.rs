//! Files by extension: what follows the last dot of a name.
//!
//! An extension is at most 15 bytes long and not a number. So it fits, with its length, into 16 bytes that are copied
//! and compared at once, and `out.000001` to `out.999999` are not a million kinds of files.

use std::collections::HashMap;

use super::{Counts, Ranking};

const LONGEST: usize = 15;

/// Most extensions that are counted separately: 10 MB of them. Random endings, as of `mktemp`, would be as many as there are files.
const MOST: usize = 100_000;

/// The bytes of an extension, and last the number of them.
type Key = [u8; LONGEST + 1];

#[derive(Debug, Default)]
pub(super) struct Extensions {
    counts: HashMap<Key, Counts>,
    has_more: bool,
}

impl Extensions {
    pub(super) fn add(&mut self, name: &[u8], file: Counts) {
        self.add_to(key(extension(name)), file);
    }

    fn add_to(&mut self, mut key: Key, counts: Counts) {
        if self.counts.len() >= MOST && !self.counts.contains_key(&key) {
            self.has_more = true;
            key = Key::default();
        }
        *self.counts.entry(key).or_default() += counts;
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.has_more |= other.has_more;
        for (key, counts) in other.counts {
            self.add_to(key, counts);
        }
    }

    /// Returns true if there were too many to tell all of them apart.
    pub(super) fn has_more(&self) -> bool {
        self.has_more
    }

    pub(super) fn ranking(&self) -> Ranking {
        let text = |key: &Key| key[..usize::from(key[LONGEST])].to_vec();
        let names: Vec<Vec<u8>> = self.counts.keys().map(text).collect();
        let named = names.iter().map(Vec::as_slice);
        Ranking::of(named.zip(self.counts.values()).collect())
    }
}

fn key(extension: &[u8]) -> Key {
    let mut key = Key::default();
    key[..extension.len()].copy_from_slice(extension);
    // At most 15.
    key[LONGEST] = u8::try_from(extension.len()).unwrap_or(0);
    key
}

/// Returns the extension with its dot; nothing if there is none.
fn extension(name: &[u8]) -> &[u8] {
    let ending = &name[name.len().saturating_sub(LONGEST)..];
    let Some(dot) = ending.iter().rposition(|&byte| byte == b'.') else {
        return b"";
    };
    let (extension, letters) = (&ending[dot..], &ending[dot + 1..]);
    let stem = &name[..name.len() - extension.len()];
    // A name that begins with its dots is hidden, and has no other end.
    let is_hidden = stem.iter().all(|&byte| byte == b'.');
    if is_hidden || letters.iter().all(u8::is_ascii_digit) {
        return b"";
    }
    extension
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extension_is_what_follows_the_last_dot() {
        let of = |name: &'static str| str::from_utf8(extension(name.as_bytes())).unwrap();
        assert_eq!(of("a.nc"), ".nc");
        assert_eq!(of("a.tar.gz"), ".gz");
        assert_eq!(of("a.h5"), ".h5");
        assert_eq!(of(".bashrc.old"), ".old");
        assert_eq!(of("a.12345678901bcd"), ".12345678901bcd");
        for none in [
            "a",
            "",
            ".",
            "..",
            "...",
            "a.",
            ".bashrc",
            "..hidden",
            "out.0001",
            "a.12345678901bcde",
        ] {
            assert_eq!(of(none), "", "{none}");
        }
        assert_eq!(extension(b"a.\xff\xfe"), b".\xff\xfe");
    }

    #[test]
    fn too_many_extensions_are_counted_and_said() {
        let mut extensions = Extensions::default();
        let file = Counts::of_file(3, 8);
        for number in 0..MOST + 5 {
            extensions.add(format!("a.x{number}").as_bytes(), file);
        }
        assert!(extensions.has_more());
        let ranking = extensions.ranking();
        assert_eq!(ranking.by_files[0].name, b"");
        assert_eq!(ranking.by_files[0].counts.files, 5);
        let mut other = Extensions::default();
        other.add(b"b.x0", file);
        assert!(!other.has_more());
        other.merge(extensions);
        assert!(other.has_more());
        assert_eq!(other.ranking().by_bytes[1].counts.bytes, 6);
    }
}
