//! What is written to `hsi`, and what is read from it.
//!
//! The manual says how to write a space in a path, in quotes, but not how to write a quote, or a wildcard that is none.
//! So only characters that can mean nothing else are written, and always in quotes. Paths have a slash, so that none
//! looks like an option.
//!
//! # Source
//! HSI Reference Manual 8.3, 6 "Path names"; for the output what users of real installations published.

use std::path::Path;

use crate::error::{Difference, StoreCause};
use crate::program::Output;
use crate::store::{Proof, StoredFile};

/// Returns a path as a word of a command.
///
/// # Errors
/// `Character` if it cannot be written.
pub(super) fn quoted(path: &str) -> Result<String, StoreCause> {
    let is_plain =
        |character: char| character.is_ascii_alphanumeric() || " /._-+=,@%~".contains(character);
    match path.chars().find(|&character| !is_plain(character)) {
        Some(character) => Err(StoreCause::Character(character)),
        None => Ok(format!("\"{path}\"")),
    }
}

/// Returns the name of a local file in the folder where the program runs, as a word.
///
/// # Errors
/// `Character` if it cannot be written.
pub(super) fn quoted_local(path: &Path) -> Result<String, StoreCause> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    quoted(&format!("./{name}"))
}

/// All that a session wrote: with `-P` messages are among the output, and older versions write both to the other
/// stream.
#[derive(Debug)]
pub(super) struct Answer {
    text: String,
}

impl Answer {
    /// # Errors
    /// `Login` if nobody was logged in, at its begin or later; `Said` if HPSS is out of reach.
    pub(super) fn of(output: &Output, program: &str, login: &str) -> Result<Self, StoreCause> {
        let text = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        let text = text.join("\n");
        let line_with = |words: &[&str]| {
            let has = |line: &&str| words.iter().any(|words| line.contains(words));
            text.lines().find(has)
        };
        let is_denied = line_with(&LOGIN).is_some();
        match (line_with(&[NO_SESSION]), line_with(&NETWORK)) {
            (Some(_), Some(line)) if !is_denied => Err(said(program, line)),
            (None, _) if !is_denied => Ok(Self { text }),
            _ => Err(StoreCause::Login {
                command: Some(login.to_owned()),
            }),
        }
    }

    /// Returns the files that were listed, with the last parts of their paths.
    pub(super) fn files(&self) -> Vec<StoredFile> {
        self.text.lines().filter_map(listed).collect()
    }

    /// Returns the file of this name, if it was listed.
    pub(super) fn file(&self, name: &str) -> Option<StoredFile> {
        let mut files = self.text.lines().filter_map(listed);
        files.rfind(|file| file.name == name)
    }

    /// Returns true if something was looked for and is not there.
    pub(super) fn lacks(&self) -> bool {
        let cause = |line| cause_of_line(line, "");
        let causes = self.text.lines().filter_map(cause);
        causes
            .into_iter()
            .any(|cause| matches!(cause, StoreCause::NotFound))
    }

    /// Returns the reason of a failure, if a line tells one; a line about this name before others.
    pub(super) fn cause(&self, program: &str, name: &str) -> Option<StoreCause> {
        let about = |line: &&str| line.contains(name);
        let mut lines = self.text.lines().filter(about);
        let mut others = self.text.lines();
        let of_line = |line| cause_of_line(line, program);
        lines.find_map(of_line).or_else(|| others.find_map(of_line))
    }

    /// Returns how it is proved that the store has the file of this name, with this size and this MD5.
    ///
    /// # Errors
    /// `Different`, or what the session says.
    pub(super) fn proof(
        &self,
        program: &str,
        name: &str,
        expected: u64,
        md5: Option<[u8; 16]>,
    ) -> Result<Proof, StoreCause> {
        let Some(found) = self.file(name).map(|file| file.size) else {
            return Err(self
                .cause(program, name)
                .unwrap_or_else(|| self.unknown(program)));
        };
        if found != expected {
            let different = StoreCause::Different(Difference::Size { expected, found });
            return Err(self.cause(program, name).unwrap_or(different));
        }
        match (self.md5(name), md5) {
            (Some(stored), Some(md5)) if stored != md5 => {
                Err(StoreCause::Different(Difference::Hash))
            }
            (Some(_), Some(_)) => Ok(Proof::HashedInTransfer),
            _ => Ok(Proof::Size),
        }
    }

