//! The way to the directory that was opened last: the next one is reached from there.
//!
//! To open what is far down by its path costs as many steps as it is deep, and so, for all of a chain of directories,
//! the square of its length. Members of an archive come in the order of their paths, so the next directory is mostly
//! near the last one. Some above that one stay open, the farther apart the higher they are:
//!
//! ```text
//!   root ─────────────────────── kept ──────────── kept ───── kept ── last
//! ```
//! Down, the last one is the beginning; up, the nearest kept one is, and half of the rest is kept again on the way. So a
//! step takes the logarithm of the depth, about, in either direction. In a tree of short paths only the last one is open.
//! Nothing but names leads anywhere: with `..`, what was moved meanwhile would lead out of the tree.

use std::io;

use crate::directory::{Directory, Links};

/// Directories that are open at a time, the last one among them.
const MOST_KEPT: usize = 3;

/// Bytes of path that are not worth a descriptor: some 100 directories are passed in the time of a few system calls.
const NEAR: usize = 256;

/// Bytes of path in one call at most; one with more is opened in pieces.
const FAR: usize = 4_000;

/// The directory below a root that was opened last, and some above it.
#[derive(Debug)]
pub struct OpenPath<'r> {
    root: &'r Directory,
    /// Of the last one, with its descriptors.
    path: Vec<u8>,
    /// How many bytes of the path lead to each, ascending; the last one is that of the path.
    open: Vec<(usize, Directory)>,
}

impl<'r> OpenPath<'r> {
    /// Returns one that has only the root open.
    pub fn new(root: &'r Directory) -> Self {
        Self {
            root,
            path: Vec::new(),
            open: Vec::new(),
        }
    }

    /// Returns the directory `path` below the root, an empty path meaning the root; what is on the way is opened as by
    /// [`Directory::open_beneath`], or with links followed by [`Directory::open_following`].
    ///
    /// After an error, [`Self::last`] is as far as it came.
    ///
    /// # Cost
    /// Nothing if it is the last one again; one system call if it is near the last one, or not far from the root.
    pub fn open(&mut self, path: &[u8], links: Links) -> io::Result<&Directory> {
        self.leave(path);
        while self.path.len() < path.len() {
            let rest = &path[self.below()..];
            let (piece, opened) = open_piece(self.last(), rest, links)?;
            self.keep(piece, opened);
        }
        Ok(self.last())
    }

    /// Opens a directory in the last one, or makes it if it is not there.
    ///
    /// # Errors
    /// Those of [`Directory::open_beneath`], and of `make`, which is to make a directory of this name.
    pub fn open_or_make(
        &mut self,
        name: &[u8],
        make: impl FnOnce(&Directory) -> io::Result<()>,
    ) -> io::Result<()> {
        let opened = match self.last().open_beneath(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make(self.last())?;
                self.last().open_beneath(name)?
            }
            other => other?,
        };
        self.keep(name, opened);
        Ok(())
    }

    /// Returns the last one that was opened.
    pub fn last(&self) -> &Directory {
        self.open.last().map_or(self.root, |(_, last)| last)
    }

    /// Returns where in a path that leads through the last one the names below that begin.
    pub fn below(&self) -> usize {
        self.path.len() + usize::from(!self.path.is_empty())
    }

    /// Closes what does not lead to `path`.
    fn leave(&mut self, path: &[u8]) {
        let common = common_len(&self.path, path);
        let leads = |len: usize| len <= common && path.get(len).is_none_or(|&next| next == b'/');
        while self.open.pop_if(|(len, _)| !leads(*len)).is_some() {}
        self.path
            .truncate(self.open.last().map_or(0, |(len, _)| *len));
    }

    /// Makes what these names lead to from the last one the last one, and closes those above it that are not worth it.
    fn keep(&mut self, names: &[u8], directory: Directory) {
        let above = self.open.iter().rev().nth(1);
        let above = above.map_or(0, |(len, _)| *len);
        self.open.pop_if(|(len, _)| *len < above + NEAR);
        if !self.path.is_empty() {
            self.path.push(b'/');
        }
        self.path.extend_from_slice(names);
        self.open.push((self.path.len(), directory));
        if self.open.len() > MOST_KEPT {
            self.open.remove(self.least_useful());
        }
    }

    /// Returns the one whose neighbours are the nearest to each other, measured by how far above the last one they are.
    fn least_useful(&self) -> usize {
        let end = self.path.len();
        let gap = |place: usize| {
            let start = place.checked_sub(1).map_or(0, |above| self.open[above].0);
            let (from, to) = (end - start, end - self.open[place + 1].0);
            from * FAR / (to + NEAR)
        };
        let kept = 0..self.open.len() - 1;
        kept.min_by_key(|&place| gap(place)).unwrap_or(0)
    }
}

