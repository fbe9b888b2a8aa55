//! What the double of `hsi` holds: files by path, and on which tape each lies.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::doubles::session::{change_json, read_json};

const NAME: &str = "state.json";

/// What is known of a file beyond its bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Known {
    /// None: on disk.
    pub(super) tape: Option<Spot>,
    /// The MD5 that was stored with it.
    pub(super) md5: Option<String>,
}

/// Where a file lies on tape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Spot {
    pub(super) tape: u64,
    pub(super) position: u64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct State {
    files: BTreeMap<String, Known>,
    /// Files that were ever put.
    put: u64,
    /// Where the one drive stands.
    drive: Option<Spot>,
}

/// How the drive got to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Movement {
    None,
    Mounted,
    Rewound,
}

/// The files of a double.
#[derive(Debug)]
pub(super) struct Files {
    folder: PathBuf,
}

impl Files {
    pub(super) fn new(folder: &Path) -> Self {
        let folder = folder.to_owned();
        Self { folder }
    }

    /// Returns where the bytes of a path lie; it begins with a slash.
    pub(super) fn data(&self, path: &str) -> PathBuf {
        self.folder.join("data").join(path.trim_start_matches('/'))
    }

    pub(super) fn known(&self, path: &str) -> Option<Known> {
        let state: State = read_json(&self.folder.join(NAME));
        state.files.get(path).cloned()
    }

    /// Records a file that was put, on the next of so many tapes, at a place that says nothing about the order.
    pub(super) fn add(&self, path: &str, md5: Option<String>, tapes: u64) {
        change_json(&self.folder, NAME, |state: &mut State| {
            let number = state.put;
            state.put += 1;
            let tape = (tapes > 0).then(|| Spot {
                tape: number % tapes,
                position: number * 7919 % 1009,
            });
            state.files.insert(path.to_owned(), Known { tape, md5 });
        });
    }

    pub(super) fn set_md5(&self, path: &str, md5: Option<String>) {
        change_json(&self.folder, NAME, |state: &mut State| {
            state.files.entry(path.to_owned()).or_default().md5 = md5;
        });
    }

    pub(super) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.data(from), self.data(to))?;
        change_json(&self.folder, NAME, |state: &mut State| {
            let known = state.files.remove(from).unwrap_or_default();
            state.files.insert(to.to_owned(), known);
        });
        Ok(())
    }

    pub(super) fn remove(&self, path: &str) -> io::Result<()> {
        std::fs::remove_file(self.data(path))?;
        change_json(&self.folder, NAME, |state: &mut State| {
            state.files.remove(path)
        });
        Ok(())
    }

    /// Moves the drive to a file and returns how; it stands behind the file then.
    pub(super) fn wind_to(&self, path: &str) -> Movement {
        change_json(&self.folder, NAME, |state: &mut State| {
            let spot = state.files.get(path).and_then(|known| known.tape);
            let (Some(spot), before) = (spot, state.drive) else {
                return Movement::None;
            };
            state.drive = Some(spot);
            match before {
                Some(drive) if drive.tape != spot.tape => Movement::Mounted,
                None => Movement::Mounted,
                Some(drive) if spot < drive => Movement::Rewound,
                Some(_) => Movement::None,
            }
        })
    }

    /// Returns how many bytes all files have.
    pub(super) fn total_bytes(&self) -> u64 {
        fn of(folder: &Path) -> u64 {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            let sizes = entries.map(|entry| match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => of(&entry.path()),
                Ok(metadata) => metadata.len(),
                Err(_) => 0,
            });
            sizes.sum()
        }
        of(&self.folder.join("data"))
    }
}
