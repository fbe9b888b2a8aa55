//! `stook export`: views of an archive for other programs.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use stook_archive::{Archive, ListOptions};
use stook_export::{Format, Places, RefsOptions, Target, export_erofs, export_refs};
use stook_store::Location;

use crate::args::{Common, ErofsArgs, ExportArgs, ExportCommand, RefsArgs, RefsFormatArg};
use crate::exit::{CliError, Ending, some_failed};
use crate::options::{self, compiled};
use crate::output::Data;
use crate::progress::observed;
use crate::report::{Imaged, Referred, Summary};
use crate::stores::{Opened, is_none, is_url, lasting_name, location_of};

pub(crate) fn export(args: &ExportArgs, common: &Common) -> Result<Ending, CliError> {
    match &args.command {
        ExportCommand::Refs(args) => refs(args, common),
        ExportCommand::Erofs(args) => erofs(args, common),
    }
}

fn refs(args: &RefsArgs, common: &Common) -> Result<Ending, CliError> {
    let format = format_of(args)?;
    let mut opened = Opened::new(&args.archive, &args.source)?;
    let below = args.below.iter().cloned().collect::<Vec<OsString>>();
    let patterns = match args.patterns.is_empty() {
        // Or else all members would be looked at.
        true => &below,
        false => &args.patterns,
    };
    let below = args.below.as_deref().unwrap_or_default().as_bytes();
    let options = RefsOptions {
        below: clean(below).to_vec(),
        list: ListOptions {
            patterns: compiled(patterns),
            as_of: options::as_of(&opened.archive, &args.as_of)?,
            all_versions: false,
        },
        places: places(args, &opened.archive)?,
    };
    let (report, reporter) = observed(common, |reporter| {
        let archive = &mut opened.archive;
        let Some(path) = &args.to else {
            let mut data = Data::new();
            let target = Target::Stream(data.bytes());
            let report = export_refs(archive, &options, target, reporter)?;
            data.flush()?;
            return Ok::<_, CliError>(report);
        };
        Ok(export_refs(
            archive,
            &options,
            Target::Path(path, format),
            reporter,
        )?)
    })?;
    opened.report(&reporter);
    let referred = Referred::new(&report);
    let text = referred.text();
    reporter.summary(Summary::Referred(referred), &text)?;
    Ok(some_failed(report.failed))
}

/// Without what a shell adds to a name.
fn clean(mut directory: &[u8]) -> &[u8] {
    while let [rest @ .., b'/'] = directory {
        directory = rest;
    }
    directory.strip_prefix(b"./").unwrap_or(directory)
}

fn format_of(args: &RefsArgs) -> Result<Format, CliError> {
    let ending = args.to.as_deref().and_then(Path::extension);
    let is_parquet = ending.is_some_and(|ending| ending == "parquet" || ending == "parq");
    match (args.format, is_parquet) {
        (Some(RefsFormatArg::Parquet), _) if args.to.is_none() => Err(CliError::Option {
            option: "--format",
            value: "parquet".to_owned(),
            why: "it is a folder, which `--to` names".to_owned(),
        }),
        (Some(RefsFormatArg::Parquet), _) | (None, true) => Ok(Format::Parquet),
        (Some(RefsFormatArg::Json) | None, _) => Ok(Format::Json),
    }
}

/// Returns where readers find the volumes. All in one place: fsspec takes one kind of URL at a time.
fn places(args: &RefsArgs, archive: &Archive) -> Result<Places, CliError> {
    if let Some(base) = &args.base {
        return Ok(Places::Url(base.clone()));
    }
    if let Some(url) = args.archive.to_str().filter(|text| is_url(text)) {
        return place_of(url);
    }
    let folder = stook_sys::absolute(&args.archive)?;
    if !archive.lacks_volumes()? {
        return Ok(Places::Folder(folder));
    }
    let typed = args.source.place.store.clone();
    match typed.or(archive.store_place()?) {
        Some(store) if !is_none(&store) => place_of(&store),
        _ => Ok(Places::Folder(folder)),
    }
}

fn place_of(text: &str) -> Result<Places, CliError> {
    let location = location_of(text)?;
    match &location {
        Location::Hpss(_) | Location::Globus { .. } => Err(stook_export::ExportError::NoRanges {
            place: location.without_login().to_string(),
        }
        .into()),
        // Passwords are not for a file that others read.
        _ => Ok(Places::Url(lasting_name(location)?)),
    }
}

fn erofs(args: &ErofsArgs, common: &Common) -> Result<Ending, CliError> {
    let mut archive = options::open(&args.archive)?;
    let as_of = options::as_of(&archive, &args.as_of)?;
    stook_sys::give_back_large_blocks();
    let (report, reporter) = observed(common, |reporter| {
        export_erofs(&mut archive, &args.image, as_of, reporter)
    })?;
    let imaged = Imaged::new(&report);
    let text = imaged.text();
    reporter.summary(Summary::Imaged(imaged), &text)?;
    Ok(some_failed(report.failed))
}
