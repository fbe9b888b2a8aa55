//! A visitor that records every call, and may change the tree meanwhile.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Mutex;

use stook_pool::Jobs;
use stook_sys::{Directory, FileKind, Links, Metadata};
use stook_testkit::Kind;
use stook_tree::{Filter, Listing, TreeError, Visitor, WalkOptions, walk};

/// What a walk told.
#[derive(Default)]
pub(crate) struct Found {
    /// Every entry and every directory but the root, by path.
    pub(crate) entries: BTreeMap<Vec<u8>, Metadata>,
    /// By path: names of the entries in the order of the listing, and whether it is empty.
    pub(crate) listings: BTreeMap<Vec<u8>, (Vec<Vec<u8>>, bool)>,
    /// Links that lead to directories.
    pub(crate) to_directories: Vec<Vec<u8>>,
    pub(crate) failures: Vec<(Vec<u8>, &'static str, ErrorKind)>,
}

type Action<'a> = Box<dyn Fn(&[u8]) + Sync + 'a>;
type Skips = fn(&[u8], &[u8], FileKind) -> bool;

pub(crate) struct Recorder<'a> {
    found: Mutex<Found>,
    filter: Filter,
    skips: Skips,
    /// Called with the path of every listing before it is written down.
    on_listing: Action<'a>,
    /// Number of listings after which the walk is to stop.
    stop_after: usize,
}

impl Default for Recorder<'_> {
    fn default() -> Self {
        Self {
            found: Mutex::default(),
            filter: Filter::default(),
            skips: |_, _, _| false,
            on_listing: Box::new(|_| ()),
            stop_after: usize::MAX,
        }
    }
}

impl<'a> Recorder<'a> {
    pub(crate) fn filtered(filter: Filter) -> Self {
        Self {
            filter,
            ..Self::default()
        }
    }

    pub(crate) fn skipping(skips: Skips) -> Self {
        Self {
            skips,
            ..Self::default()
        }
    }

    pub(crate) fn acting(on_listing: impl Fn(&[u8]) + Sync + 'a) -> Self {
        Self {
            on_listing: Box::new(on_listing),
            ..Self::default()
        }
    }

    pub(crate) fn with_filter(mut self, filter: Filter) -> Self {
        self.filter = filter;
        self
    }

    pub(crate) fn stopping_after(listings: usize) -> Self {
        Self {
            stop_after: listings,
            ..Self::default()
        }
    }

    pub(crate) fn walk(self, root: &Path, options: &WalkOptions) -> Found {
        self.walk_open(&Directory::open(root).unwrap(), options)
    }

    pub(crate) fn walk_open(self, root: &Directory, options: &WalkOptions) -> Found {
        walk(root, options, &self);
        let mut found = self.found.into_inner().unwrap();
        found.failures.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
        found.to_directories.sort();
        found
    }
}

impl stook_pool::Observer for Recorder<'_> {
    type Failure = TreeError;

    fn failed(&self, error: &TreeError) {
        let failure = (error.path.clone(), error.operation, error.source.kind());
        self.found.lock().unwrap().failures.push(failure);
    }

    fn is_interrupted(&self) -> bool {
        self.found.lock().unwrap().listings.len() >= self.stop_after
    }
}

impl Visitor for Recorder<'_> {
    fn prunes(&self, path: &[u8]) -> bool {
        self.filter.prunes(path)
    }

    fn skips(&self, directory: &[u8], name: &[u8], kind: FileKind) -> bool {
        (self.skips)(directory, name, kind)
    }

    fn directory(&self, listing: Listing) {
        (self.on_listing)(&listing.path);
        let mut found = self.found.lock().unwrap();
        let names: Vec<Vec<u8>> = listing
            .entries
            .iter()
            .map(|entry| listing.name(entry).to_vec())
            .collect();
        assert_eq!(listing.entries.capacity(), listing.entries.len());
        for (entry, name) in listing.entries.iter().zip(&names) {
            let path = join(&listing.path, name);
            if entry.leads_to_directory() {
                found.to_directories.push(path.clone());
            }
            let earlier = found.entries.insert(path, entry.metadata());
            assert!(earlier.is_none(), "{} comes twice", name.escape_ascii());
        }
        if !listing.path.is_empty() {
            let earlier = found.entries.insert(listing.path.clone(), listing.metadata);
            assert!(earlier.is_none(), "{:?} comes twice", listing.path);
        }
        found
            .listings
            .insert(listing.path, (names, listing.is_empty));
    }
}

impl Found {
    /// Returns all paths, for messages and comparisons.
    pub(crate) fn paths(&self) -> Vec<String> {
        let paths = self.entries.keys();
        paths
            .map(|path| String::from_utf8_lossy(path).into_owned())
            .collect()
    }

    /// Returns paths and operations of the failures.
    pub(crate) fn failed(&self) -> Vec<(&str, &str)> {
        let failures = self.failures.iter();
        failures
            .map(|(path, operation, _)| (std::str::from_utf8(path).unwrap(), *operation))
            .collect()
    }
}

pub(crate) fn options(jobs: usize, links: Links) -> WalkOptions {
    WalkOptions {
        jobs: Jobs::Fixed(jobs),
        links,
        ..WalkOptions::default()
    }
}

pub(crate) fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    if directory.is_empty() {
        name.to_vec()
    } else {
        [directory, b"/", name].concat()
    }
}

/// Returns the kind in the words of the test kit.
pub(crate) fn kind_of(metadata: &Metadata) -> Kind {
    match metadata.kind {
        FileKind::File => Kind::File,
        FileKind::Directory => Kind::Directory,
        FileKind::Symlink => Kind::Symlink,
        FileKind::Fifo => Kind::Fifo,
        FileKind::Socket => Kind::Socket,
        FileKind::CharDevice => Kind::CharacterDevice,
        FileKind::BlockDevice => Kind::BlockDevice,
    }
}
