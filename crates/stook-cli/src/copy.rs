//! `copy`: a tree becomes two, and what could not be copied is named.

use std::path::Path;

use serde_json::json;
use stook_archive::Observer;
use stook_sys::{Links, display_path};
use stook_tree::{Copied, CopyObserver, CopyOptions, Verified, copy, verify};

use crate::args::{Common, CopyArgs};
use crate::exit::{CliError, Ending};
use crate::listener::Listener;
use crate::output::{self, Data};
use crate::progress::Reporter;
use crate::size::{grouped, show};
use crate::text::{count, failed_text};
use crate::{calls, options, patterns};

const GO_ON: &str = "the same command with --update goes on";

/// Copies the tree, or tells what it would copy.
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
    if common.json {
        print_summary(&copied, verified.as_ref(), failed, args.dry_run)?;
    }
    reporter.summary(&summary(&copied, verified.as_ref(), failed, args.dry_run));
    if args.syscalls {
        calls::print(common.json)?;
    }
    Ok(if copied.is_full {
        tell_full(&args.dest);
        Ending::Failed
    } else {
        listener.ending(failed, GO_ON)
    })
}

fn tell_full(dest: &Path) {
    let text = format!("there is no room for more in `{}`", display_path(dest));
    let hint = format!("once there is, {GO_ON}");
    output::error(&text, Some(&hint));
}

fn print_summary(
    copied: &Copied,
    verified: Option<&Verified>,
    failed: u64,
    is_dry_run: bool,
) -> Result<(), CliError> {
    let Copied {
        entries,
        directories,
        bytes,
        unchanged,
        ..
    } = copied;
    let mut data = Data::new();
    data.json(&json!({
        "type": "summary", "entries": entries, "directories": directories, "bytes": bytes, "unchanged": unchanged,
        "verified": verified.map(|verified| verified.entries), "failed": failed, "dry_run": is_dry_run,
    }))?;
    Ok(data.flush()?)
}

fn summary(copied: &Copied, verified: Option<&Verified>, failed: u64, is_dry_run: bool) -> String {
    let did = if is_dry_run { "would copy" } else { "copied" };
    let entries = count(copied.entries, "entry", "entries");
    let mut text = format!("{did} {entries}, {}", show(copied.bytes));
    if copied.unchanged > 0 {
        text.push_str(&format!("; {} unchanged", grouped(copied.unchanged)));
    }
    if let Some(verified) = verified {
        text.push_str(&format!("; {} verified", show(verified.bytes)));
    }
    text + &failed_text(failed)
}

impl CopyObserver for Listener<'_> {
    fn would_copy(&self, path: &[u8]) {
        self.print("would-copy", path);
    }

    fn skipped(&self, path: &[u8], why: &str) {
        self.reporter.skipped(path, why);
    }

    fn noted(&self, text: &str) {
        self.reporter.noted(text);
    }
}
