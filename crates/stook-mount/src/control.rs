//! The control socket: what a mount tells of itself, and what it is told.
//!
//! A request is one line with a JSON object, `{"command": "stats"}`, and so is its answer, `{"stats": {...}}` or
//! `{"error": "..."}`. The socket lies in a directory that only its user can enter, under a name that both sides make from the
//! device number of the mount: neither asks the file system for anything.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use stook_sys::{Context, MountPoint, SysError, Unmount, lock, private_directory, remove_file};

use crate::cache::{CachedVolumes, Layer};
use crate::error::MountError;
use crate::session::{Unmounter, require_server};
use crate::statistics::{Requests, Statistics};

/// A request has no more bytes.
const LONGEST_REQUEST: u64 = 4096;

/// How long one side waits for the other.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a mount can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "command")]
#[non_exhaustive]
pub enum Request {
    /// Numbers of requests and bytes, and how long answers took.
    Stats,
    /// Where the time went, by call path.
    Timers {
        /// In which form.
        format: TimersFormat,
    },
    /// To forget the blocks of volumes in memory and on disk: the next reader asks the store.
    Evict,
    /// To unmount, if nobody uses it.
    Quit,
}

/// Forms of timers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TimersFormat {
    /// An indented table.
    Tree,
    /// One JSON object.
    Json,
    /// Folded stacks, for flame graphs.
    Folded,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Stats(Stats),
    Timers(String),
    Evict(&'static str),
    Quit(&'static str),
    Error(String),
}

#[derive(Debug, Serialize)]
struct Stats {
    archive: String,
    mountpoint: String,
    process: u32,
    entries: usize,
    bytes: u64,
    peak_memory_bytes: Option<u64>,
    #[serde(flatten)]
    requests: Requests,
    /// Of volumes in a store.
    #[serde(skip_serializing_if = "Option::is_none")]
    cache: Option<BTreeMap<&'static str, u64>>,
}

/// What answers are made from.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) archive: String,
    pub(crate) entries: usize,
    pub(crate) bytes: u64,
    pub(crate) statistics: Arc<Statistics>,
    pub(crate) cache: Option<Arc<CachedVolumes>>,
}

/// The socket of a mount; it goes with this.
#[derive(Debug)]
pub(crate) struct Control {
    path: PathBuf,
    /// Held while an answer is made and sent.
    answering: Arc<Mutex<()>>,
}

impl Control {
    /// Listens in a directory, which is made if it is not there.
    pub(crate) fn listen(
        directory: &Path,
        facts: Facts,
        unmounter: Unmounter,
    ) -> Result<Self, SysError> {
        private_directory(directory)?;
        let path = socket_of(directory, unmounter.point());
        // The number may have been that of a mount whose server was killed.
        match remove_file(&path) {
            Err(error) if !error.is_not_found() => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&path).context("listen at", &path)?;
        let place = path.clone();
        let answering = Arc::new(Mutex::new(()));
        let held = Arc::clone(&answering);
        thread::Builder::new()
            .name("mount-control".to_owned())
            .spawn(move || {
                for stream in listener.incoming().flatten() {
                    let _answering = lock(&held);
                    // One at a time, and who asks and does not listen is not waited for.
                    let _ = answer(&stream, &facts, &unmounter);
                }
            })
            .context("listen at", &place)?;
        Ok(Self { path, answering })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        // Who asked to unmount is to be told before the process ends.
        drop(lock(&self.answering));
        let _ = remove_file(&self.path);
    }
}

fn socket_of(directory: &Path, point: &MountPoint) -> PathBuf {
    let (major, minor) = point.device();
    directory.join(format!("{major}-{minor}.socket"))
}

fn answer(stream: &UnixStream, facts: &Facts, unmounter: &Unmounter) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(stream.take(LONGEST_REQUEST)).read_line(&mut line)?;
    let answer = match serde_json::from_str(&line) {
        Ok(request) => answer_to(request, facts, unmounter),
        Err(error) => Answer::Error(format!("this is no request: {error}")),
    };
    let mut text = serde_json::to_string(&answer)?;
    text.push('\n');
    (&*stream).write_all(text.as_bytes())
}

fn answer_to(request: Request, facts: &Facts, unmounter: &Unmounter) -> Answer {
    match request {
        Request::Stats => Answer::Stats(Stats {
            archive: facts.archive.clone(),
            mountpoint: stook_sys::display_path(unmounter.path()),
            process: std::process::id(),
            entries: facts.entries,
            bytes: facts.bytes,
            peak_memory_bytes: stook_sys::peak_memory(),
            requests: facts.statistics.read(),
            cache: facts.cache.as_ref().map(|cache| counts(cache)),
        }),
        Request::Timers { format } => {
            let report = stook_timers::snapshot();
            Answer::Timers(match format {
                TimersFormat::Tree => report.tree(),
                TimersFormat::Json => report.json(),
                TimersFormat::Folded => report.folded(),
            })
        }
        Request::Evict => {
            let Some(cache) = &facts.cache else {
                return Answer::Error(
                    "its volumes are on this machine: it has no blocks".to_owned(),
                );
            };
            cache.clear(Layer::Disk);
            cache.clear(Layer::Memory);
            Answer::Evict("evicted")
        }
        Request::Quit => match unmounter.unmount(Unmount::Unused) {
            Ok(()) => Answer::Quit("unmounted"),
            Err(error) => Answer::Error(error.to_string()),
        },
    }
}

fn counts(cache: &CachedVolumes) -> BTreeMap<&'static str, u64> {
    let named = cache.stats().named().into_iter();
    named.map(|(name, count, _)| (name, count)).collect()
}

/// Asks the mount at a path, whose control socket lies in a directory. Returns what it answers: of `stats` a JSON object, else a
/// text.
///
/// # Errors
/// `Stale` if the server has ended, `NobodyListens` if what is mounted there is no archive, `Answered` if it refuses.
pub fn talk(
    directory: &Path,
    mountpoint: &Path,
    request: Request,
) -> Result<serde_json::Value, MountError> {
    let path = || mountpoint.to_owned();
    require_server(mountpoint)?;
    let point = MountPoint::at(mountpoint)?;
    let socket = socket_of(directory, &point);
    let answer = ask(&socket, request).context("talk to", &socket);
    let answer = answer.map_err(|source| MountError::NobodyListens {
        path: path(),
        source,
    })?;
    match answer {
        serde_json::Value::Object(fields) => match fields.into_iter().next() {
            Some((name, value)) if name != "error" => Ok(value),
            other => Err(MountError::Answered {
                path: path(),
                text: other.map_or_else(String::new, |(_, value)| text_of(&value)),
            }),
        },
        other => Err(MountError::Answered {
            path: path(),
            text: text_of(&other),
        }),
    }
}

fn text_of(value: &serde_json::Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), ToOwned::to_owned)
}

fn ask(socket: &Path, request: Request) -> io::Result<serde_json::Value> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut line = serde_json::to_string(&request)?;
    line.push('\n');
    stream.write_all(line.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(serde_json::from_str(&answer)?)
}
