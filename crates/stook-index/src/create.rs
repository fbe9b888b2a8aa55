//! Making the index of a new archive.
//!
//! ```text
//!   index.db.partial: tables, settings, first run ──sync──> rename to index.db ──sync of the folder──> open for writing
//! ```
//! Until it gets its own name the file is thrown away in any case, so nothing of it is journalled or synced before.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use crate::access::Access;
use crate::compression::insert_level;
use crate::error::{IndexError, WRITE};
use crate::index::{Index, fault_at};
use crate::interrupt::Interrupt;
use crate::mtime::Mtime;
use crate::name::escape_name;
use crate::origin::{Origin, origin, origin_of_journals};
use crate::runs::insert_begun_run;
use crate::types::{Config, RunId};
use crate::{place, schema, witness};

/// Tables that only an index has which stook made.
const TABLES: &[&str] = &["files", "stook_meta"];

impl Index {
    /// Makes the index of a new archive and opens it for writing.
    ///
    /// The file is made as `PATH.partial` and renamed; an old file of that name is replaced.
    ///
    /// # Errors
    /// `Exists` if anything has this name already; `Foreign` if a file that stook did not make has one of the other names;
    /// `System` or `Sqlite` if it cannot be written.
    ///
    /// # Cost
    /// Two syncs: of the file before it gets its name, of the folder after that.
    pub fn create(path: impl AsRef<Path>, config: &Config) -> Result<Self, IndexError> {
        Self::create_new(path.as_ref(), config, |_| Ok(()))
    }

    /// As [`Index::create`], for a run that has begun once the index is there; returns its id, too. With a level, volumes are
    /// compressed from the first one on.
    ///
    /// # Errors
    /// As [`Index::create`].
    pub fn create_for_run(
        path: impl AsRef<Path>,
        config: &Config,
        (command, started): (&str, Mtime),
        zstd_level: Option<u8>,
    ) -> Result<(Self, RunId), IndexError> {
        let mut run = None;
        let index = Self::create_new(path.as_ref(), config, |connection| {
            if let Some(level) = zstd_level {
                insert_level(connection, level)?;
            }
            run = Some(insert_begun_run(connection, command, started, 1)?);
            Ok(())
        })?;
        Ok((index, run.expect("an index without its run is an error")))
    }

    fn create_new(
        path: &Path,
        config: &Config,
        first: impl FnOnce(&Connection) -> rusqlite::Result<()>,
    ) -> Result<Self, IndexError> {
        if stook_sys::exists(path)?.is_some() {
            return Err(IndexError::Exists {
                path: path.to_owned(),
            });
        }
        if origin_of_journals(path) == Origin::Foreign {
            return Err(IndexError::Foreign {
                path: path.to_owned(),
            });
        }
        let partial = place::partial_path(path);
        Self::create_at(&partial, config, first)?
            .close()
            .and_then(|()| place::install_new(&partial, path))
            .inspect_err(|_| discard(&partial))?;
        Self::open_write(path)
    }

    /// Returns whose the file is under whose name the index at `path` is made before it gets its own.
    pub fn unfinished_origin(path: impl AsRef<Path>) -> Origin {
        origin(&place::partial_path(path.as_ref()), TABLES)
    }

    /// Removes what a killed run left of an index that was to be at `path`; a file that stook did not make stays.
    ///
    /// # Errors
    /// `System` if it cannot be removed.
    pub fn discard_unfinished(path: impl AsRef<Path>) -> Result<(), IndexError> {
        let path = path.as_ref();
        match Self::unfinished_origin(path) {
            Origin::Own | Origin::Blank => place::remove_database(&place::partial_path(path)),
            Origin::Missing | Origin::Foreign => Ok(()),
        }
    }

    /// Makes an index under exactly this name, replacing what stook left there, and has `first` add to it. One that cannot be
    /// completed, say on a full disk, does not stay.
    pub(crate) fn create_at(
        path: &Path,
        config: &Config,
        first: impl FnOnce(&Connection) -> rusqlite::Result<()>,
    ) -> Result<Self, IndexError> {
        if origin(path, TABLES) == Origin::Foreign {
            return Err(IndexError::Foreign {
                path: path.to_owned(),
            });
        }
        place::remove_database(path)?;
        Self::fill(path, config, first).inspect_err(|_| discard(path))
    }

    fn fill(
        path: &Path,
        config: &Config,
        first: impl FnOnce(&Connection) -> rusqlite::Result<()>,
    ) -> Result<Self, IndexError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let index = Self::connect(path, Access::Exclusive, flags, &Interrupt::never())?;
        index
            .connection
            .pragma_update(None, "page_size", 4096)
            .map_err(index.fault(WRITE))?;
        set_fast(&index.connection).map_err(index.fault(WRITE))?;
        let transaction = index
            .connection
            .unchecked_transaction()
            .map_err(fault_at(WRITE, path))?;
        schema::create_tables(&transaction, path)?;
        insert_config(&transaction, config).map_err(fault_at(WRITE, path))?;
        first(&transaction).map_err(fault_at(WRITE, path))?;
        witness::write_all(&transaction).map_err(fault_at(WRITE, path))?;
        transaction.commit().map_err(fault_at(WRITE, path))?;
        Ok(index)
    }
}

/// Removes a database that could not be completed; the error that led here is reported.
fn discard(path: &Path) {
    let _ = place::remove_database(path);
}

/// For a file that is thrown away unless it is completed.
fn set_fast(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update_and_check(None, "journal_mode", "MEMORY", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "OFF")
}

fn insert_config(connection: &Connection, config: &Config) -> rusqlite::Result<()> {
    let path = escape_name(&config.path);
    let mut insert = connection.prepare("INSERT INTO config VALUES (?1, ?2)")?;
    insert.execute(["hpss", &config.hpss])?;
    insert.execute(["maxsize", &config.maxsize.to_string()])?;
    insert.execute(["path", &path])?;
    if path.as_bytes() != config.path {
        connection.execute("INSERT INTO stook_meta VALUES ('path', ?1)", [&config.path])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_run_of_a_new_index_has_begun_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let config = Config {
            hpss: "none".into(),
            maxsize: 1,
            path: b"/src".into(),
        };
        let paths = ["at-once", "afterwards"].map(|name| folder.path().join(name));
        let (index, run) =
            Index::create_for_run(&paths[0], &config, ("create", Mtime(7)), None).unwrap();
        let mut other = Index::create(&paths[1], &config).unwrap();
        assert_eq!(run, other.begin_run("create", Mtime(7)).unwrap());
        assert_eq!(index.runs().unwrap(), other.runs().unwrap());
        let damages = |index: &Index| {
            let mut damages = 0;
            let sound = index.check(&mut |_| std::ops::ControlFlow::Continue(()), &mut |_| {
                damages += 1;
            });
            (sound.unwrap(), damages)
        };
        assert_eq!(damages(&index), (crate::Structure::Sound, 0));
        assert_eq!(damages(&index), damages(&other));
    }
}
