//! The control socket: questions to a mount, and requests.
//!
//! A request is one line with a JSON object, `{"command": "stats"}`, and so is its answer, `{"stats": {...}}` or
//! `{"error": "..."}`; empty lines before it say that it takes a while. The socket lies in a directory that only its user can enter, under a name that both sides make from the
//! device number of the mount: neither asks the file system for anything.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read as _, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use stook_archive::Catalogue;
use stook_sys::{Context, MountPoint, SysError, Unmount, lock, private_directory, remove_file};
use stook_timers::Detail;

use crate::cache::{CachedVolumes, Layer};
use crate::error::MountError;
use crate::prefetch::{Prefetched, prefetch};
use crate::session::{Unmounter, require_server};
use crate::statistics::{Requests, Statistics};
use crate::timers::CallbackTimes;

/// A request has no more bytes.
const LONGEST_REQUEST: u64 = 1 << 20;

/// How long one side waits for the other.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why nothing can be fetched.
pub(crate) const LOCAL: &str = "its volumes are on this machine: there is nothing to fetch";

/// How often a client that waits for a long answer gets an empty line; if that cannot be sent, it has gone.
const SIGN_OF_LIFE: Duration = Duration::from_millis(500);

/// What a mount can be asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "command")]
#[non_exhaustive]
pub enum Request {
    /// Numbers of requests and bytes, and how long answers took.
    Stats,
    /// Where the time went, by call path.
    Timers,
    /// The first single calls of each thread, for trace viewers.
    Trace,
    /// To forget where the time went, and to record it anew.
    Record {
        /// In which detail.
        detail: TimersDetail,
    },
    /// To fetch the blocks of all files that match into the cache.
    Prefetch {
        /// Patterns of paths below the mount point.
        patterns: Vec<String>,
    },
    /// To answer when nothing is being fetched or written to the cache.
    Sync,
    /// To forget what is kept of volumes.
    Evict {
        /// Where.
        layers: EvictedLayers,
    },
    /// To unmount, if nobody uses it.
    Quit,
}

/// What is recorded of scopes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimersDetail {
    /// Wall time.
    Wall,
    /// CPU time besides, hence the time that a scope was blocked.
    Cpu,
    /// The first single calls besides.
    Calls,
}

