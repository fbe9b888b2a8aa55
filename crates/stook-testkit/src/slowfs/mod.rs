//! A slow file system: a FUSE pass-through that answers each request after a set latency.
//!
//! It stands in for a network file system in tests and benches. Hundreds of requests can be in flight: a reader thread
//! does the work of a request in the source at once and leaves only the answer for later, so one thread is never held
//! by one request. The latency counts from the arrival; the work is part of it.
//!
//! ```text
//! kernel ──request──> reader threads ──system call──> source
//!    ^                      │ answer, due at arrival + latency
//!    └──────── timer <──────┘                                    delay.rs
//! ```
//!
//! What it does not do: limit bandwidth, lose requests, or be fair between clients. The source should be fast and local,
//! since no more requests than there are readers can wait for it. An effect is there before its answer: a program that
//! reads a file while another one truncates it may see zeros for as long as the latency, as on NFS. See `serve.rs` for
//! what FUSE could do and is not asked to, and `inodes.rs` for what is remembered.

mod answer;
mod attributes;
mod content;
mod delay;
mod handles;
mod inodes;
mod options;
mod serve;
mod source;
mod statistics;
mod unmount;

pub use options::{Op, Options, parse_duration, parse_latencies};
pub use statistics::Statistics;
pub use unmount::Unmounter;

use crate::TempDir;
use crate::failure::Describe;
use answer::Server;
use fuser::{Config, MountOption, Session, SessionACL};
use rustix::process::{Resource, Rlimit, geteuid, getrlimit, setrlimit};
use statistics::Counters;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use unmount::Watch;

/// Greatest number of open files that Linux allows a process unless told otherwise (`fs.nr_open`).
const MOST_DESCRIPTORS: u64 = 1 << 20;

/// A mounted slow file system; dropping it takes the mount away.
///
/// The mount also goes when the process dies, whatever the signal.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use stook_testkit::slowfs::{Op, Options, SlowFs, unavailable};
/// use stook_testkit::TempDir;
///
/// if let Some(reason) = unavailable() {
///     stook_testkit::skip!("{reason}");
///     return Ok(());
/// }
/// let (source, mountpoint) = (TempDir::new()?, TempDir::new()?);
/// std::fs::write(source.join("file"), b"content")?;
/// let options = Options::new(Duration::from_millis(1)).op(Op::Open, Duration::from_millis(2));
/// let slow = SlowFs::mount(source.path(), mountpoint.path(), &options)?;
/// assert_eq!(std::fs::read(mountpoint.join("file"))?, b"content");
/// assert_eq!(slow.statistics().count(Op::Open), 1);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct SlowFs {
    unmounter: Unmounter,
    counters: Arc<Counters>,
    session: Option<JoinHandle<io::Result<()>>>,
    watch: Watch,
}

impl SlowFs {
    /// Shows `source` at `mountpoint`, another directory, with these latencies.
    ///
    /// For root, every user may use the mount, and devices and set-id bits work in it. It is served by threads of this
    /// process.
    ///
    /// # Errors
    /// When a directory is missing, `mountpoint` lies in `source` (`InvalidInput`), or FUSE cannot be used here.
    pub fn mount(source: &Path, mountpoint: &Path, options: &Options) -> io::Result<Self> {
        let (source, mountpoint) = (canonical(source)?, canonical(mountpoint)?);
        if mountpoint.starts_with(&source) {
            // It would ask itself, and wait for the answer.
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the mount point must not lie in the source",
            ));
        }
        let counters = Arc::new(Counters::default());
        let shown = source.as_os_str().as_bytes();
        let server = Server::new(&source, options, Arc::clone(&counters))
            .describe("open the directory", shown)?;
        let session = Session::new(server, &mountpoint, &config(options))
            .describe("mount on", mountpoint.as_os_str().as_bytes())?;
        let unmounter = Unmounter::new(mountpoint)?;
        let watch = Watch::start(unmounter.mountpoint())?;
        let session = thread::Builder::new()
            .name("slowfs".to_owned())
            .spawn(move || session.run())?;
        Ok(Self {
            unmounter,
            counters,
            session: Some(session),
            watch,
        })
    }

    /// Returns what was asked so far.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.counters.read()
    }

    /// Returns something that another thread can unmount with.
    #[must_use]
    pub fn unmounter(&self) -> Unmounter {
        self.unmounter.clone()
    }

    /// Waits until somebody has unmounted the file system and nobody uses it any more.
    ///
    /// # Errors
    /// When the talk with the kernel ended otherwise.
    pub fn wait(mut self) -> io::Result<Statistics> {
        let ended = self.session.take().map_or(Ok(Ok(())), JoinHandle::join);
        self.watch.dismiss();
        ended.map_err(|_panic| io::Error::other("a thread of the file system panicked"))??;
        Ok(self.statistics())
    }

    /// Unmounts now, reports what a drop would swallow, and returns what was asked.
    ///
    /// # Errors
    /// When it cannot be unmounted.
    pub fn unmount(self) -> io::Result<Statistics> {
        self.unmounter.unmount()?;
        let counters = Arc::clone(&self.counters);
        drop(self);
        Ok(counters.read())
    }
}

impl Drop for SlowFs {
    fn drop(&mut self) {
        let Some(session) = self.session.take() else {
            return;
        };
        // No caller is left; `unmount` is there for those who want to know.
        let _ = self.unmounter.unmount();
        if unmount::is_finished_soon(&session) {
            let _ = session.join();
            self.watch.dismiss();
        }
    }
}

fn canonical(path: &Path) -> io::Result<PathBuf> {
    std::fs::canonicalize(path).describe("find the directory", path.as_os_str().as_bytes())
}

fn config(options: &Options) -> Config {
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName("slowfs".to_owned()),
        MountOption::DefaultPermissions,
    ];
    if geteuid().is_root() {
        config.acl = SessionACL::All;
        config.mount_options.push(MountOption::Dev);
        config.mount_options.push(MountOption::Suid);
    }
    config.n_threads = Some(options.readers.get());
    config.clone_fd = true;
    config
}

/// Returns why no slow file system can be mounted here, for tests to say that they are skipped.
///
/// Tries it once, then remembers.
#[must_use]
pub fn unavailable() -> Option<&'static str> {
    static REASON: OnceLock<Option<String>> = OnceLock::new();
    let reason = REASON.get_or_init(|| {
        let tried = TempDir::new().and_then(|source| {
            let mountpoint = TempDir::new()?;
            let options = Options::new(std::time::Duration::ZERO);
            SlowFs::mount(source.path(), mountpoint.path(), &options)?.unmount()
        });
        tried.err().map(|error| format!("no FUSE here: {error}"))
    });
    reason.as_deref()
}

/// Raises this process's limit of open files as far as it may: each directory that the kernel knows takes one.
///
/// Programs started later inherit the limit, so a library does not do it on its own.
pub fn allow_many_directories() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let most = Rlimit {
        current: Some(MOST_DESCRIPTORS),
        maximum: Some(maximum.map_or(MOST_DESCRIPTORS, |limit| limit.max(MOST_DESCRIPTORS))),
    };
    let usual = Rlimit {
        current: maximum,
        maximum,
    };
    // Only root may do the first. If neither can be done, the limit is as it was.
    let _ = setrlimit(Resource::Nofile, most).or_else(|_| setrlimit(Resource::Nofile, usual));
}
