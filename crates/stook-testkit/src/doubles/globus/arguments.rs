//! The command line of `globus`, as far as the double has it: whatever is not in these tables is refused.

use super::{Failure, Result};

/// A command, the options it has without a value, and those with one.
struct Known {
    command: &'static [&'static str],
    flags: &'static [&'static str],
    valued: &'static [&'static str],
    /// How many words it takes.
    words: usize,
}

const KNOWN: [Known; 9] = [
    Known {
        command: &["transfer"],
        flags: &[
            "--verify-checksum",
            "--no-verify-checksum",
            "--preserve-timestamp",
            "--fail-on-quota-errors",
        ],
        valued: &[
            "--batch",
            "--label",
            "--sync-level",
            "-s",
            "--notify",
            "--submission-id",
        ],
        words: 2,
    },
    Known {
        command: &["task", "show"],
        flags: &[],
        valued: &[],
        words: 1,
    },
    Known {
        command: &["task", "list"],
        flags: &["--exact"],
        valued: &[
            "--filter-status",
            "--filter-label",
            "--filter-type",
            "--limit",
        ],
        words: 0,
    },
    Known {
        command: &["task", "cancel"],
        flags: &[],
        valued: &[],
        words: 1,
    },
    Known {
        command: &["ls"],
        flags: &["-a", "--all", "-l", "--long"],
        valued: &["--filter"],
        words: 1,
    },
    Known {
        command: &["mkdir"],
        flags: &[],
        valued: &[],
        words: 1,
    },
    Known {
        command: &["rename"],
        flags: &[],
        valued: &[],
        words: 3,
    },
    Known {
        command: &["delete"],
        flags: &["--recursive", "-r", "--ignore-missing", "-f"],
        valued: &["--label", "--notify", "--submission-id"],
        words: 1,
    },
    Known {
        command: &["whoami"],
        flags: &[],
        valued: &[],
        words: 0,
    },
];

/// A command line taken apart.
#[derive(Debug)]
pub(super) struct Arguments {
    pub(super) command: Vec<String>,
    options: Vec<(String, String)>,
    pub(super) words: Vec<String>,
}

impl Arguments {
    pub(super) fn of(words: &[String]) -> Result<Self> {
        let known = KNOWN.iter().find(|known| {
            let begin = words.iter().take(known.command.len());
            begin.eq(known.command.iter())
        });
        let known = known.ok_or_else(|| Failure::Usage(format!("No such command: {words:?}")))?;
        let mut arguments = Self {
            command: known.command.iter().map(ToString::to_string).collect(),
            options: Vec::new(),
            words: Vec::new(),
        };
        arguments.take(known, &words[known.command.len()..])?;
        if arguments.words.len() != known.words {
            return Err(Failure::Usage(format!("{} arguments", known.words)));
        }
        if !["json", "JSON"].contains(&arguments.value("--format").unwrap_or("")) {
            return Err(Failure::Usage("this double speaks JSON only".to_owned()));
        }
        Ok(arguments)
    }

    fn take(&mut self, known: &Known, words: &[String]) -> Result<()> {
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if !word.starts_with('-') || word == "-" {
                self.words.push(word.clone());
                continue;
            }
            let (name, given) = match word.split_once('=') {
                Some((name, value)) if word.starts_with("--") => (name, Some(value.to_owned())),
                _ => (&**word, None),
            };
            let name = if name == "-F" { "--format" } else { name };
            if known.flags.contains(&name) && given.is_none() {
                self.options.push((name.to_owned(), String::new()));
            } else if known.valued.contains(&name) || name == "--format" {
                let value = given.or_else(|| words.next().cloned());
                let value = value.ok_or_else(|| Failure::Usage(format!("{name} needs a value")))?;
                self.options.push((name.to_owned(), value));
            } else {
                return Err(Failure::Usage(format!("No such option: {name}")));
            }
        }
        Ok(())
    }

    pub(super) fn values(&self, name: &str) -> impl Iterator<Item = &str> {
        let named = self
            .options
            .iter()
            .filter(move |(option, _)| option == name);
        named.map(|(_, value)| value.as_str())
    }

    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.values(name).last()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.value(name).is_some()
    }
}

/// Takes a line apart as a POSIX shell does, with comments.
///
/// # Errors
/// If a quote is not closed.
pub(super) fn shell_words(line: &str) -> Result<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = line.chars();
    let unclosed = || Failure::Usage("No closing quotation".to_owned());
    while let Some(character) = characters.next() {
        match character {
            ' ' | '\t' | '\r' => words.extend(word.take()),
            '#' if word.is_none() => break,
            '\'' => loop {
                match characters.next().ok_or_else(unclosed)? {
                    '\'' => {
                        word.get_or_insert_default();
                        break;
                    }
                    inner => word.get_or_insert_default().push(inner),
                }
            },
            '"' => loop {
                match characters.next().ok_or_else(unclosed)? {
                    '"' => {
                        word.get_or_insert_default();
                        break;
                    }
                    '\\' => {
                        let next = characters.next().ok_or_else(unclosed)?;
                        let word = word.get_or_insert_default();
                        if !['"', '\\'].contains(&next) {
                            word.push('\\');
                        }
                        word.push(next);
                    }
                    inner => word.get_or_insert_default().push(inner),
                }
            },
            '\\' => {
                let next = characters.next().ok_or_else(unclosed)?;
                word.get_or_insert_default().push(next);
            }
            plain => word.get_or_insert_default().push(plain),
        }
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Result<Arguments> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        Arguments::of(&words)
    }

    #[test]
    fn what_a_command_has_is_taken_and_nothing_else() {
        let list = of("task list --filter-status ACTIVE --filter-label=a -F json").unwrap();
        assert_eq!(list.command, ["task", "list"]);
        assert_eq!(
            (list.value("--filter-label"), list.has("--limit")),
            (Some("a"), false)
        );
        for wrong in [
            "task list",
            "task show -F json",
            "rm a:b -F json",
            "ls a:b --recursive -F json",
            "ls a:b -F json --filter",
        ] {
            assert!(matches!(of(wrong), Err(Failure::Usage(_))), "{wrong}");
        }
    }

    #[test]
    fn lines_are_taken_apart_as_by_a_shell() {
        for (line, words) in [
            ("a  b", &["a", "b"][..]),
            ("'a b' \"c \\\" d\" e\\ f", &["a b", "c \" d", "e f"]),
            ("'a'\"'\"'b' ''", &["a'b", ""]),
            ("# a comment", &[]),
            ("a#b # c", &["a#b"]),
        ] {
            assert_eq!(shell_words(line).unwrap(), words, "{line}");
        }
        assert!(shell_words("'a").is_err() && shell_words("a\\").is_err());
    }
}
