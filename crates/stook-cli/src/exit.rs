//! The one table from what happened to the exit status, and how errors are printed.

use std::io::{self, ErrorKind};
use std::process::ExitCode;

use clap::error::ErrorKind as ClapKind;
use stook_archive::ArchiveError;
use stook_bench::BenchError;
use stook_export::ExportError;
use stook_mount::{CacheError, MountError};
use stook_store::StoreError;
use stook_sys::display_bytes;
use stook_zodb::ZodbError;

use crate::hints;
use crate::output::{self, Data};
use crate::report::{Fatal, Line};

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// All done.
    Done,
    /// It could not be done.
    Failed,
    /// The command line is invalid.
    Usage,
    /// Finished, but some files failed.
    SomeFailed,
    /// Damage was found.
    Damage,
    /// A comparison found differences, and was asked to say so by its status.
    Differs,
    /// A batch system ended it, and may begin it again.
    Requeue,
    /// The user ended it.
    Interrupted,
}

impl Ending {
    pub(crate) fn status(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed | Self::Differs => 1,
            Self::Usage => 2,
            Self::SomeFailed => 3,
            Self::Damage => 4,
            // EX_TEMPFAIL of sysexits.h.
            Self::Requeue => 75,
            Self::Interrupted => 130,
        }
    }
}

impl From<Ending> for ExitCode {
    fn from(ending: Ending) -> Self {
        Self::from(ending.status())
    }
}

/// What ends a command early.
#[derive(Debug)]
pub(crate) enum CliError {
    Archive(ArchiveError),
    /// The user ended what only reads.
    ReadingInterrupted,
    /// A batch system ended a run that goes on when it is begun again.
    Requeue,
    Bench(BenchError),
    /// The directory for what is kept of a store cannot be used.
    Cache(CacheError),
    Export(ExportError),
    Mount(MountError),
    Zodb(ZodbError),
    Sys(stook_sys::SysError),
    /// An option's value is invalid: the option, the value, the reason.
    Option {
        option: &'static str,
        value: String,
        why: String,
    },
    /// The process may open too few files.
    FewDescriptors {
        found: usize,
        needed: usize,
    },
    /// Patterns that match nothing, of a command that needs a match for each; directories that could not be read.
    NoMatch {
        patterns: Vec<Vec<u8>>,
        unread: u64,
    },
    /// stdout could not be written.
    Output(std::io::Error),
}

impl From<ArchiveError> for CliError {
    fn from(error: ArchiveError) -> Self {
        match error {
            ArchiveError::Output(error) => Self::Output(error),
            other => Self::Archive(other),
        }
    }
}

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> Self {
        Self::Archive(error.into())
    }
}

impl From<BenchError> for CliError {
    fn from(error: BenchError) -> Self {
        Self::Bench(error)
    }
}

impl From<CacheError> for CliError {
    fn from(error: CacheError) -> Self {
        match error {
            CacheError::Sys(error) => Self::Sys(error),
            other => Self::Cache(other),
        }
    }
}

impl From<ExportError> for CliError {
    fn from(error: ExportError) -> Self {
        match error {
            ExportError::Archive(error) => error.into(),
            ExportError::Sys(error) => Self::Sys(error),
            ExportError::Output(error) => Self::Output(error),
            other => Self::Export(other),
        }
    }
}

impl From<MountError> for CliError {
    fn from(error: MountError) -> Self {
        match error {
            MountError::Archive(error) => error.into(),
            other => Self::Mount(other),
        }
    }
}

impl From<ZodbError> for CliError {
    fn from(error: ZodbError) -> Self {
        match error {
            ZodbError::Sys(error) => Self::Sys(error),
            other => Self::Zodb(other),
        }
    }
}

impl From<stook_sys::SysError> for CliError {
    fn from(error: stook_sys::SysError) -> Self {
        Self::Sys(error)
    }
}

impl From<std::io::Error> for CliError {
    fn from(error: std::io::Error) -> Self {
        Self::Output(error)
    }
}

/// An error as it is printed: its text, advice if there is some, and how the command ends.
pub(crate) struct Report {
    pub(crate) text: String,
    pub(crate) hint: Option<String>,
    pub(crate) ending: Ending,
}

impl CliError {
    /// The same error of a command that only reads: there is nothing to go on with.
    pub(crate) fn of_reading(self) -> Self {
        match self {
            Self::Archive(ArchiveError::Interrupted) => Self::ReadingInterrupted,
            other => other,
        }
    }

    /// Returns what it says, without advice.
    pub(crate) fn text(&self) -> String {
        self.report().map(|report| report.text).unwrap_or_default()
    }

