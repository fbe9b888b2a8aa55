//! The lines of one Python function: how often each ran, and how long, by `line_profiler`.
//!
//! The command is run once, by its own interpreter, with a driver (`lines.py`) in front: what the driver finds comes back
//! through a file in memory. Only the named function is slowed down, by about 0.2 microseconds a line.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::rights::{find_program, no_program};
use crate::Observer;
use crate::error::BenchError;
use crate::job::Job;

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

/// What the driver tells.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Told {
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

/// Runs a Python program and times the lines of one of its functions. A program that fails is told beside them.
///
/// # Errors
/// [`BenchError::Usage`] if the command is no Python program or the function has no such form;
/// [`BenchError::Missing`] without `line_profiler`; [`BenchError::Refused`] if there is no such function, or it was not
/// called; [`BenchError::Command`] if the program failed before it could be timed.
pub fn profile_lines(
    options: &LinesOptions,
    observer: &dyn Observer,
) -> Result<(Vec<TimedFunction>, Option<BenchError>), BenchError> {
    let (module, name) = options.function.split_once(':').unwrap_or_default();
    if module.is_empty() || name.is_empty() {
        let text = format!(
            "`{}` is not MODULE:FUNCTION, such as `__main__:main` or `shop.cart:Cart.total`",
            options.function
        );
        return Err(BenchError::Usage(text));
    }
    let result = stook_sys::memory_file()?;
    let job = Job::new(options.words(&result)?);
    observer.progress("running the program, timing lines");
    let ran = job.run(observer)?;
    let told = crate::job::kept_text(&result)?;
    let program = Job::new(options.command.iter().cloned());
    let failure = (!ran.status.success()).then(|| program.failed("while it was timed", &ran));
    match (serde_json::from_str(&told), failure) {
        (Ok(Told::Found { functions }), failure) => Ok((functions, failure)),
        // It failed before it came so far.
        (Ok(Told::Wrong(Wrong::Import | Wrong::Call)), Some(failure)) => Err(failure),
        (Ok(Told::Wrong(wrong)), _) => Err(wrong.error(module, name, &options.command)),
        (Err(_), Some(failure)) => Err(failure),
        (Err(_), None) => Err(BenchError::Refused {
            what: format!("`{}` ended without telling what it timed", program.text()),
            hint: Some("a program that ends with `os._exit` cannot be timed".to_owned()),
        }),
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
        let (first, rest) = command
            .split_first()
            .ok_or_else(|| BenchError::Usage("no command was given".to_owned()))?;
        let found = find_program(first, search_path);
        if is_python(first) {
            found.ok_or_else(|| no_program(first))?;
            return Self::taken_apart(first, rest);
        }
        // A program whose first line names Python.
        let interpreter = found.as_deref().and_then(interpreter_of);
        match (found, interpreter) {
            (Some(script), Some(interpreter)) => Ok(Self {
                interpreter,
                how: "script",
                program: std::iter::once(script.into())
                    .chain(rest.iter().cloned())
                    .collect(),
            }),
            _ => Err(no_python(command)),
        }
    }

    fn taken_apart(interpreter: &OsStr, rest: &[OsString]) -> Result<Self, BenchError> {
        let mut interpreter = vec![interpreter.to_owned()];
        let mut words = rest.iter();
        while let Some(word) = words.next() {
            let how = match word.to_str() {
                Some("-m") => "module",
                Some("-c") => "code",
                Some(option) if option.starts_with('-') && option.len() > 1 => {
                    interpreter.push(word.clone());
                    if WITH_VALUE.contains(&option) {
                        interpreter.extend(words.next().cloned());
                    }
                    continue;
                }
                _ => {
                    let program = std::iter::once(word).chain(words).cloned().collect();
                    return Ok(Self {
                        interpreter,
                        how: "script",
                        program,
                    });
                }
            };
            let program: Vec<OsString> = words.cloned().collect();
            if program.is_empty() {
                break;
            }
            return Ok(Self {
                interpreter,
                how,
                program,
            });
        }
        Err(BenchError::Usage(
            "`--lines` takes a Python program: a script, `-m MODULE` or `-c CODE` is missing"
                .to_owned(),
        ))
    }
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

fn no_python(command: &[OsString]) -> BenchError {
    let text = Job::new(command.iter().cloned()).text();
    BenchError::Usage(format!(
        "`{text}` is not a Python program: `--lines` takes `python3 SCRIPT` or such"
    ))
}

impl Wrong {
    fn error(self, module: &str, name: &str, command: &[OsString]) -> BenchError {
        let python = command
            .first()
            .map(stook_sys::display_path)
            .unwrap_or_default();
        match self {
            Self::LineProfiler { why } => BenchError::Missing {
                what: format!("`{python}` cannot time lines: {why}"),
                hint: "`pip install line_profiler`, for the same Python".to_owned(),
            },
            Self::Function { names } => BenchError::Refused {
                what: format!("`{module}` has no function `{name}`"),
                hint: (!names.is_empty()).then(|| format!("it has {}", listed(&names))),
            },
            Self::Source => BenchError::Refused {
                what: format!("`{module}:{name}` is not written in Python"),
                hint: Some("`--on-cpu` shows what compiled functions do".to_owned()),
            },
            Self::Import => BenchError::Refused {
                what: format!("the program did not import `{module}`"),
                hint: Some("functions of the program itself are in `__main__`".to_owned()),
            },
            Self::Call => BenchError::Refused {
                what: format!("the program did not call `{module}:{name}`"),
                hint: Some("calls in other processes are not seen".to_owned()),
            },
        }
    }
}

/// The first of some names.
fn listed(names: &[String]) -> String {
    const MOST: usize = 12;
    let quoted: Vec<String> = names
        .iter()
        .take(MOST)
        .map(|name| format!("`{name}`"))
        .collect();
    let more = if names.len() > MOST { ", and more" } else { "" };
    quoted.join(", ") + more
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "/usr/bin:/bin";

    fn of(words: &[&str]) -> Result<Python, BenchError> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        Python::of(&words, OsStr::new(PATH))
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
        let script = of(&[name, "-u", "-W", "ignore", "a.py", "-m", "x"]).unwrap();
        assert_eq!(
            script,
            python(
                &[name, "-u", "-W", "ignore"],
                "script",
                &["a.py", "-m", "x"]
            )
        );
        assert_eq!(
            of(&[name, "-m", "a.b", "c"]).unwrap(),
            python(&[name], "module", &["a.b", "c"])
        );
        assert_eq!(
            of(&[name, "-c", "f()"]).unwrap(),
            python(&[name], "code", &["f()"])
        );
        for words in [&[name][..], &[name, "-m"], &[name, "-u"]] {
            let error = of(words).unwrap_err();
            assert!(matches!(error, BenchError::Usage(_)), "{error}");
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
            let found = of(&[name, "a"]).ok();
            assert_eq!(
                found,
                expected.map(|words| python(words, "script", &[name, "a"])),
                "{line}"
            );
        }
        let error = of(&["ls", "-l"]).unwrap_err().to_string();
        assert!(
            error.starts_with("`ls -l` is not a Python program"),
            "{error}"
        );
    }
}
