//! What is in a plan directory, and whose it is: names are exact, and what is in a file shows who made it.

use std::io::{self, Read};
use std::path::Path;

use stook_sys::{Directory, FileKind, Links, NameBuffer, is_no_directory};

use super::blocks::is_plan_file;

/// The plan.
pub(crate) const PLAN: &str = "plan";

/// The same, while it is given up.
pub(crate) const GIVEN_UP: &str = "given-up";

/// Files that a part leaves when it is built; the journal is there after a kill.
const BUILT_FILES: [&str; 4] = [
    "000000.tar.partial",
    "000000.rows.partial",
    "000000.rows.partial-journal",
    RESULT,
];

const RESULT: &str = "result";

/// What is in a plan directory.
#[derive(Default)]
pub(crate) struct Contents {
    /// Names of what is stook's own, in the order in which they are removed.
    pub(crate) own: Vec<Vec<u8>>,
    /// Names of all else, sorted.
    pub(crate) foreign: Vec<Vec<u8>>,
    /// True if the content of something shows that stook made it.
    pub(crate) is_stooks: bool,
}

/// Whose something in a plan directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Its content says so.
    Stook,
    /// It has a name of ours, and nothing in it yet that could say so: a kill leaves this.
    Blank,
    Foreign,
}

impl Contents {
    pub(crate) fn of(directory: &Directory) -> io::Result<Self> {
        let mut found = names(directory)?;
        found.sort();
        let (mut contents, mut plans) = (Self::default(), Vec::new());
        for name in found {
            let origin = origin(directory, &name)?;
            contents.is_stooks |= origin == Origin::Stook;
            if name == PLAN.as_bytes() || name == GIVEN_UP.as_bytes() {
                plans.push((name, origin));
            } else if origin == Origin::Foreign {
                contents.foreign.push(name);
            } else {
                contents.own.push(name);
            }
        }
        for (name, origin) in plans {
            // Beside parts it is their plan, damaged beyond recognition. Alone it would count as the user's.
            if contents.is_stooks && (origin != Origin::Foreign || is_file(directory, &name)?) {
                // The last to be removed: as long as it is there, a removal that was killed can go on.
                contents.own.push(name);
            } else {
                contents.foreign.push(name);
            }
        }
        contents.foreign.sort();
        Ok(contents)
    }
}

pub(crate) fn names(directory: &Directory) -> io::Result<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    directory.names(&mut NameBuffer::default(), |entry| {
        found.push(entry.name.to_vec());
    })?;
    Ok(found)
}

/// Returns whose the file or folder `name` of a plan directory is. One that is gone meanwhile is nobody's.
pub(crate) fn origin(directory: &Directory, name: &[u8]) -> io::Result<Origin> {
    match expected_kind(name) {
        None => Ok(Origin::Foreign),
        Some(FileKind::Directory) => origin_of_built(directory, name),
        Some(_) => origin_of_file(directory, name),
    }
}

fn origin_of_built(directory: &Directory, name: &[u8]) -> io::Result<Origin> {
    let inner = match directory.open_beneath(name) {
        Err(error) if is_absent(&error) || is_no_directory(&error) => return Ok(Origin::Foreign),
        other => other?,
    };
    let names = names(&inner)?;
    let is_known = |name: &Vec<u8>| BUILT_FILES.iter().any(|ours| ours.as_bytes() == &name[..]);
    if !names.iter().all(is_known) {
        return Ok(Origin::Foreign);
    }
    match names.iter().any(|name| name == RESULT.as_bytes()) {
        true => origin_of_file(&inner, RESULT.as_bytes()),
        false => Ok(Origin::Blank),
    }
}

