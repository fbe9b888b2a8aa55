//! Small indexes for tests, and short ways to look into them.

use std::ops::ControlFlow;
use std::path::PathBuf;

use stook_index::{AsOf, Config, Deleted, Index, Mtime, NewRow, Row, Selection, Volume, VolumeId};
use tempfile::TempDir;

/// A folder that goes away after the test, and the path of an index in it.
pub(crate) struct Folder {
    pub(crate) folder: TempDir,
    pub(crate) index: PathBuf,
}

impl Folder {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let index = folder.path().join("index.db");
        Self { folder, index }
    }

    pub(crate) fn create(&self) -> Index {
        Index::create(&self.index, &config()).unwrap()
    }

    /// Returns the names of the files in the folder, sorted.
    pub(crate) fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// Runs SQL as another program would.
    pub(crate) fn sql(&self, sql: &str) {
        rusqlite::Connection::open(&self.index)
            .unwrap()
            .execute_batch(sql)
            .unwrap();
    }
}

pub(crate) fn config() -> Config {
    Config {
        hpss: "none".into(),
        maxsize: 1 << 38,
        path: b"/src".to_vec(),
    }
}

pub(crate) fn row(name: &[u8], size: u64) -> NewRow<'_> {
    NewRow {
        name,
        size,
        mtime: Mtime(1_600_000_000_000_000),
        md5: Some([7; 16]),
        offset: 0,
    }
}

pub(crate) fn volume(number: u64) -> Volume {
    Volume {
        id: VolumeId::plain(number),
        size: 10_240,
        md5: Some([1; 16]),
    }
}

/// Commits a volume of files named so, each of this size.
pub(crate) fn commit(index: &mut Index, number: u64, names: &[&str], size: u64) {
    let rows = names.iter().map(|name| row(name.as_bytes(), size));
    let count = index.commit_volume(&volume(number), rows, None).unwrap();
    assert_eq!(count, names.len() as u64);
}

pub(crate) fn all_rows(index: &Index) -> Vec<Row> {
    let mut rows = Vec::new();
    index
        .rows(|row| {
            rows.push(row.to_row());
            ControlFlow::Continue(())
        })
        .unwrap();
    rows
}

pub(crate) fn selected(index: &Index, selection: &Selection) -> Vec<Row> {
    let mut rows = Vec::new();
    index
        .selected(selection, |row| {
            assert!(selection.contains(row.id));
            rows.push(row.to_row());
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(selection.len(), rows.len() as u64);
    assert_eq!(
        selection.bytes(),
        rows.iter().map(|row| row.size).sum::<u64>()
    );
    rows
}

/// Returns the newest row of a name.
pub(crate) fn find(index: &Index, name: &[u8]) -> Option<Row> {
    let found = index.find(name, AsOf::Now).unwrap();
    assert!(found.damage.is_none(), "{:?}", found.damage);
    found.row
}

/// Returns `name=size` of every name in a state, in order of archiving.
pub(crate) fn state(index: &Index, as_of: AsOf, deleted: Deleted) -> Vec<String> {
    let selection = Selection::of(index, as_of, deleted, &|_| true).unwrap();
    let text = |row: &Row| format!("{}={}", row.name.escape_ascii(), row.size);
    selected(index, &selection).iter().map(text).collect()
}
