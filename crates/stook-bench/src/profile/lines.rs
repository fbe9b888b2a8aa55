//! The lines of one Python function: how often each ran, and how long, by `line_profiler`.
//!
//! The command is run once, by its own interpreter, with a driver (`lines.py`) in front: what the driver finds comes back
//! through a file in memory. Only the named function is slowed down, by about 0.2 microseconds a line.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::programs::{find_program, require_program};
use crate::Observer;
use crate::error::BenchError;
use crate::job::Job;
use crate::remedy::{ProfileRemedy, Remedy};

const DRIVER: &str = include_str!("lines.py");
/// Options of Python that take the next word.
const WITH_VALUE: [&str; 3] = ["-W", "-X", "--check-hash-based-pycs"];

/// What is wanted.
#[derive(Debug, Clone)]
pub struct LinesOptions {
    /// The function, as `MODULE:FUNCTION` or `MODULE:CLASS.METHOD`; the module of the program itself is `__main__`.
    pub function: String,
    /// A Python program: `python3 [OPTIONS] SCRIPT`, `-m MODULE` or `-c CODE` with arguments, or an executable script.
    pub command: Vec<OsString>,
    /// Where programs are looked for, as in `PATH`.
    pub search_path: OsString,
}

/// One line of the function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Its number in the file.
    pub line: u64,
    /// How often it ran.
    pub hits: u64,
    /// How long, all together, with what it called.
    pub microseconds: f64,
    /// Its text.
    pub source: String,
}

/// A function and its lines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimedFunction {
    /// The name.
    pub function: String,
    /// The file that it is in.
    pub file: String,
    /// The lines, in their order.
    pub lines: Vec<Line>,
}

/// What the driver writes.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Outcome {
    Found { functions: Vec<TimedFunction> },
    Wrong(Wrong),
}

/// Why the function could not be timed.
#[derive(Debug, Deserialize)]
#[serde(tag = "wrong", rename_all = "snake_case")]
enum Wrong {
    LineProfiler { why: String },
    Function { names: Vec<String> },
    Source,
    Import,
    Call,
}

/// Runs a Python program and times the lines of one of its functions. The failure of the program is returned beside them.
///
/// # Errors
/// [`BenchError::Usage`] if the command is no Python program or the function has no such form;
/// [`BenchError::Missing`] without `line_profiler`; [`BenchError::Refused`] if there is no such function, or it was not
/// called; [`BenchError::Command`] if the program failed before it could be timed.
pub fn profile_lines(
    options: &LinesOptions,
    observer: &dyn Observer,
) -> Result<(Vec<TimedFunction>, Option<BenchError>), BenchError> {
    let function = &options.function;
    let (module, name) = function.split_once(':').unwrap_or_default();
    if module.is_empty() || name.is_empty() {
        let such = "such as `__main__:main` or `shop.cart:Cart.total`";
        let text = format!("`{function}` is not MODULE:FUNCTION, {such}");
        return Err(BenchError::usage(text));
    }
    let result = stook_sys::memory_file()?;
    let job = Job::new(options.words(&result)?);
    observer.progress("running the program, timing lines");
    let ran = job.run(observer)?;
    let outcome = crate::job::kept_text(&result)?;
    let program = Job::new(options.command.iter().cloned());
    let failure = (!ran.status.success()).then(|| program.failed("while it was timed", &ran));
    match (serde_json::from_str(&outcome), failure) {
        (Ok(Outcome::Found { functions }), failure) => Ok((functions, failure)),
        // It failed before it came so far.
        (Ok(Outcome::Wrong(Wrong::Import | Wrong::Call)), Some(failure)) => Err(failure),
        (Ok(Outcome::Wrong(wrong)), _) => Err(wrong.error(module, name, &options.command)),
        (Err(_), Some(failure)) => Err(failure),
        (Err(_), None) => {
            let what = format!("`{}` ended without telling what it timed", program.text());
            Err(BenchError::refused_with(
                Remedy::Profile(ProfileRemedy::EndWithCleanup),
                what,
            ))
        }
    }
}

impl LinesOptions {
    /// The command with the driver in front.
    fn words(&self, result: &std::fs::File) -> Result<Vec<OsString>, BenchError> {
        use std::os::fd::AsRawFd;
        let python = Python::of(&self.command, &self.search_path)?;
        let mut words = python.interpreter;
        // The file has no name; other processes of the user reach it through this one.
        let place = format!("/proc/{}/fd/{}", std::process::id(), result.as_raw_fd());
        words.extend(["-c", DRIVER, &self.function, &place, python.how].map(OsString::from));
        words.extend(python.program);
        Ok(words)
    }
}

/// A Python program, taken apart.
#[derive(Debug, PartialEq)]
struct Python {
    /// The interpreter and its options.
    interpreter: Vec<OsString>,
    how: &'static str,
    /// What is run, and its arguments.
    program: Vec<OsString>,
}

impl Python {
    fn of(command: &[OsString], search_path: &OsStr) -> Result<Self, BenchError> {
        let first = command.first().map(OsString::as_os_str).unwrap_or_default();
        if is_python(first) {
            require_program(first, search_path)?;
            return Self::split(command).ok_or_else(|| not_python(command, "names nothing to run"));
        }
        // A program whose first line names Python.
        let script = find_program(first, search_path);
        let interpreter = script.as_deref().and_then(interpreter_of);
        let (Some(script), Some(interpreter)) = (script, interpreter) else {
            return Err(not_python(command, "is not a Python program"));
        };
        let mut program = command.to_vec();
        program[0] = script.into();
        Ok(Self {
            interpreter,
            how: "script",
            program,
        })
    }

