//! The part of Python's `argparse`, version 3.11, that zstash's command line is made of.
//!
//! ```text
//!   a table of arguments (Parser) ──parse──> values by name, help, or an error; all as Python would print them
//! ```
//! Scripts rely on its abbreviations and on the texts of its errors, which clap has differently. Left out is what zstash's
//! tables do not use: subparsers, groups that exclude each other, choices.

mod help;
mod python;

use std::collections::VecDeque;

pub(crate) use help::terminal_columns;
pub(crate) use python::{display, repr};

/// The parser of one command: a table, and how the command is called.
#[derive(Debug)]
pub(crate) struct Parser {
    /// What stands behind `usage: `.
    pub(crate) usage: &'static str,
    pub(crate) description: &'static str,
    pub(crate) arguments: &'static [Argument],
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Argument {
    /// As typed; empty for a positional argument.
    pub(crate) flags: &'static [&'static str],
    /// The name of its value.
    pub(crate) name: &'static str,
    pub(crate) takes: Takes,
    pub(crate) group: Group,
    pub(crate) is_required: bool,
    pub(crate) help: &'static str,
}

/// What follows an argument.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Takes {
    /// Nothing: it is a switch.
    Nothing,
    /// Nothing: it prints the help.
    Help,
    Text,
    Integer(i64),
    Float(f64),
    /// As many texts as there are.
    Texts,
}

/// Under which heading of the help it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    Positional,
    Options,
    Required,
    Optional,
}

/// The value of an argument.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Absent,
    Switch(bool),
    Text(Vec<u8>),
    Integer(i128),
    Float(f64),
    Texts(Vec<Vec<u8>>),
}

/// Values by the names of their arguments.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Values {
    all: Vec<(&'static str, Value)>,
    /// Those that were on the command line.
    given: Vec<&'static str>,
}

/// Why there are no values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The help was asked for.
    Help,
    /// The command line is wrong: what is said behind `zstash: error: `.
    Error(String),
}

/// An option as it was typed.
struct Spelled<'p> {
    /// None: no argument has this flag.
    argument: Option<&'p Argument>,
    flag: String,
    /// What stood behind the `=`, or behind a letter.
    value: Option<Vec<u8>>,
}

impl<'p> Spelled<'p> {
    fn new(argument: &'p Argument, flag: &str, value: Option<Vec<u8>>) -> Self {
        Self {
            argument: Some(argument),
            flag: flag.to_owned(),
            value,
        }
    }
}

impl Argument {
    fn is_option(&self) -> bool {
        !self.flags.is_empty()
    }

    fn takes_one(&self) -> bool {
        matches!(
            self.takes,
            Takes::Text | Takes::Integer(_) | Takes::Float(_)
        )
    }

    /// How errors name it.
    fn label(&self) -> String {
        if self.is_option() {
            self.flags.join("/")
        } else {
            self.name.to_owned()
        }
    }

    fn error(&self, text: &str) -> Stop {
        Stop::Error(format!("argument {}: {text}", self.label()))
    }

    fn default(&self) -> Value {
        match self.takes {
            Takes::Nothing | Takes::Help => Value::Switch(false),
            Takes::Text => Value::Absent,
            Takes::Integer(number) => Value::Integer(number.into()),
            Takes::Float(number) => Value::Float(number),
            Takes::Texts => Value::Texts(vec![b"*".to_vec()]),
        }
    }

    /// Returns the value that these texts give; Python drops the first `--` among them.
    fn value(&self, mut texts: Vec<Vec<u8>>) -> Result<Value, Stop> {
        if let Some(at) = texts.iter().position(|text| text == b"--") {
            texts.remove(at);
        }
        match (self.takes, texts.as_slice()) {
            (Takes::Nothing | Takes::Help, _) => Ok(Value::Switch(true)),
            (Takes::Text, [text]) => Ok(Value::Text(text.clone())),
            (Takes::Integer(_), [text]) => python::integer(text)
                .map(Value::Integer)
                .ok_or_else(|| self.invalid("int", text)),
            (Takes::Float(_), [text]) => python::float(text)
                .map(Value::Float)
                .ok_or_else(|| self.invalid("float", text)),
            (Takes::Texts, []) => Ok(self.default()),
            _ => Ok(Value::Texts(texts)),
        }
    }

    fn invalid(&self, kind: &str, text: &[u8]) -> Stop {
        self.error(&format!("invalid {kind} value: {}", repr(text)))
    }
}

impl Parser {
    /// Parses what stands behind the command.
    pub(crate) fn parse(&self, texts: &[Vec<u8>]) -> Result<Values, Stop> {
        Parsing::new(self, texts)?.run()
    }

    fn flags(&self) -> impl Iterator<Item = (&Argument, &'static str)> {
        let arguments = self.arguments.iter();
        arguments.flat_map(|argument| argument.flags.iter().map(move |&flag| (argument, flag)))
    }

