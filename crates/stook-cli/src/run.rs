//! One function for each command: call the library, print what came of it.

use std::io;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

use serde_json::json;
use stook_archive::{Change, Difference, PlanSummary, RowRef, WriteReport};
use stook_sys::display_bytes;

use crate::args::{
    Args, CatArgs, CheckArgs, Command, Common, CopyArgs, DiffArgs, ExtractArgs, ListArgs,
    ReindexArgs, RemoveArgs, UpdateArgs, WalkArgs, WriteArgs,
};
use crate::exit::{CliError, Ending, report};
use crate::options;
use crate::output::{Data, JsonPath, hex};
use crate::progress::{Reporter, md5_text};
use crate::size::{grouped, show};
use crate::text::{count, failed_text};
use crate::{
    bench, copy, descriptors, patterns, plan, profile, reference, remove, runs, timings, walk,
};

pub(crate) fn run(args: Args) -> ExitCode {
    let Args { command, common } = args;
    stook_sys::raise_open_files();
    timings::begin(&common);
    let result = descriptors::require(&command)
        .and_then(|()| options::select_md5_kernel())
        .and_then(|()| dispatch(command, &common));
    let ending = result.unwrap_or_else(|error| report(&error));
    match timings::finish(&common) {
        // What the command found outweighs that its timings could not be written.
        Err(error) if ending == Ending::Done => report(&error).into(),
        Err(error) => {
            report(&error);
            ending.into()
        }
        Ok(()) => ending.into(),
    }
}

fn dispatch(command: Command, common: &Common) -> Result<Ending, CliError> {
    match command {
        Command::Create(args) => create(&args, common),
        Command::Update(args) => update(&args, common),
        Command::Diff(args) => diff(&args, common),
        Command::Check(args) => check(&args, common),
        Command::List(args) => list(&args, common),
        Command::Cat(args) => cat(&args),
        Command::Extract(args) => extract(&args, common),
        Command::Reindex(args) => reindex(&args, common),
        Command::Plan(args) => plan::plan(&args, common),
        Command::Build(args) => plan::build(&args, common),
        Command::Commit(args) => plan::commit(&args, common),
        Command::Walk(args) => walk_tree(&args, common),
        Command::Copy(args) => copy_tree(&args, common),
        Command::Remove(args) => remove_trees(&args, common),
        Command::Bench(args) => bench::bench(&args, common),
        Command::Profile(args) => profile::profile(&args, common),
        Command::Completions(args) => {
            to_stdout(|data| reference::completions(args.shell, data.bytes()))
        }
        Command::Man(args) => reference::man_pages(&args.folder).map(|()| Ending::Done),
        Command::Reference => to_stdout(|data| Ok(data.line(reference::markdown().trim_end())?)),
    }
}

fn to_stdout(print: impl FnOnce(&mut Data) -> Result<(), CliError>) -> Result<Ending, CliError> {
    let mut data = Data::new();
    print(&mut data)?;
    data.flush()?;
    Ok(Ending::Done)
}

/// Prints data at the end of a command. A reader that has gone does not make the ending any better.
pub(crate) fn ending_with(
    ending: Ending,
    print: impl FnOnce(&mut Data) -> Result<(), CliError>,
) -> Result<Ending, CliError> {
    match to_stdout(print) {
        Err(CliError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ending),
        printed => printed.map(|_| ending),
    }
}

/// Calls an operation with a reporter, and prints the phases however it ends.
pub(crate) fn observed<T, E>(
    common: &Common,
    operation: impl FnOnce(&Reporter) -> Result<T, E>,
) -> Result<(T, Reporter), CliError>
where
    CliError: From<E>,
{
    let reporter = Reporter::new(common);
    let result = operation(&reporter);
    reporter.finish();
    Ok((result?, reporter))
}

fn create(args: &WriteArgs, common: &Common) -> Result<Ending, CliError> {
    let options = options::write_options(args)?;
    let (written, reporter) = observed(common, |reporter| {
        stook_archive::create(&args.source, &args.archive, &options, reporter)
    })?;
    patterns::warn_of_unmatched(&options.filter, &reporter);
    print_written(&written, common, &reporter)
}

