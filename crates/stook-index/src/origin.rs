//! Whose a file with one of stook's names is, by its content.
//!
//! A user may have put a file of such a name into the folder, so that a name alone proves nothing. A database of stook
//! has its own tables on its first page. Before the first transaction of a database its file is empty.

use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use stook_sys::{Directory, FileKind, Links, metadata, read_up_to_at};

use crate::error::IndexError;
use crate::place::{JOURNALS, folder, with_suffix};

/// Whose a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// There is none.
    Missing,
    /// It is empty, as a database is before anything is written to it.
    Blank,
    /// It is a database that stook made.
    Own,
    /// It is something else.
    Foreign,
}

/// The largest page of an SQLite database.
const LARGEST_PAGE: usize = 64 << 10;

/// Returns whose a database is, with the journals beside it: of stook if it has these tables.
pub(crate) fn origin(path: &Path, tables: &[&str]) -> Origin {
    let own = origin_of(path, |page| {
        let has = |table: &&str| {
            let text = format!("CREATE TABLE {table}");
            let mut windows = page.windows(text.len());
            windows.any(|window| window == text.as_bytes())
        };
        page.starts_with(b"SQLite format 3\0") && tables.iter().all(has)
    });
    match (own, origin_of_journals(path)) {
        (_, Origin::Foreign) => Origin::Foreign,
        // A kill while a database was removed or made.
        (Origin::Missing, Origin::Blank | Origin::Own) => Origin::Own,
        (own, _) => own,
    }
}

/// Returns whose the journals of a database are.
pub(crate) fn origin_of_journals(path: &Path) -> Origin {
    let mut found = Origin::Missing;
    for suffix in JOURNALS {
        match origin_of(&with_suffix(path, suffix), is_journal) {
            Origin::Missing => {}
            Origin::Foreign => return Origin::Foreign,
            other => found = other,
        }
    }
    found
}

/// Refuses a database beside which something else has the name of its rollback journal: SQLite would remove that. One that
/// may not be read counts as a journal: SQLite cannot use it either, and says so.
///
/// # Cost
/// Three system calls if there is none.
pub(crate) fn require_own_journal(path: &Path) -> Result<(), IndexError> {
    let journal = with_suffix(path, JOURNALS[0]);
    let is_foreign = match beginning(&journal) {
        Ok(bytes) => origin_by(&bytes, is_journal) == Origin::Foreign,
        Err(error) => !matches!(
            error.kind(),
            ErrorKind::NotFound | ErrorKind::PermissionDenied
        ),
    };
    if is_foreign {
        return Err(IndexError::ForeignJournal { path: journal });
    }
    Ok(())
}

/// Returns true for the beginning of a rollback journal; its first bytes are zeros until it is complete.
fn is_journal(bytes: &[u8]) -> bool {
    const MAGIC: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
    let number = |at: usize| {
        let bytes = bytes.get(at..at + 4)?;
        Some(u32::from_be_bytes(bytes.try_into().ok()?))
    };
    let is_size = |number: Option<u32>| {
        number.is_some_and(|size| size.is_power_of_two() && (32..=65_536).contains(&size))
    };
    let has_magic = bytes.starts_with(&MAGIC) || bytes.starts_with(&[0; 8]);
    has_magic && is_size(number(20)) && is_size(number(24))
}

/// A file that cannot be read proves nothing.
fn origin_of(path: &Path, is_own: impl Fn(&[u8]) -> bool) -> Origin {
    match beginning(path) {
        Ok(bytes) => origin_by(&bytes, is_own),
        Err(error) if error.kind() == ErrorKind::NotFound => Origin::Missing,
        Err(_) => Origin::Foreign,
    }
}

fn origin_by(bytes: &[u8], is_own: impl Fn(&[u8]) -> bool) -> Origin {
    if is_own(bytes) {
        Origin::Own
    } else if bytes.len() < LARGEST_PAGE && bytes.iter().all(|&byte| byte == 0) {
        // A crash of the system may leave zeros where something was to be written.
        Origin::Blank
    } else {
        Origin::Foreign
    }
}

