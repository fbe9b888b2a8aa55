//! From what was typed to the options of the libraries. The archive may be opened, nothing is written.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use jiff::tz::TimeZone;
use stook_archive::{
    Archive, AsOf, CheckOptions, DEFAULT_MAX_HOLE_BYTES, Deletions, Dialect, DiffOptions,
    ExtractOptions, Jobs, ListOptions, MetadataChanges, Mtime, OpenOptions, PlanOptions,
    ReindexOptions, RunId, When, WriteOptions,
};
use stook_md5::{Kernel, UnknownKernel};
use stook_sys::{FileKind, Links, Timestamp};
use stook_tree::{Pattern, Selection};

use crate::args::{
    AsOfArgs, CheckArgs, ComparedArgs, Compat, DeletionsArg, DiffArgs, ExtractArgs, HoleArgs,
    KindLetter, ListArgs, PlanArgs, ReindexArgs, WalkArgs, WriteArgs,
};
use crate::exit::CliError;
use crate::size::Bare;
use crate::time::Day;
use crate::{patterns, size, time};

pub(crate) fn write_options(args: &WriteArgs) -> Result<WriteOptions, CliError> {
    let is_zstash = matches!(args.compat, Some(Compat::Zstash));
    let defaults = WriteOptions::default();
    let checkpoint_size = args.checkpoint_size.as_deref();
    let checkpoint_bytes = size_option("--checkpoint-size", checkpoint_size, |text| {
        size::parse(text, Bare::Bytes)
    })?;
    let links = links(args.follow_symlinks);
    let filter = if is_zstash {
        patterns::filter(&args.filter, Pattern::zstash)?
    } else {
        patterns::filter_for(&args.filter, &args.source, links)?
    };
    Ok(WriteOptions {
        filter,
        volume_bytes: size_option("--volume-size", args.volume_size.as_deref(), |text| {
            size::parse(text, Bare::Refused)
        })?,
        links,
        jobs: jobs(args.jobs),
        dialect: if is_zstash {
            Dialect::Zstash
        } else {
            Dialect::Stook
        },
        directories: if is_zstash {
            args.directories
        } else {
            !args.no_directories
        },
        xattrs: !args.no_xattrs && !is_zstash,
        metadata: if is_zstash {
            MetadataChanges::Ignore
        } else {
            MetadataChanges::Count
        },
        deletions: deletions(args.deletions, is_zstash),
        volume_md5: !args.no_volume_md5,
        read_only_volumes: !args.no_read_only_volumes,
        allows_other_files: args.allow_other_files,
        is_dry_run: args.dry_run,
        checkpoint_bytes: checkpoint_bytes.unwrap_or(defaults.checkpoint_bytes),
        ..defaults
    })
}

/// Returns the options of `update` or `plan`.
pub(crate) fn update_options(
    args: &WriteArgs,
    compared: &ComparedArgs,
) -> Result<WriteOptions, CliError> {
    let mut options = write_options(args)?;
    options.compare_content = compared.checksum;
    if compared.metadata {
        options.metadata = MetadataChanges::Archive;
    }
    Ok(options)
}

pub(crate) fn plan_options(args: &PlanArgs) -> Result<PlanOptions, CliError> {
    let write = WriteOptions {
        zstd: args.compression.zstd,
        ..update_options(&args.write, &args.compared)?
    };
    let defaults = PlanOptions::default();
    let memory = size_option("--memory", args.memory.as_deref(), |text| {
        size::parse(text, Bare::Bytes)
    })?;
    let memory = memory.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    Ok(PlanOptions {
        write,
        memory_bytes: memory.unwrap_or(defaults.memory_bytes),
    })
}

/// zstash records no deletions.
fn deletions(typed: Option<DeletionsArg>, is_zstash: bool) -> Deletions {
    match typed {
        Some(DeletionsArg::Record) => Deletions::Record,
        Some(DeletionsArg::Keep) => Deletions::Keep,
        Some(DeletionsArg::Refuse) => Deletions::Refuse,
        None if is_zstash => Deletions::Keep,
        None => Deletions::Guarded,
    }
}

