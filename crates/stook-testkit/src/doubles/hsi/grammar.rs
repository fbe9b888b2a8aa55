//! What the manual of HSI lets a command line be made of.
//!
//! ```text
//!   requests   request ; request ...
//!   request    word word ...  [<<MARKER     and lines of words up to MARKER]
//!   word       printable ASCII without specials, or any of it but wildcards in double quotes
//!   :          alone between spaces: local : remote
//! ```
//! The manual gives no way to write a quote or a wildcard as itself, so the double refuses both everywhere. A word
//! that begins with a dash is an option, quoted or not: the manual does not say that quotes change that.

use std::str::Chars;

/// What must not be in a name at all: wildcards, and what would end a quoted word.
const NEVER: &str = "*?^[]{}\"'\\`";
/// What means something outside of quotes.
const SPECIAL: &str = "|<>&!()$#";

/// A command and its words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) words: Vec<String>,
    /// The marker that ends the lines that follow.
    pub(super) marker: Option<String>,
}

/// Returns the requests of a line.
///
/// # Errors
/// What is wrong with it.
pub(super) fn requests(line: &str) -> Result<Vec<Request>, String> {
    let mut requests = Vec::new();
    let mut request = Request {
        words: Vec::new(),
        marker: None,
    };
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            ' ' | '\t' => {}
            ';' => {
                let marker = request.marker.take();
                if marker.is_some() {
                    return Err("a marker ends its line".to_owned());
                }
                requests.push(request.clone());
                request.words.clear();
            }
            '"' => request.words.push(quoted(&mut characters)?),
            '<' if characters.as_str().starts_with('<') => {
                let marker = characters.as_str()[1..].trim();
                plain_word(marker)?;
                request.marker = Some(marker.to_owned());
                break;
            }
            _ => {
                let rest = characters.as_str();
                let begin = line.len() - rest.len() - character.len_utf8();
                let len = line[begin..].find([' ', '\t', ';']);
                let word = &line[begin..begin + len.unwrap_or(line.len() - begin)];
                request.words.push(plain_word(word)?);
                characters = line[begin + word.len()..].chars();
            }
        }
    }
    requests.push(request);
    requests.retain(|request| !request.words.is_empty());
    Ok(requests)
}

fn quoted(characters: &mut Chars<'_>) -> Result<String, String> {
    let mut word = String::new();
    loop {
        match characters.next() {
            Some('"') => break,
            Some(character) => word.push(character),
            None => return Err("a quote is not closed".to_owned()),
        }
    }
    if !matches!(
        characters.as_str().chars().next(),
        None | Some(' ' | '\t' | ';')
    ) {
        return Err("a quoted word goes on behind its quote".to_owned());
    }
    require(&word, NEVER)
}

fn plain_word(word: &str) -> Result<String, String> {
    if word.is_empty() {
        return Err("a word is missing".to_owned());
    }
    require(word, SPECIAL)?;
    require(word, NEVER)
}

fn require(word: &str, without: &str) -> Result<String, String> {
    match word
        .chars()
        .find(|&character| !(' '..='~').contains(&character) || without.contains(character))
    {
        Some(character) => Err(format!("{character:?} cannot be in a path name")),
        None => Ok(word.to_owned()),
    }
}

/// Options and the words behind them.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    pub(super) options: Vec<(char, String)>,
    pub(super) words: Vec<String>,
}

impl Arguments {
    /// Takes apart the words of a command. `flags` are its options without a value, `valued` those with one.
    ///
    /// # Errors
    /// The option that it does not have.
    pub(super) fn of(words: &[String], flags: &str, valued: &str) -> Result<Self, String> {
        let mut arguments = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let Some(letters) = word.strip_prefix('-').filter(|rest| !rest.is_empty()) else {
                arguments.words.push(word.clone());
                continue;
            };
            for letter in letters.chars() {
                let value = match letter {
                    _ if flags.contains(letter) => String::new(),
                    _ if valued.contains(letter) && letters.len() == 1 => {
                        let value = words.next();
                        value.ok_or(format!("-{letter} needs a value"))?.clone()
                    }
                    _ => return Err(format!("unknown option -{letter}")),
                };
                arguments.options.push((letter, value));
            }
        }
        Ok(arguments)
    }

    pub(super) fn value(&self, letter: char) -> Option<&str> {
        let found = self.options.iter().rfind(|(option, _)| *option == letter);
        found.map(|(_, value)| value.as_str())
    }

    pub(super) fn has(&self, letter: char) -> bool {
        self.value(letter).is_some()
    }
}

/// Takes `local : remote` and single names apart: (local, remote), where a single name is both.
///
/// # Errors
/// If a name is missing.
pub(super) fn pairs(words: &[String]) -> Result<Vec<(Option<String>, String)>, String> {
    let mut pairs = Vec::new();
    let mut rest = words;
    while let [first, behind @ ..] = rest {
        match behind {
            [sign, remote, end @ ..] if sign == ":" && first != ":" && remote != ":" => {
                pairs.push((Some(first.clone()), remote.clone()));
                rest = end;
            }
            [sign, ..] if sign == ":" => return Err("a name is missing beside `:`".to_owned()),
            _ if first == ":" => return Err("a name is missing before `:`".to_owned()),
            _ => {
                pairs.push((None, first.clone()));
                rest = behind;
            }
        }
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<Vec<String>> {
        let requests = requests(line).unwrap();
        requests.into_iter().map(|request| request.words).collect()
    }

    #[test]
    fn requests_are_taken_apart() {
        assert_eq!(
            words("cd /a ; put \"./a b\" : \"/c;d/-rf\";ls -l"),
            [
                vec!["cd", "/a"],
                vec!["put", "./a b", ":", "/c;d/-rf"],
                vec!["ls", "-l"]
            ]
        );
        let get = requests("get -A << END").unwrap();
        assert_eq!(get[0].marker.as_deref(), Some("END"));
        assert_eq!(words(" ; "), Vec::<Vec<String>>::new());
    }

    #[test]
    fn what_the_manual_does_not_have_is_refused() {
        for line in [
            "get a*",
            "get \"a*\"",
            "get $x",
            "get a'b",
            "get \"a\\\"b\"",
            "get \"a",
            "get ü",
            "get \"a\nb\"",
            "ls | sort",
            "!rm",
            "get a\"b\"",
            "get <<",
        ] {
            assert!(requests(line).is_err(), "{line:?}");
        }
    }

    #[test]
    fn options_and_pairs_are_taken_apart() {
        let of = |line: &str| words(line).remove(0);
        let put = Arguments::of(&of("-c on -P a : b"), "P", "c").unwrap();
        assert_eq!((put.value('c'), put.has('P')), (Some("on"), true));
        assert_eq!(put.words, ["a", ":", "b"]);
        assert!(Arguments::of(&of("\"-rf\""), "P", "c").is_err());
        assert!(Arguments::of(&of("-c"), "P", "c").is_err());
        let some = |name: &str| Some(name.to_owned());
        assert_eq!(
            pairs(&of("a : b c")).unwrap(),
            [(some("a"), "b".to_owned()), (None, "c".to_owned())]
        );
        for wrong in ["a :", ": a", "a : :"] {
            assert!(pairs(&of(wrong)).is_err(), "{wrong}");
        }
    }
}
