//! `remove --archived-in`: what the archive holds goes, all else is listed.

use std::path::Path;

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
    trees: &[Tree],
    archive: &Path,
    filter: &Filter,
    options: &RemoveOptions,
    listener: &Listener<'_>,
) -> Result<Ending, CliError> {
    let [tree] = trees else {
        return Err(CliError::Option {
            option: "--archived-in",
            value: stook_sys::display_path(archive),
            why: "it takes one tree, the one that was archived".to_owned(),
        });
    };
    let done = remove_archived(tree, archive, filter, options, &Archived(listener))?;
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
        ending => Ok(ending),
    }
}

struct Archived<'a>(&'a Listener<'a>);

impl RemoveObserver for Archived<'_> {
    fn removed(&self, entries: u64) {
        self.0.removed(entries);
    }

    fn would_remove(&self, path: &[u8]) {
        if self.0.is_json {
            self.0.would_remove(path);
        } else {
            self.0.print_word("would-remove", "remove", path);
        }
    }

    fn failed(&self, error: TreeError) {
        self.0.failure(error);
    }

    fn missing(&self, path: &[u8]) {
        self.0.missing(path);
    }

    fn is_stopped(&self) -> bool {
        self.0.is_stopped()
    }
}

impl RemoveArchivedObserver for Archived<'_> {
    fn observer(&self) -> &dyn Observer {
        self.0.reporter
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
        self.0.print_word("stays", word, path);
    }
}