fn update(args: &UpdateArgs, common: &Common) -> Result<Ending, CliError> {
    let mut options = options::write_options(&args.write)?;
    options.compare_content = args.checksum;
    let (source, archive) = (&args.write.source, &args.write.archive);
    let (written, reporter) = observed(common, |reporter| {
        stook_archive::update(source, archive, &options, reporter)
    })?;
    patterns::warn_of_unmatched(&options.filter, &reporter);
    print_written(&written, common, &reporter)
}

pub(crate) fn print_written(
    written: &WriteReport,
    common: &Common,
    reporter: &Reporter,
) -> Result<Ending, CliError> {
    let ending = some_failed(written.failed);
    if let Some(plan) = &written.plan {
        return ending_with(ending, |data| Ok(print_plan(plan, common.json, data)?));
    }
    if common.json {
        let WriteReport {
            entries,
            unchanged,
            members,
            bytes,
            volumes,
            deleted,
            failed,
            ..
        } = written;
        let summary = json!({
            "type": "summary", "entries": entries, "unchanged": unchanged, "members": members, "bytes": bytes,
            "volumes": volumes, "deleted": deleted, "failed": failed,
        });
        ending_with(ending, |data| Ok(data.json(&summary)?))?;
    }
    reporter.summary(&written_text(written));
    Ok(ending)
}

fn written_text(written: &WriteReport) -> String {
    if written.members == 0 && written.deleted == 0 && written.volumes == 0 {
        let unchanged = count(written.unchanged, "entry", "entries");
        return format!(
            "nothing to archive, {unchanged} unchanged{}",
            failed_text(written.failed)
        );
    }
    let mut text = format!(
        "archived {}, {}, in {}",
        count(written.members, "entry", "entries"),
        show(written.bytes),
        count(written.volumes, "volume", "volumes"),
    );
    if written.unchanged > 0 {
        text.push_str(&format!("; {} unchanged", grouped(written.unchanged)));
    }
    if written.deleted > 0 {
        text.push_str(&format!("; {} deleted", grouped(written.deleted)));
    }
    text + &failed_text(written.failed)
}

pub(crate) fn some_failed(failed: u64) -> Ending {
    if failed == 0 {
        Ending::Done
    } else {
        Ending::SomeFailed
    }
}

fn print_plan(plan: &PlanSummary, is_json: bool, data: &mut Data) -> io::Result<()> {
    for volume in &plan.volumes {
        if is_json {
            data.json(&json!({ "type": "volume", "volume": volume.id.to_string(), "members": volume.members, "bytes": volume.bytes }))?;
        } else {
            data.line(&format!(
                "{}  {:>12} entries  {:>16} bytes",
                volume.id,
                grouped(volume.members),
                grouped(volume.bytes)
            ))?;
        }
    }
    if is_json {
        data.json(&json!({
            "type": "plan", "volumes": plan.volumes.len(), "members": plan.members, "bytes": plan.bytes, "deleted": plan.deleted,
        }))
    } else {
        let volumes = count(plan.volumes.len() as u64, "volume", "volumes");
        let members = count(plan.members, "entry", "entries");
        let deleted = if plan.deleted > 0 {
            format!("; {} deleted", grouped(plan.deleted))
        } else {
            String::new()
        };
        data.line(&format!(
            "would archive {members}, {}, in {volumes}{deleted}",
            show(plan.bytes)
        ))
    }
}

