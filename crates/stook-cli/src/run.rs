//! One function for each command: call the library, print what came of it.

use std::io;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

use stook_archive::{Archive, Attributes, RowRef, RunCounts, Writer, list_with_attributes};
use stook_sys::display_bytes;

use crate::args::{
    Args, CatArgs, CheckArgs, Command, Common, CopyArgs, CreateArgs, DiffArgs, ExtractArgs,
    ListArgs, ReindexArgs, RemoveArgs, UpdateArgs, WalkArgs,
};
use crate::exit::{CliError, Ending, ending_with, report, some_failed, to_stdout};
use crate::options;
use crate::output::{self, Data};
use crate::progress::{Reporter, observed, observed_sending};
use crate::report::{
    Checked, Compared, Differing, Extracted, Filled, Header, Indexed, Line, Listed, ListedMember,
    ListedRun, ListedRuns, Summary, difference_text, long_row, run_text,
};
use crate::stores::Opened;
use crate::written::print_written;
use crate::{
    bench, copy, descriptors, export, mount, patterns, plan, profile, reference, remove, timings,
    transfer, walk, zodb, zstash,
};

pub(crate) fn run(args: Args) -> ExitCode {
    let Args {
        command,
        mut common,
    } = args;
    common.json &= command.has_json();
    let only_reads = command.only_reads();
    stook_sys::raise_open_files();
    if command.has_archive() && stook_sys::memory_limit() < SHORT_MEMORY {
        stook_sys::give_back_large_blocks();
    }
    timings::begin(&common);
    if common.json {
        print_header(&command);
    }
    let result = descriptors::require(&command)
        .and_then(|()| options::select_md5_kernel())
        .and_then(|()| dispatch(command, &common));
    let result = if only_reads {
        result.map_err(CliError::of_reading)
    } else {
        result
    };
    let ending = result.unwrap_or_else(|error| report(&error, common.json));
    match timings::finish(&common) {
        // What the command found outweighs that its timings could not be written.
        Err(error) if ending == Ending::Done => report(&error, common.json).into(),
        Err(error) => {
            report(&error, common.json);
            ending.into()
        }
        Ok(()) => ending.into(),
    }
}

/// With less, buffers of a few MiB that the allocator keeps for each thread are a good part of it.
const SHORT_MEMORY: u64 = 1 << 30;

/// Begins the lines of JSON. If stdout cannot be written, the lines that matter say so.
fn print_header(command: &Command) {
    if let Some(name) = command.name_in_json() {
        let _ = output::line(&Line::Header(Header::new(name)));
    }
}

fn dispatch(command: Command, common: &Common) -> Result<Ending, CliError> {
    match command {
        Command::Create(args) => create(&args, common),
        Command::Update(args) => update(&args, common),
        Command::Diff(args) => diff(&args, common),
        Command::Check(args) => check(&args, common),
        Command::List(args) => list(&args, common),
        Command::Cat(args) => cat(&args, common),
        Command::Extract(args) => extract(&args, common),
        Command::Mount(args) => mount::mount(&args, common),
        Command::Export(args) => export::export(&args, common),
        Command::Talk(args) => mount::talk(&args),
        Command::Reindex(args) => reindex(&args, common),
        Command::Push(args) => transfer::push(&args, common),
        Command::Pull(args) => transfer::pull(&args, common),
        Command::Status(args) => transfer::status(&args, common),
        Command::Plan(args) => plan::plan(&args, common),
        Command::Build(args) => plan::build(&args, common),
        Command::Commit(args) => plan::commit(&args, common),
        Command::Walk(args) => walk_tree(&args, common),
        Command::Copy(args) => copy_tree(&args, common),
        Command::Remove(args) => remove_trees(&args, common),
        Command::Bench(args) => bench::bench(&args, common),
        Command::Zodb(args) => zodb::zodb(&args, common),
        Command::Profile(args) => profile::profile(&args, common),
        Command::Zstash(args) => Ok(zstash::run(&zstash::words(args.arguments))),
        Command::Completions(args) => {
            to_stdout(|data| reference::completions(args.shell, data.bytes()))
        }
        Command::Man(args) => reference::man_pages(&args.folder).map(|()| Ending::Done),
        Command::Reference => to_stdout(|data| Ok(data.line(reference::markdown().trim_end())?)),
    }
}