pub(crate) fn diff_options(args: &DiffArgs) -> Result<DiffOptions, CliError> {
    let links = links(args.follow_symlinks);
    Ok(DiffOptions {
        filter: patterns::filter_for(&args.filter, &args.source, links)?,
        links,
        compare_content: args.checksum,
        compare_metadata: !args.no_metadata,
        jobs: jobs(args.jobs),
        directories: !args.no_directories,
        ..DiffOptions::default()
    })
}

pub(crate) fn check_options(args: &CheckArgs) -> Result<CheckOptions, CliError> {
    Ok(CheckOptions {
        patterns: compiled(&args.patterns),
        whole_volumes: args.volumes,
        max_hole_bytes: max_hole_bytes(&args.holes)?,
        jobs: jobs(args.jobs),
    })
}

pub(crate) fn reindex_options(args: &ReindexArgs) -> Result<ReindexOptions, CliError> {
    Ok(ReindexOptions {
        max_hole_bytes: max_hole_bytes(&args.holes)?,
        jobs: jobs(args.jobs),
    })
}

fn max_hole_bytes(args: &HoleArgs) -> Result<u64, CliError> {
    let typed = size_option("--max-hole", args.max_hole.as_deref(), size_or_none)?;
    Ok(typed.unwrap_or(DEFAULT_MAX_HOLE_BYTES))
}

/// Opens an archive for reading. A copy of its index, where one is needed, goes to the folder for temporary files.
pub(crate) fn open(archive: &Path) -> Result<Archive, CliError> {
    let options = OpenOptions {
        scratch: Some(std::env::temp_dir()),
        ..OpenOptions::default()
    };
    Ok(Archive::open(archive, &options)?)
}

/// Returns true if an archive is in the folder. What cannot be looked at is an error of the command that opens it.
pub(crate) fn has_index(archive: &Path) -> bool {
    matches!(stook_sys::exists(&archive.join("index.db")), Ok(Some(_)))
}

pub(crate) fn extract_options(
    args: &ExtractArgs,
    archive: &Archive,
) -> Result<ExtractOptions, CliError> {
    Ok(ExtractOptions {
        patterns: compiled(&args.patterns),
        as_of: as_of(archive, &args.as_of)?,
        jobs: jobs(args.jobs),
        no_overwrite: args.no_overwrite,
        same_permissions: args.same_permissions,
        xattrs: !args.no_xattrs,
        ..ExtractOptions::default()
    })
}

pub(crate) fn list_options(args: &ListArgs, archive: &Archive) -> Result<ListOptions, CliError> {
    Ok(ListOptions {
        patterns: compiled(&args.patterns),
        as_of: as_of(archive, &args.as_of)?,
        all_versions: args.all,
    })
}

pub(crate) fn selection(args: &WalkArgs) -> Result<Selection, CliError> {
    let larger_than = args.larger_than.as_deref();
    Ok(Selection {
        filter: patterns::filter_for(&args.filter, &args.tree, Links::Refuse)?,
        kinds: args.kinds.iter().copied().map(kind).collect(),
        larger_than: size_option("--larger-than", larger_than, size_or_none)?,
        newer_than: args.newer_than.as_deref().map(newer_than).transpose()?,
    })
}

fn kind(letter: KindLetter) -> FileKind {
    match letter {
        KindLetter::F => FileKind::File,
        KindLetter::D => FileKind::Directory,
        KindLetter::L => FileKind::Symlink,
        KindLetter::P => FileKind::Fifo,
        KindLetter::S => FileKind::Socket,
        KindLetter::C => FileKind::CharDevice,
        KindLetter::B => FileKind::BlockDevice,
    }
}

