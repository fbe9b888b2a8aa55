//! Python's `fnmatch.fnmatchcase` on whole paths, or on a path and those above it.
//!
//! `*` and `?` cross `/`, both ends are anchored, `[!x]` negates, there are no escapes. Globs of other
//! kinds (`globset`, `wildmatch`) differ in at least one of these, and zstash's users have patterns
//! that rely on them. Bytes that are not UTF-8 count as one character each, as Python sees them.

/// A compiled glob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Glob {
    tokens: Vec<Token>,
    /// The bytes in front of the first wildcard, with which every path that matches begins.
    start: Vec<u8>,
    /// True if there is no wildcard: then `start` is all of it.
    is_plain: bool,
    /// What every path that matches ends with: most paths do not, and need no more of a look.
    ending: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Character(u32),
    AnyCharacter,
    AnyText,
    Set {
        is_negated: bool,
        ranges: Vec<(u32, u32)>,
    },
}

/// Where a match may end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// At the end of the path only.
    Path,
    /// In front of a slash, too: at the end of a path above.
    Name,
}

impl Glob {
    /// Compiles a glob; every text is one.
    pub(super) fn new(text: &[u8]) -> Self {
        let characters: Vec<u32> = characters(text).collect();
        let tokens = compile(&characters);
        let wildcard = text.iter().position(|byte| b"*?[".contains(byte));
        Self {
            start: text[..wildcard.unwrap_or(text.len())].to_vec(),
            is_plain: wildcard.is_none(),
            ending: ending(&tokens),
            tokens,
        }
    }

    /// Returns true if there are sets of characters: such a glob does not match its own text.
    pub(super) fn has_sets(&self) -> bool {
        let is_set = |token: &Token| matches!(token, Token::Set { .. });
        self.tokens.iter().any(is_set)
    }

    /// Returns true if the whole path matches.
    ///
    /// # Cost
    /// At most the length of the path times the number of elements; no allocation.
    pub(super) fn matches(&self, path: &[u8]) -> bool {
        if !path.ends_with(&self.ending) {
            return false;
        }
        self.is_any_with_ending() || self.fits(path, End::Path)
    }

    /// Returns true if the path matches, or one above it.
    ///
    /// # Cost
    /// That of one look at the path, however many there are above it.
    pub(super) fn covers(&self, path: &[u8]) -> bool {
        let Some(rest) = path.strip_prefix(self.start.as_slice()) else {
            return false;
        };
        if self.is_plain {
            return matches!(rest.first(), None | Some(b'/'));
        }
        has_name_ending(path, &self.ending)
            && (self.is_any_with_ending() || self.fits(path, End::Name))
    }

    fn is_any_with_ending(&self) -> bool {
        self.tokens.first() == Some(&Token::AnyText) && self.tokens.len() == 1 + self.ending.len()
    }

    fn fits(&self, path: &[u8], end: End) -> bool {
        let mut path = Characters { rest: path };
        let mut token = 0;
        // Where to go on if what follows the last `*` does not fit: that `*` takes one more.
        let mut retry: Option<(usize, Characters<'_>)> = None;
        loop {
            if self.tokens.get(token) == Some(&Token::AnyText) {
                token += 1;
                if token == self.tokens.len() {
                    return true;
                }
                retry = Some((token, path.clone()));
                continue;
            }
            let before = path.clone();
            if token == self.tokens.len() && end.is_at(before.rest) {
                return true;
            }
            let fits = match (self.tokens.get(token), path.next()) {
                (Some(element), Some(character)) => element.fits(character),
                _ => false,
            };
            if fits {
                token += 1;
                continue;
            }
            let Some((after_star, mut from)) = retry.take() else {
                return false;
            };
            if before.rest.is_empty() || from.next().is_none() {
                return false;
            }
            token = after_star;
            path = from.clone();
            retry = Some((after_star, from));
        }
    }

    /// Returns true if the glob certainly matches every path below the directory; the root is
    /// the empty path.
    pub(super) fn matches_all_below(&self, directory: &[u8]) -> bool {
        // A final `*` that matches with nothing left matches with anything left.
        if self.tokens.last() != Some(&Token::AnyText) {
            return false;
        }
        // Paths below the root do not begin with a slash.
        let slash: &[u8] = if directory.is_empty() { b"" } else { b"/" };
        self.matches(&[directory, slash].concat())
    }

    /// Returns false if certainly no path below the directory matches.
    pub(super) fn may_match_below(&self, directory: &[u8]) -> bool {
        let start = self.start.as_slice();
        if directory.is_empty() {
            return !self.is_plain || !start.is_empty();
        }
        match start.strip_prefix(directory) {
            Some([] | [b'/']) => !self.is_plain,
            Some(rest) => rest.first() == Some(&b'/'),
            None => !self.is_plain && directory.starts_with(start),
        }
    }
}

impl End {
    fn is_at(self, rest: &[u8]) -> bool {
        rest.is_empty() || (self == Self::Name && rest[0] == b'/')
    }
}

/// Returns true if the path, or one above it, ends so.
fn has_name_ending(path: &[u8], ending: &[u8]) -> bool {
    path.ends_with(ending)
        || path
            .windows(ending.len() + 1)
            .any(|window| window[ending.len()] == b'/' && window.starts_with(ending))
}

impl Token {
    fn fits(&self, character: u32) -> bool {
        match self {
            Self::Character(own) => *own == character,
            Self::AnyCharacter => true,
            Self::AnyText => false,
            Self::Set { is_negated, ranges } => {
                ranges
                    .iter()
                    .any(|&(low, high)| (low..=high).contains(&character))
                    != *is_negated
            }
        }
    }
}

/// The characters of a path as Python decodes them: a byte that is not UTF-8 becomes a lone
/// surrogate.
#[derive(Clone)]
struct Characters<'a> {
    rest: &'a [u8],
}

