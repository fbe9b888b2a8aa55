//! The three directories that an archive is made and updated from, and the six ordered pairs of them.

use std::path::{Path, PathBuf};

use serde_json::json;
use stook_sys::{Context, Directory, FileId, display_path};
use stook_tree::Summary;

use super::tree_digest;
use crate::Observer;
use crate::error::BenchError;
use crate::remedy::Remedy;
use crate::space::Need;

/// One of the directories.
#[derive(Debug)]
pub(super) struct Source {
    /// As the user gave it.
    pub(super) path: PathBuf,
    /// What it is called in tables: its last name, or all of the path if another one has that name.
    pub(super) label: String,
    pub(super) summary: Summary,
    pub(super) identity: FileId,
}

/// First and second of [`Source`]s, by their places, in the order of zstash's study: 01, 02, 10, 12, 20, 21.
pub(super) const PAIRS: [(usize, usize); 6] = [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)];

impl Source {
    /// Looks at the directories.
    ///
    /// # Errors
    /// [`BenchError::Sys`] if one is not there, is no directory or cannot be read, [`BenchError::Refused`] if one is in
    /// another one, [`BenchError::Interrupted`].
    pub(super) fn all(paths: &[PathBuf], observer: &dyn Observer) -> Result<Vec<Self>, BenchError> {
        let mut above = Vec::new();
        for path in paths {
            let directory = Directory::open(path)?;
            let upwards = directory.identities_upwards();
            above.push(upwards.context("look at what is above", path)?);
        }
        refuse_nesting(paths, &above)?;
        let sources = paths.iter().zip(&above).map(|(path, above)| {
            Ok(Self {
                path: path.clone(),
                label: label(path, paths)?,
                summary: tree_digest::summary(path, observer)?,
                identity: above[0],
            })
        });
        sources.collect()
    }

    pub(super) fn files(&self) -> u64 {
        self.summary.counts.files
    }

    pub(super) fn bytes(&self) -> u64 {
        u64::try_from(self.summary.counts.bytes).unwrap_or(u64::MAX)
    }

    /// Returns its properties, as results have them.
    fn properties(&self) -> serde_json::Value {
        let sizes = self.summary.sizes.as_ref();
        json!({
            "files": self.files(),
            "directories": self.summary.directories,
            "bytes": self.bytes(),
            "mean": sizes.map(|sizes| sizes.mean),
            "stdev": sizes.map(|sizes| sizes.deviation),
            "min": sizes.map(|sizes| sizes.smallest),
            "median": sizes.map(|sizes| sizes.median),
            "max": sizes.map(|sizes| sizes.largest),
        })
    }
}

/// Returns the properties of all, by their labels.
pub(super) fn properties(sources: &[Source]) -> serde_json::Value {
    let properties = sources
        .iter()
        .map(|source| (source.label.clone(), source.properties()));
    json!(properties.collect::<serde_json::Map<_, _>>())
}

fn refuse_nesting(paths: &[PathBuf], above: &[Vec<FileId>]) -> Result<(), BenchError> {
    for (inner, upwards) in paths.iter().zip(above) {
        for (outer, own) in paths.iter().zip(above) {
            if std::ptr::eq(inner, outer) || !upwards.contains(&own[0]) {
                continue;
            }
            let (inner, outer) = (display_path(inner), display_path(outer));
            let what = format!("`{inner}` and `{outer}` are not two trees: one holds the other");
            return Err(BenchError::refused(what));
        }
    }
    Ok(())
}

/// The last name of the directory, if the others have another one.
fn label(path: &Path, paths: &[PathBuf]) -> Result<String, BenchError> {
    let names = paths
        .iter()
        .map(|path| Ok(stook_sys::absolute(path)?.file_name().map(display_path)));
    let names = names.collect::<Result<Vec<Option<String>>, BenchError>>()?;
    let own = paths.iter().position(|other| other == path).unwrap_or(0);
    let is_alone = names.iter().filter(|name| **name == names[own]).count() == 1;
    Ok(match &names[own] {
        Some(name) if is_alone => name.clone(),
        _ => display_path(path),
    })
}

