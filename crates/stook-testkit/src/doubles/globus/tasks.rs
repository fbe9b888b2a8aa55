//! Tasks of the double of `globus`, and how they go on.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use md5::{Digest, Md5};
use serde::{Deserialize, Serialize};

use super::endpoints::Endpoints;
use crate::doubles::session::{Session, Turn, change_counters, change_json, exclusive, read_json};

const NAME: &str = "tasks.json";

/// A task of the service.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Task {
    pub(super) id: String,
    /// TRANSFER or DELETE.
    pub(super) kind: String,
    pub(super) label: String,
    /// ACTIVE, SUCCEEDED or FAILED.
    pub(super) status: String,
    pub(super) nice_status: String,
    pub(super) fatal_error: Option<(String, String)>,
    pub(super) source: String,
    pub(super) destination: String,
    pub(super) items: Vec<Item>,
    pub(super) verify: bool,
    pub(super) ignore_missing: bool,
    pub(super) bytes: u64,
    pub(super) faults: u64,
    pub(super) done: usize,
    /// How often it was looked at.
    pub(super) looks: u64,
    /// When it began, in milliseconds.
    pub(super) begun: u64,
}

/// One file of a task.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Item {
    pub(super) source: String,
    pub(super) destination: String,
    pub(super) md5: Option<String>,
    /// What happens to it, once it has begun.
    turn: Option<String>,
}

impl Item {
    pub(super) fn new(source: &str, destination: &str, md5: Option<&str>) -> Self {
        Self {
            source: source.to_owned(),
            destination: destination.to_owned(),
            md5: md5.map(str::to_owned),
            turn: None,
        }
    }
}

pub(super) fn all(folder: &Path) -> Vec<Task> {
    read_json(&folder.join(NAME))
}

/// Adds a task; returns its identifier.
pub(super) fn add(folder: &Path, mut task: Task) -> String {
    change_json(folder, NAME, |tasks: &mut Vec<Task>| {
        task.id = format!("00000000-0000-4000-8000-{:012}", tasks.len() + 1);
        task.status = "ACTIVE".to_owned();
        task.nice_status = "Queued".to_owned();
        task.begun = now();
        let id = task.id.clone();
        tasks.push(task);
        id
    })
}

/// Ends a task that is active; returns false if it is not.
pub(super) fn cancel(folder: &Path, id: &str) -> bool {
    // Not while another call lets it go on.
    let _lock = exclusive(folder, "work");
    change_json(folder, NAME, |tasks: &mut Vec<Task>| {
        let active = tasks
            .iter_mut()
            .find(|task| task.id == id && task.status == "ACTIVE");
        active.is_some_and(|task| {
            task.fail("CANCELED", "The task was canceled");
            true
        })
    })
}

/// Lets all active tasks go on. Only the first look at a task finds it queued.
pub(super) fn go_on(session: &Session) {
    // One call after the other: two would move the same bytes twice.
    let _lock = exclusive(&session.folder, "work");
    let mut tasks = all(&session.folder);
    for task in tasks.iter_mut().filter(|task| task.status == "ACTIVE") {
        task.looks += 1;
        if task.looks > 1 {
            task.go_on(session);
        }
    }
    let changed = tasks;
    change_json(&session.folder, NAME, |tasks: &mut Vec<Task>| {
        for (known, changed) in tasks.iter_mut().zip(changed) {
            // Another call may have ended it.
            if known.status == "ACTIVE" {
                *known = changed;
            }
        }
    });
}

impl Task {
    fn fail(&mut self, code: &str, description: &str) {
        self.status = "FAILED".to_owned();
        self.nice_status = code.to_owned();
        self.fatal_error = Some((code.to_owned(), description.to_owned()));
    }

    fn save(&self, folder: &Path) {
        change_json(folder, NAME, |tasks: &mut Vec<Task>| {
            let known = tasks.iter_mut().find(|task| task.id == self.id);
            known.expect("tasks stay").clone_from(self);
        });
    }

    fn go_on(&mut self, session: &Session) {
        let endpoints = Endpoints::new(&session.folder);
        self.nice_status = "OK".to_owned();
        while self.done < self.items.len() && self.status == "ACTIVE" {
            let has_ended = match self.kind.as_str() {
                "DELETE" => self.delete(&endpoints),
                _ => self.transfer(session, &endpoints),
            };
            match has_ended {
                Ok(true) => self.done += 1,
                Ok(false) => return,
                Err(error) => {
                    self.faults += 1;
                    self.nice_status = match error.kind() {
                        io::ErrorKind::NotFound => "FILE_NOT_FOUND".to_owned(),
                        io::ErrorKind::PermissionDenied => "PERMISSION_DENIED".to_owned(),
                        _ => "ENDPOINT_ERROR".to_owned(),
                    };
                    return;
                }
            }
        }
        if self.status == "ACTIVE" {
            self.status = "SUCCEEDED".to_owned();
        }
    }

