//! Tasks of the Globus service: submitted, found again, watched to their end.
//!
//! A task goes on without this program. One whose end nobody saw is found again by its label, which is a hash of what it
//! transfers, and waited for: the same bytes are not sent twice.

use std::time::{Duration, Instant};

use serde_json::Value;
use stook_md5::Md5;

use super::GlobusStore;
use super::answer::{NAME, known, login, said};
use crate::error::StoreCause;
use crate::program::Input;
use crate::transfer::TransferObserver;

/// How often the observer is asked while nothing is to be done.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// The first pause before a task is looked at again; each is twice the one before, up to what the options say.
const FIRST_POLL: Duration = Duration::from_millis(125);

/// Most of the conditions of an active task pass by themselves; these do not.
const LASTING: [&str; 4] = ["PERMISSION_DENIED", "FILE_NOT_FOUND", "QUOTA", "NO_SPACE"];

/// A transfer of files from one endpoint to another.
pub(super) struct Transfer<'a> {
    pub(super) source: &'a str,
    pub(super) destination: &'a str,
    /// A line for each file.
    pub(super) batch: String,
    pub(super) label: &'a str,
}

/// Returns the label of a transfer, in the characters that labels may have: two that agree in all parts are the same.
pub(super) fn label_of(parts: &[&str]) -> String {
    let mut md5 = Md5::new();
    for part in parts {
        md5.update(&(part.len() as u64).to_le_bytes());
        md5.update(part.as_bytes());
    }
    let digits = md5.finish().map(|byte| format!("{byte:02x}"));
    format!("stook {}", digits.concat())
}

/// What became of an earlier task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Earlier {
    None,
    Active(String),
    Succeeded,
}

impl GlobusStore {
    /// Submits a transfer and waits for its end. Interrupted, it leaves the task as it is.
    pub(super) fn transfer(
        &self,
        transfer: &Transfer<'_>,
        observer: &dyn TransferObserver,
    ) -> Result<(), StoreCause> {
        let id = self.submit(transfer, observer)?;
        self.wait(&id, observer)
    }

    /// Submits a transfer; returns the identifier of its task.
    pub(super) fn submit(
        &self,
        transfer: &Transfer<'_>,
        observer: &dyn TransferObserver,
    ) -> Result<String, StoreCause> {
        let arguments = [
            "transfer",
            transfer.source,
            transfer.destination,
            "--batch",
            "-",
            "--label",
            transfer.label,
            "--verify-checksum",
            "--preserve-timestamp",
            "--fail-on-quota-errors",
            "--notify",
            "off",
        ];
        let input = Input::Bytes(transfer.batch.clone().into_bytes());
        task_id(&self.call(&arguments, input, observer)?)
    }

    /// Looks for the last task with a label.
    pub(super) fn earlier(
        &self,
        label: &str,
        observer: &dyn TransferObserver,
    ) -> Result<Earlier, StoreCause> {
        let states = ["--filter-status", "ACTIVE", "--filter-status", "SUCCEEDED"];
        let arguments = [&["task", "list", "--filter-label", label], &states[..]].concat();
        let answer = self.call(&arguments, Input::Nothing, observer)?;
        let mut tasks = answer["DATA"].as_array().into_iter().flatten();
        match tasks.find(|task| task["label"] == label) {
            Some(task) if task["status"] == "ACTIVE" => Ok(Earlier::Active(task_id(task)?)),
            Some(_) => Ok(Earlier::Succeeded),
            None => Ok(Earlier::None),
        }
    }

    /// Waits for the end of a task.
    ///
    /// # Errors
    /// Why it failed; `Timeout`, and `Interrupted`: the task goes on then.
    pub(super) fn wait(&self, id: &str, observer: &dyn TransferObserver) -> Result<(), StoreCause> {
        let (mut moved, mut known) = (Instant::now(), (0, 0));
        // A small file arrives within a second, a large one need not be asked for that often.
        let mut next = FIRST_POLL.min(self.options.poll_every);
        loop {
            match self.call(&["task", "show", id], Input::Nothing, observer) {
                Ok(task) => {
                    let has_ended = has_ended(&task).inspect_err(|_| {
                        if task["status"] == "ACTIVE" {
                            self.cancel(id);
                        }
                    });
                    if has_ended? {
                        observer.transferred(bytes(&task).saturating_sub(known.0));
                        return Ok(());
                    }
                    let now = (
                        bytes(&task),
                        task["files_transferred"].as_u64().unwrap_or(0),
                    );
                    if now != known {
                        observer.transferred(now.0.saturating_sub(known.0));
                        (moved, known) = (Instant::now(), now);
                    }
                }
                // The service may be out of reach for a while; the task goes on.
                Err(StoreCause::Said { .. } | StoreCause::Timeout(_)) => {}
                Err(cause) => return Err(cause),
            }
            if moved.elapsed() > self.options.patience {
                self.cancel(id);
                return Err(StoreCause::Timeout(self.options.patience.as_secs()));
            }
            pause(next, observer)?;
            next = (next * 2).min(self.options.poll_every);
        }
    }

    /// Asks the service to end a task, without waiting for the answer.
    pub(super) fn cancel(&self, id: &str) {
        let program = &self.options.program;
        crate::program::start_and_leave(program, &["task", "cancel", id, "--format", "json"]);
    }
}

/// Returns true if a task has succeeded, false if it goes on.
fn has_ended(task: &Value) -> Result<bool, StoreCause> {
    let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
    let condition = text(&task["nice_status"]);
    match task["status"].as_str() {
        Some("SUCCEEDED") => Ok(true),
        Some("ACTIVE") if LASTING.iter().any(|lasting| condition.contains(lasting)) => {
            Err(known(&condition).unwrap_or_else(|| said(condition)))
        }
        Some("ACTIVE") => Ok(false),
        // The credentials of an endpoint have expired.
        Some("INACTIVE") => Err(login("")),
        Some("FAILED") => {
            let code = text(&task["fatal_error"]["code"]);
            let description = text(&task["fatal_error"]["description"]);
            Err(known(&code).unwrap_or_else(|| said(format!("{code}: {description}"))))
        }
        _ => Err(StoreCause::Answer {
            program: NAME.to_owned(),
            text: "a task without a status".to_owned(),
        }),
    }
}

fn bytes(task: &Value) -> u64 {
    task["bytes_transferred"].as_u64().unwrap_or(0)
}

fn task_id(answer: &Value) -> Result<String, StoreCause> {
    let id = answer["task_id"].as_str().map(str::to_owned);
    id.ok_or_else(|| StoreCause::Answer {
        program: NAME.to_owned(),
        text: "no task".to_owned(),
    })
}

fn pause(duration: Duration, observer: &dyn TransferObserver) -> Result<(), StoreCause> {
    let end = Instant::now() + duration;
    loop {
        if observer.is_interrupted() {
            return Err(StoreCause::Interrupted);
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        std::thread::sleep(left.min(ASK_EVERY));
    }
}
