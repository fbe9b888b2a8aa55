//! `remove`: removes trees, and names what could not be removed.

use stook_archive::{BaseObserver as _, Observer as _, Recording};
use stook_sys::{display_bytes, display_path};
use stook_tree::{
    Filter, Guard, Pattern, RemovalPolicy, RemoveObserver, RemoveOptions, Removed, remove,
};

use crate::args::{Common, RemoveArgs};
use crate::exit::{CliError, Ending};
use crate::listener::Listener;
use crate::progress::Reporter;
use crate::report::{self, Line, Summary};
use crate::{archived, calls, hints, options, patterns};

/// Removes the trees, or prints what it would remove.
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
    let groups = patterns::select(typed_filter(args)?, trees, options.jobs, reporter)?;
    if reporter.is_interrupted() {
        return Ok(listener.ending(0, hints::REMOVAL_GOES_ON));
    }
    if let Some(archive) = &args.archived_in {
        let recording = match (args.record, args.no_record) {
            (_, true) => Recording::Never,
            (true, false) => Recording::Always,
            (false, false) => Recording::OwnTree,
        };
        return archived::run(&groups, archive, &options, recording, &listener);
    }
    if args.syscalls {
        stook_sys::count_calls();
    }
    reporter.phase("remove", None, None);
    let mut removed = Removed::default();
    for (trees, filter) in &groups {
        let policy = (!filter.is_empty()).then_some(filter as &dyn RemovalPolicy);
        let done = remove(trees, &options, policy, &listener);
        removed.entries += done.entries;
        removed.directories += done.directories;
    }
    let failed = listener.failures()?;
    let summary = report::Removed {
        entries: removed.entries,
        directories: removed.directories,
        staying: None,
        damages: None,
        failed,
        dry_run: args.dry_run,
    };
    let text = summary.text();
    if args.syscalls {
        calls::print(common.json)?;
    }
    reporter.summary(Summary::Removed(summary), &text)?;
    Ok(listener.ending(failed, hints::REMOVAL_GOES_ON))
}

/// Returns the filter as it was typed. An empty file of patterns is more likely a mistake than a wish to keep nothing.
fn typed_filter(args: &RemoveArgs) -> Result<Filter, CliError> {
    let filter = patterns::filter(&args.filter, Pattern::new)?;
    match args.filter.exclude_from.first() {
        Some(file) if filter.exclude.len() == args.filter.exclude.len() => Err(CliError::Option {
            option: "--exclude-from",
            value: display_path(file),
            why: "there is no pattern in it".to_owned(),
        }),
        _ => Ok(filter),
    }
}

impl RemoveObserver for Listener<'_> {
    fn would_remove(&self, path: &[u8]) {
        self.print(&Line::WouldRemove(report::Tree::new(path)), None, path);
    }

    fn missing(&self, path: &[u8]) {
        self.reporter
            .noted(&format!("`{}` is not there", display_bytes(path)));
    }
}
