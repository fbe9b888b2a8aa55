//! A double of `hsi`, the program that reaches HPSS.
//!
//! # Source
//! HSI Reference Manual 8.3: path names (6), checksums (7), command line (4), `hashverify`, `put`; what real runs
//! print, as their users have published it. The texts of errors are similar, not the same.

mod commands;
mod files;
mod grammar;

use std::io::Write;
use std::path::{Path, PathBuf};

use super::Double;
use super::session::Session;
use commands::Failure;
use files::Files;
use grammar::{Request, requests};

/// Where a path begins that has no slash in front.
const HOME: &str = "/home/u/user";

impl Double {
    /// Gives a file of HPSS other bytes, as a program does that stores no hash.
    ///
    /// # Panics
    /// If the state cannot be written.
    pub fn overwrite(&self, path: &str, bytes: &[u8]) {
        let files = Files::new(self.folder());
        let data = files.data(path);
        std::fs::create_dir_all(data.parent().expect("it lies in `data`"))
            .and_then(|()| std::fs::write(data, bytes))
            .expect("the state can be written");
        files.set_md5(path, None);
    }

    /// Returns the bytes of a file of HPSS; None if it has none of this path.
    #[must_use]
    pub fn content(&self, path: &str) -> Option<Vec<u8>> {
        std::fs::read(Files::new(self.folder()).data(path)).ok()
    }

    /// Changes bytes where they lie, which no stored hash notices.
    ///
    /// # Panics
    /// If there is no such file.
    pub fn rot(&self, path: &str) {
        let data = Files::new(self.folder()).data(path);
        let mut bytes = std::fs::read(&data).expect("there is such a file");
        bytes[0] ^= 1;
        std::fs::write(data, bytes).expect("the state can be written");
    }
}

/// Runs the double; returns the exit code.
///
/// # Panics
/// If its state cannot be read or written.
#[must_use]
pub fn run(folder: &Path, arguments: &[String]) -> u8 {
    let mut hsi = Hsi::new(folder);
    let line = match hsi.take_options(arguments) {
        Ok(line) => line,
        Err(message) => {
            hsi.say(&format!("*** hsi: {message}"));
            return 64;
        }
    };
    if !hsi.session.is_logged_in() {
        hsi.log_in_failed();
        return hsi.exit_code(70);
    }
    let code = match hsi.line(&line, &mut [].iter()) {
        Ok(()) => hsi.code,
        Err(()) => 70,
    };
    hsi.exit_code(code)
}

/// A run.
struct Hsi {
    session: Session,
    files: Files,
    /// Messages go to standard output, and there are few.
    is_popen: bool,
    remote: String,
    local: PathBuf,
    code: u8,
}

impl Hsi {
    fn new(folder: &Path) -> Self {
        Self {
            session: Session::begin(folder),
            files: Files::new(folder),
            is_popen: false,
            remote: HOME.to_owned(),
            local: std::env::current_dir().expect("there is a working directory"),
            code: 0,
        }
    }

    /// Takes the options of the program; returns the line of commands behind them.
    fn take_options(&mut self, arguments: &[String]) -> Result<String, String> {
        let mut rest = arguments;
        while let [option, behind @ ..] = rest {
            rest = match option.as_str() {
                "-q" => behind,
                "-P" => {
                    self.is_popen = true;
                    behind
                }
                "-a" | "-A" | "-h" | "-k" | "-l" | "-p" => {
                    behind.get(1..).ok_or(format!("{option} needs a value"))?
                }
                other if other.starts_with('-') => return Err(format!("unknown option {other}")),
                _ => break,
            };
        }
        if rest.is_empty() {
            return Err("this double has no interactive mode".to_owned());
        }
        Ok(rest.join(" "))
    }

    /// Runs the requests of a line; `following` are the lines behind it. Err ends the session.
    fn line(&mut self, line: &str, following: &mut dyn Iterator<Item = &String>) -> Result<(), ()> {
        let requests = match requests(line) {
            Ok(requests) => requests,
            Err(message) => {
                self.fail(&Failure::grammar(&message));
                return Ok(());
            }
        };
        for request in requests {
            let mut listed = Vec::new();
            if let Some(marker) = &request.marker {
                loop {
                    match following.next() {
                        Some(line) if line.split_whitespace().next() == Some(marker) => break,
                        Some(line) => listed.push(line.clone()),
                        None => {
                            self.fail(&Failure::grammar("the marker is missing"));
                            return Ok(());
                        }
                    }
                }
            }
            self.request(&request, &listed)?;
        }
        Ok(())
    }

    fn request(&mut self, request: &Request, listed: &[String]) -> Result<(), ()> {
        let command = request.words[0].clone();
        self.session.log(&request.words.join(" "));
        if !self.session.operate(&command) {
            self.log_in_failed();
            return Err(());
        }
        if !self.session.is_reachable() {
            self.say("*** hpssex_OpenConnection: Connection refused");
            self.say("Unable to setup communication to HPSS...");
            self.say("Error - authentication/initialization failed");
            return Err(());
        }
        if command == "in" {
            return self.commands_of(&request.words[1..]);
        }
        match self.command(&command, &request.words[1..], listed) {
            Ok(()) => Ok(()),
            Err(Failure::Ended) => Err(()),
            Err(Failure::Login) => {
                self.log_in_failed();
                Err(())
            }
            Err(failure) => {
                self.fail(&failure);
                Ok(())
            }
        }
    }

    /// Runs the commands in a local file.
    fn commands_of(&mut self, words: &[String]) -> Result<(), ()> {
        let [name] = words else {
            self.fail(&Failure::grammar("in FILE"));
            return Ok(());
        };
        let Ok(text) = std::fs::read_to_string(self.local.join(name)) else {
            self.fail(&Failure::Said(format!("in: cannot open {name}"), 66));
            return Ok(());
        };
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let mut lines = lines.iter();
        while let Some(line) = lines.next() {
            self.line(line, &mut lines)?;
        }
        Ok(())
    }

    fn fail(&mut self, failure: &Failure) {
        let (text, code) = failure.text();
        self.say(&text);
        self.code = code;
    }

    fn log_in_failed(&self) {
        self.say("result = -11000, errno = 29");
        self.say("Unable to authenticate user with HPSS.");
        self.say("*** HSI: error opening logging");
        self.say("Error - authentication/initialization failed");
    }

    /// Writes a line where this run's messages go.
    fn say(&self, line: &str) {
        let written = match self.is_popen {
            true => writeln!(std::io::stdout(), "{line}"),
            false => writeln!(std::io::stderr(), "{line}"),
        };
        // Nobody may be reading.
        let _ = written;
    }

    fn exit_code(&self, code: u8) -> u8 {
        match self.session.trouble.exits_zero {
            true => 0,
            false => code,
        }
    }

    /// Returns the whole path of a remote name.
    fn absolute(&self, name: &str) -> String {
        let name = name.trim_end_matches('/');
        match name.strip_prefix("./").unwrap_or(name) {
            path if path.starts_with('/') => path.to_owned(),
            "" | "." => self.remote.clone(),
            relative => format!("{}/{relative}", self.remote),
        }
    }
}
