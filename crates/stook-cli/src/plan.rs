//! `stook plan`, `build` and `commit`.

use stook_archive::{
    BuildOptions, BuiltVolumes, CommitOptions, FailedMembers, PlanOptions, PlannedPart,
    WriteOptions,
};
use stook_sys::display_path;

use crate::args::{BuildArgs, CommitArgs, Common, PlanArgs, WriteArgs};
use crate::exit::{CliError, Ending, ending_with, some_failed};
use crate::progress::observed;
use crate::report::{Abandoned, Built, Committed, Line, Part, Planned, Summary};
use crate::written::print_dry_run;
use crate::{hints, options, patterns};

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
    let ending = print_parts(&planned.parts, some_failed(planned.failed), common.json)?;
    let summary = Planned::new(&planned);
    let text = summary.text();
    reporter.summary(Summary::Planned(summary), &text)?;
    Ok(ending)
}

/// What a create or an update would write, volume by volume: each would be a part.
fn dry_run(args: &WriteArgs, write: &WriteOptions, common: &Common) -> Result<Ending, CliError> {
    let is_there = options::has_index(&args.archive);
    let mut there = if is_there {
        Some(options::open(&args.archive)?)
    } else {
        None
    };
    let (written, _) = observed(common, |reporter| match &mut there {
        Some(archive) => stook_archive::update(&args.source, archive, write, reporter),
        None => stook_archive::create(&args.source, &args.archive, write, reporter),
    })?;
    let plan = written.plan.clone().unwrap_or_default();
    let summary = Planned::dry_run(&written, &plan);
    let (text, ending) = (summary.text(), some_failed(written.failed));
    print_dry_run(&plan, Summary::Planned(summary), &text, ending, common)
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
    let summary = Built::new(&built);
    let text = summary.text();
    reporter.summary(Summary::Built(summary), &text)?;
    reporter.advise(hints::of_built(&built));
    Ok(some_failed(built.failed))
}

pub(crate) fn commit(args: &CommitArgs, common: &Common) -> Result<Ending, CliError> {
    if args.abandon {
        return abandon(args, common);
    }
    let options = CommitOptions {
        built_in: args.built_in.clone(),
        failures: if args.record_failures {
            FailedMembers::Record
        } else {
            FailedMembers::Retry
        },
        volumes: if args.no_verify {
            BuiltVolumes::OfTheirLength
        } else {
            BuiltVolumes::Verified
        },
        jobs: options::jobs(args.jobs),
    };
    let (committed, reporter) = observed(common, |reporter| {
        stook_archive::commit(&args.archive, &options, reporter)
    })?;
    let ending = if committed.remaining.is_empty() {
        some_failed(committed.failed)
    } else {
        Ending::SomeFailed
    };
    let ending = print_parts(&committed.remaining, ending, common.json)?;
    let summary = Committed::new(&committed);
    let text = summary.text();
    reporter.summary(Summary::Committed(summary), &text)?;
    reporter.advise(hints::of_committed(&committed));
    Ok(ending)
}

fn abandon(args: &CommitArgs, common: &Common) -> Result<Ending, CliError> {
    let (abandoned, reporter) = observed(common, |_| stook_archive::abandon(&args.archive))?;
    let summary = Abandoned::new(&abandoned);
    let text = summary.text();
    reporter.summary(Summary::Abandoned(summary), &text)?;
    Ok(Ending::Done)
}

/// Prints a line for each part: its path alone, for what starts the builders.
fn print_parts(parts: &[PlannedPart], ending: Ending, is_json: bool) -> Result<Ending, CliError> {
    ending_with(ending, |data| {
        for part in parts {
            if is_json {
                data.json(&Line::Part(Part::new(part)))?;
            } else {
                data.line(&display_path(&part.path))?;
            }
        }
        Ok(())
    })
}
