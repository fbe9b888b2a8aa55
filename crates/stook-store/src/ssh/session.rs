//! Runs a script at the other end, with names that no shell on the way takes for anything else.

use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use crate::error::StoreCause;
use crate::program::{Input, Output, Program, ProgramOptions};
use crate::ssh::scripts::{CHANGED, NO_FILE, NO_PLACE, NOT_KEPT, PRELUDE};
use crate::transfer::TransferObserver;

/// The exit status of `ssh` for its own failures.
const OWN_FAILURE: i32 = 255;

/// What `ssh` says when it is not let in.
const NOT_LET_IN: [&str; 4] = [
    "Permission denied (",
    "Host key verification failed",
    "host key is known for",
    "Too many authentication failures",
];

/// What `ssh` is told whatever else: it asks nobody, forwards nothing, and notices a connection that is gone.
const OPTIONS: [&str; 6] = [
    "-oBatchMode=yes",
    "-oConnectTimeout=15",
    "-oServerAliveInterval=10",
    "-oServerAliveCountMax=3",
    "-oClearAllForwardings=yes",
    "-oRequestTTY=no",
];

/// How another machine is reached.
#[derive(Debug, Clone)]
pub struct SshOptions {
    /// The program, and what it is told in front of everything else.
    pub program: ProgramOptions,
    /// A private folder with a short path, for the socket of one connection that all transfers share. None: each
    /// makes its own, unless the configuration of ssh says otherwise.
    pub control: Option<PathBuf>,
}

impl Default for SshOptions {
    fn default() -> Self {
        let mut program = ProgramOptions::new("ssh");
        program.patience = Duration::from_secs(60);
        Self {
            program,
            control: None,
        }
    }
}

/// Another machine.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) options: SshOptions,
    /// `user@host`, or `host`.
    pub(super) destination: String,
    pub(super) port: Option<u16>,
}

impl Session {
    /// Runs a script with arguments.
    ///
    /// # Errors
    /// What its exit status or its words mean, and those of running a program.
    pub(super) fn run(
        &self,
        script: &str,
        arguments: &[&str],
        input: Input,
        observer: &dyn TransferObserver,
        has_moved: &mut dyn FnMut() -> bool,
    ) -> Result<Output, StoreCause> {
        let program = self.program(script, arguments, input)?;
        let output = program.run(&self.watched(observer), has_moved)?;
        self.require_success(&output)?;
        Ok(output)
    }

    /// Runs a script whose output goes to a file.
    ///
    /// # Errors
    /// As [`Session::run`].
    pub(super) fn run_into(
        &self,
        file: &File,
        script: &str,
        arguments: &[&str],
        observer: &dyn TransferObserver,
        has_moved: &mut dyn FnMut() -> bool,
    ) -> Result<Output, StoreCause> {
        let program = self.program(script, arguments, Input::Nothing)?;
        let output = program.run_into(file, &self.watched(observer), has_moved)?;
        self.require_success(&output)?;
        Ok(output)
    }

    /// Ends the connection that transfers share.
    pub(super) fn close(&self) {
        if self.options.control.is_none() {
            return;
        }
        let mut arguments = self.arguments();
        arguments.extend(["-O", "exit", "--", &self.destination].map(OsString::from));
        let program = Program {
            patience: Duration::from_secs(1),
            ..self.program_with(arguments, Input::Nothing)
        };
        // It ends by itself a while later.
        let _ = program.run(&crate::transfer::Silent, &mut || false);
    }

    /// Ends as the observer says, and as whoever opened the store says.
    fn watched<'a>(&'a self, observer: &'a dyn TransferObserver) -> Either<'a> {
        Either(observer, &self.options.program.interruption)
    }

    fn program(
        &self,
        script: &str,
        arguments: &[&str],
        input: Input,
    ) -> Result<Program<'_>, StoreCause> {
        let mut command = format!(
            "exec sh -c {} stook",
            quoted(&format!("{PRELUDE}{script}"))?
        );
        for argument in arguments {
            command.push(' ');
            command.push_str(&quoted(argument)?);
        }
        let mut all = self.arguments();
        all.extend(["--", &self.destination, &command].map(OsString::from));
        Ok(self.program_with(all, input))
    }

    fn program_with(&self, arguments: Vec<OsString>, input: Input) -> Program<'_> {
        Program {
            path: &self.options.program.path,
            arguments,
            input,
            directory: None,
            patience: self.options.program.patience,
        }
    }

    fn arguments(&self) -> Vec<OsString> {
        let mut arguments = self.options.program.arguments.clone();
        arguments.extend(OPTIONS.map(OsString::from));
        if let Some(folder) = &self.options.control {
            let mut path = OsString::from("-oControlPath=");
            path.push(folder.join("%C"));
            arguments.push(path);
            arguments.extend(["-oControlMaster=auto", "-oControlPersist=60"].map(OsString::from));
        }
        if let Some(port) = self.port {
            arguments.extend(["-p".into(), port.to_string().into()]);
        }
        arguments
    }

    fn require_success(&self, output: &Output) -> Result<(), StoreCause> {
        match output.status.code() {
            Some(0) => Ok(()),
            Some(NO_PLACE) => Err(StoreCause::NoPlace),
            Some(NO_FILE) => Err(StoreCause::NotFound),
            Some(NOT_KEPT) => Err(StoreCause::Exists),
            Some(CHANGED) => Err(StoreCause::Changed),
            code => Err(self.cause(code, &output.line())),
        }
    }

    /// What the words of `ssh`, or of a program at the other end, mean.
    fn cause(&self, code: Option<i32>, line: &str) -> StoreCause {
        let says = |words: &str| line.contains(words);
        if code == Some(OWN_FAILURE) && NOT_LET_IN.iter().any(|words| says(words)) {
            return StoreCause::NotLetIn {
                text: line.to_owned(),
                command: format!("ssh {}", self.destination),
            };
        }
        if says("No space left") || says("quota exceeded") {
            return StoreCause::Full;
        }
        if code != Some(OWN_FAILURE) && (says("Permission denied") || says("not permitted")) {
            return StoreCause::Denied;
        }
        if says("Read-only file system") {
            return StoreCause::ReadOnly;
        }
        StoreCause::Said {
            program: "ssh".to_owned(),
            text: line.to_owned(),
        }
    }
}

/// Ends as soon as one of two says so.
struct Either<'a>(&'a dyn TransferObserver, &'a dyn TransferObserver);

impl TransferObserver for Either<'_> {
    fn is_interrupted(&self) -> bool {
        self.0.is_interrupted() || self.1.is_interrupted()
    }
}

/// Returns a word for the shell at the other end, whichever it is.
///
/// # Errors
/// `Character` for a line break, which some shells end a quotation at, and `Name` for what is no word.
fn quoted(text: &str) -> Result<String, StoreCause> {
    if text.contains('\0') {
        return Err(StoreCause::Name);
    }
    Ok(format!("'{}'", text.replace('\'', r#"'"'"'"#)))
}

/// Returns an error for a name that cannot travel: listings have one line for each file.
pub(super) fn require_printable(name: &str) -> Result<(), StoreCause> {
    match name.chars().find(|character| character.is_control()) {
        Some(character) => Err(StoreCause::Character(character)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted() {
        assert_eq!(quoted("$(x) `y`").unwrap(), "'$(x) `y`'");
        assert_eq!(quoted("it's").unwrap(), r#"'it'"'"'s'"#);
        require_printable("-rf ü").unwrap();
        assert!(matches!(
            require_printable("a\nb"),
            Err(StoreCause::Character('\n'))
        ));
    }
}