fn characters(text: &[u8]) -> Characters<'_> {
    Characters { rest: text }
}

impl Iterator for Characters<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let (&first, tail) = self.rest.split_first()?;
        if first < 0x80 {
            self.rest = tail;
            return Some(first.into());
        }
        let window = &self.rest[..self.rest.len().min(4)];
        let valid = match std::str::from_utf8(window) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&window[..error.valid_up_to()]).unwrap_or(""),
        };
        if let Some(character) = valid.chars().next() {
            self.rest = &self.rest[character.len_utf8()..];
            Some(character.into())
        } else {
            self.rest = tail;
            Some(0xDC00 + u32::from(first))
        }
    }
}

fn compile(pattern: &[u32]) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(&character) = pattern.get(at) {
        at += 1;
        match char::from_u32(character) {
            Some('*') if tokens.last() == Some(&Token::AnyText) => {}
            Some('*') => tokens.push(Token::AnyText),
            Some('?') => tokens.push(Token::AnyCharacter),
            Some('[') => match set_end(pattern, at) {
                Some(end) => {
                    tokens.push(compile_set(&pattern[at..end]));
                    at = end + 1;
                }
                None => tokens.push(Token::Character(character)),
            },
            _ => tokens.push(Token::Character(character)),
        }
    }
    tokens
}

/// Returns the characters at the end that stand for themselves, as far as they are one byte in every path.
fn ending(tokens: &[Token]) -> Vec<u8> {
    let plain = tokens.iter().rev().map_while(|token| match token {
        Token::Character(character) => u8::try_from(*character).ok().filter(u8::is_ascii),
        _ => None,
    });
    let mut ending: Vec<u8> = plain.collect();
    ending.reverse();
    ending
}

/// Returns where the `]` of a set is; a `]` in the first place is a member of the set.
fn set_end(pattern: &[u32], start: usize) -> Option<usize> {
    let is = |at: usize, wanted: char| pattern.get(at) == Some(&u32::from(wanted));
    let mut at = start + usize::from(is(start, '!'));
    at += usize::from(is(at, ']'));
    let found = pattern
        .get(at..)?
        .iter()
        .position(|&character| character == u32::from(']'))?;
    Some(at + found)
}

const HYPHEN: u32 = '-' as u32;

/// A character of a set, or the hyphen of a range.
#[derive(Clone, Copy, PartialEq)]
enum Item {
    Character(u32),
    Range,
}

fn compile_set(inner: &[u32]) -> Token {
    let items = set_items(inner);
    // Python looks for the `!` after it has dropped empty ranges: `[b-a!x]` is `[!x]`.
    let is_negated = items.first() == Some(&Item::Character(u32::from('!')));
    let items = &items[usize::from(is_negated)..];
    let mut ranges = Vec::new();
    let mut at = 0;
    while let Some(&item) = items.get(at) {
        let low = if let Item::Character(character) = item {
            character
        } else {
            HYPHEN
        };
        match (items.get(at + 1), items.get(at + 2)) {
            (Some(Item::Range), Some(&high)) => {
                let high = if let Item::Character(character) = high {
                    character
                } else {
                    HYPHEN
                };
                ranges.push((low, high));
                at += 3;
            }
            _ => {
                ranges.push((low, low));
                at += 1;
            }
        }
    }
    Token::Set { is_negated, ranges }
}