    /// Takes a command line of Python apart; None if nothing is run.
    fn split(command: &[OsString]) -> Option<Self> {
        let mut at = 1;
        let (how, program) = loop {
            match command.get(at)?.to_str() {
                Some("-m") => break ("module", at + 1),
                Some("-c") => break ("code", at + 1),
                Some(option) if option.starts_with('-') && option.len() > 1 => {
                    at += 1 + usize::from(WITH_VALUE.contains(&option));
                }
                _ => break ("script", at),
            }
        };
        let program = command.get(program..)?.to_vec();
        (!program.is_empty()).then(|| Self {
            interpreter: command[..at].to_vec(),
            how,
            program,
        })
    }
}

fn not_python(command: &[OsString], why: &str) -> BenchError {
    let text = Job::new(command.iter().cloned()).text();
    let remedy = Remedy::Profile(ProfileRemedy::NamePythonProgram);
    BenchError::usage_with(remedy, format!("`{text}` {why}"))
}

fn is_python(program: &OsStr) -> bool {
    let name = Path::new(program).file_name().unwrap_or_default();
    let name = name.as_bytes();
    name.starts_with(b"python") || name.starts_with(b"pypy")
}

/// The interpreter in the first line of a script, if it is Python.
fn interpreter_of(script: &Path) -> Option<Vec<OsString>> {
    let file = stook_sys::open_file(script).ok()?;
    let mut bytes = [0; 256];
    let read = stook_sys::read_up_to_at(&file, &mut bytes, 0).ok()?;
    let line = bytes[..read].split(|byte| *byte == b'\n').next()?;
    let line = std::str::from_utf8(line.strip_prefix(b"#!")?).ok()?;
    let words = line.split_whitespace();
    let words = words.skip_while(|word| word.ends_with("/env") || *word == "-S");
    let words: Vec<OsString> = words.map(Into::into).collect();
    is_python(words.first()?).then_some(words)
}

impl Wrong {
    fn error(self, module: &str, name: &str, command: &[OsString]) -> BenchError {
        let python = command.first().map(stook_sys::display_path);
        let (what, remedy) = match self {
            Self::LineProfiler { why } => {
                return BenchError::Missing {
                    what: format!("`{}` cannot time lines: {why}", python.unwrap_or_default()),
                    remedy: Remedy::Profile(ProfileRemedy::InstallLineProfiler),
                };
            }
            Self::Function { names } => (
                format!("`{module}` has no function `{name}`"),
                (!names.is_empty()).then_some(Remedy::Profile(ProfileRemedy::TimeOneOf(names))),
            ),
            Self::Source => (
                format!("`{module}:{name}` is not written in Python"),
                Some(Remedy::Profile(ProfileRemedy::SampleCompiled)),
            ),
            Self::Import => (
                format!("the program did not import `{module}`"),
                Some(Remedy::Profile(ProfileRemedy::UseMainModule)),
            ),
            Self::Call => (
                format!("the program did not call `{module}:{name}`"),
                Some(Remedy::Profile(ProfileRemedy::CallInSameProcess)),
            ),
        };
        BenchError::Refused { what, remedy }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "/usr/bin:/bin";

    fn of(words: &[&str]) -> Result<Python, BenchError> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        Python::of(&words, OsStr::new(PATH))
    }

    fn names_a_program() -> Remedy {
        Remedy::Profile(ProfileRemedy::NamePythonProgram)
    }

    fn python(interpreter: &[&str], how: &'static str, program: &[&str]) -> Python {
        let words = |words: &[&str]| words.iter().map(OsString::from).collect();
        Python {
            interpreter: words(interpreter),
            how,
            program: words(program),
        }
    }

    #[test]
    fn a_python_command_is_taken_apart() {
        // Any program of this name will do.
        let folder = stook_testkit::TempDir::new().unwrap();
        let path = folder.join("python3");
        std::os::unix::fs::symlink("/bin/sh", &path).unwrap();
        let name = path.to_str().unwrap();
        let options = [name, "-u", "-W", "ignore"];
        let script = ["a.py", "-m", "x"];
        let found = of(&[&options[..], &script].concat()).unwrap();
        assert_eq!(found, python(&options, "script", &script));
        let found = of(&[name, "-m", "a.b", "c"]).unwrap();
        assert_eq!(found, python(&[name], "module", &["a.b", "c"]));
        let found = of(&[name, "-c", "f()"]).unwrap();
        assert_eq!(found, python(&[name], "code", &["f()"]));
        for words in [&[name][..], &[name, "-m"], &[name, "-u"]] {
            let error = of(words).unwrap_err();
            assert!(
                error.to_string().ends_with("` names nothing to run"),
                "{error}"
            );
            assert_eq!(error.remedy(), Some(&names_a_program()));
        }
    }

    #[test]
    fn a_script_names_its_interpreter() {
        use std::os::unix::fs::PermissionsExt;
        let folder = stook_testkit::TempDir::new().unwrap();
        let path = folder.join("tool");
        let name = path.to_str().unwrap();
        for (line, expected) in [
            ("#!/usr/bin/env -S python3 -u", Some(&["python3", "-u"][..])),
            ("#!/opt/bin/python3.11", Some(&["/opt/bin/python3.11"])),
            ("#!/bin/sh", None),
            ("no script", None),
        ] {
            std::fs::write(&path, format!("{line}\nprint()\n")).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            let expected = expected.map(|words| python(words, "script", &[name, "a"]));
            assert_eq!(of(&[name, "a"]).ok(), expected, "{line}");
        }
        let error = of(&["ls", "-l"]).unwrap_err();
        assert_eq!(error.to_string(), "`ls -l` is not a Python program");
        assert_eq!(error.remedy(), Some(&names_a_program()));
    }
}
