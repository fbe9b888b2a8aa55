//! `copy`: copies a tree, and names what could not be copied.

use std::path::Path;

use stook_archive::{BaseObserver as _, Observer as _};
use stook_sys::{Links, display_path};
use stook_tree::{Copied, CopyObserver, CopyOptions, Verified, copy, verify};

use crate::args::{Common, CopyArgs};
use crate::exit::{CliError, Ending, fatal};
use crate::listener::Listener;
use crate::progress::Reporter;
use crate::report::{self, Line, Summary};
use crate::{calls, hints, options, patterns};

/// Copies the tree, or prints what it would copy.
pub(crate) fn run(
    args: &CopyArgs,
    common: &Common,
    reporter: &Reporter,
) -> Result<Ending, CliError> {
    let options = CopyOptions {
        jobs: options::jobs(args.jobs),
        filter: patterns::filter_for(&args.filter, &args.tree, Links::Refuse)?,
        one_file_system: args.one_file_system,
        is_update: args.update,
        is_dry_run: args.dry_run,
    };
    let listener = Listener::new(reporter, common.json);
    if args.syscalls {
        stook_sys::count_calls();
    }
    reporter.phase("copy", None, None);
    let copied = copy(&args.tree, &args.dest, &options, &listener)?;
    let is_cut_off = copied.is_full || reporter.is_interrupted();
    if !is_cut_off {
        patterns::warn_of_unmatched(&options.filter, reporter);
    }
    let verified = if args.verify && !is_cut_off {
        reporter.phase("verify", None, None);
        Some(verify(&args.tree, &args.dest, &options, &listener)?)
    } else {
        None
    };
    let failed = listener.failures()?;
    let summary = summary(&copied, verified.as_ref(), failed, args.dry_run);
    let text = summary.text();
    if args.syscalls {
        calls::print(common.json)?;
    }
    reporter.summary(Summary::Copied(summary), &text)?;
    Ok(if copied.is_full {
        tell_full(&args.dest, common.json);
        Ending::Failed
    } else {
        listener.ending(failed, hints::COPY_GOES_ON)
    })
}

fn tell_full(dest: &Path, is_json: bool) {
    let text = format!("there is no room for more in `{}`", display_path(dest));
    let hint = format!("once there is, {}", hints::COPY_GOES_ON);
    fatal(&text, Some(&hint), Ending::Failed, is_json);
}

fn summary(
    copied: &Copied,
    verified: Option<&Verified>,
    failed: u64,
    dry_run: bool,
) -> report::Copied {
    report::Copied {
        entries: copied.entries,
        directories: copied.directories,
        bytes: copied.bytes,
        unchanged: copied.unchanged,
        verified: verified.map(|verified| verified.entries),
        verified_bytes: verified.map_or(0, |verified| verified.bytes),
        failed,
        dry_run,
    }
}

impl CopyObserver for Listener<'_> {
    fn would_copy(&self, path: &[u8]) {
        self.print(&Line::WouldCopy(report::Tree::new(path)), None, path);
    }

    fn skipped(&self, path: &[u8], why: &str) {
        self.reporter.left_out(path, why);
    }

    fn noted(&self, text: &str) {
        self.reporter.noted(text);
    }
}