/// Returns the time that a text means: itself, so long ago, or that of a file.
fn newer_than(text: &OsStr) -> Result<Timestamp, CliError> {
    if let Some(path) = text.as_bytes().strip_prefix(b"file:") {
        let path = Path::new(OsStr::from_bytes(path));
        return Ok(stook_sys::look_at(path)?.mtime);
    }
    let (now, zone) = (stook_sys::utc_now(), TimeZone::system());
    time::time_or_age(&text.to_string_lossy(), now, &zone).map_err(|why| CliError::Option {
        option: "--newer-than",
        value: stook_sys::display_path(text),
        why,
    })
}

pub(crate) fn as_of(archive: &Archive, args: &AsOfArgs) -> Result<AsOf, CliError> {
    match &args.as_of {
        None => Ok(AsOf::Now),
        Some(text) => Ok(archive.state_at(when(text, &TimeZone::system())?)?),
    }
}

/// Does MD5 with the kernel that `STOOK_MD5_KERNEL` names, if it is set.
pub(crate) fn select_md5_kernel() -> Result<(), CliError> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the program, not a library, reads the environment"
    )]
    let name = std::env::var_os("STOOK_MD5_KERNEL");
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        return Ok(());
    };
    let name = name.to_string_lossy();
    let unusable = |why| CliError::Option {
        option: "STOOK_MD5_KERNEL",
        value: name.to_string(),
        why,
    };
    let kernel: Kernel = name
        .parse()
        .map_err(|error: UnknownKernel| unusable(error.to_string()))?;
    stook_md5::select(kernel).map_err(|error| unusable(error.to_string()))
}

pub(crate) fn jobs(typed: Option<u16>) -> Jobs {
    typed.map_or(Jobs::Adaptive, |number| Jobs::Fixed(number.into()))
}

pub(crate) fn links(follow: bool) -> Links {
    if follow { Links::Follow } else { Links::Refuse }
}

pub(crate) fn compiled(texts: &[OsString]) -> Vec<Pattern> {
    texts
        .iter()
        .map(|text| Pattern::new(text.as_bytes()))
        .collect()
}

fn size_or_none(text: &str) -> Result<u64, String> {
    size::parse_or_none(text, Bare::Bytes)
}

/// Returns the size that an option was given, if it was.
pub(crate) fn size_option(
    option: &'static str,
    text: Option<&str>,
    parse: fn(&str) -> Result<u64, String>,
) -> Result<Option<u64>, CliError> {
    let parse = |text: &str| {
        parse(text).map_err(|why| CliError::Option {
            option,
            value: text.to_owned(),
            why,
        })
    };
    text.map(parse).transpose()
}

fn when(text: &str, zone: &TimeZone) -> Result<When, CliError> {
    // A date first: 20261121 is one, and no archive has so many runs.
    let why = match (time::parse(text, Day::End, zone), text.parse()) {
        (Ok(time), _) => return Ok(When::Time(Mtime(time.as_microsecond()))),
        (_, Ok(run)) => return Ok(When::Run(RunId(run))),
        (Err(why), _) => why,
    };
    Err(CliError::Option {
        option: "--as-of",
        value: text.to_owned(),
        why: why.explain(
            text,
            "the number of a run nor a time such as 2026-11-21T18:30",
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_runs_or_times() {
        let is = |text: &str| when(text, &TimeZone::UTC).unwrap();
        assert_eq!(is("3"), When::Run(RunId(3)));
        assert_eq!(is("1970-01-01"), When::Time(Mtime(86_399_999_999)));
        assert_eq!(is("1970-01-01T00:00:01.5"), When::Time(Mtime(1_500_000)));
        assert_eq!(is("1970-01-01 01:00"), When::Time(Mtime(3_600_000_000)));
        assert_eq!(is("1970-01-01T01:00+01:00"), When::Time(Mtime(0)));
        assert_eq!(is("19700101"), is("1970-01-01"));
        assert_eq!(is("99999999"), When::Run(RunId(99_999_999)));
        assert!(when("yesterday", &TimeZone::UTC).is_err());
    }
}
