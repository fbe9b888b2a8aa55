//! The one table from what happened to the exit status, and how errors are printed.

use std::io::ErrorKind;
use std::process::ExitCode;

use clap::error::ErrorKind as ClapKind;
use stook_archive::ArchiveError;
use stook_bench::BenchError;
use stook_sys::display_bytes;

use crate::output;
use crate::text::count;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// All done.
    Done,
    /// It could not be done.
    Failed,
    /// The command line makes no sense.
    Usage,
    /// Finished, but some files failed.
    SomeFailed,
    /// Damage was found.
    Damage,
    /// A comparison that was to tell so by its status found differences.
    Differs,
    /// The user ended it.
    Interrupted,
}

impl Ending {
    fn status(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed | Self::Differs => 1,
            Self::Usage => 2,
            Self::SomeFailed => 3,
            Self::Damage => 4,
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
    Bench(BenchError),
    Sys(stook_sys::SysError),
    /// An option's value makes no sense: the option, the value, the reason.
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

impl From<BenchError> for CliError {
    fn from(error: BenchError) -> Self {
        Self::Bench(error)
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

/// Prints an error and returns how the command ended.
pub(crate) fn report(error: &CliError) -> Ending {
    match error {
        // Whoever read the output has seen enough.
        CliError::Output(error) if error.kind() == ErrorKind::BrokenPipe => Ending::Done,
        CliError::Output(error) => {
            output::error(
                &format!("cannot write the output: {}", stook_sys::cause(error)),
                None,
            );
            Ending::Failed
        }
        CliError::Option { option, value, why } => {
            output::error(&format!("cannot use `{value}` for {option}: {why}"), None);
            Ending::Usage
        }
        CliError::FewDescriptors { found, needed } => {
            output::error(
                &format!("cannot work with {found} open files: {needed} are needed"),
                Some("the limit is the one of `ulimit -Hn`; the administrator can raise it"),
            );
            Ending::Failed
        }
        CliError::Sys(error) => {
            output::error(&error.to_string(), None);
            Ending::Failed
        }
        CliError::NoMatch { patterns, unread } => {
            let quoted = patterns
                .iter()
                .map(|text| format!("`{}`", display_bytes(text)));
            let quoted: Vec<String> = quoted.collect();
            output::error(
                &format!("cannot find {}: no entry matches", quoted.join(", ")),
                Some(&no_match_hint(*unread)),
            );
            Ending::Failed
        }
        CliError::Archive(ArchiveError::Interrupted) => {
            output::error(
                "interrupted",
                Some("the same command may be given again; what is done already is not done twice"),
            );
            Ending::Interrupted
        }
        CliError::Bench(error) => {
            output::error(&error.to_string(), error.hint().as_deref());
            match error {
                BenchError::Interrupted => Ending::Interrupted,
                BenchError::Usage(_) => Ending::Usage,
                _ => Ending::Failed,
            }
        }
        CliError::Archive(error) => {
            output::error(&error.to_string(), error.hint().as_deref());
            if error.is_damage() {
                Ending::Damage
            } else {
                Ending::Failed
            }
        }
    }
}

fn no_match_hint(unread: u64) -> String {
    if unread > 0 {
        let directories = count(unread, "directory", "directories");
        return format!("nothing was removed; {directories} could not be read");
    }
    "nothing was removed; a pattern is compared with paths below the tree: `*/NAME` finds a name in any directory of it"
        .to_owned()
}

/// Prints help, version, or in one line what is wrong with the command line.
pub(crate) fn usage_error(error: &clap::Error) -> ExitCode {
    if matches!(
        error.kind(),
        ClapKind::DisplayHelp | ClapKind::DisplayVersion
    ) {
        return match output::require_stdout().and_then(|()| error.print()) {
            Ok(()) => Ending::Done.into(),
            Err(error) => report(&CliError::Output(error)).into(),
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
