//! `stook plan`, `build` and `commit`.

use std::os::unix::ffi::OsStrExt;

use serde_json::json;
use stook_archive::{
    BuildOptions, CommitOptions, FailedMembers, PlanOptions, PlannedPart, WriteOptions,
};
use stook_sys::display_path;

use crate::args::{BuildArgs, CommitArgs, Common, PlanArgs, WriteArgs};
use crate::exit::{CliError, Ending};
use crate::output::{Data, JsonPath};
use crate::run::{ending_with, observed, print_written, some_failed};
use crate::size::{grouped, show};
use crate::text::{count, failed_text};
use crate::{options, patterns};

pub(crate) fn plan(args: &PlanArgs, common: &Common) -> Result<Ending, CliError> {
    let options = options::plan_options(args)?;
    if options.write.is_dry_run {
        return dry_run(&args.write, &options.write, common);
    }
    let (planned, reporter) = observed(common, |reporter| {
        stook_archive::plan(&args.write.source, &args.write.archive, &options, reporter)
    })?;
    let PlanOptions { write, .. } = &options;
    patterns::warn_of_unmatched(&write.filter, &reporter);
    let ending = ending_with(some_failed(planned.failed), |data| {
        print_parts(&planned.parts, common.json, data)?;
        if common.json {
            data.json(&json!({
                "type": "summary", "entries": planned.entries, "unchanged": planned.unchanged,
                "members": planned.members, "bytes": planned.bytes, "parts": planned.parts.len(),
                "deleted": planned.deleted, "failed": planned.failed, "reserved": planned.is_reserved,
            }))?;
        }
        Ok(())
    })?;
    let text = if planned.is_reserved {
        format!(
            "planned {}, {}, in {}; the archive is reserved until `stook commit`",
            count(planned.members, "entry", "entries"),
            show(planned.bytes),
            count(planned.parts.len() as u64, "part", "parts"),
        )
    } else {
        "nothing to archive".to_owned()
    };
    reporter.summary(&(text + &failed_text(planned.failed)));
    Ok(ending)
}

/// The plan of a create or an update, as these print it.
fn dry_run(args: &WriteArgs, options: &WriteOptions, common: &Common) -> Result<Ending, CliError> {
    let is_there = stook_sys::exists(&args.archive.join("index.db"))?.is_some();
    let (written, reporter) = observed(common, |reporter| {
        let (source, archive) = (&args.source, &args.archive);
        if is_there {
            stook_archive::update(source, archive, options, reporter)
        } else {
            stook_archive::create(source, archive, options, reporter)
        }
    })?;
    print_written(&written, common, &reporter)
}

pub(crate) fn build(args: &BuildArgs, common: &Common) -> Result<Ending, CliError> {
    let options = BuildOptions {
        jobs: options::jobs(args.jobs),
        links: options::links(args.follow_symlinks),
    };
    let folder = args
        .part
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let destination = args.into.as_deref().or(folder);
    let destination = destination.unwrap_or(std::path::Path::new("."));
    let (built, reporter) = observed(common, |reporter| {
        stook_archive::build_part(&args.part, &args.source, destination, &options, reporter)
    })?;
    let ending = some_failed(built.failed);
    if common.json {
        ending_with(ending, |data| {
            data.json(&json!({
                "type": "summary", "built": JsonPath::new(built.built.as_os_str().as_bytes()), "members": built.members, "bytes": built.bytes,
                "volume_bytes": built.volume_bytes, "failed": built.failed, "overflowed": built.overflowed,
            }))?;
            Ok(())
        })?;
    }
    let mut text = format!(
        "built {}, {}",
        count(built.members, "entry", "entries"),
        show(built.bytes)
    );
    if built.overflowed > 0 {
        text.push_str(&format!("; {} did not fit", grouped(built.overflowed)));
    }
    reporter.summary(&(text + &failed_text(built.failed)));
    Ok(ending)
}

pub(crate) fn commit(args: &CommitArgs, common: &Common) -> Result<Ending, CliError> {
    if args.abandon {
        stook_archive::abandon(&args.archive)?;
        return Ok(Ending::Done);
    }
    let options = CommitOptions {
        built_in: args.built_in.clone(),
        failures: if args.record_failures {
            FailedMembers::Record
        } else {
            FailedMembers::Retry
        },
    };
    let (committed, reporter) = observed(common, |reporter| {
        stook_archive::commit(&args.archive, &options, reporter)
    })?;
    let ending = if committed.remaining.is_empty() {
        some_failed(committed.failed)
    } else {
        Ending::SomeFailed
    };
    ending_with(ending, |data| {
        print_parts(&committed.remaining, common.json, data)?;
        if common.json {
            data.json(&json!({
                "type": "summary", "members": committed.members, "bytes": committed.bytes,
                "volumes": committed.volumes, "deleted": committed.deleted, "failed": committed.failed,
                "parts": committed.remaining.len(),
            }))?;
        }
        Ok(())
    })?;
    let mut text = format!(
        "committed {}, {}, in {}",
        count(committed.members, "entry", "entries"),
        show(committed.bytes),
        count(committed.volumes, "volume", "volumes"),
    );
    if committed.deleted > 0 {
        text.push_str(&format!("; {} deleted", grouped(committed.deleted)));
    }
    let parts = committed.remaining.len() as u64;
    if parts > 0 {
        let parts = count(parts, "part", "parts");
        text.push_str(&format!(
            "; {parts} to build with what failed or did not fit"
        ));
    }
    reporter.summary(&(text + &failed_text(committed.failed)));
    Ok(ending)
}

/// Prints a line for each part: its path alone, for whoever starts the builders.
fn print_parts(parts: &[PlannedPart], is_json: bool, data: &mut Data) -> Result<(), CliError> {
    for part in parts {
        if is_json {
            data.json(&json!({
                "type": "part", "part": JsonPath::new(part.path.as_os_str().as_bytes()), "members": part.members, "bytes": part.bytes,
                "volume_bytes": part.volume_bytes,
            }))?;
        } else {
            data.line(&display_path(&part.path))?;
        }
    }
    Ok(())
}
