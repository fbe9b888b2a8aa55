//! Calls of `globus`, and what it answers: JSON, or an error with a code.
//!
//! # Source
//! The public source of the Globus CLI: exit code 4 and the commands in its text for logins, errors as JSON on standard
//! error.

use std::ffi::OsString;

use serde_json::Value;

use crate::error::StoreCause;
use crate::program::{Input, Output, Program, ProgramOptions};
use crate::transfer::TransferObserver;

/// How messages name the service.
pub(super) const NAME: &str = "globus";

/// How the program ends when somebody has to log in.
const LOGIN_CODE: i32 = 4;

/// Runs the program and returns its answer.
///
/// # Errors
/// `Login` with the command that the program names; what the service says.
pub(super) fn call(
    options: &ProgramOptions,
    arguments: &[&str],
    input: Input,
    observer: &dyn TransferObserver,
) -> Result<Value, StoreCause> {
    let mut all = options.arguments.clone();
    all.extend(arguments.iter().map(OsString::from));
    all.extend(["--format", "json"].map(OsString::from));
    let program = Program {
        path: &options.path,
        arguments: all,
        input,
        directory: None,
        patience: options.patience,
    };
    let output = program.run(observer, &mut || false)?;
    match serde_json::from_slice(&output.stdout) {
        Ok(answer) if output.status.success() => Ok(answer),
        _ => Err(failure(&output)),
    }
}

fn failure(output: &Output) -> StoreCause {
    let text = [&output.stderr, &output.stdout].map(|bytes| String::from_utf8_lossy(bytes));
    let text = text.join("\n");
    let error: Option<Value> = serde_json::from_slice(&output.stderr).ok();
    let of = |key: &str| error.as_ref().and_then(|error| error[key].as_str());
    let code = of("code").unwrap_or("");
    let is_login = output.status.code() == Some(LOGIN_CODE)
        || ["ConsentRequired", "AuthenticationFailed"]
            .iter()
            .any(|word| code.contains(word))
        || ["MissingLoginError", "with 'globus login'"]
            .iter()
            .any(|word| text.contains(word));
    if is_login {
        return login(&text);
    }
    let line = of("message").map(|message| message.lines().next().unwrap_or(message).to_owned());
    match (known(code), line) {
        (Some(cause), _) => cause,
        (None, Some(text)) => said(text),
        (None, None) if output.status.success() => StoreCause::Answer {
            program: NAME.to_owned(),
            text: output.line(),
        },
        (None, None) => match output.require_success(NAME) {
            Err(cause) => cause,
            Ok(()) => said(output.line()),
        },
    }
}

/// Returns the cause with the command that the program tells its user to run.
pub(super) fn login(text: &str) -> StoreCause {
    let mut lines = text.lines().map(str::trim);
    let named =
        lines.find(|line| line.starts_with("globus login") || line.starts_with("globus session"));
    StoreCause::Login {
        command: Some(named.unwrap_or("globus login").to_owned()),
    }
}

/// Returns the cause that a code of the service stands for: of an error, or of a task.
pub(super) fn known(code: &str) -> Option<StoreCause> {
    let has = |words: &[&str]| words.iter().any(|word| code.contains(word));
    if has(&["EndpointNotFound"]) {
        return Some(StoreCause::NoPlace);
    }
    if has(&["ClientError.NotFound", "FILE_NOT_FOUND", "NotFound"]) {
        return Some(StoreCause::NotFound);
    }
    if has(&["PermissionDenied", "PERMISSION_DENIED"]) {
        return Some(StoreCause::Denied);
    }
    if has(&["QUOTA", "NO_SPACE", "NoSpace", "QuotaExceeded"]) {
        return Some(StoreCause::Full);
    }
    has(&["CHECKSUM"]).then_some(StoreCause::Different(crate::error::Difference::Hash))
}

pub(super) fn said(text: String) -> StoreCause {
    let program = NAME.to_owned();
    StoreCause::Said { program, text }
}

/// Returns a word of a batch: what a POSIX shell takes for this text.
///
/// # Errors
/// `Character` for those that would end its line.
pub(super) fn word(text: &str) -> Result<String, StoreCause> {
    let ends_line =
        |character: char| character.is_control() || "\u{2028}\u{2029}".contains(character);
    match text.chars().find(|&character| ends_line(character)) {
        Some(character) => Err(StoreCause::Character(character)),
        None => Ok(format!("'{}'", text.replace('\'', "'\"'\"'"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    fn of(code: i32, stderr: &str) -> String {
        let output = Output {
            status: ExitStatus::from_raw(code << 8),
            stdout: Vec::new(),
            stderr: stderr.as_bytes().to_vec(),
        };
        match failure(&output) {
            StoreCause::Login { command } => command.unwrap(),
            cause => cause.to_string(),
        }
    }

    #[test]
    fn a_login_is_told_with_its_command() {
        assert_eq!(
            of(4, "MissingLoginError: Missing login for Globus Transfer."),
            "globus login"
        );
        assert_eq!(
            of(4, "Please run\n\n    globus session update nersc.gov\n\nto"),
            "globus session update nersc.gov"
        );
        let consent = "Please run\n\n  globus session consent 'urn:a[*b]'\n\nto login";
        assert_eq!(of(4, consent), "globus session consent 'urn:a[*b]'");
        assert_eq!(
            of(1, "Please log in again with 'globus login'."),
            "globus login"
        );
        assert_eq!(of(1, "{\"code\": \"ConsentRequired\"}"), "globus login");
    }

    #[test]
    fn codes_of_the_service_are_told_apart() {
        for (code, expected) in [
            ("ClientError.NotFound", "no such file"),
            ("EndpointNotFound", "no such place"),
            ("PermissionDenied", "access denied"),
            ("ExternalError.QuotaExceeded", "the store is full"),
            ("ServiceUnavailable", "globus says: a"),
        ] {
            let error = format!("{{\"code\": \"{code}\", \"message\": \"a\\nb\"}}");
            assert_eq!(of(1, &error), expected);
        }
        assert_eq!(
            of(2, "Error: No such option: --x\n"),
            "globus says: Error: No such option: --x"
        );
        assert_eq!(of(0, ""), "globus gave an unknown answer: exit status: 0");
    }

    #[test]
    fn words_of_a_batch_stay_whole() {
        assert_eq!(
            word("-a 'b' \"$c\"").unwrap(),
            "'-a '\"'\"'b'\"'\"' \"$c\"'"
        );
        for text in ["a\nb", "a\rb", "a\u{85}b", "a\u{2028}b"] {
            assert!(matches!(word(text), Err(StoreCause::Character(_))));
        }
    }
}
