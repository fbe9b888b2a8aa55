//! Which patterns match anything in a tree, found out from names alone, before anything is done.
//!
//! A pattern is taken as it was typed. Only if it matches nothing so, the name of the tree is taken off its front:
//! the paths that are printed begin with that name. Directories in which no open pattern may match are not read, and
//! the search ends with the last open pattern: one that begins with a name costs little more than the way there.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use stook_pool::Jobs;
use stook_sys::{Directory, FileKind, Links, is_no_directory};
use stook_timers::scope;

use crate::path::join;
use crate::{Detail, Filter, Listing, Pattern, TreeError, Visitor, WalkOptions, walk};

/// A tree as a user named it.
#[derive(Debug)]
pub struct SearchedTree {
    /// Its path as it was typed: paths that are printed begin with it.
    pub path: Vec<u8>,
    /// What is there.
    pub root: SearchRoot,
}

/// What is where a tree should be.
#[derive(Debug)]
pub enum SearchRoot {
    /// A directory.
    Directory(Directory),
    /// Something else, of this name.
    Other(Vec<u8>),
    /// Nothing.
    Missing,
    /// A directory that cannot be opened.
    Closed,
}

impl SearchRoot {
    /// Returns what an attempt to open a tree of this name has found.
    pub fn of(opened: io::Result<Directory>, name: &[u8]) -> Self {
        match opened {
            Ok(directory) => Self::Directory(directory),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::Missing,
            Err(error) if is_no_directory(&error) => Self::Other(name.to_vec()),
            Err(_) => Self::Closed,
        }
    }
}

/// How to search.
#[derive(Clone, Copy)]
pub struct SearchOptions<'a> {
    /// How many directories are read together.
    pub jobs: Jobs,
    /// What to do with symbolic links within the trees.
    pub links: Links,
    /// Look for every pattern; else only for those that begin with the name of a tree, and may be meant in two ways.
    pub all_patterns: bool,
    /// Returns true if the search should end early.
    pub is_stopped: &'a (dyn Fn() -> bool + Sync),
}

/// What a search found.
#[derive(Debug)]
pub struct Searched {
    /// What the filter means in each of the trees; None: what was typed.
    pub filters: Vec<Option<Filter>>,
    /// Patterns looked for that match nothing in any of the trees.
    pub unmatched: Vec<Pattern>,
    /// Directories that might hold a match, and could not be read.
    pub unread: u64,
}

/// Finds out which patterns of a filter match anything in the trees, and how they are meant.
///
/// # Cost
/// For each directory that may hold a match: open, getdents64 until empty, close. For any other one: one statx.
pub fn search(filter: &Filter, trees: &[SearchedTree], options: &SearchOptions<'_>) -> Searched {
    let _scope = scope!("search");
    let typed: Vec<&Pattern> = filter.patterns().collect();
    let may_be_shortened = |pattern: &Pattern| {
        let mut trees = trees.iter();
        trees.any(|tree| pattern.without_tree(&tree.path).is_some())
    };
    let wanted = (0..typed.len()).filter(|&at| options.all_patterns || may_be_shortened(typed[at]));
    let mut names = Names::new(wanted.map(|at| (at, typed[at].clone())));
    let mut unread = 0;
    for tree in trees {
        unread += names.look_in(tree, options);
    }
    let mut open = names.unmatched();
    let mut filters = vec![None; trees.len()];
    let mut found = Vec::new();
    for (tree, own) in trees.iter().zip(&mut filters) {
        let shortened = |&at: &usize| Some((at, typed[at].without_tree(&tree.path)?));
        names = Names::new(open.iter().filter_map(shortened));
        unread += names.look_in(tree, options);
        for (at, pattern) in names.into_matched() {
            found.push(at);
            own.get_or_insert_with(|| filter.clone())
                .replace(at, pattern);
        }
    }
    open.retain(|at| !found.contains(at));
    Searched {
        filters,
        unmatched: open.iter().map(|&at| typed[at].clone()).collect(),
        unread,
    }
}

/// Patterns that are looked for, each with its place among all.
struct Names {
    places: Vec<usize>,
    filter: Filter,
}

impl Names {
    fn new(patterns: impl Iterator<Item = (usize, Pattern)>) -> Self {
        let (places, include) = patterns.unzip();
        let exclude = Vec::new();
        let filter = Filter { include, exclude };
        Self { places, filter }
    }

    /// Looks for the patterns that have matched nothing yet; returns how many directories could not be read.
    fn look_in(&self, tree: &SearchedTree, options: &SearchOptions<'_>) -> u64 {
        if self.filter.have_all_matched() {
            return 0;
        }
        let visit = Visit {
            filter: &self.filter,
            is_stopped: options.is_stopped,
            unread: AtomicU64::new(0),
        };
        let walk_options = WalkOptions {
            jobs: options.jobs,
            links: options.links,
            detail: Detail::Kinds,
            sorted: false,
            ..WalkOptions::default()
        };
        match &tree.root {
            SearchRoot::Directory(root) => walk(root, &walk_options, &visit),
            SearchRoot::Other(name) => self.filter.note(name),
            SearchRoot::Missing => {}
            SearchRoot::Closed => return 1,
        }
        visit.unread.into_inner()
    }

    fn unmatched(&self) -> Vec<usize> {
        let each = self.places.iter().zip(&self.filter.include);
        each.filter(|(_, pattern)| !pattern.has_matched())
            .map(|(&at, _)| at)
            .collect()
    }

    fn into_matched(self) -> impl Iterator<Item = (usize, Pattern)> {
        let each = self.places.into_iter().zip(self.filter.include);
        each.filter(|(_, pattern)| pattern.has_matched())
    }
}

struct Visit<'a> {
    filter: &'a Filter,
    is_stopped: &'a (dyn Fn() -> bool + Sync),
    unread: AtomicU64,
}

impl Visit<'_> {
    fn may_match_below(&self, directory: &[u8]) -> bool {
        let mut open = self.filter.patterns().filter(|each| !each.has_matched());
        open.any(|pattern| pattern.may_match_below(directory))
    }
}

impl stook_pool::Observer for Visit<'_> {
    type Failure = TreeError;

    fn failed(&self, error: &TreeError) {
        self.filter.note(&error.path);
        if self.may_match_below(&error.path) {
            self.unread.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn is_interrupted(&self) -> bool {
        self.filter.have_all_matched() || (self.is_stopped)()
    }
}

impl Visitor for Visit<'_> {
    fn prunes(&self, path: &[u8]) -> bool {
        self.filter.note(path);
        !self.may_match_below(path)
    }

    fn skips(&self, directory: &[u8], name: &[u8], _kind: FileKind) -> bool {
        self.filter.note(&join(directory, name));
        true
    }

    fn directory(&self, _listing: Listing) {}
}
