//! A double of `globus`, the command line of the Globus service.
//!
//! The service itself has no process here: each call first lets the tasks that are active go on, for as long as has
//! passed since, and then answers. So a task goes on while nobody waits for it, as far as anybody can see.
//!
//! # Source
//! Globus CLI reference: `transfer`, `task`, `ls`, `rename`, `delete`; its public source for exit codes, the JSON of
//! errors, and how lines of a batch are taken apart.

mod arguments;
mod commands;
mod endpoints;
mod tasks;

use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::Double;
use super::session::Session;
use arguments::Arguments;
use endpoints::Endpoints;

impl Double {
    /// Adds an endpoint; its files lie in this folder, or in one of the double's.
    ///
    /// # Panics
    /// If the state cannot be written.
    pub fn add_endpoint(&self, id: &str, root: Option<&Path>) {
        let own = self.folder().join("data").join(id);
        std::fs::create_dir_all(&own).expect("the state can be written");
        Endpoints::add(self.folder(), id, root.unwrap_or(&own));
    }

    /// Returns where a path of an endpoint lies.
    ///
    /// # Panics
    /// If there is no such endpoint.
    #[must_use]
    pub fn endpoint_path(&self, id: &str, path: &str) -> PathBuf {
        let endpoints = Endpoints::new(self.folder());
        endpoints.path(id, path).expect("the endpoint was added")
    }

    /// Returns the states of all tasks, the oldest first.
    #[must_use]
    pub fn task_states(&self) -> Vec<String> {
        let tasks = tasks::all(self.folder());
        tasks.into_iter().map(|task| task.status).collect()
    }
}

/// Why a command failed.
#[derive(Debug)]
enum Failure {
    /// It was called wrongly.
    Usage(String),
    /// Nobody is logged in.
    Login,
    /// The service refused it: HTTP status, code, message.
    Service(u16, &'static str, String),
}

type Result<T> = std::result::Result<T, Failure>;

/// Runs the double; returns the exit code.
///
/// # Panics
/// If its state cannot be read or written.
#[must_use]
pub fn run(folder: &Path, words: &[String]) -> u8 {
    let session = Session::begin(folder);
    session.log(&words.join(" "));
    tasks::go_on(&session);
    let answer = Arguments::of(words).and_then(|arguments| {
        let name = arguments.command.join(" ");
        if !session.operate(&name) {
            return Err(Failure::Login);
        }
        if !session.is_reachable() {
            let message = "The service is out of reach".to_owned();
            return Err(Failure::Service(503, "ServiceUnavailable", message));
        }
        commands::answer(&session, &arguments)
    });
    let code = match answer {
        Ok(value) => {
            say(&mut std::io::stdout(), &pretty(&value));
            0
        }
        Err(failure) => failure.tell(),
    };
    match session.trouble.exits_zero {
        true => 0,
        false => code,
    }
}

impl Failure {
    /// Writes it as the program does; returns the exit code.
    fn tell(&self) -> u8 {
        let mut stderr = std::io::stderr();
        match self {
            Self::Usage(message) => {
                say(
                    &mut stderr,
                    &format!("Usage: globus ...\n\nError: {message}"),
                );
                2
            }
            Self::Login => {
                let text = "MissingLoginError: Missing login for Globus Transfer.\nPlease run:\n\n  globus login\n";
                say(&mut stderr, text);
                4
            }
            Self::Service(status, code, message) => {
                let error = json!({
                    "error_name": "Transfer API Error",
                    "HTTP status": status.to_string(),
                    "request_id": "aBcDeFgHi",
                    "code": code,
                    "message": message,
                });
                say(&mut stderr, &pretty(&error));
                1
            }
        }
    }
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).expect("it is plain data")
}

fn say(stream: &mut dyn Write, text: &str) {
    // Nobody may be reading.
    let _ = writeln!(stream, "{text}");
}