/// Opens what is as far down as one step leads; returns the names that lead there, too.
fn open_piece<'p>(
    base: &Directory,
    rest: &'p [u8],
    links: Links,
) -> io::Result<(&'p [u8], Directory)> {
    let open = |piece: &[u8]| match links {
        Links::Follow => base.open_following(piece),
        Links::Refuse => base.open_beneath(piece),
    };
    let piece = next_piece(rest);
    match open(piece) {
        // A directory on the way need not be readable.
        Err(error)
            if error.kind() == io::ErrorKind::PermissionDenied && piece.len() < rest.len() =>
        {
            Ok((rest, open(rest)?))
        }
        opened => Ok((piece, opened?)),
    }
}

/// Returns the names that are passed at once: all if they are near, else half of them.
fn next_piece(rest: &[u8]) -> &[u8] {
    if rest.len() <= NEAR {
        return rest;
    }
    let wanted = (rest.len() / 2).min(FAR);
    let before = rest[..=wanted].iter().rposition(|&byte| byte == b'/');
    let cut = before.or_else(|| rest.iter().position(|&byte| byte == b'/'));
    &rest[..cut.unwrap_or(rest.len())]
}

/// Returns how many bytes at the beginning of both are the same.
fn common_len(a: &[u8], b: &[u8]) -> usize {
    const AT_ONCE: usize = 256;
    let pieces = a.chunks_exact(AT_ONCE).zip(b.chunks_exact(AT_ONCE));
    let whole = pieces.take_while(|(a, b)| a == b).count() * AT_ONCE;
    let rest = a[whole..].iter().zip(&b[whole..]);
    whole + rest.take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chain of directories with one beside each, as paths in the order of an archive.
    fn levels(root: &Directory, count: usize) -> Vec<Vec<u8>> {
        let mut current = root.try_clone().unwrap();
        let (mut path, mut paths) = (Vec::new(), vec![Vec::new()]);
        for _ in 0..count {
            for name in [b"d", b"z"] {
                current.create_directory(name, 0o755).unwrap();
                paths.push([&path[..], name].concat());
            }
            current = current.open_beneath(b"d").unwrap();
            path.extend_from_slice(b"d/");
        }
        paths.sort();
        paths
    }

    #[test]
    fn it_opens_what_a_path_leads_to_from_anywhere() {
        let folder = tempfile::tempdir().unwrap();
        let root = Directory::open(folder.path()).unwrap();
        let paths = levels(&root, 400);
        let identity = |directory: &Directory| directory.own_metadata().unwrap().identity();
        let mut way = OpenPath::new(&root);
        let far_apart = paths.iter().zip(paths.iter().rev());
        let jumps = far_apart.step_by(50).flat_map(|(a, b)| [a, b]);
        let all = paths
            .iter()
            .chain(paths.iter().rev())
            .step_by(7)
            .chain(jumps);
        for path in all {
            let found = identity(way.open(path, Links::Refuse).unwrap());
            assert_eq!(found, identity(&root.open_beneath(path).unwrap()));
            assert!(way.open.len() <= MOST_KEPT);
        }
    }

    #[test]
    fn it_leads_nowhere_else_and_says_how_far_it_came() {
        let folder = tempfile::tempdir().unwrap();
        let root = Directory::open(folder.path()).unwrap();
        let paths = levels(&root, 400);
        root.create_symlink(b"link", b"d").unwrap();
        let mut way = OpenPath::new(&root);
        assert!(way.open(b"link/d", Links::Refuse).is_err());
        assert!(way.open(b"link/d", Links::Follow).is_ok());
        assert!(way.open(b"d/../..", Links::Refuse).is_err());
        let missing = [&paths[399][..], b"x/y"].concat();
        let error = way.open(&missing, Links::Refuse).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        let start = way.below();
        let expected = root.open_beneath(&missing[..start - 1]).unwrap();
        let metadata = way.last().own_metadata().unwrap();
        assert!(metadata.is_same_file(&expected.own_metadata().unwrap()));
        assert!(start + NEAR >= missing.len());
        // What it kept leads on to what is there.
        assert!(way.open(&paths[399], Links::Refuse).is_ok());
    }

    #[test]
    fn each_step_of_a_chain_passes_few_names() {
        let folder = tempfile::tempdir().unwrap();
        let root = Directory::open(folder.path()).unwrap();
        let paths = levels(&root, 700);
        let mut way = OpenPath::new(&root);
        let (mut passed, mut all) = (0, 0);
        for path in &paths {
            way.leave(path);
            passed += path.len().saturating_sub(way.below());
            all += path.len();
            way.open(path, Links::Refuse).unwrap();
        }
        assert!(passed * 4 < all, "{passed} bytes of {all}");
    }

    #[test]
    fn in_a_tree_of_short_paths_one_is_open_at_most() {
        let folder = tempfile::tempdir().unwrap();
        let root = Directory::open(folder.path()).unwrap();
        let mut way = OpenPath::new(&root);
        for path in levels(&root, 100) {
            way.open(&path, Links::Refuse).unwrap();
            assert!(way.open.len() <= 1);
        }
    }
}
