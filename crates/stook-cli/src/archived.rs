//! `remove --archived-in`: what the archive holds goes, all else is listed.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::json;
use stook_archive::{
    Observer, RemoveArchivedObserver, RemoveArchivedReport, Staying, remove_archived,
};
use stook_tree::{Filter, RemoveObserver, RemoveOptions, Tree, TreeError};

use crate::exit::{CliError, Ending};
use crate::listener::Listener;
use crate::output::Data;
use crate::remove::{GO_ON, summary};
use crate::size::grouped;

/// Removes what the archive holds from the one tree that was named.
pub(crate) fn run(
    groups: &[(Vec<Tree>, Filter)],
    archive: &Path,
    options: &RemoveOptions,
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
    let done = remove_archived(tree, archive, filter, options, &archived)?;
    let failed = listener.failures()?;
    let RemoveArchivedReport {
        removed,
        staying,
        damages,
    } = done;
    if listener.is_json {
        let mut data = Data::new();
        data.json(&json!({
            "type": "summary", "entries": removed.entries, "directories": removed.directories,
            "staying": staying, "failed": failed, "damages": damages, "dry_run": options.is_dry_run,
        }))?;
        data.flush()?;
    }
    let stay = match (options.is_dry_run, staying) {
        (true, _) => "would stay",
        (false, 1) => "stays",
        (false, _) => "stay",
    };
    let text = summary(&removed, failed, options.is_dry_run);
    listener
        .reporter
        .summary(&format!("{text}; {} {stay}", grouped(staying)));
    match listener.ending(failed, GO_ON) {
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
        if self.listener.is_json {
            self.listener.would_remove(path);
        } else {
            self.listener.print_word("would-remove", "remove", path);
        }
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
        self.listener.print_word("stays", word, path);
    }
}
