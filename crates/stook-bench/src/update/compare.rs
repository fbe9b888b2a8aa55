//! Whether what came out of an archive is what went in.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde_json::json;
use stook_sys::display_bytes;
use stook_tree::{CopyOptions, verify};

use super::tree_digest::{digest, paths_below};
use crate::Observer;
use crate::error::BenchError;
use crate::record::Sample;
use crate::trees::Failures;

/// How two sets of names, and what they name, differ.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Difference {
    /// Only in the source.
    pub(super) missing: u64,
    /// Not in the source.
    pub(super) extra: u64,
    /// In both, but not the same.
    pub(super) changed: u64,
    /// One of them.
    pub(super) example: Option<String>,
}

impl Difference {
    pub(super) fn is_none(&self) -> bool {
        self.missing + self.extra + self.changed == 0
    }

    /// Returns it in words.
    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "{} missing, {} extra, {} changed",
            self.missing, self.extra, self.changed
        );
        if let Some(example) = &self.example {
            text.push_str(&format!(", such as `{example}`"));
        }
        text
    }

    /// Notes it in a sample.
    pub(super) fn note(&self, sample: &mut Sample) {
        let mut note = |name: &str, value| sample.proof.insert(name.to_owned(), value);
        note("equal", json!(self.is_none()));
        if !self.is_none() {
            note("missing", json!(self.missing));
            note("extra", json!(self.extra));
            note("changed", json!(self.changed));
        }
    }

    fn of_names<T: AsRef<[u8]> + Ord>(source: &BTreeSet<T>, other: &BTreeSet<T>) -> Self {
        let (missing, extra) = (source.difference(other), other.difference(source));
        let example = missing.clone().next().or_else(|| extra.clone().next());
        Self {
            example: example.map(|name| display_bytes(name.as_ref())),
            missing: missing.count() as u64,
            extra: extra.count() as u64,
            changed: 0,
        }
    }
}

/// Compares an extracted tree with its source: names, kinds, content of files, targets of links.
///
/// # Errors
/// [`BenchError::Sys`] if one of them cannot be read, [`BenchError::Interrupted`].
pub(super) fn compare_trees(
    source: &Path,
    extracted: &Path,
    observer: &dyn Observer,
) -> Result<Difference, BenchError> {
    let failures = Failures::of(observer);
    verify(source, extracted, &CopyOptions::default(), &failures)?;
    if observer.is_stopped() {
        return Err(BenchError::Interrupted);
    }
    let failed = failures.into_all();
    let failed: BTreeSet<Vec<u8>> = failed
        .iter()
        .map(|error| below(&error.path, [source, extracted]).to_vec())
        .collect();
    if failed.is_empty() && digest(source, observer)?.has_names_of(&digest(extracted, observer)?) {
        return Ok(Difference::default());
    }
    let (before, after) = (
        paths_below(source, observer)?,
        paths_below(extracted, observer)?,
    );
    let names = |paths: &'_ BTreeMap<Vec<u8>, bool>| paths.keys().cloned().collect::<BTreeSet<_>>();
    let after = names(&after);
    let mut difference = Difference::of_names(&names(&before), &after);
    let mut changed = failed.intersection(&after);
    let example = changed.clone().next().map(|path| display_bytes(path));
    difference.changed = changed.by_ref().count() as u64;
    difference.example = difference.example.or(example);
    Ok(difference)
}

/// Returns the paths below a tree, whichever of the trees they are in.
fn below<'a>(path: &'a [u8], roots: [&Path; 2]) -> &'a [u8] {
    let mut roots = roots.iter();
    let below = roots.find_map(|root| path.strip_prefix(root.as_os_str().as_bytes()));
    below.map_or(path, |rest| rest.strip_prefix(b"/").unwrap_or(rest))
}

/// What a tool says is in its archive.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Listed {
    /// How its names differ from those of the source, directories left out: tools list all of them, some, or none.
    pub(super) difference: Difference,
    /// The same for the same names in the same order.
    order: u64,
    /// Whether the names are sorted as bytes.
    is_sorted: bool,
}

