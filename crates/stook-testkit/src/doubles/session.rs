//! One run of a double: what it counts, and what goes wrong in it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::trouble::Trouble;

/// Bytes that move at once.
const PIECE_BYTES: usize = 64 << 10;

/// What a double has counted since it was made; the last three since the last change of its trouble.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counters {
    /// Runs of the program.
    pub sessions: u64,
    /// Bytes that were put.
    pub bytes_in: u64,
    /// Bytes that were got.
    pub bytes_out: u64,
    /// Tapes that were mounted.
    pub mounts: u64,
    /// Times that a tape was wound back.
    pub rewinds: u64,
    /// Files that were transferred, or begun.
    pub transfers: u64,
    /// Operations of this login.
    pub login_operations: u64,
    /// Bytes of this login.
    pub login_bytes: u64,
}

/// What happens to a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    Whole,
    Truncated,
    Fails,
    Hangs,
}

/// A run of a double.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) folder: PathBuf,
    pub(super) trouble: Trouble,
}

impl Session {
    pub(super) fn begin(folder: &Path) -> Self {
        let trouble = Trouble::read(folder);
        if trouble.ignores_term {
            let signal = signal_hook::consts::SIGTERM;
            let flag = std::sync::Arc::default();
            signal_hook::flag::register(signal, flag).expect("SIGTERM can be caught");
        }
        change_counters(folder, |counters| counters.sessions += 1);
        let folder = folder.to_owned();
        Self { folder, trouble }
    }

    /// Writes a line to the log.
    pub(super) fn log(&self, line: &str) {
        let path = self.folder.join("log");
        let mut log = OpenOptions::new().create(true).append(true).open(path);
        let log = log.as_mut().expect("the state can be written");
        writeln!(log, "{line}").expect("the state can be written");
    }

    /// Counts an operation; waits for ever if this is the one. Returns whether somebody is logged in.
    pub(super) fn operate(&self, command: &str) -> bool {
        let is_valid = self.is_logged_in();
        change_counters(&self.folder, |counters| counters.login_operations += 1);
        if is_valid && self.trouble.hang_on.as_deref() == Some(command) {
            wait_for_ever();
        }
        is_valid
    }

    /// Returns whether the service can be reached by the operation that was counted last.
    pub(super) fn is_reachable(&self) -> bool {
        let number = counters(&self.folder).login_operations;
        let down = |(from, len): (u64, u64)| (from..from + len).contains(&number);
        !self.trouble.unreachable.is_some_and(down)
    }

    pub(super) fn is_logged_in(&self) -> bool {
        let counters = counters(&self.folder);
        let is_below = |limit: Option<u64>, count| limit.is_none_or(|limit| count < limit);
        is_below(self.trouble.login_operations, counters.login_operations)
            && is_below(self.trouble.login_bytes, counters.login_bytes)
    }

    /// Counts a transfer and returns what happens to it.
    pub(super) fn transfer(&self) -> Turn {
        let counters = change_counters(&self.folder, |counters| counters.transfers += 1);
        let is_this = |number: Option<u64>| number == Some(counters.transfers);
        match &self.trouble {
            trouble if is_this(trouble.hang_at) => Turn::Hangs,
            trouble if is_this(trouble.fail_at) => Turn::Fails,
            trouble if is_this(trouble.truncate_at) => Turn::Truncated,
            _ => Turn::Whole,
        }
    }

    /// Moves bytes, slowly if they should; returns how many.
    pub(super) fn copy(
        &self,
        from: &mut dyn Read,
        to: &mut dyn Write,
        turn: Turn,
        size: u64,
        count: fn(&mut Counters, u64),
    ) -> io::Result<u64> {
        let most = match turn {
            Turn::Whole => u64::MAX,
            _ => size / 2,
        };
        let (mut buffer, mut moved) = (vec![0; PIECE_BYTES], 0);
        // Slow ones move a little ten times a second.
        let rate = self.trouble.bytes_per_second.unwrap_or(u64::MAX);
        let piece = (rate / 10).clamp(1, PIECE_BYTES as u64);
        loop {
            let len = (most - moved).min(piece);
            let len = from.read(&mut buffer[..usize::try_from(len).unwrap_or(PIECE_BYTES)])?;
            if len == 0 {
                break;
            }
            to.write_all(&buffer[..len])?;
            to.flush()?;
            moved += len as u64;
            change_counters(&self.folder, |counters| {
                count(counters, len as u64);
                counters.login_bytes += len as u64;
            });
            if let Some(rate) = self.trouble.bytes_per_second {
                #[expect(clippy::cast_precision_loss, reason = "a time need not be exact")]
                std::thread::sleep(Duration::from_secs_f64(len as f64 / rate as f64));
            }
        }
        if turn == Turn::Hangs {
            wait_for_ever();
        }
        Ok(moved)
    }
}

/// As far as a test is concerned.
fn wait_for_ever() {
    let end = std::time::Instant::now() + Duration::from_secs(600);
    while std::time::Instant::now() < end {
        std::thread::sleep(Duration::from_millis(100));
    }
}

pub(super) fn counters(folder: &Path) -> Counters {
    read_json(&folder.join("counters.json"))
}

pub(super) fn change_counters(folder: &Path, change: impl FnOnce(&mut Counters)) -> Counters {
    change_json(folder, "counters.json", |counters: &mut Counters| {
        change(counters);
        counters.clone()
    })
}

/// Changes a file of the state while no other run of the double does.
pub(super) fn change_json<T, R>(folder: &Path, name: &str, change: impl FnOnce(&mut T) -> R) -> R
where
    T: Default + Serialize + for<'de> Deserialize<'de>,
{
    let _lock = exclusive(folder, "lock");
    let path = folder.join(name);
    let mut value: T = read_json(&path);
    let result = change(&mut value);
    let partial = folder.join("partial.json");
    let text = serde_json::to_vec(&value).expect("it is plain data");
    std::fs::write(&partial, text).expect("the state can be written");
    std::fs::rename(partial, path).expect("the state can be written");
    result
}

/// Returns a lock that no other run of the double has; it ends when it is dropped.
pub(super) fn exclusive(folder: &Path, name: &str) -> File {
    let lock = File::create(folder.join(name)).expect("the state can be written");
    flock(&lock, FlockOperation::LockExclusive).expect("the state can be locked");
    lock
}

pub(super) fn read_json<T: Default + for<'de> Deserialize<'de>>(path: &Path) -> T {
    match std::fs::read(path) {
        Ok(text) => serde_json::from_slice(&text).expect("it was written by `change_json`"),
        Err(_) => T::default(),
    }
}
