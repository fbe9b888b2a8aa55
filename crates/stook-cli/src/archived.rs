//! `remove --archived-in`: removes what the archive holds, and lists everything else.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use stook_archive::{
    Observer, Recording, RemoveArchivedObserver, RemoveArchivedReport, Staying, remove_archived,
};
use stook_tree::{Filter, RemoveObserver, RemoveOptions, Tree, TreeError};

use crate::exit::{CliError, Ending};
use crate::hints;
use crate::listener::Listener;
use crate::report::{self, Line, Removed, Summary};
use crate::stores::Opened;

/// Removes what the archive holds from the one tree that was named.
pub(crate) fn run(
    groups: &[(Vec<Tree>, Filter)],
    archive: &Path,
    remove_options: &RemoveOptions,
    recording: Recording,
    listener: &Listener<'_>,
) -> Result<Ending, CliError> {
    let [(trees, filter)] = groups else {
        return Err(several_trees(archive));
    };
    let [tree] = trees.as_slice() else {
        return Err(several_trees(archive));
    };
    let archived = Archived {
        listener,
        left: AtomicU64::new(0),
    };
    let mut archive = Opened::to_rely_on(archive)?;
    let done = remove_archived(
        tree,
        &mut archive,
        filter,
        remove_options,
        recording,
        &archived,
    )?;
    let failed = listener.failures()?;
    let RemoveArchivedReport {
        removed,
        staying,
        damages,
    } = done;
    let summary = Removed {
        entries: removed.entries,
        directories: removed.directories,
        staying: Some(staying),
        damages: Some(damages),
        failed,
        dry_run: remove_options.is_dry_run,
    };
    let text = summary.text();
    listener
        .reporter
        .summary(Summary::Removed(summary), &text)?;
    match listener.ending(failed, hints::REMOVAL_GOES_ON) {
        Ending::Done | Ending::SomeFailed if damages > 0 => Ok(Ending::Damage),
        Ending::Done if archived.left.into_inner() > 0 => Ok(Ending::SomeFailed),
        ending => Ok(ending),
    }
}

fn several_trees(archive: &Path) -> CliError {
    CliError::Option {
        option: "--archived-in",
        value: stook_sys::display_path(archive),
        why: "it takes one tree, the one that was archived".to_owned(),
    }
}

struct Archived<'a> {
    listener: &'a Listener<'a>,
    /// Entries that stay though they are part of the tree that was to be removed.
    left: AtomicU64,
}

impl stook_tree::Observer for Archived<'_> {
    type Failure = TreeError;

    fn advanced(&self, entries: u64, bytes: u64) {
        self.listener.advanced(entries, bytes);
    }

    fn failed(&self, error: &TreeError) {
        self.listener.failure(error);
    }

    fn is_interrupted(&self) -> bool {
        self.listener.is_interrupted()
    }
}

impl RemoveObserver for Archived<'_> {
    fn would_remove(&self, path: &[u8]) {
        let line = Line::WouldRemove(report::Tree::new(path));
        self.listener.print(&line, Some("remove"), path);
    }

    fn missing(&self, path: &[u8]) {
        self.listener.missing(path);
    }
}

impl RemoveArchivedObserver for Archived<'_> {
    fn observer(&self) -> &dyn Observer {
        self.listener.reporter
    }

    fn stays(&self, path: &[u8], why: Staying) {
        let word = match why {
            Staying::New => "new",
            Staying::Changed => "changed",
            Staying::Changing => "changing",
            Staying::Unchecked => "unchecked",
            Staying::Special => "special",
            Staying::Archive => "archive",
        };
        // The archive was never to go.
        if why != Staying::Archive {
            self.left.fetch_add(1, Ordering::Relaxed);
        }
        let line = Line::Stays(report::Word::new(path, word));
        self.listener.print(&line, Some(word), path);
    }
}