fn diff(args: &DiffArgs, common: &Common) -> Result<Ending, CliError> {
    let options = options::diff_options(args)?;
    let (found, reporter) = observed(common, |reporter| {
        stook_archive::diff(&args.source, &args.archive, &options, reporter)
    })?;
    patterns::warn_of_unmatched(&options.filter, &reporter);
    ending_with(some_failed(found.failed), |data| {
        for difference in &found.differences {
            print_difference(difference, common.json, data)?;
        }
        Ok(())
    })?;
    let of = |wanted: fn(&Change) -> bool| {
        found
            .differences
            .iter()
            .filter(|difference| wanted(&difference.change))
            .count() as u64
    };
    let text = format!(
        "{} new, {} changed, {} deleted, {} unchanged{}",
        grouped(of(|change| matches!(change, Change::New))),
        grouped(of(|change| matches!(change, Change::Changed { .. }))),
        grouped(of(|change| matches!(change, Change::Deleted))),
        grouped(found.unchanged),
        failed_text(found.failed),
    );
    reporter.summary(&text);
    Ok(
        if args.exit_code && found.failed == 0 && !found.differences.is_empty() {
            Ending::Differs
        } else {
            some_failed(found.failed)
        },
    )
}

fn print_difference(difference: &Difference, is_json: bool, data: &mut Data) -> io::Result<()> {
    let (word, old) = match difference.change {
        Change::New => ("new", None),
        Change::Changed { size, mtime } => (
            "changed",
            Some((size, mtime.map(|mtime| mtime.to_string()))),
        ),
        Change::Deleted => ("deleted", None),
    };
    if !is_json {
        return data.line(&format!("{word:<8} {}", display_bytes(&difference.path)));
    }
    data.json(&Flat {
        path: JsonPath::new(&difference.path),
        fields: json!({
            "type": "difference", "change": word, "size": difference.size, "mtime": difference.mtime.map(|mtime| mtime.to_string()),
            "archived_size": old.as_ref().map(|old| old.0), "archived_mtime": old.map(|old| old.1),
        }),
    })
}

fn check(args: &CheckArgs, common: &Common) -> Result<Ending, CliError> {
    let options = options::check_options(args)?;
    let (found, reporter) = observed(common, |reporter| {
        stook_archive::check(&args.archive, &options, reporter)
    })?;
    if common.json {
        let summary = json!({
            "type": "summary", "members": found.members, "bytes": found.bytes, "volumes": found.volumes,
            "volume_md5s": found.volume_md5s, "damages": found.damages, "unverified": found.unverified,
        });
        ending_with(Ending::Done, |data| Ok(data.json(&summary)?))?;
    }
    let mut verdict = if found.damages == 0 {
        "no damage".to_owned()
    } else {
        count(found.damages, "damage", "damages")
    };
    if found.unverified > 0 {
        verdict.push_str(&format!("; {} not verified", grouped(found.unverified)));
    }
    let mut what = format!(
        "{}, {}",
        count(found.members, "member", "members"),
        show(found.bytes)
    );
    if found.volumes > 0 {
        what.push_str(&format!(
            ", in {}",
            count(found.volumes, "volume", "volumes")
        ));
    }
    reporter.summary(&format!("checked {what}: {verdict}"));
    Ok(damage_or(found.damages, found.unverified))
}

/// Damage outweighs what was only not looked at.
fn damage_or(damages: u64, failed: u64) -> Ending {
    if damages == 0 {
        some_failed(failed)
    } else {
        Ending::Damage
    }
}