    /// Returns the MD5 that is stored with the file: `0123... md5 /a/path [hsi]`.
    pub(super) fn md5(&self, name: &str) -> Option<[u8; 16]> {
        self.text.lines().rev().find_map(|line| {
            let (digits, rest) = line.trim().split_once(' ')?;
            let path = rest.trim_start().strip_prefix("md5 ")?;
            let path = path.trim_end_matches("[hsi]").trim();
            (last_part(path) == name).then(|| from_digits(digits))?
        })
    }

    /// Returns true if a file was read back and has its hash: `/a/path: (md5) OK`.
    pub(super) fn is_verified(&self, name: &str) -> bool {
        self.text.lines().any(|line| {
            let path = line.trim_end().strip_suffix(": (md5) OK");
            path.is_some_and(|path| !path.starts_with('*') && last_part(path) == name)
        })
    }

    /// Returns the cause for an answer that lacks what was asked for.
    pub(super) fn unknown(&self, program: &str) -> StoreCause {
        let line = self.text.lines().rfind(|line| !line.trim().is_empty());
        StoreCause::Answer {
            program: program.to_owned(),
            text: line.unwrap_or("nothing").trim().to_owned(),
        }
    }
}

/// What is written when nobody is logged in.
const LOGIN: [&str; 3] = [
    "Unable to authenticate",
    "keytab file",
    "Authentication failed",
];

/// What is written when there is no session, for whatever reason.
const NO_SESSION: &str = "authentication/initialization failed";

/// What is written when HPSS is out of reach.
const NETWORK: [&str; 5] = [
    "Connection refused",
    "Connection reset",
    "timed out",
    "No route to host",
    "unreachable",
];

fn said(program: &str, line: &str) -> StoreCause {
    StoreCause::Said {
        program: program.to_owned(),
        text: line.trim_start_matches('*').trim().to_owned(),
    }
}

fn cause_of_line(line: &str, program: &str) -> Option<StoreCause> {
    if listed(line).is_some() {
        return None;
    }
    let has = |words: &[&str]| words.iter().any(|words| line.contains(words));
    if has(&[
        "HPSS_ENOENT",
        "Error -2 ",
        "No such file",
        "No matching names",
    ]) {
        return Some(StoreCause::NotFound);
    }
    if has(&["HPSS_ENOSPACE", "HPSS_EDQUOT", "Error -28 ", "Error -122 "]) {
        return Some(StoreCause::Full);
    }
    if has(&[
        "HPSS_EACCES",
        "HPSS_EPERM",
        "Error -13 ",
        "Error -1 ",
        "Permission denied",
    ]) {
        return Some(StoreCause::Denied);
    }
    let is_error = line.starts_with("***") || has(&["HPSS_E", "Error -"]);
    is_error.then(|| said(program, line))
}

/// Reads a line of `ls -l`, with or without the columns of `-U`: the size is in front of the month.
fn listed(line: &str) -> Option<StoredFile> {
    let is_file =
        line.starts_with('-') && line.chars().take(10).all(|mode| "-rwxsStT".contains(mode));
    if !is_file {
        return None;
    }
    let (mut size, mut rest) = (None, line);
    loop {
        let (word, behind) = next_word(rest)?;
        // A group may be called May: there is a number in front of the month and a day behind it.
        let is_day = |(day, _): (&str, &str)| day.len() <= 2 && day.parse::<u8>().is_ok();
        if MONTHS.contains(&word) && size.is_some() && next_word(behind).is_some_and(is_day) {
            rest = behind;
            break;
        }
        size = word.parse().ok();
        rest = behind;
    }
    // The day, and the time or the year.
    let (_, rest) = next_word(rest)?;
    let (_, rest) = next_word(rest)?;
    Some(StoredFile {
        name: last_part(rest).to_owned(),
        size: size?,
        version: None,
    })
}

fn next_word(text: &str) -> Option<(&str, &str)> {
    let (word, rest) = text.split_once(' ')?;
    Some((word, rest.trim_start()))
}

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

