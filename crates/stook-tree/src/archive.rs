//! Recognises an archive.
//!
//! An archive is a directory with an `index.db` and a volume beside it, or with an `index.db` that has the tables of
//! an archive. The content of an index with a volume beside it does not matter: it may be damaged, and the volumes
//! still hold everything. In a directory without that name nothing more is looked at.

use std::io;

use stook_sys::{Directory, FileKind, Links, NameBuffer, metadata, read_up_to_at};

/// The name of an archive's index.
pub(crate) const INDEX: &[u8] = b"index.db";

/// The largest page of an SQLite database; the first one holds the names of the tables.
const LARGEST_PAGE: usize = 64 << 10;

/// Returns true if a directory is an archive. An index that may not be read counts as one.
///
/// # Errors
/// If the directory may not be searched, or has an index and may not be listed.
///
/// # Cost
/// One system call for a directory without an `index.db`.
pub fn is_archive(directory: &Directory) -> io::Result<bool> {
    match directory.metadata(INDEX, Links::Refuse) {
        Ok(index) if index.kind == FileKind::Directory => Ok(false),
        Ok(_) if has_volume(directory)? => Ok(true),
        Ok(_) => match has_index(directory) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(true),
            other => other,
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns true if a directory above this one is an archive.
///
/// # Errors
/// If one of them may not be searched.
///
/// # Cost
/// Three system calls for each level.
pub fn is_in_archive(directory: &Directory) -> io::Result<bool> {
    let mut identity = directory.own_metadata()?.identity();
    let mut above = directory.open_above()?;
    loop {
        let next = above.own_metadata()?.identity();
        if next == identity {
            return Ok(false);
        }
        if is_archive(&above)? {
            return Ok(true);
        }
        identity = next;
        above = above.open_above()?;
    }
}

/// Returns true for the name of a volume: at least six hexadecimal digits in lower case, and `.tar`.
pub(crate) fn is_volume_name(name: &[u8]) -> bool {
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    name.strip_suffix(b".tar")
        .is_some_and(|number| number.len() >= 6 && number.iter().all(is_digit))
}

fn has_volume(directory: &Directory) -> io::Result<bool> {
    let mut is_found = false;
    // On a handle of its own: names are read once from each.
    let listed = directory.open_beneath(b"")?;
    listed.names(&mut NameBuffer::default(), |found| {
        is_found |= is_volume_name(found.name);
    })?;
    Ok(is_found)
}

/// Returns true if a directory has an index with the tables of an archive.
///
/// # Errors
/// As [`is_archive`], and if the index may not be read.
pub(crate) fn has_index(directory: &Directory) -> io::Result<bool> {
    let file = match directory.open_file(INDEX, Links::Follow) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    if metadata(&file)?.kind != FileKind::File {
        return Ok(false);
    }
    let mut page = vec![0; LARGEST_PAGE];
    let len = read_up_to_at(&file, &mut page, 0)?;
    let page = &page[..len];
    let has = |text: &[u8]| page.windows(text.len()).any(|window| window == text);
    Ok(page.starts_with(b"SQLite format 3\0")
        && has(b"CREATE TABLE files")
        && has(b"CREATE TABLE config"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_are_known_by_their_names() {
        for name in ["000000.tar", "00abcd.tar", "1000000.tar"] {
            assert!(is_volume_name(name.as_bytes()), "{name}");
        }
        for name in [
            "00000.tar",
            "00000G.tar",
            "00ABCD.tar",
            "000000.tar.partial",
            ".tar",
            "data00.tar",
        ] {
            assert!(!is_volume_name(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn an_archive_is_known_by_its_index_and_what_is_beside_it() {
        let folder = stook_testkit::TempDir::new().unwrap();
        let directory = Directory::open(folder.path()).unwrap();
        let index = folder.join("index.db");
        let is = || is_archive(&directory).unwrap();
        assert!(!is());
        std::fs::write(folder.join("000000.tar"), b"").unwrap();
        assert!(!is());
        std::fs::write(&index, b"damaged").unwrap();
        assert!(is());
        std::fs::remove_file(folder.join("000000.tar")).unwrap();
        assert!(!is());
        let tables = "CREATE TABLE config (arg)CREATE TABLE files (id)";
        std::fs::write(&index, format!("SQLite format 3\0{tables}")).unwrap();
        assert!(is());
        std::fs::write(&index, "SQLite format 3\0CREATE TABLE files (id)").unwrap();
        assert!(!is());
        std::fs::remove_file(&index).unwrap();
        std::fs::create_dir(&index).unwrap();
        std::fs::write(folder.join("000000.tar"), b"").unwrap();
        assert!(!is());
    }
}