fn create(args: &CreateArgs, common: &Common) -> Result<Ending, CliError> {
    let CreateArgs {
        write: args,
        compression,
        send,
    } = args;
    let mut options = options::write_options(args)?;
    options.zstd = compression.zstd;
    options.store = transfer::send_options(send, &args.archive)?;
    let (written, reporter) = observed_sending(common, options.store.is_some(), |reporter| {
        stook_archive::create(&args.source, &args.archive, &options, reporter)
    })?;
    patterns::warn_of_unmatched(&options.filter, &reporter);
    print_written(&written, common, &reporter)
}

fn update(args: &UpdateArgs, common: &Common) -> Result<Ending, CliError> {
    let mut options = options::update_options(&args.write, &args.compared)?;
    options.store = transfer::send_options(&args.send, &args.write.archive)?;
    if let Some(store) = &options.store {
        transfer::fetch_missing_index(&args.write.archive, store, common)?;
    }
    let mut archive = options::open(&args.write.archive)?;
    let (written, reporter) = observed_sending(common, options.store.is_some(), |reporter| {
        stook_archive::update(&args.write.source, &mut archive, &options, reporter)
    })?;
    patterns::warn_of_unmatched(&options.filter, &reporter);
    print_written(&written, common, &reporter)
}

fn diff(args: &DiffArgs, common: &Common) -> Result<Ending, CliError> {
    let options = options::diff_options(args)?;
    let mut archive = options::open(&args.archive)?;
    let (found, reporter) = observed(common, |reporter| {
        stook_archive::diff(&args.source, &mut archive, &options, reporter)
    })?;
    patterns::warn_of_unmatched(&options.filter, &reporter);
    ending_with(some_failed(found.failed), |data| {
        for difference in &found.differences {
            if common.json {
                data.json(&Line::Difference(Differing::new(difference)))?;
            } else {
                data.line(&difference_text(difference))?;
            }
        }
        Ok(())
    })?;
    let compared = Compared::new(&found);
    let text = compared.text();
    reporter.summary(Summary::Compared(compared), &text)?;
    let differs = args.exit_code && found.failed == 0 && !found.differences.is_empty();
    Ok(if differs {
        Ending::Differs
    } else {
        some_failed(found.failed)
    })
}