fn last_part(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

fn from_digits(digits: &str) -> Option<[u8; 16]> {
    if digits.len() != 32 {
        return None;
    }
    let mut bytes = [0; 16];
    for (place, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(2 * place..2 * place + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    fn answer(text: &str) -> Result<Answer, StoreCause> {
        let output = Output {
            status: ExitStatus::from_raw(0),
            stdout: text.as_bytes().to_vec(),
            stderr: Vec::new(),
        };
        Answer::of(&output, "hsi", "/opt/hsi")
    }

    #[test]
    fn only_characters_without_another_meaning_are_written() {
        assert_eq!(quoted("/a b/-rf").unwrap(), "\"/a b/-rf\"");
        assert_eq!(quoted_local(Path::new("/spool/-rf")).unwrap(), "\"./-rf\"");
        for name in [
            "a\"b", "a'b", "a\nb", "a*", "a;b", "$(a)", "a|b", "ä", "a\\b", "!a", "a:b",
        ] {
            let error = quoted(name).unwrap_err();
            assert!(matches!(error, StoreCause::Character(_)), "{error}");
        }
        let error = quoted("a\nb").unwrap_err();
        assert_eq!(error.to_string(), "names there cannot have '\\n'");
    }

    #[test]
    fn lists_of_every_kind_are_read() {
        let list = "\
/home/u/user/run:
drwx------    2 user      hpss                  740536                512 Aug 10 20:55 subdir
-rw-------    1 user      hpss          1       740536 DISK           572 Aug 10 20:55 000000.tar
-rw-r-----    1 user      hpss            169974191800 Nov  3  2024 /home/u/user/run/a b
-rw-r-----    1 user      May                        0 Jan 31 2024 index.db";
        let files = answer(list).unwrap().files();
        let facts: Vec<_> = files.iter().map(|file| (&*file.name, file.size)).collect();
        assert_eq!(
            facts,
            [
                ("000000.tar", 572),
                ("a b", 169_974_191_800),
                ("index.db", 0)
            ]
        );
        assert!(answer("-rw").unwrap().files().is_empty());
        assert!(answer("-1 is no mode Aug").unwrap().files().is_empty());
    }

    #[test]
    fn hashes_and_their_verification_are_read() {
        let text = "\
d41d8cd98f00b204e9800998ecf8427e md5 /a/index.db [hsi]
(none) /a/000000.tar
/a/000001.tar: (md5) OK
*** /a/000002.tar: (md5) OK";
        let answer = answer(text).unwrap();
        assert_eq!(answer.md5("index.db").unwrap()[..2], [0xd4, 0x1d]);
        assert_eq!(answer.md5("000000.tar"), None);
        assert!(answer.is_verified("000001.tar"));
        assert!(!answer.is_verified("000002.tar") && !answer.is_verified("index.db"));
    }

    #[test]
    fn errors_are_told_apart() {
        let cause = |text: &str| answer(text).unwrap().cause("hsi", "a.tar").unwrap();
        for (text, expected) in [
            ("*** /x/a.tar: Error -2 (HPSS_ENOENT)", "no such file"),
            (
                "Warning: No matching names located for '/x'",
                "no such file",
            ),
            ("put: Error -28 on transfer. a to b", "the store is full"),
            ("*** /x: Error -122 (HPSS_EDQUOT)", "the store is full"),
            ("*** mkdir: HPSS_EACCES", "access denied"),
            (
                "get: Error -5 on transfer. a to b",
                "hsi says: get: Error -5 on transfer. a to b",
            ),
            (
                "*** /x: Error -13 (no)\n*** a.tar: odd",
                "hsi says: a.tar: odd",
            ),
        ] {
            assert_eq!(cause(text).to_string(), expected, "{text}");
        }
        let text = "-rw-r----- 1 u g 5 Aug 10 2025 HPSS_EIO_a.tar";
        assert!(answer(text).unwrap().cause("hsi", "a.tar").is_none());
    }

    #[test]
    fn a_missing_login_and_a_missing_network_are_told_apart() {
        for text in [
            "*** HSI: (KEYTAB auth method) - keytab file missing or inaccessible",
            "result = -11000, errno = 29\nUnable to authenticate user with HPSS.",
            "*** HSI: error opening logging\nError - authentication/initialization failed",
            "Unable to authenticate user with HPSS.\nConnection reset\nError - authentication/initialization failed",
        ] {
            match answer(text).unwrap_err() {
                StoreCause::Login { command } => assert_eq!(command.as_deref(), Some("/opt/hsi")),
                other => panic!("{other}"),
            }
        }
        let text = "*** connect: Connection refused\nError - authentication/initialization failed";
        let error = answer(text).unwrap_err();
        assert_eq!(error.to_string(), "hsi says: connect: Connection refused");
    }
}
