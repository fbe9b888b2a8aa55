//! `remove`: trees go, and what could not go is named.

use serde_json::json;
use stook_archive::Observer;
use stook_sys::display_bytes;
use stook_tree::{Guard, Judge, RemoveObserver, RemoveOptions, Removed, TreeError, remove};

use crate::args::{Common, RemoveArgs};
use crate::exit::{CliError, Ending};
use crate::listener::Listener;
use crate::output::Data;
use crate::progress::Reporter;
use crate::size::grouped;
use crate::text::{count, failed_text};
use crate::{archived, calls, options};

/// What to tell who has interrupted a removal.
pub(crate) const GO_ON: &str = "what is gone is gone; the same command goes on";

/// Removes the trees, or tells what it would remove.
pub(crate) fn run(
    args: &RemoveArgs,
    common: &Common,
    reporter: &Reporter,
) -> Result<Ending, CliError> {
    let options = RemoveOptions {
        jobs: options::jobs(args.jobs),
        one_file_system: !args.no_one_file_system,
        keep_root: args.keep_root,
        force_chmod: args.force_chmod,
        with_archives: args.with_archives,
        is_dry_run: args.dry_run,
    };
    let refuses_mounts = options.one_file_system && !options.keep_root;
    let guard =
        Guard::new(!args.no_preserve_root, refuses_mounts)?.with_archives(args.with_archives);
    // All are looked at before the first one goes.
    let trees = args
        .trees
        .iter()
        .map(|tree| guard.admit(tree))
        .collect::<Result<Vec<_>, _>>()?;
    let listener = Listener::new(reporter, common.json);
    let filter = options::filter(&args.filter);
    if let Some(archive) = &args.archived_in {
        return archived::run(&trees, archive, &filter, &options, &listener);
    }
    if args.syscalls {
        stook_sys::count_calls();
    }
    reporter.phase("remove", None, None);
    let judge = (!filter.is_empty()).then_some(&filter as &dyn Judge);
    let removed = remove(&trees, &options, judge, &listener);
    let failed = listener.failures()?;
    if common.json {
        print_summary(&removed, failed, args.dry_run)?;
    }
    reporter.summary(&summary(&removed, failed, args.dry_run));
    if args.syscalls {
        calls::print(common.json)?;
    }
    Ok(listener.ending(failed, GO_ON))
}

fn print_summary(removed: &Removed, failed: u64, is_dry_run: bool) -> Result<(), CliError> {
    let Removed {
        entries,
        directories,
    } = removed;
    let mut data = Data::new();
    data.json(&json!({
        "type": "summary", "entries": entries, "directories": directories, "failed": failed,
        "dry_run": is_dry_run,
    }))?;
    Ok(data.flush()?)
}

/// Says what was removed.
pub(crate) fn summary(removed: &Removed, failed: u64, is_dry_run: bool) -> String {
    let did = if is_dry_run {
        "would remove"
    } else {
        "removed"
    };
    format!(
        "{did} {}, {} of them directories{}",
        count(removed.entries, "entry", "entries"),
        grouped(removed.directories),
        failed_text(failed)
    )
}

impl RemoveObserver for Listener<'_> {
    fn removed(&self, entries: u64) {
        self.reporter.advanced(entries, 0);
    }

    fn would_remove(&self, path: &[u8]) {
        self.print("would-remove", path);
    }

    fn failed(&self, error: TreeError) {
        self.failure(error);
    }

    fn missing(&self, path: &[u8]) {
        self.reporter
            .noted(&format!("`{}` is not there", display_bytes(path)));
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped()
    }
}