/// Returns where to work: what the user named, or the directory that holds the first source.
///
/// # Errors
/// [`BenchError::Sys`] if it is not there, [`BenchError::Refused`] if it is in one of the sources.
pub(super) fn holder(wanted: Option<&Path>, sources: &[Source]) -> Result<PathBuf, BenchError> {
    let holder = match wanted {
        Some(holder) => stook_sys::absolute(holder)?,
        None => {
            let first = stook_sys::absolute(&sources[0].path)?;
            first.parent().unwrap_or(Path::new("/")).to_owned()
        }
    };
    let opened = Directory::open_handle(&holder)?;
    let above = opened.identities_upwards();
    let above = above.context("look at what is above", &holder)?;
    let within = sources
        .iter()
        .find(|source| above.contains(&source.identity));
    match within {
        None => Ok(holder),
        Some(source) => {
            let (holder, source) = (display_path(&holder), display_path(&source.path));
            let what = format!("`{holder}` is in `{source}`, which is archived");
            Err(BenchError::refused_with(
                Remedy::NameOtherWorkDirectory,
                what,
            ))
        }
    }
}

/// Refuses to begin what would not fit: source, archive and one extracted tree of the largest pair.
///
/// # Errors
/// [`BenchError::Refused`] if there is too little free space.
pub(super) fn require_free_space(holder: &Path, sources: &[Source]) -> Result<(), BenchError> {
    // Of a file in an archive: its headers; in a tree: half a block that is not filled, and its inode.
    const FILE_IN_ARCHIVE: u64 = 2048;
    const FILE_IN_TREE: u64 = 2560;
    let sum = |of: fn(&Source) -> u64| {
        let pairs = PAIRS.iter();
        let sums = pairs.map(|(first, second)| of(&sources[*first]) + of(&sources[*second]));
        sums.max().unwrap_or(0)
    };
    let entries = sum(|source| source.summary.counts.entries);
    let need = Need {
        bytes: 3 * sum(Source::bytes) + entries * (FILE_IN_ARCHIVE + 2 * FILE_IN_TREE),
        inodes: 2 * entries,
    };
    need.require(holder, Remedy::NameOtherWorkDirectory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stook_testkit::{TempDir, tree};

    fn place() -> TempDir {
        let folder = TempDir::new().unwrap();
        tree! { "x/run/a" => file(b"12"), "y/run/b" => file(b"345"), "init/c" => file(b""), "run/d" => file(b"") }
            .write(folder.path())
            .unwrap();
        folder
    }

    fn all(folder: &TempDir, names: [&str; 3]) -> Result<Vec<Source>, BenchError> {
        Source::all(&names.map(|name| folder.join(name)), &())
    }

    #[test]
    fn directories_of_one_name_are_called_by_their_paths() {
        let folder = place();
        let sources = all(&folder, ["x/run", "y/run", "init"]).unwrap();
        let x = folder.join("x/run").display().to_string();
        assert_eq!((&sources[0].label, &*sources[2].label), (&x, "init"));
        assert_eq!((sources[1].files(), sources[1].bytes()), (1, 3));
        assert_eq!(sources[1].properties()["median"], 3);
        assert!(sources[2].properties()["mean"] == 0.0);
    }

    #[test]
    fn trees_in_each_other_are_refused() {
        let folder = place();
        for names in [
            ["x", "x/run", "init"],
            ["init", "run", "."],
            ["run", "init", "run"],
        ] {
            let error = all(&folder, names).unwrap_err();
            assert!(matches!(error, BenchError::Refused { .. }), "{error}");
        }
        let error = all(&folder, ["run", "init", "gone"]).unwrap_err();
        assert!(error.to_string().starts_with("cannot open `"), "{error}");
        let error = all(&folder, ["run", "init", "x/run/a"]).unwrap_err();
        assert!(error.to_string().ends_with("not a directory"), "{error}");
    }

    #[test]
    fn the_work_place_is_not_in_a_source() {
        let folder = place();
        let sources = all(&folder, ["x/run", "run", "init"]).unwrap();
        let beside = holder(None, &sources).unwrap();
        assert_eq!(beside, stook_sys::absolute(&folder.join("x")).unwrap());
        std::fs::create_dir(folder.join("init/deep")).unwrap();
        let error = holder(Some(&folder.join("init/deep")), &sources).unwrap_err();
        assert!(error.to_string().ends_with("which is archived"), "{error}");
        require_free_space(&beside, &sources).unwrap();
    }
}
