//! `stook zodb`: one function for each verb.

use stook_archive::{BaseObserver as _, Observer as _};
use stook_zodb::{
    Analysis, DataFile, Observer, Oid, References, Scan, ScanEnd, Trust, Write, ZodbError, analyze,
    check, reindex,
};

use crate::args::{
    Common, ZodbArgs, ZodbCommand, ZodbDataArgs, ZodbReferencesArgs, ZodbReindexArgs,
};
use crate::exit::{CliError, Ending, ending_with};
use crate::hints;
use crate::number::{grouped, size};
use crate::output::{self, Data};
use crate::progress::{Reporter, observed};
use crate::report::{
    Line, Summary, ZodbAnalyzed, ZodbChecked, ZodbClass, ZodbDamage, ZodbDay, ZodbObject,
    ZodbReference, ZodbReferenced, ZodbReindexed,
};

/// Classes and days that the text shows; JSON has all.
const SHOWN: usize = 40;

pub(crate) fn zodb(args: &ZodbArgs, common: &Common) -> Result<Ending, CliError> {
    match &args.command {
        ZodbCommand::Reindex(args) => rebuild(args, common),
        ZodbCommand::Check(args) => verify(args, common),
        ZodbCommand::Analyze(args) => space(args, common),
        ZodbCommand::References(args) => references(args, common),
    }
}

/// Shows the progress of the library.
struct Shown<'a>(&'a Reporter);

impl Observer for Shown<'_> {
    fn phase(&self, name: &'static str, bytes: u64) {
        self.0.phase(name, None, Some(bytes));
    }

    fn advanced(&self, records: u64, bytes: u64) {
        self.0.advanced(records, bytes);
    }

    fn is_interrupted(&self) -> bool {
        self.0.is_interrupted()
    }
}

fn rebuild(args: &ZodbReindexArgs, common: &Common) -> Result<Ending, CliError> {
    let write = if args.dry_run {
        Write::DryRun
    } else {
        Write::Save
    };
    let trust = if args.force {
        Trust::Nothing
    } else {
        Trust::Sane
    };
    let (done, reporter) = observed(common, |reporter| {
        reindex(&args.data, write, trust, &Shown(reporter))
    })?;
    if done.scan.end == ScanEnd::Interrupted {
        return Err(ZodbError::Interrupted.into());
    }
    let ending = ending_of(&done.scan);
    let line = ZodbReindexed::new(&done, args.dry_run);
    let text = line.text();
    reporter.summary(Summary::ZodbReindexed(line), &text)?;
    Ok(ending)
}

fn verify(args: &ZodbDataArgs, common: &Common) -> Result<Ending, CliError> {
    let data = DataFile::open(&args.data)?;
    let mut outcome = Ok(());
    let (found, reporter) = observed(common, |reporter| {
        check(&data, &Shown(reporter), &mut |damage| {
            let line = if common.json {
                output::line(&Line::ZodbDamage(ZodbDamage::new(damage)))
            } else {
                let mut data = Data::new();
                data.line(&damage.to_string()).and_then(|()| data.flush())
            };
            if outcome.is_ok() {
                outcome = line;
            }
        })
    })?;
    outcome?;
    let line = ZodbChecked::new(&found);
    let text = line.text();
    reporter.summary(Summary::ZodbChecked(line), &text)?;
    Ok(if found.damages == 0 {
        Ending::Done
    } else {
        Ending::Damage
    })
}

fn space(args: &ZodbDataArgs, common: &Common) -> Result<Ending, CliError> {
    let data = DataFile::open(&args.data)?;
    let (found, reporter) = observed(common, |reporter| analyze(&data, &Shown(reporter)))?;
    let ending = ending_with(ending_of(&found.scan), |data| match common.json {
        true => space_as_json(&found, data),
        false => space_as_text(&found, data),
    })?;
    let line = ZodbAnalyzed::new(&found);
    let text = line.text();
    reporter.summary(Summary::ZodbAnalyzed(line), &text)?;
    Ok(ending)
}

