//! A tree of the same names, kinds, sizes, modes and times without content: sparse files, which take an inode and no blocks.
//!
//! What compares a tree with an index looks at nothing else. So a simulation of terabytes can be studied on a laptop, and
//! files can be added without a change in the tree that they are added to.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use stook_sys::{Context, Directory, FileKind, Metadata, SysError, into_inner, lock, set_len};
use stook_tree::{Detail, Entry, Listing, join, split};

use crate::Observer;
use crate::error::BenchError;
use crate::trees::each_directory;

const DIRECTORY_MODE: u32 = 0o700;

/// Makes a replica, below a directory that is made. Returns how many sockets, fifos and devices it lacks.
///
/// # Errors
/// [`BenchError::Sys`] with the first failure, [`BenchError::Interrupted`]. What was made then stays.
///
/// # Cost
/// Two walks; for each file: openat, ftruncate, utimensat, close. An inode for each entry.
pub(super) fn replicate(
    tree: &Path,
    replica: &Path,
    observer: &dyn Observer,
) -> Result<u64, BenchError> {
    stook_sys::create_directory(replica)?;
    let root = Directory::open(replica)?;
    let directories = directories(tree, observer)?;
    for (path, _) in directories.iter().filter(|(path, _)| !path.is_empty()) {
        let (above, name) = split(path);
        let made =
            open(&root, above).and_then(|above| above.create_directory(name, DIRECTORY_MODE));
        made.context("create", replica.join(as_path(path)))?;
    }
    let maker = Maker {
        tree,
        from: Directory::open(tree)?,
        replica,
        root,
        left_out: AtomicU64::new(0),
        failed: Mutex::default(),
    };
    each_directory(tree, Detail::Facts, observer, |listing| maker.fill(listing))?;
    if let Some(error) = into_inner(maker.failed) {
        return Err(error.into());
    }
    // What is made in a directory changes its time, and parents come first.
    for (path, metadata) in directories.iter().rev() {
        let set = |directory: Directory| {
            directory.set_own_mode(metadata.mode | DIRECTORY_MODE)?;
            directory.set_own_mtime(metadata.mtime)
        };
        let set = open(&maker.root, path).and_then(set);
        set.context("set the time of", replica.join(as_path(path)))?;
    }
    Ok(maker.left_out.into_inner())
}

/// Returns all directories, sorted by path, so parents first; the tree itself is the first one.
fn directories(
    tree: &Path,
    observer: &dyn Observer,
) -> Result<Vec<(Vec<u8>, Metadata)>, BenchError> {
    let all = Mutex::new(Vec::new());
    each_directory(tree, Detail::Facts, observer, |listing| {
        lock(&all).push((listing.path.clone(), listing.metadata));
    })?;
    let mut all = into_inner(all);
    all.sort_by(|one, other| one.0.cmp(&other.0));
    Ok(all)
}

struct Maker<'a> {
    tree: &'a Path,
    from: Directory,
    replica: &'a Path,
    root: Directory,
    left_out: AtomicU64,
    /// The first failure.
    failed: Mutex<Option<SysError>>,
}

impl Maker<'_> {
    fn fill(&self, listing: &Listing) {
        if lock(&self.failed).is_some() {
            return;
        }
        if let Err(error) = self.make_all(listing) {
            lock(&self.failed).get_or_insert(error);
        }
    }

    fn make_all(&self, listing: &Listing) -> Result<(), SysError> {
        let path = as_path(&listing.path);
        let into = open(&self.root, &listing.path).context("open", self.replica.join(path))?;
        for entry in &listing.entries {
            let name = listing.name(entry);
            let shown = || self.replica.join(as_path(&join(&listing.path, name)));
            match entry.metadata().kind {
                FileKind::File => make_file(&into, name, entry).context("create", shown())?,
                FileKind::Symlink => self.make_link(&into, listing, entry)?,
                _ => {
                    self.left_out.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        Ok(())
    }

    fn make_link(
        &self,
        into: &Directory,
        listing: &Listing,
        entry: &Entry,
    ) -> Result<(), SysError> {
        let name = listing.name(entry);
        let path = join(&listing.path, name);
        let target = open(&self.from, &listing.path).and_then(|from| from.read_link(name));
        let target = target.context("read", self.tree.join(as_path(&path)))?;
        let made = into
            .create_symlink(name, &target)
            .and_then(|()| into.set_mtime(name, entry.metadata().mtime));
        made.context("create", self.replica.join(as_path(&path)))
    }
}

fn make_file(into: &Directory, name: &[u8], entry: &Entry) -> std::io::Result<()> {
    let metadata = entry.metadata();
    let file = into.create_file(name, metadata.mode)?;
    set_len(&file, metadata.size)?;
    stook_sys::set_mtime(&file, metadata.mtime)
}

fn open(root: &Directory, path: &[u8]) -> std::io::Result<Directory> {
    root.open_beneath(if path.is_empty() { b"." } else { path })
}

fn as_path(path: &[u8]) -> &Path {
    use std::os::unix::ffi::OsStrExt;
    Path::new(std::ffi::OsStr::from_bytes(path))
}

#[cfg(test)]
mod tests {
    use super::super::tree_digest::digest;
    use super::*;
    use stook_testkit::{TempDir, tree};

    #[test]
    fn a_replica_has_all_but_content_and_takes_no_blocks() {
        use std::os::unix::fs::MetadataExt;
        let folder = TempDir::new().unwrap();
        let apparent = 3 << 40;
        tree! {
            "run/h0.nc" => sparse(&[(0, b"CDF")], apparent), "run/rest/r.nc" => file([1; 5000]),
            "link" => symlink("run/h0.nc"), "empty" => dir(), "pipe" => fifo(),
        }
        .write(&folder.join("tree"))
        .unwrap();
        let (tree, replica) = (folder.join("tree"), folder.join("replica"));
        assert_eq!(replicate(&tree, &replica, &()).unwrap(), 1);
        std::fs::remove_file(tree.join("pipe")).unwrap();
        assert_eq!(
            digest(&tree, &()).unwrap(),
            digest(&replica, &()).unwrap(),
            "names, kinds, sizes and times"
        );
        let made = std::fs::metadata(replica.join("run/h0.nc")).unwrap();
        assert_eq!((made.len(), made.blocks()), (apparent, 0));
        let time = |tree: &Path| {
            std::fs::metadata(tree.join("run"))
                .unwrap()
                .modified()
                .unwrap()
        };
        assert_eq!(time(&tree), time(&replica));
    }
}