    fn by_flag(&self, flag: &[u8]) -> Option<(&Argument, &'static str)> {
        self.flags().find(|(_, known)| known.as_bytes() == flag)
    }

    /// Returns which option a text is; None if it is no option.
    fn option(&self, text: &[u8]) -> Result<Option<Spelled<'_>>, Stop> {
        if text.first() != Some(&b'-') {
            return Ok(None);
        }
        if let Some((argument, flag)) = self.by_flag(text) {
            return Ok(Some(Spelled::new(argument, flag, None)));
        }
        if text.len() == 1 {
            return Ok(None);
        }
        let (before, behind) = split_at_equals(text);
        if let (Some(_), Some((argument, flag))) = (&behind, self.by_flag(before)) {
            return Ok(Some(Spelled::new(argument, flag, behind)));
        }
        let mut found = self.abbreviated(text);
        if found.len() > 1 {
            let matches: Vec<&str> = found.iter().map(|it| it.flag.as_str()).collect();
            return Err(Stop::Error(format!(
                "ambiguous option: {} could match {}",
                display(text),
                matches.join(", ")
            )));
        }
        if let Some(one) = found.pop() {
            return Ok(Some(one));
        }
        if python::is_negative_number(text) || text.contains(&b' ') {
            return Ok(None);
        }
        Ok(Some(Spelled {
            argument: None,
            flag: display(text),
            value: None,
        }))
    }

    /// Returns the options that a text may abbreviate.
    fn abbreviated(&self, text: &[u8]) -> Vec<Spelled<'_>> {
        if text.starts_with(b"--") {
            let (prefix, behind) = split_at_equals(text);
            let known = self.flags();
            return known
                .filter(|(_, flag)| flag.as_bytes().starts_with(prefix))
                .map(|(argument, flag)| Spelled::new(argument, flag, behind.clone()))
                .collect();
        }
        // One dash: a letter with its value or with more letters behind it.
        let (letter, rest) = text.split_at(1 + python::first_character(&text[1..]).len());
        let as_option = |(argument, flag): (_, &str)| {
            if flag.as_bytes() == letter {
                Some(Spelled::new(argument, flag, Some(rest.to_vec())))
            } else if flag.as_bytes().starts_with(text) {
                Some(Spelled::new(argument, flag, None))
            } else {
                None
            }
        };
        self.flags().filter_map(as_option).collect()
    }
}

fn split_at_equals(text: &[u8]) -> (&[u8], Option<Vec<u8>>) {
    match text.iter().position(|&byte| byte == b'=') {
        Some(at) => (&text[..at], Some(text[at + 1..].to_vec())),
        None => (text, None),
    }
}

/// What a text of the command line is.
enum Word<'p> {
    Option(Spelled<'p>),
    Text,
    /// `--`: only texts follow.
    End,
}

struct Parsing<'p> {
    texts: &'p [Vec<u8>],
    words: Vec<Word<'p>>,
    parser: &'p Parser,
    /// Told by their position, and not met yet.
    positionals: VecDeque<&'p Argument>,
    values: Values,
    extras: Vec<Vec<u8>>,
}

impl<'p> Parsing<'p> {
    fn new(parser: &'p Parser, texts: &'p [Vec<u8>]) -> Result<Self, Stop> {
        let mut words = Vec::new();
        for text in texts {
            let is_behind_end = words.iter().any(|word| matches!(word, Word::End));
            words.push(if is_behind_end {
                Word::Text
            } else if text == b"--" {
                Word::End
            } else {
                parser.option(text)?.map_or(Word::Text, Word::Option)
            });
        }
        let arguments = parser.arguments.iter();
        let defaults = arguments.clone().map(|it| (it.name, it.default()));
        Ok(Self {
            texts,
            words,
            values: Values {
                all: defaults.collect(),
                given: Vec::new(),
            },
            positionals: arguments.filter(|it| !it.is_option()).collect(),
            parser,
            extras: Vec::new(),
        })
    }

    /// Positionals and options in turn, to the last option; then what is left.
    fn run(mut self) -> Result<Values, Stop> {
        let mut at = 0;
        while let Some(next) = self.next_option(at) {
            if at < next {
                let end = self.take_positionals(at)?;
                if end > at {
                    at = end;
                    continue;
                }
                self.extras.extend_from_slice(&self.texts[at..next]);
            }
            at = self.take_option(next)?;
        }
        let end = self.take_positionals(at)?;
        self.extras.extend_from_slice(&self.texts[end..]);
        let is_missing = |it: &&Argument| it.is_required && !self.values.given.contains(&it.name);
        let missing = self.parser.arguments.iter().filter(is_missing);
        let missing: Vec<String> = missing.map(Argument::label).collect();
        if !missing.is_empty() {
            let missing = missing.join(", ");
            let text = format!("the following arguments are required: {missing}");
            return Err(Stop::Error(text));
        }
        if !self.extras.is_empty() {
            let extras: Vec<String> = self.extras.iter().map(|text| display(text)).collect();
            let text = format!("unrecognized arguments: {}", extras.join(" "));
            return Err(Stop::Error(text));
        }
        Ok(self.values)
    }