/// Returns the first bytes of a regular file, as many as the largest page has.
fn beginning(path: &Path) -> io::Result<Vec<u8>> {
    let name = path.file_name().map_or(&b""[..], OsStr::as_bytes);
    let Ok(directory) = Directory::open(folder(path)) else {
        return Err(ErrorKind::NotFound.into());
    };
    let file = directory.open_file(name, Links::Refuse)?;
    if metadata(&file)?.kind != FileKind::File {
        return Err(ErrorKind::InvalidInput.into());
    }
    let mut bytes = vec![0; LARGEST_PAGE];
    let len = read_up_to_at(&file, &mut bytes, 0)?;
    bytes.truncate(len);
    Ok(bytes)
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
mod tests {
    use super::*;
    use crate::types::Config;
    use crate::{Index, Rebuild, Staging};

    fn config() -> Config {
        Config {
            hpss: "none".into(),
            maxsize: 1,
            path: b"/src".into(),
        }
    }

    #[test]
    fn databases_of_stook_are_known_by_their_tables() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("000000.rows.partial");
        assert_eq!(Staging::origin(&path), Origin::Missing);
        std::fs::write(&path, b"").unwrap();
        assert_eq!(Staging::origin(&path), Origin::Blank);
        drop(Staging::create(&path).unwrap());
        assert_eq!(Staging::origin(&path), Origin::Own);
        let index = folder.path().join("index.db");
        drop(Index::create(&index, &config()).unwrap());
        assert_eq!(Staging::origin(&index), Origin::Foreign);
        std::fs::rename(&index, folder.path().join("index.db.partial")).unwrap();
        assert_eq!(Index::unfinished_origin(&index), Origin::Own);
        std::fs::write(&path, b"text").unwrap();
        assert_eq!(Staging::origin(&path), Origin::Foreign);
    }

    #[test]
    fn the_journal_of_a_transaction_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("000000.rows.partial");
        let staging = Staging::create(&path).unwrap();
        staging.begin_and_hold();
        assert_eq!(origin_of_journals(&path), Origin::Own);
        assert_eq!(Staging::origin(&path), Origin::Own);
        std::fs::write(with_suffix(&path, "-wal"), b"mine").unwrap();
        assert_eq!(Staging::origin(&path), Origin::Foreign);
    }

    #[test]
    fn a_file_of_somebody_else_is_not_replaced_by_an_index() {
        for name in [
            "index.db.partial",
            "index.db.partial-journal",
            "index.db-journal",
            "index.db-wal",
        ] {
            let folder = tempfile::tempdir().unwrap();
            let (index, foreign) = (folder.path().join("index.db"), folder.path().join(name));
            std::fs::write(&foreign, b"mine").unwrap();
            let error = Index::create(&index, &config()).unwrap_err();
            assert!(
                matches!(error, IndexError::Foreign { .. }),
                "{name}: {error}"
            );
            assert_eq!(std::fs::read(&foreign).unwrap(), b"mine");
            if name.contains("partial") {
                assert!(Rebuild::new(&index, &config()).is_err(), "{name}");
                Index::discard_unfinished(&index).unwrap();
                assert_eq!(std::fs::read(&foreign).unwrap(), b"mine");
            }
        }
    }

    #[test]
    fn what_is_no_journal_stays_where_an_index_is_opened() {
        let folder = tempfile::tempdir().unwrap();
        let index = folder.path().join("index.db");
        drop(Index::create(&index, &config()).unwrap());
        let foreign = folder.path().join("index.db-journal");
        std::fs::write(&foreign, b"mine").unwrap();
        for error in [
            Index::open_read(&index).unwrap_err(),
            Index::open_write(&index).unwrap_err(),
            Rebuild::new(&index, &config()).unwrap_err(),
        ] {
            assert!(
                matches!(error, IndexError::ForeignJournal { .. }),
                "{error}"
            );
        }
        assert_eq!(std::fs::read(&foreign).unwrap(), b"mine");
        std::fs::remove_file(&foreign).unwrap();
        std::fs::create_dir(&foreign).unwrap();
        let error = Index::open_read(&index).unwrap_err();
        assert!(
            matches!(error, IndexError::ForeignJournal { .. }),
            "{error}"
        );
        std::fs::remove_dir(&foreign).unwrap();
        Index::open_write(&index).unwrap();
    }
}