fn origin_of_file(directory: &Directory, name: &[u8]) -> io::Result<Origin> {
    if !is_file(directory, name)? {
        return Ok(Origin::Foreign);
    }
    let file = match directory.open_file(name, Links::Refuse) {
        Err(error) if is_absent(&error) => return Ok(Origin::Foreign),
        other => other?,
    };
    let mut beginning = Vec::new();
    file.take(16).read_to_end(&mut beginning)?;
    Ok(match &beginning[..] {
        [] => Origin::Blank,
        bytes if is_plan_file(bytes) => Origin::Stook,
        _ => Origin::Foreign,
    })
}

fn is_file(directory: &Directory, name: &[u8]) -> io::Result<bool> {
    match directory.metadata(name, Links::Refuse) {
        Err(error) if is_absent(&error) => Ok(false),
        found => Ok(found?.kind == FileKind::File),
    }
}

fn is_absent(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

/// Returns what stook makes under this name; None if nothing.
fn expected_kind(name: &[u8]) -> Option<FileKind> {
    let name = std::str::from_utf8(name).ok()?;
    let base = name.strip_suffix(".partial").unwrap_or(name);
    if [PLAN, GIVEN_UP, "deleted", "commit"].contains(&base) {
        return Some(FileKind::File);
    }
    let (kind, rest) = name.split_once('-')?;
    let (number, rest) = rest.split_once('-').map_or((rest, None), |(number, rest)| {
        (number, Some(rest.strip_suffix(".before").unwrap_or(rest)))
    });
    let is_counted = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_number = |text: &str| text.parse().is_ok_and(|n: u32| format!("{n:06}") == text);
    let (kind, is_complete) = match kind {
        "part" | "sorted" => (FileKind::File, rest.is_none()),
        "built" | "taken" => (FileKind::Directory, rest.is_none()),
        "damaged" => (FileKind::Directory, rest.is_none_or(is_counted)),
        "building" => {
            let is_of_process = |rest: &str| rest.split('-').all(is_counted);
            (FileKind::Directory, rest.is_some_and(is_of_process))
        }
        _ => return None,
    };
    (is_complete && is_number(number)).then_some(kind)
}

/// Removes what is stook's own; what is gone by then was removed by somebody else.
pub(crate) fn remove_own(directory: &Directory, name: &[u8]) -> io::Result<()> {
    if expected_kind(name) != Some(FileKind::Directory) {
        return done(directory.remove(name));
    }
    match remove_folder(directory, name) {
        // A builder that is still running has added something.
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
            remove_folder(directory, name)
        }
        other => other,
    }
}

fn remove_folder(directory: &Directory, name: &[u8]) -> io::Result<()> {
    let inner = match directory.open_beneath(name) {
        Err(error) if is_absent(&error) => return Ok(()),
        other => other?,
    };
    for file in names(&inner)? {
        done(inner.remove(&file))?;
    }
    done(directory.remove_directory(name))
}

fn done(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if is_absent(&error) => Ok(()),
        other => other,
    }
}

/// Returns the name of a path in a plan directory, or in a folder that parts are built in.
pub(crate) fn name_of(path: &Path) -> &[u8] {
    use std::os::unix::ffi::OsStrExt;
    path.file_name().map_or(&b""[..], OsStrExt::as_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_exact() {
        for name in [
            "plan",
            "plan.partial",
            "given-up",
            "part-000000",
            "part-1234567",
            "sorted-000012",
            "built-000003",
            "taken-000003",
            "damaged-000003",
            "damaged-000003-2",
            "building-000003-4711-1700000000123456789",
            "building-000003-4711-1700000000123456789.before",
        ] {
            assert!(expected_kind(name.as_bytes()).is_some(), "{name}");
        }
        for name in [
            "",
            "plans",
            "part-",
            "part-x",
            "part-1",
            "part-0000001",
            "part-+00001",
            "part-000001-2",
            "part-000001.partial",
            "part-99999999999",
            "built-x",
            "built-000003-2",
            "damaged-000003-",
            "damaged-000003-b",
            "building-000003",
            "building-x-1-1",
        ] {
            assert!(expected_kind(name.as_bytes()).is_none(), "{name}");
        }
    }
}