fn check(args: &CheckArgs, common: &Common) -> Result<Ending, CliError> {
    let options = options::check_options(args)?;
    let mut opened = Opened::within(&args.archive, &args.fetch)?;
    let (found, reporter) = observed(common, |reporter| {
        stook_archive::check(&mut opened.archive, &options, reporter)
    })?;
    opened.report(&reporter);
    let checked = Checked::new(&found);
    let text = checked.text();
    reporter.summary(Summary::Checked(checked), &text)?;
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
    // Text may just stop; lines of JSON end with one that says why.
    let reporter = if common.json {
        let reporter = Reporter::new(common);
        reporter.end_when_stalled();
        reporter
    } else {
        Reporter::without_signals(common)
    };
    let mut opened = Opened::new(&args.archive, &args.source)?;
    let archive = &mut opened.archive;
    if args.runs {
        return list_runs(archive, common, &reporter);
    }
    let options = options::list_options(args, archive)?;
    let mut data = Data::new();
    let mut outcome = Ok(());
    let mut print = |row: RowRef<'_>, attributes: Option<&Attributes<'_>>| {
        outcome = print_row(&row, attributes, args, common.json, &mut data);
        if outcome.is_ok() {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    };
    let listed = if args.long || common.json {
        list_with_attributes(archive, &options, &reporter, print)?
    } else {
        stook_archive::list(archive, &options, &reporter, |row| print(row, None))?
    };
    outcome?;
    if common.json {
        data.json(&Line::Summary(Summary::Listed(Listed::new(&listed))))?;
    }
    data.flush()?;
    opened.report(&reporter);
    Ok(some_failed(listed.failed))
}

fn list_runs(archive: &Archive, common: &Common, reporter: &Reporter) -> Result<Ending, CliError> {
    let (counts, failed) = archive.run_counts(reporter)?;
    ending_with(some_failed(failed), |data| {
        for counts in &counts {
            if common.json {
                data.json(&Line::Run(ListedRun::new(counts)))?;
            } else {
                data.line(&run_text(counts))?;
            }
        }
        if common.json {
            let is_run = |counts: &&RunCounts| matches!(counts.writer, Writer::Run(_));
            let runs = counts.iter().filter(is_run).count() as u64;
            let summary = Summary::ListedRuns(ListedRuns { runs, failed });
            data.json(&Line::Summary(summary))?;
        }
        Ok(())
    })
}

fn print_row(
    row: &RowRef<'_>,
    attributes: Option<&Attributes<'_>>,
    args: &ListArgs,
    is_json: bool,
    data: &mut Data,
) -> io::Result<()> {
    if is_json {
        return data.json(&Line::Member(ListedMember::new(row, attributes)));
    }
    if args.null {
        return io::Write::write_all(data.bytes(), &[row.name, b"\0"].concat());
    }
    if args.long {
        return data.line(&long_row(row, attributes));
    }
    data.line(&display_bytes(row.name))
}

fn cat(args: &CatArgs, common: &Common) -> Result<Ending, CliError> {
    let opened = Opened::new(&args.archive, &args.source)?;
    let as_of = options::as_of(&opened.archive, &args.as_of)?;
    let reporter = Reporter::without_signals(common);
    let mut data = Data::new();
    stook_archive::cat(
        &opened.archive,
        args.path.as_bytes(),
        as_of,
        data.bytes(),
        &reporter,
    )?;
    data.flush()?;
    opened.report(&reporter);
    Ok(Ending::Done)
}

fn extract(args: &ExtractArgs, common: &Common) -> Result<Ending, CliError> {
    let mut opened = Opened::within(&args.archive, &args.fetch)?;
    let options = options::extract_options(args, &opened.archive)?;
    let (done, reporter) = observed(common, |reporter| {
        stook_archive::extract(&mut opened.archive, &args.into, &options, reporter)
    })?;
    opened.report(&reporter);
    let extracted = Extracted::new(&done);
    let text = extracted.text();
    reporter.summary(Summary::Extracted(extracted), &text)?;
    Ok(some_failed(done.failed))
}

fn reindex(args: &ReindexArgs, common: &Common) -> Result<Ending, CliError> {
    if args.attributes {
        return fill_attributes(args, common);
    }
    let options = options::reindex_options(args)?;
    let (done, reporter) = observed(common, |reporter| {
        stook_archive::reindex(&args.archive, options, reporter)
    })?;
    let indexed = Indexed::new(&done);
    let text = indexed.text();
    reporter.summary(Summary::Indexed(indexed), &text)?;
    Ok(damage_or(done.damages, done.failed))
}

fn fill_attributes(args: &ReindexArgs, common: &Common) -> Result<Ending, CliError> {
    let jobs = options::jobs(args.jobs);
    let mut archive = options::open(&args.archive)?;
    let (done, reporter) = observed(common, |reporter| {
        stook_archive::fill_attributes(&mut archive, jobs, reporter)
    })?;
    let filled = Filled::new(done);
    let text = filled.text();
    reporter.summary(Summary::Filled(filled), &text)?;
    Ok(Ending::Done)
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
