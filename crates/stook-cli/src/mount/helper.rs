//! The program called as `mount.stook`: how `mount(8)` calls helpers, so that an archive can stand in fstab.
//!
//! # Source
//! `mount(8)`, "External helpers": `mount.TYPE SPEC DIR [-sfnv] [-N NAMESPACE] [-o OPTIONS] [-t TYPE.SUBTYPE]`.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::daemon::CHILD_NAME;

const NAME: &str = "mount.stook";

/// Returns the words of a command line as they are parsed: those of a mount helper as those of `stook mount`.
pub(crate) fn words(typed: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut typed: Vec<OsString> = typed.collect();
    let Some(program) = typed.first_mut() else {
        return typed;
    };
    let name = Path::new(program).file_name().map(OsStr::to_owned);
    match name.as_deref().and_then(OsStr::to_str) {
        Some(CHILD_NAME) => *program = "stook".into(),
        Some(NAME) => return of_helper(&typed[1..]),
        _ => {}
    }
    typed
}

fn of_helper(typed: &[OsString]) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec!["stook".into(), "mount".into()];
    let mut places = Vec::new();
    let mut rest = typed.iter();
    while let Some(word) = rest.next() {
        match word.to_str() {
            Some("-o") => words.extend([word.clone(), rest.next().cloned().unwrap_or_default()]),
            Some("-N" | "-t") => {
                rest.next();
            }
            Some(letters) if is_letters(letters) => {
                if letters.contains('f') {
                    words.extend(["-o".into(), "fake".into()]);
                }
            }
            _ => places.push(word.clone()),
        }
    }
    words.push("--".into());
    words.extend(places);
    words
}

/// `-s` tolerates unknown options, `-n` writes no mtab, `-v` says more: none of them changes anything here.
fn is_letters(word: &str) -> bool {
    word.strip_prefix('-')
        .is_some_and(|letters| !letters.is_empty() && letters.chars().all(|c| "sfnv".contains(c)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words_of(line: &str) -> String {
        let words = words(line.split(' ').map(OsString::from));
        let words: Vec<String> = words
            .into_iter()
            .map(|word| word.into_string().unwrap())
            .collect();
        words.join(" ")
    }

    #[test]
    fn a_helper_is_called_as_mount_does() {
        assert_eq!(
            words_of("/sbin/mount.stook /a /m -o rw,verify"),
            "stook mount -o rw,verify -- /a /m"
        );
        assert_eq!(
            words_of("mount.stook http://h/a /m -sn -t fuse.stook -N 5 -f"),
            "stook mount -o fake -- http://h/a /m"
        );
        assert_eq!(words_of("stook mount -f /a /m"), "stook mount -f /a /m");
        assert_eq!(words_of("stook-mount mount /a /m"), "stook mount /a /m");
    }
}