fn list(args: &ListArgs, common: &Common) -> Result<Ending, CliError> {
    if args.runs {
        let reporter = Reporter::without_signals(common);
        let (counts, failed) = stook_archive::run_counts(&args.archive, &reporter)?;
        return ending_with(some_failed(failed), |data| {
            Ok(runs::print(&counts, common.json, data)?)
        });
    }
    let options = options::list_options(args)?;
    let mut data = Data::new();
    let mut outcome = Ok(());
    let reporter = Reporter::without_signals(common);
    let listed = stook_archive::list(&args.archive, &options, &reporter, |row| {
        outcome = print_row(&row, args, common.json, &mut data);
        if outcome.is_ok() {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    })?;
    outcome?;
    data.flush()?;
    Ok(some_failed(listed.failed))
}

fn print_row(row: &RowRef<'_>, args: &ListArgs, is_json: bool, data: &mut Data) -> io::Result<()> {
    if is_json {
        return data.json(&Flat {
            path: JsonPath::new(row.name),
            fields: json!({
                "type": "member", "id": row.id.0, "size": row.size, "mtime": row.mtime.to_string(), "md5": row.md5.map(|md5| hex(&md5)),
                "volume": row.volume.to_string(), "offset": row.offset,
            }),
        });
    }
    if args.null {
        return io::Write::write_all(data.bytes(), &[row.name, b"\0"].concat());
    }
    let name = display_bytes(row.name);
    if args.long {
        let md5 = md5_text(row.md5);
        return data.line(&format!(
            "{:>12} {:<26} {md5:<32} {} {:>12} {name}",
            row.size,
            row.mtime.to_string(),
            row.volume,
            row.offset
        ));
    }
    data.line(&name)
}

fn cat(args: &CatArgs) -> Result<Ending, CliError> {
    let as_of = options::as_of(&args.archive, &args.as_of)?;
    let mut data = Data::new();
    stook_archive::cat(&args.archive, args.path.as_bytes(), as_of, data.bytes())?;
    data.flush()?;
    Ok(Ending::Done)
}

fn extract(args: &ExtractArgs, common: &Common) -> Result<Ending, CliError> {
    let options = options::extract_options(args)?;
    let (done, reporter) = observed(common, |reporter| {
        stook_archive::extract(&args.archive, &args.into, &options, reporter)
    })?;
    if common.json {
        let summary = json!({
            "type": "summary", "members": done.members, "written": done.written, "bytes": done.bytes,
            "unchanged": done.unchanged, "failed": done.failed,
        });
        ending_with(Ending::Done, |data| Ok(data.json(&summary)?))?;
    }
    let unchanged = if done.unchanged > 0 {
        format!("; {} were there already", grouped(done.unchanged))
    } else {
        String::new()
    };
    let text = format!(
        "extracted {}, {}{unchanged}{}",
        count(done.written, "entry", "entries"),
        show(done.bytes),
        failed_text(done.failed)
    );
    reporter.summary(&text);
    Ok(some_failed(done.failed))
}

fn reindex(args: &ReindexArgs, common: &Common) -> Result<Ending, CliError> {
    let options = options::reindex_options(args)?;
    let (done, reporter) = observed(common, |reporter| {
        stook_archive::reindex(&args.archive, options, reporter)
    })?;
    if common.json {
        let summary = json!({
            "type": "summary", "volumes": done.volumes, "members": done.members, "bytes": done.bytes, "runs": done.runs,
            "damages": done.damages, "failed": done.failed,
        });
        ending_with(Ending::Done, |data| Ok(data.json(&summary)?))?;
    }
    let verdict = if done.damages == 0 {
        String::new()
    } else {
        format!("; {}", count(done.damages, "damage", "damages"))
    };
    let (members, volumes) = (
        count(done.members, "member", "members"),
        count(done.volumes, "volume", "volumes"),
    );
    reporter.summary(&format!(
        "indexed {members}, {}, in {volumes}{verdict}{}",
        show(done.bytes),
        failed_text(done.failed)
    ));
    Ok(damage_or(done.damages, done.failed))
}

fn walk_tree(args: &WalkArgs, common: &Common) -> Result<Ending, CliError> {
    let (ending, _) = observed(common, |reporter| walk::run(args, common.json, reporter))?;
    Ok(ending)
}

fn copy_tree(args: &CopyArgs, common: &Common) -> Result<Ending, CliError> {
    let (ending, _) = observed(common, |reporter| copy::run(args, common, reporter))?;
    Ok(ending)
}

fn remove_trees(args: &RemoveArgs, common: &Common) -> Result<Ending, CliError> {
    let (ending, _) = observed(common, |reporter| remove::run(args, common, reporter))?;
    Ok(ending)
}

/// A path and what goes with it, in one JSON object.
#[derive(serde::Serialize)]
struct Flat {
    #[serde(flatten)]
    path: JsonPath,
    #[serde(flatten)]
    fields: serde_json::Value,
}
