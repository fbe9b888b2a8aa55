//! `walk`: the entries of a tree as lines, or figures about them.
//!
//! Both are made on the workers' threads: [`mod@print`] fills buffers with lines, [`mod@summary`] counts. What they have in
//! common is here: what is selected, what went wrong, and the end.

mod print;
mod summary;
mod table;
mod text;

use std::io::{self, IsTerminal};
use std::os::unix::ffi::OsStrExt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use stook_archive::BaseObserver as _;
use stook_archive::{Failure, Observer};
use stook_sys::{Directory, FileKind};
use stook_tree::{Detail, Listing, Selection, TreeError, Visitor, WalkOptions, walk};

use crate::args::WalkArgs;
use crate::exit::{CliError, Ending, fatal};
use crate::mutex::{into_inner, lock};
use crate::progress::Reporter;
use crate::{options, patterns};

pub(crate) use summary::Figures;

/// Prints the tree, or its summary.
pub(crate) fn run(args: &WalkArgs, is_json: bool, reporter: &Reporter) -> Result<Ending, CliError> {
    let walker = Walker {
        selection: options::selection(args)?,
        root: args.tree.as_os_str().as_bytes(),
        reporter,
        failed: AtomicU64::new(0),
        is_json,
    };
    let ending = if args.summary {
        summary::run(&walker, args, is_json)
    } else {
        print::run(&walker, args, is_json)
    }?;
    if ending != Ending::Interrupted {
        patterns::warn_of_unmatched(&walker.selection.filter, reporter);
    }
    Ok(ending)
}

/// What takes the listings.
trait Sink: Sync {
    /// Takes a directory, and those of its entries that path and kind do not rule out.
    fn take(&self, listing: &Listing, walker: &Walker<'_>);
    /// Returns how many bytes of a path are looked at, besides those that a pattern looks at.
    fn longest_path(&self) -> usize {
        usize::MAX
    }
    /// Returns true if it takes no more.
    fn is_closed(&self) -> bool {
        false
    }
}

/// One walk, whatever becomes of what it finds.
struct Walker<'a> {
    selection: Selection,
    /// The tree as it was typed: in front of every path.
    root: &'a [u8],
    reporter: &'a Reporter,
    failed: AtomicU64,
    is_json: bool,
}

struct Visit<'w, S> {
    walker: &'w Walker<'w>,
    sink: &'w S,
}

impl Walker<'_> {
    fn walk(&self, args: &WalkArgs, detail: Detail, sink: &impl Sink) -> Result<(), CliError> {
        let root = Directory::open(&args.tree)?;
        // On one terminal the bar and the lines would write over each other.
        if args.summary || !io::stdout().is_terminal() {
            self.reporter.phase("walk", None, None);
        }
        let walk_options = WalkOptions {
            jobs: options::jobs(args.jobs),
            detail,
            sorted: false,
            unreadable: true,
            ..WalkOptions::default()
        };
        walk(&root, &walk_options, &Visit { walker: self, sink });
        Ok(())
    }

    /// The root is named as it was typed, and what is below with a slash in between.
    fn full_path(&self, path: &[u8]) -> Vec<u8> {
        let mut full = Vec::with_capacity(self.root.len() + path.len() + 64);
        full.extend_from_slice(self.root);
        if !path.is_empty() {
            if full.last() != Some(&b'/') {
                full.push(b'/');
            }
            full.extend_from_slice(path);
        }
        full
    }

    fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    fn ending(&self) -> Ending {
        if self.reporter.is_interrupted() {
            let ending = Ending::Interrupted;
            fatal("interrupted", None, ending, self.is_json);
            ending
        } else if self.failed() > 0 {
            Ending::SomeFailed
        } else {
            Ending::Done
        }
    }
}

impl<S: Sink> stook_tree::Observer for Visit<'_, S> {
    type Failure = TreeError;

    fn failed(&self, error: &TreeError) {
        self.walker.failed.fetch_add(1, Ordering::Relaxed);
        self.walker.selection.filter.note_unread(&error.path);
        self.walker.reporter.failed(&Failure {
            operation: error.operation,
            path: self.walker.full_path(&error.path),
            cause: error.clone().source.into(),
        });
    }

    fn is_interrupted(&self) -> bool {
        self.sink.is_closed() || self.walker.reporter.is_interrupted()
    }
}

impl<S: Sink> Visitor for Visit<'_, S> {
    fn longest_path(&self) -> usize {
        if self.walker.selection.filter.is_empty() {
            self.sink.longest_path()
        } else {
            usize::MAX
        }
    }

    fn prunes(&self, path: &[u8]) -> bool {
        self.walker.selection.filter.prunes(path)
    }

    fn skips(&self, directory: &[u8], name: &[u8], kind: FileKind) -> bool {
        self.walker.selection.rules_out(directory, name, kind)
    }

    fn directory(&self, listing: Listing) {
        self.sink.take(&listing, self.walker);
        let entries = listing.entries.len() as u64 + 1;
        self.walker.reporter.advanced(entries, 0);
    }
}

/// Things that workers use in turns: as many as are in use at once.
#[derive(Default)]
struct InTurns<T>(Mutex<Vec<T>>);

impl<T: Default> InTurns<T> {
    fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        let mut thing = lock(&self.0).pop().unwrap_or_default();
        let result = work(&mut thing);
        lock(&self.0).push(thing);
        result
    }

    fn into_all(self) -> Vec<T> {
        into_inner(self.0)
    }
}