/// Splits a set at the hyphens that make ranges, and drops ranges that are empty, in the way
/// `fnmatch.translate` does.
fn set_items(inner: &[u32]) -> Vec<Item> {
    let mut chunks: Vec<Vec<u32>> = Vec::new();
    let mut start = 0;
    let mut search = if inner.first() == Some(&u32::from('!')) {
        2
    } else {
        1
    };
    while let Some(found) = inner
        .get(search..)
        .and_then(|rest| rest.iter().position(|&c| c == HYPHEN))
    {
        let hyphen = search + found;
        chunks.push(inner[start..hyphen].to_vec());
        start = hyphen + 1;
        search = hyphen + 3;
    }
    match chunks.last_mut() {
        Some(last) if start == inner.len() => last.push(HYPHEN),
        _ => chunks.push(inner[start..].to_vec()),
    }
    for at in (1..chunks.len()).rev() {
        if chunks[at - 1].last() > chunks[at].first() {
            let tail = chunks.remove(at);
            chunks[at - 1].pop();
            chunks[at - 1].extend(tail.iter().skip(1));
        }
    }
    let mut items = Vec::new();
    for (index, chunk) in chunks.iter().enumerate() {
        if index > 0 {
            items.push(Item::Range);
        }
        items.extend(chunk.iter().map(|&character| Item::Character(character)));
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(glob: &str, path: &str) -> bool {
        Glob::new(glob.as_bytes()).matches(path.as_bytes())
    }

    #[test]
    fn stars_cross_slashes_and_ends_are_anchored() {
        assert!(matches("*", ""));
        assert!(matches("a/*.nc", "a/b/c.nc"));
        assert!(!matches("run", "run/x"));
        assert!(matches("run/*", "run/x/y"));
        assert!(!matches("run/*", "run"));
        assert!(matches("*a*a*b", "aaaaab"));
        assert!(!matches("*a*a*b", "aaaaac"));
        assert!(matches("?", "é"));
        assert!(!matches("?", ""));
    }

    #[test]
    fn sets_follow_python() {
        assert!(matches(
            "archive/rest/???[!05]-*/*",
            "archive/rest/0001-01/x"
        ));
        assert!(!matches(
            "archive/rest/???[!05]-*/*",
            "archive/rest/0005-01/x"
        ));
        assert!(matches("[]a]", "]"));
        assert!(matches("[", "["));
        assert!(matches("[a-", "[a-"));
        assert!(!matches("[b-a]", "a"));
        assert!(matches("[!]", "[!]"));
        assert!(matches("[!b-a]", "x"));
        assert!(matches("[b-a!x]", "y"));
        assert!(!matches("[b-a!x]", "x"));
    }

    #[test]
    fn bytes_that_are_not_utf8_are_single_characters() {
        assert!(Glob::new(b"a?b").matches(b"a\xFFb"));
        assert!(Glob::new(b"a\xFFb").matches(b"a\xFFb"));
        assert!(!Glob::new(b"a\xFFb").matches(b"a\xFEb"));
        assert!(Glob::new(b"a???").matches(b"a\xE6\x97\xFF"));
    }

    #[test]
    fn a_path_is_covered_by_a_match_above_it() {
        let covers = |glob: &str, path: &str| Glob::new(glob.as_bytes()).covers(path.as_bytes());
        for (glob, path) in [
            ("a", "a"),
            ("a", "a/b/c"),
            ("a/b", "a/b/c"),
            ("*.o", "x.o/y.c"),
            ("?", "a/b"),
            ("*b", "ab/c"),
            ("a*c", "ab/c/d"),
            ("[a]", "a/b"),
            ("*", "a"),
        ] {
            assert!(covers(glob, path), "{glob} {path}");
        }
        for (glob, path) in [
            ("a", "ab"),
            ("b", "a/b"),
            ("a/b", "a"),
            ("*.o", "x.ob/y"),
            ("?", "ab/c"),
        ] {
            assert!(!covers(glob, path), "{glob} {path}");
        }
    }

    #[test]
    fn only_the_text_in_front_of_a_wildcard_tells_where_matches_may_be() {
        let may = |glob: &str, directory: &str| {
            Glob::new(glob.as_bytes()).may_match_below(directory.as_bytes())
        };
        for (glob, directory) in [
            ("a/b", "a"),
            ("a/b", ""),
            ("a/*", "a"),
            ("a*", "a"),
            ("a*", "ab/c"),
            ("*.o", "a"),
            ("[a]", "b"),
        ] {
            assert!(may(glob, directory), "{glob} {directory}");
        }
        for (glob, directory) in [
            ("a/b", "b"),
            ("a/b", "a/b"),
            ("a", "a"),
            ("ab", "a"),
            ("a/*", "b"),
            ("a/b*", "a/c"),
            ("", ""),
        ] {
            assert!(!may(glob, directory), "{glob} {directory}");
        }
    }
}