/// What is forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvictedLayers {
    /// Blocks and decoded frames in memory.
    Memory,
    /// Blocks on disk as well: the next reader asks the store.
    All,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Stats(Stats),
    Timers(Box<Timers>),
    /// `None` if single calls are not recorded.
    Trace(Option<String>),
    Record(&'static str),
    Prefetch(Prefetched),
    Sync(&'static str),
    Evict(&'static str),
    Quit(&'static str),
    Error(String),
}

#[derive(Debug, Serialize)]
struct Timers {
    callbacks: CallbackTimes,
    #[serde(flatten)]
    report: stook_timers::Report,
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
    /// Whether blocks of a store are kept on disk.
    has_disk_cache: bool,
    /// Of volumes in a store.
    #[serde(skip_serializing_if = "Option::is_none")]
    cache: Option<BTreeMap<&'static str, u64>>,
}

/// What answers are made from.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) archive: String,
    pub(crate) catalogue: Arc<Catalogue>,
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
                let facts = Arc::new(facts);
                for stream in listener.incoming().flatten() {
                    let request = match receive(&stream) {
                        Err(_gone) => continue,
                        Ok(Ok(request)) if request.takes_long() => {
                            answer_later(stream, request, &facts);
                            continue;
                        }
                        Ok(request) => request,
                    };
                    let _answering = lock(&held);
                    let answer = request.map(|request| answer_to(&request, &facts, &unmounter));
                    // One at a time, and who asks and does not listen is not waited for.
                    let _ = send(&stream, &answer.unwrap_or_else(Answer::Error));
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

impl Request {
    /// Whether it may take longer than others should wait.
    fn takes_long(&self) -> bool {
        matches!(self, Self::Prefetch { .. } | Self::Sync)
    }
}

fn socket_of(directory: &Path, point: &MountPoint) -> PathBuf {
    let (major, minor) = point.device();
    directory.join(format!("{major}-{minor}.socket"))
}

/// Returns the request of a line, or what is wrong with it.
fn receive(stream: &UnixStream) -> io::Result<Result<Request, String>> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(stream.take(LONGEST_REQUEST)).read_line(&mut line)?;
    let request = serde_json::from_str(&line);
    Ok(request.map_err(|error| format!("this is no request: {error}")))
}

fn send(mut stream: &UnixStream, answer: &Answer) -> io::Result<()> {
    let mut text = serde_json::to_string(answer)?;
    text.push('\n');
    stream.write_all(text.as_bytes())
}

/// Has a thread of its own answer; it stops what it does when nobody waits for it any more.
fn answer_later(stream: UnixStream, request: Request, facts: &Arc<Facts>) {
    let (facts, is_left) = (Arc::clone(facts), Arc::<AtomicBool>::default());
    let begun = thread::Builder::new().name("mount-answer".to_owned());
    // Without a thread there is no answer, which the client sees.
    let _ = begun.spawn(move || {
        let (sender, answered) = channel();
        let left = Arc::clone(&is_left);
        thread::scope(|scope| {
            scope.spawn(move || {
                let is_left = || left.load(Ordering::Relaxed);
                // There is a receiver until the answer has come.
                let _ = sender.send(long_answer(&request, &facts, &is_left));
            });
            loop {
                match answered.recv_timeout(SIGN_OF_LIFE) {
                    Ok(answer) => return send(&stream, &answer),
                    Err(RecvTimeoutError::Disconnected) => return Ok(()),
                    Err(RecvTimeoutError::Timeout) => {
                        let is_gone = (&stream).write_all(b"\n").is_err();
                        is_left.store(is_gone, Ordering::Relaxed);
                    }
                }
            }
        })
    });
}

fn long_answer(request: &Request, facts: &Facts, is_left: &(dyn Fn() -> bool + Sync)) -> Answer {
    let Some(cache) = &facts.cache else {
        return match request {
            Request::Sync => Answer::Sync("synced"),
            _ => Answer::Error(LOCAL.to_owned()),
        };
    };
    if let Request::Prefetch { patterns } = request {
        return match prefetch(&facts.catalogue, cache, patterns, is_left) {
            Ok(prefetched) => Answer::Prefetch(prefetched),
            Err(error) => Answer::Error(error.to_string()),
        };
    }
    match cache.sync(is_left) {
        true => Answer::Sync("synced"),
        false => Answer::Error("interrupted".to_owned()),
    }
}

fn answer_to(request: &Request, facts: &Facts, unmounter: &Unmounter) -> Answer {
    match request {
        Request::Stats => Answer::Stats(Stats {
            archive: facts.archive.clone(),
            mountpoint: stook_sys::display_path(unmounter.path()),
            process: std::process::id(),
            entries: facts.catalogue.len(),
            bytes: facts.bytes,
            peak_memory_bytes: stook_sys::peak_memory(),
            requests: facts.statistics.read(),
            has_disk_cache: facts.cache.as_ref().is_some_and(|cache| cache.has_disk()),
            cache: facts.cache.as_ref().map(|cache| counts(cache)),
        }),
        Request::Timers => {
            let report = stook_timers::snapshot();
            let callbacks = CallbackTimes::of(&report);
            Answer::Timers(Box::new(Timers { callbacks, report }))
        }
        Request::Trace => {
            let trace = stook_timers::trace();
            Answer::Trace((!trace.calls.is_empty()).then(|| trace.chrome()))
        }
        Request::Record { detail } => {
            stook_timers::reset();
            stook_timers::enable_with(match detail {
                TimersDetail::Wall => Detail::Wall,
                TimersDetail::Cpu => Detail::Cpu,
                TimersDetail::Calls => Detail::Events,
            });
            Answer::Record("recording")
        }
        Request::Evict { layers } => {
            facts.catalogue.forget_content();
            if let Some(cache) = &facts.cache {
                if *layers == EvictedLayers::All {
                    cache.clear(Layer::Disk);
                }
                cache.clear(Layer::Memory);
            }
            Answer::Evict("evicted")
        }
        Request::Quit => match unmounter.unmount(Unmount::Unused) {
            Ok(()) => Answer::Quit("unmounted"),
            Err(error) => Answer::Error(error.to_string()),
        },
        Request::Prefetch { .. } | Request::Sync => long_answer(request, facts, &|| false),
    }
}

fn counts(cache: &CachedVolumes) -> BTreeMap<&'static str, u64> {
    let named = cache.stats().named().into_iter();
    named.map(|(name, count, _)| (name, count)).collect()
}

/// Asks the mount at a path, whose control socket lies in a directory. Returns what it answers: of `stats`, `timers` and `prefetch` a
/// JSON object, else a text.
///
/// # Errors
/// `Stale` if the server has ended, `NobodyListens` if what is mounted there is no archive, `Answered` if it refuses.
pub fn talk(
    directory: &Path,
    mountpoint: &Path,
    request: &Request,
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

fn ask(socket: &Path, request: &Request) -> io::Result<serde_json::Value> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut line = serde_json::to_string(request)?;
    line.push('\n');
    stream.write_all(line.as_bytes())?;
    let mut answer = String::new();
    let mut lines = BufReader::new(stream);
    while answer.trim().is_empty() {
        answer.clear();
        if lines.read_line(&mut answer)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(serde_json::from_str(&answer)?)
}