    fn next_option(&self, from: usize) -> Option<usize> {
        let is_option = |at: &usize| matches!(self.words[*at], Word::Option(_));
        (from..self.words.len()).find(is_option)
    }

    fn set(&mut self, argument: &'p Argument, texts: Vec<Vec<u8>>) -> Result<(), Stop> {
        let value = argument.value(texts)?;
        if argument.takes == Takes::Help {
            return Err(Stop::Help);
        }
        self.values.given.push(argument.name);
        self.values.set(argument.name, value);
        Ok(())
    }

    /// Gives as many positionals as possible their texts; returns where they end.
    fn take_positionals(&mut self, from: usize) -> Result<usize, Stop> {
        let is_text = |word: &Word<'_>| !matches!(word, Word::Option(_));
        let mut at = from;
        while let Some(argument) = self.positionals.front().copied() {
            let rest = &self.words[at..];
            let count = rest.iter().take_while(|word| is_text(word)).count();
            let count = if argument.takes == Takes::Texts {
                count
            } else {
                // One text, and the `--` around it.
                let is_end = |word: &&Word<'_>| matches!(word, Word::End);
                let before = rest.iter().take_while(is_end).count();
                if before >= count {
                    break;
                }
                let behind = rest[before + 1..].iter().take_while(is_end).count();
                before + 1 + behind
            };
            self.positionals.pop_front();
            self.set(argument, self.texts[at..at + count].to_vec())?;
            at += count;
        }
        Ok(at)
    }

    /// Takes an option, the letters that are joined to it, and its value; returns where they end.
    fn take_option(&mut self, at: usize) -> Result<usize, Stop> {
        let Word::Option(spelled) = &self.words[at] else {
            return Ok(at + 1);
        };
        let (mut flag, mut behind) = (spelled.flag.clone(), spelled.value.clone());
        let Some(mut argument) = spelled.argument else {
            self.extras.push(self.texts[at].clone());
            return Ok(at + 1);
        };
        let mut switches = Vec::new();
        let (texts, end) = loop {
            let Some(text) = behind else {
                break self.value_behind(argument, at + 1)?;
            };
            if argument.takes_one() {
                break (vec![text], at + 1);
            }
            let ignored = |it: &Argument| it.error(&ignored_text(&text));
            if flag.starts_with("--") || text.is_empty() {
                return Err(ignored(argument));
            }
            switches.push(argument);
            let letter = python::first_character(&text);
            let next = [b"-", letter].concat();
            let known = self.parser.by_flag(&next);
            let (joined, known_flag) = known.ok_or_else(|| ignored(argument))?;
            let rest = text[letter.len()..].to_vec();
            (argument, flag) = (joined, known_flag.to_owned());
            behind = (!rest.is_empty()).then_some(rest);
        };
        for switch in switches {
            self.set(switch, Vec::new())?;
        }
        self.set(argument, texts)?;
        Ok(end)
    }

    fn value_behind(&self, argument: &Argument, at: usize) -> Result<(Vec<Vec<u8>>, usize), Stop> {
        if !argument.takes_one() {
            return Ok((Vec::new(), at));
        }
        match self.words.get(at) {
            Some(Word::Text) => Ok((vec![self.texts[at].clone()], at + 1)),
            _ => Err(argument.error("expected one argument")),
        }
    }
}

fn ignored_text(text: &[u8]) -> String {
    format!("ignored explicit argument {}", repr(text))
}

impl Values {
    fn set(&mut self, name: &str, value: Value) {
        if let Some(slot) = self.all.iter_mut().find(|(known, _)| *known == name) {
            slot.1 = value;
        }
    }

    fn get(&self, name: &str) -> &Value {
        let found = self.all.iter().find(|(known, _)| *known == name);
        found.map_or(&Value::Absent, |(_, value)| value)
    }

    /// Returns true if the argument was on the command line.
    pub(crate) fn is_given(&self, name: &str) -> bool {
        self.given.contains(&name)
    }

    /// Returns the text that was given, if one was.
    pub(crate) fn text(&self, name: &str) -> Option<&[u8]> {
        match self.get(name) {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn switch(&self, name: &str) -> bool {
        matches!(self.get(name), Value::Switch(true))
    }

    pub(crate) fn texts(&self, name: &str) -> &[Vec<u8>] {
        match self.get(name) {
            Value::Texts(texts) => texts,
            _ => &[],
        }
    }

    pub(crate) fn integer(&self, name: &str) -> i128 {
        match self.get(name) {
            Value::Integer(number) => *number,
            _ => 0,
        }
    }

    pub(crate) fn float(&self, name: &str) -> f64 {
        match self.get(name) {
            Value::Float(number) => *number,
            _ => 0.0,
        }
    }
}

#[cfg(test)]
mod tests;