impl Listed {
    /// Compares names with those that are expected.
    pub(super) fn new(expected: &BTreeSet<&[u8]>, names: &[Cow<'_, [u8]>]) -> Self {
        let mut hasher = DefaultHasher::new();
        names.hash(&mut hasher);
        Self {
            order: hasher.finish(),
            is_sorted: names.is_sorted(),
            difference: Difference::of_names(expected, &names.iter().map(|name| &**name).collect()),
        }
    }

    /// Notes it in a sample.
    pub(super) fn note(&self, sample: &mut Sample) {
        let mut note = |name: &str, value| sample.proof.insert(name.to_owned(), value);
        note("list_equal", json!(self.difference.is_none()));
        // As text: numbers of 64 bits do not survive every reader of JSON.
        note("list_order", json!(format!("{:016x}", self.order)));
        note("list_sorted", json!(self.is_sorted));
    }
}

/// Compares a printed list with the source.
///
/// # Errors
/// [`BenchError::Sys`] if the source cannot be read, [`BenchError::Interrupted`].
pub(super) fn compare_list(
    source: &Path,
    printed: &[u8],
    observer: &dyn Observer,
) -> Result<Listed, BenchError> {
    let paths = paths_below(source, observer)?;
    let files = paths.iter().filter(|(_, is_directory)| !**is_directory);
    let expected = files.map(|(path, _)| path.as_slice()).collect();
    Ok(Listed::new(&expected, &names(printed, &paths)))
}

/// Returns the names of a printed list, but for directories of the tree. Names end with a line, or with a NUL if there is one; a
/// line may be one that `stook diff --json` prints. Of a name that comes more than once the last one counts, as that is the newest version.
pub(super) fn names<'p>(printed: &'p [u8], tree: &BTreeMap<Vec<u8>, bool>) -> Vec<Cow<'p, [u8]>> {
    let is_json = printed.starts_with(b"{\"type\":");
    let end = if printed.contains(&0) { 0 } else { b'\n' };
    let mut seen = HashSet::new();
    let mut names: Vec<Cow<'p, [u8]>> = Vec::new();
    for line in printed.rsplit(|&byte| byte == end) {
        let name = match is_json {
            true => Cow::Owned(changed_path(line).unwrap_or_default()),
            false => Cow::Borrowed(plain(line)),
        };
        if !name.is_empty() && tree.get(&*name) != Some(&true) && seen.insert(name.clone()) {
            names.push(name);
        }
    }
    names.reverse();
    names
}

/// Returns the path of a difference that an update would archive; None for other lines.
fn changed_path(line: &[u8]) -> Option<Vec<u8>> {
    let line: serde_json::Value = serde_json::from_slice(line).ok()?;
    let change = line.get("change")?.as_str()?;
    if !["new", "changed"].contains(&change) {
        return None;
    }
    match line.get("path_hex").and_then(|hex| hex.as_str()) {
        None => Some(line.get("path")?.as_str()?.into()),
        Some(hex) => {
            let bytes = hex.as_bytes().chunks(2);
            let byte = |two| u8::from_str_radix(str::from_utf8(two).ok()?, 16).ok();
            bytes.map(byte).collect()
        }
    }
}

/// A name without what some tools put around it: `./` in front, `/` behind that of a directory.
fn plain(name: &[u8]) -> &[u8] {
    let name = name.strip_prefix(b"./").unwrap_or(name);
    let name = name.strip_suffix(b"/").unwrap_or(name);
    if name == b"." { b"" } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Quiet;
    use stook_testkit::{TempDir, Tree, tree};

    fn difference(source: &Tree, extracted: &Tree) -> Difference {
        let folder = TempDir::new().unwrap();
        source.write(&folder.join("source")).unwrap();
        extracted.write(&folder.join("extracted")).unwrap();
        let (source, extracted) = (folder.join("source"), folder.join("extracted"));
        compare_trees(&source, &extracted, &Quiet::default()).unwrap()
    }

    #[test]
    fn every_way_to_differ_is_counted() {
        let source = tree! {
            "a" => file(b"1"), "d/b" => file(b"22"), "d/c" => symlink("a"), "e/f/g" => file(b""), "h" => dir(),
        };
        assert_eq!(difference(&source, &source), Difference::default());
        let other = tree! {
            "a" => file(b"1"), "d/b" => file(b"23"), "d/c" => symlink("b"), "h" => file(b""), "new" => file(b""),
        };
        let found = difference(&source, &other);
        assert_eq!((found.missing, found.extra, found.changed), (3, 1, 3));
        assert_eq!(found.text(), "3 missing, 1 extra, 3 changed, such as `e`");
        let emptied = difference(&source, &tree! {});
        assert_eq!((emptied.missing, emptied.extra, emptied.changed), (8, 0, 0));
    }

    fn listed(printed: &str) -> Listed {
        let folder = TempDir::new().unwrap();
        tree! { "a" => file(b""), "d/b" => file(b""), "d/c" => file(b""), "e" => dir() }
            .write(folder.path())
            .unwrap();
        compare_list(folder.path(), printed.as_bytes(), &()).unwrap()
    }

    #[test]
    fn lists_are_the_same_however_they_are_printed() {
        let stook = listed("a\0d/b\0d/c\0");
        assert!(stook.difference.is_none() && stook.is_sorted);
        assert_eq!(stook, listed("./\n./e/\n./a\n./d/\n./d/b\n./d/c\n"));
        // The first `d/b` is an old version.
        let other = listed("d/b\na\nd/c\nd/b\n");
        assert!(other.difference.is_none() && !other.is_sorted);
        assert_ne!(stook.order, other.order);
    }

    #[test]
    fn a_list_that_lacks_a_name_is_not_equal() {
        let found = listed("a\nd/c\nx").difference;
        assert_eq!((found.missing, found.extra), (1, 1));
        assert_eq!(listed("").difference.missing, 3);
    }
}