    fn delete(&mut self, endpoints: &Endpoints) -> io::Result<bool> {
        let path = endpoints.path(&self.source, &self.items[self.done].source);
        let path = path.map_err(|_no_endpoint| io::Error::from(io::ErrorKind::NotFound))?;
        match std::fs::remove_file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.ignore_missing => {
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.fail("FILE_NOT_FOUND", "No such file");
                Ok(false)
            }
            removed => removed.map(|()| true),
        }
    }

    /// Moves what may have moved by now of the file that is next; true once it is done.
    fn transfer(&mut self, session: &Session, endpoints: &Endpoints) -> io::Result<bool> {
        let missing = |_| io::Error::from(io::ErrorKind::NotFound);
        let item = &self.items[self.done];
        let from = endpoints
            .path(&self.source, &item.source)
            .map_err(missing)?;
        let to = endpoints
            .path(&self.destination, &item.destination)
            .map_err(missing)?;
        let mut from = File::open(from)?;
        let size = from.metadata()?.len();
        let turn = match &item.turn {
            Some(turn) => turn.clone(),
            None => {
                let turn = format!("{:?}", session.transfer());
                std::fs::create_dir_all(to.parent().unwrap_or(Path::new("/")))?;
                File::create(&to)?;
                self.items[self.done].turn = Some(turn.clone());
                // At once: this call may be killed, and the file must not begin anew then.
                self.save(&session.folder);
                turn
            }
        };
        let is = |expected: Turn| turn == format!("{expected:?}");
        let is_out = endpoints.is_local(&self.destination);
        let room = session.trouble.capacity.unwrap_or(u64::MAX);
        if !is_out && size > room {
            self.fail("QUOTA_EXCEEDED", "Disk quota exceeded");
            return Ok(false);
        }
        let mut to = OpenOptions::new().read(true).write(true).open(to)?;
        let most = if is(Turn::Whole) { size } else { size / 2 };
        let moved = self.move_some(session, &mut from, &mut to, most)?;
        change_counters(&session.folder, |counters| {
            counters.login_bytes += moved;
            match is_out {
                true => counters.bytes_out += moved,
                false => counters.bytes_in += moved,
            }
        });
        if to.metadata()?.len() < most || is(Turn::Hangs) {
            return Ok(false);
        }
        if is(Turn::Fails) {
            self.fail("ENDPOINT_ERROR", "The connection to the endpoint was lost");
            return Ok(false);
        }
        self.end_file(session, &mut from, &mut to, is(Turn::Truncated))
    }

    fn move_some(
        &mut self,
        session: &Session,
        from: &mut File,
        to: &mut File,
        most: u64,
    ) -> io::Result<u64> {
        let have = to.metadata()?.len();
        let left = match session.trouble.bytes_per_second {
            Some(rate) => ((now() - self.begun) * rate / 1000).saturating_sub(self.bytes),
            None => u64::MAX,
        };
        from.seek(SeekFrom::Start(have))?;
        to.seek(SeekFrom::Start(have))?;
        let moved = io::copy(&mut from.take(left.min(most - have)), to)?;
        self.bytes += moved;
        Ok(moved)
    }

    /// Compares both ends, if that is asked for. A truncated file is reported as good: the service lies then.
    fn end_file(
        &mut self,
        session: &Session,
        from: &mut File,
        to: &mut File,
        is_truncated: bool,
    ) -> io::Result<bool> {
        if session.trouble.lies && to.metadata()?.len() > 0 {
            to.seek(SeekFrom::Start(0))?;
            to.write_all(b"\xff")?;
        }
        if !self.verify || is_truncated {
            return Ok(true);
        }
        let (sent, arrived) = (hash(from)?, hash(to)?);
        let expected = self.items[self.done].md5.as_ref();
        if sent != arrived || expected.is_some_and(|md5| *md5 != sent) {
            self.fail(
                "VERIFY_CHECKSUM",
                "The checksums of source and destination differ",
            );
            return Ok(false);
        }
        Ok(true)
    }
}

fn hash(file: &mut File) -> io::Result<String> {
    file.seek(SeekFrom::Start(0))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let digest: [u8; 16] = Md5::digest(&bytes).into();
    Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.expect("it is after 1970").as_millis();
    u64::try_from(now).expect("it is before the year 500,000,000")
}
