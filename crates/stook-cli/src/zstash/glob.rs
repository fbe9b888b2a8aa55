//! SQLite's `GLOB`, by which zstash chooses files: `*` and `?` also match `/`, `[^a-z]` is a set, nothing is escaped.

/// A pattern of `extract`, `check` and `ls`.
#[derive(Debug)]
pub(crate) struct Glob {
    parts: Vec<Part>,
}

#[derive(Debug)]
enum Part {
    One(u32),
    Any,
    AnyNumber,
    Set {
        is_negated: bool,
        ranges: Vec<(u32, u32)>,
    },
    /// A set without its end matches nothing.
    Nothing,
}

impl Glob {
    pub(crate) fn new(pattern: &[u8]) -> Self {
        let characters = characters(pattern);
        let mut parts = Vec::new();
        let mut at = 0;
        while let Some(&character) = characters.get(at) {
            at += 1;
            parts.push(match char::from_u32(character) {
                Some('*') => Part::AnyNumber,
                Some('?') => Part::Any,
                Some('[') => set(&characters, &mut at),
                _ => Part::One(character),
            });
        }
        Self { parts }
    }

    pub(crate) fn matches(&self, text: &[u8]) -> bool {
        if let [Part::AnyNumber] = self.parts.as_slice() {
            return true;
        }
        matches(&self.parts, &characters(text))
    }
}

/// The bytes of a text that is no UTF-8 are characters of their own, behind all others.
fn characters(text: &[u8]) -> Vec<u32> {
    let of_chunk = |chunk: std::str::Utf8Chunk<'_>| {
        let valid = chunk.valid().chars().map(u32::from);
        let invalid = chunk
            .invalid()
            .iter()
            .map(|&byte| 0x11_0000 + u32::from(byte));
        valid.chain(invalid).collect::<Vec<u32>>()
    };
    text.utf8_chunks().flat_map(of_chunk).collect()
}

/// Reads a set from behind its bracket.
fn set(characters: &[u32], at: &mut usize) -> Part {
    let next = |at: usize| characters.get(at).copied().and_then(char::from_u32);
    let is_negated = next(*at) == Some('^');
    *at += usize::from(is_negated);
    let mut ranges = Vec::new();
    // A bracket that comes first is a character.
    let start = *at;
    while let Some(&character) = characters.get(*at) {
        if next(*at) == Some(']') && *at > start {
            *at += 1;
            return Part::Set { is_negated, ranges };
        }
        let is_range = next(*at + 1) == Some('-') && next(*at + 2).is_some_and(|end| end != ']');
        let end = if is_range {
            characters[*at + 2]
        } else {
            character
        };
        ranges.push((character, end));
        *at += if is_range { 3 } else { 1 };
    }
    Part::Nothing
}

/// Goes back only to the last `*`: what matched before it cannot match better.
fn matches(parts: &[Part], text: &[u32]) -> bool {
    let (mut part, mut at) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    loop {
        match parts.get(part) {
            Some(Part::AnyNumber) => {
                star = Some((part + 1, at));
                part += 1;
                continue;
            }
            None if at == text.len() => return true,
            Some(wanted) if text.get(at).is_some_and(|&it| wanted.takes(it)) => {
                part += 1;
                at += 1;
                continue;
            }
            _ => {}
        }
        match &mut star {
            Some((behind, from)) if *from < text.len() => {
                *from += 1;
                (part, at) = (*behind, *from);
            }
            _ => return false,
        }
    }
}

impl Part {
    fn takes(&self, character: u32) -> bool {
        match self {
            Self::One(wanted) => *wanted == character,
            Self::Any => true,
            Self::Set { is_negated, ranges } => {
                let is_in = |(first, last): &(u32, u32)| (*first..=*last).contains(&character);
                ranges.iter().any(is_in) != *is_negated
            }
            Self::AnyNumber | Self::Nothing => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_sqlite() {
        for (pattern, text, expected) in [
            ("*", "a/b", true),
            ("a*c", "a/b/c", true),
            ("a*c", "a/b/cd", false),
            ("?", "é", true),
            ("??", "é", false),
            ("[a-c]x", "bx", true),
            ("[^a-c]x", "bx", false),
            ("[^a-c]x", "dx", true),
            ("[]a]", "]", true),
            ("[]a]", "a", true),
            ("[^]a]", "b", true),
            ("[a", "a", false),
            ("[a-]", "-", true),
            ("*.tar", "000000.tar", true),
            ("0*", "000000.tar", true),
            ("A", "a", false),
            ("", "", true),
            ("", "a", false),
            ("a**b", "ab", true),
            ("*a*b*", "xxaxxbxx", true),
            ("*ab", "aab", true),
        ] {
            let found = Glob::new(pattern.as_bytes()).matches(text.as_bytes());
            assert_eq!(found, expected, "{pattern} {text}");
        }
    }
}