fn space_as_json(found: &Analysis, data: &mut Data) -> Result<(), CliError> {
    for class in &found.classes {
        data.json(&Line::ZodbClass(ZodbClass::new(class)))?;
    }
    for (list, objects) in [
        ("largest", &found.largest),
        ("most-written", &found.most_written),
    ] {
        for object in objects {
            data.json(&Line::ZodbObject(ZodbObject::new(list, object)))?;
        }
    }
    for day in &found.days {
        data.json(&Line::ZodbDay(ZodbDay::new(day)))?;
    }
    Ok(())
}

fn space_as_text(found: &Analysis, data: &mut Data) -> Result<(), CliError> {
    data.line(&format!(
        "{:>9} {:>12} {:>9} {:>12}  class",
        "current", "", "old", ""
    ))?;
    for class in found.classes.iter().take(SHOWN) {
        data.line(&format!(
            "{:>9} {:>12} {:>9} {:>12}  {}",
            grouped(class.current.records),
            size(class.current.bytes),
            grouped(class.old.records),
            size(class.old.bytes),
            class.class,
        ))?;
    }
    for (title, objects) in [
        ("largest objects", &found.largest),
        ("most written objects", &found.most_written),
    ] {
        data.line(&format!("\n{title}"))?;
        for object in objects {
            data.line(&format!(
                "{:>12} now {:>12} in {} records  {} {}",
                size(object.current_bytes),
                size(object.all.bytes),
                grouped(object.all.records),
                object.oid,
                object.class,
            ))?;
        }
    }
    data.line("\ndays")?;
    for day in found.days.iter().rev().take(SHOWN).rev() {
        let transactions = grouped(day.transactions);
        data.line(&format!(
            "{} {:>12}  {transactions} transactions",
            day.day,
            size(day.bytes)
        ))?;
    }
    Ok(())
}

fn references(args: &ZodbReferencesArgs, common: &Common) -> Result<Ending, CliError> {
    let data = DataFile::open(&args.data)?;
    let (found, reporter) = observed(common, |reporter| References::read(&data, &Shown(reporter)))?;
    let ending = match found.counts().dangling {
        0 => ending_of(found.scan()),
        _ => Ending::Damage,
    };
    let ending = ending_with(ending, |data| {
        for dangling in found.dangling() {
            print_reference("dangling", dangling.from, dangling.to, common.json, data)?;
        }
        if let Some(oid) = args.to {
            print_ways_to(oid, &found, common.json, data)?;
        }
        Ok(())
    })?;
    let line = ZodbReferenced::new(&found);
    let text = line.text();
    reporter.summary(Summary::ZodbReferenced(line), &text)?;
    Ok(ending)
}

fn print_ways_to(
    oid: Oid,
    found: &References,
    is_json: bool,
    data: &mut Data,
) -> Result<(), CliError> {
    for from in found.referrers(oid) {
        print_reference("refers", from, oid, is_json, data)?;
    }
    let path = found.path_from_root(oid).unwrap_or_default();
    for step in path.windows(2) {
        print_reference("path", step[0], step[1], is_json, data)?;
    }
    Ok(())
}

fn print_reference(
    why: &'static str,
    from: Oid,
    to: Oid,
    is_json: bool,
    data: &mut Data,
) -> Result<(), CliError> {
    match is_json {
        true => data.json(&Line::ZodbReference(ZodbReference::new(why, from, to)))?,
        false => data.line(&format!("{why} {from} {to}"))?,
    }
    Ok(())
}

/// Says where a scan stopped that did not come to the end of the file.
fn ending_of(scan: &Scan) -> Ending {
    match &scan.end {
        ScanEnd::Imperfect(imperfection) => {
            output::error(&imperfection.to_string(), Some(hints::ZODB_IMPERFECT));
            Ending::Damage
        }
        ScanEnd::EndOfFile | ScanEnd::Stop | ScanEnd::Interrupted => Ending::Done,
    }
}