    /// Returns what is printed of it; `None` if the reader of the output has closed it.
    pub(crate) fn report(&self) -> Option<Report> {
        let (text, hint, ending) = match self {
            Self::Output(error) if error.kind() == ErrorKind::BrokenPipe => return None,
            Self::ReadingInterrupted => {
                let text = ArchiveError::Interrupted.to_string();
                (text, None, Ending::Interrupted)
            }
            Self::Requeue => {
                let text = ArchiveError::Interrupted.to_string();
                (text, Some(hints::INTERRUPTED.to_owned()), Ending::Requeue)
            }
            Self::Output(error) => {
                let text = format!("cannot write the output: {}", stook_sys::cause(error));
                (text, None, Ending::Failed)
            }
            Self::Option { option, value, why } => {
                let text = format!("cannot use `{value}` for {option}: {why}");
                (text, None, Ending::Usage)
            }
            Self::FewDescriptors { found, needed } => {
                let text = format!("cannot work with {found} open files: {needed} are needed");
                (text, Some(hints::OPEN_FILES.to_owned()), Ending::Failed)
            }
            Self::Sys(error) => {
                let hint = hints::of_tree(error.operation, &error.source);
                (
                    error.to_string(),
                    hint.map(ToOwned::to_owned),
                    Ending::Failed,
                )
            }
            Self::NoMatch { patterns, unread } => {
                let quoted = patterns
                    .iter()
                    .map(|text| format!("`{}`", display_bytes(text)));
                let quoted: Vec<String> = quoted.collect();
                let text = format!("cannot find {}: no entry matches", quoted.join(", "));
                (text, Some(hints::of_no_match(*unread)), Ending::Failed)
            }
            Self::Cache(error) => (error.to_string(), hints::of_cache(error), Ending::Failed),
            Self::Bench(error) => (
                error.to_string(),
                hints::of_bench(error),
                ending_of_bench(error),
            ),
            Self::Export(error) => (
                error.to_string(),
                hints::of_export(error),
                ending_of_export(error),
            ),
            Self::Mount(error) => (error.to_string(), hints::of_mount(error), Ending::Failed),
            Self::Zodb(ZodbError::Interrupted) => {
                let text = ZodbError::Interrupted.to_string();
                (text, None, Ending::Interrupted)
            }
            Self::Zodb(error) => {
                let hint = hints::of_zodb(error).map(ToOwned::to_owned);
                (error.to_string(), hint, Ending::Failed)
            }
            Self::Archive(error) => {
                let ending = ending_of_archive(error);
                (error.to_string(), hints::of_archive(error), ending)
            }
        };
        Some(Report { text, hint, ending })
    }
}

fn ending_of_bench(error: &BenchError) -> Ending {
    match error {
        BenchError::Interrupted => Ending::Interrupted,
        BenchError::Usage { .. } | BenchError::NoToolCommand { .. } => Ending::Usage,
        _ => Ending::Failed,
    }
}

fn ending_of_export(error: &ExportError) -> Ending {
    match error {
        ExportError::VolumeSize { .. } => Ending::Damage,
        _ => Ending::Failed,
    }
}

fn ending_of_archive(error: &ArchiveError) -> Ending {
    match error {
        ArchiveError::Interrupted => Ending::Interrupted,
        error if error.is_damage() => Ending::Damage,
        _ => Ending::Failed,
    }
}

/// Prints an error and returns how the command ended.
pub(crate) fn report(error: &CliError, is_json: bool) -> Ending {
    let Some(Report { text, hint, ending }) = error.report() else {
        return Ending::Done;
    };
    fatal(&text, hint.as_deref(), ending, is_json);
    ending
}

/// Prints what ended a command early.
pub(crate) fn fatal(text: &str, hint: Option<&str>, ending: Ending, is_json: bool) {
    output::error(text, hint);
    if is_json {
        let status = ending.status();
        // Nowhere is left to say that stdout is gone, too.
        let _ = output::line(&Line::Error(Fatal { text, hint, status }));
    }
}

/// Prints help, version, or in one line what is wrong with the command line.
pub(crate) fn usage_error(error: &clap::Error) -> ExitCode {
    if matches!(
        error.kind(),
        ClapKind::DisplayHelp | ClapKind::DisplayVersion
    ) {
        return match output::require_stdout().and_then(|()| error.print()) {
            Ok(()) => Ending::Done.into(),
            Err(error) => report(&CliError::Output(error), false).into(),
        };
    }
    if error.kind() == ClapKind::DisplayHelpOnMissingArgumentOrSubcommand {
        output::error("no command was given", Some("`stook --help` lists them"));
        return Ending::Usage.into();
    }
    // clap quotes with apostrophes, and marks options that may be repeated.
    let text = error.to_string().replace("...'", "'").replace('\'', "`");
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let is_message = |line: &&&str| {
        !line.starts_with("Usage:")
            && !line.starts_with("For more information")
            && !line.starts_with("tip:")
    };
    let message: Vec<&str> = lines.iter().take_while(is_message).copied().collect();
    let message = message.join(" ");
    let tip = lines.iter().find_map(|line| line.strip_prefix("tip: "));
    let hint = tip.map_or_else(
        || "`--help` shows the options".to_owned(),
        ToOwned::to_owned,
    );
    output::error(
        message.strip_prefix("error: ").unwrap_or(&message),
        Some(&hint),
    );
    Ending::Usage.into()
}

pub(crate) fn some_failed(failed: u64) -> Ending {
    if failed == 0 {
        Ending::Done
    } else {
        Ending::SomeFailed
    }
}

pub(crate) fn to_stdout(
    print: impl FnOnce(&mut Data) -> Result<(), CliError>,
) -> Result<Ending, CliError> {
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
