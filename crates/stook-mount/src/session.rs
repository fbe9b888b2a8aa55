//! A mount from its begin to its end.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use fuser::{Config, Session, SessionACL};
use stook_archive::{Catalogue, EntryId};
use stook_sys::{
    Context, FileKind, FuseMount, Holder, MountPoint, SysError, Unmount, free_space, holders_of,
    is_busy, is_without_server, look_at,
};

use crate::cache::CachedVolumes;
use crate::content::Content;
use crate::control::{Control, Facts, LOCAL};
use crate::error::MountError;
use crate::event::{Event, Log};
use crate::nodes::VERSION;
use crate::prefetch::prefetch;
use crate::serve::{Requests, VERSIONS_NAME};
use crate::server::Server;
use crate::statistics::Statistics;
use crate::tree::Tree;

/// How to mount.
#[derive(Debug, Clone, Default)]
pub struct MountOptions {
    /// What is named as the source in `/proc/mounts`: the archive.
    pub source: String,
    /// Whether other users may use the mount. For users other than root, `/etc/fuse.conf` must allow it.
    pub allow_other: bool,
    /// Whether programs in it may not be run.
    pub no_exec: bool,
    /// Whether content is compared with its MD5 before it is given out.
    pub verify: bool,
    /// The directory for the control socket, made if it is missing; `None` for no such socket.
    pub control: Option<PathBuf>,
    /// What volumes in a store are read through, for those who ask the mount what it does.
    pub cache: Option<Arc<CachedVolumes>>,
    /// Patterns of files whose blocks are fetched into the cache once it is mounted.
    pub prefetch: Vec<String>,
}

/// What is shown.
#[derive(Debug)]
pub struct Shown {
    /// The tree.
    pub main: Catalogue,
    /// All versions of all files, as the directory `.stook` in the root, which is not listed: the catalogue of
    /// [`Versions::All`](stook_archive::Versions::All).
    pub versions: Option<Catalogue>,
}

impl From<Catalogue> for Shown {
    fn from(main: Catalogue) -> Self {
        Self {
            main,
            versions: None,
        }
    }
}

/// A mounted archive, served by threads of this process.
#[derive(Debug)]
pub struct Mounted {
    point: MountPoint,
    session: JoinHandle<std::io::Result<()>>,
    /// Until the end.
    control: Option<Control>,
    /// Ends what runs beside the server.
    is_over: Arc<AtomicBool>,
}

/// Unmounts, from any thread.
#[derive(Debug, Clone)]
pub struct Unmounter {
    point: MountPoint,
}

impl Mounted {
    /// Mounts a state of an archive on a directory, read-only, without set-id bits and devices, with permissions that the
    /// kernel checks.
    ///
    /// # Errors
    /// `Stale` if the server of an earlier mount there has ended, `NotADirectory`, `NameTaken`; `Sys` if it cannot be mounted.
    pub fn mount(
        shown: Shown,
        point: &Path,
        options: &MountOptions,
        log: &Arc<dyn Log>,
    ) -> Result<Self, MountError> {
        let point = usable(point)?;
        let statistics = Arc::new(Statistics::default());
        let Shown { main, versions } = shown;
        if versions.is_some() && main.child(EntryId::ROOT, VERSIONS_NAME).is_some() {
            return Err(MountError::NameTaken);
        }
        let server = |catalogue: Catalogue, tag| {
            let catalogue = Arc::new(catalogue);
            let tree = Tree::new(Arc::clone(&catalogue), tag);
            let content = Content::new(catalogue, options.verify);
            Server::new((tree, content), Arc::clone(&statistics), Arc::clone(log))
        };
        let main = server(main, 0);
        let catalogue = Arc::clone(&main.tree.catalogue);
        let versions = versions.map(|versions| server(versions, VERSION));
        let facts = Facts {
            archive: options.source.clone(),
            catalogue: Arc::clone(&catalogue),
            bytes: main.tree.bytes,
            statistics: Arc::clone(&statistics),
            cache: options.cache.clone(),
        };
        let requests = Requests::new(main, versions, Arc::clone(&statistics));
        let notifier = Arc::clone(&requests.notifier);
        let mount = FuseMount {
            source: options.source.clone(),
            kind: "stook".to_owned(),
            allow_other: options.allow_other,
            no_exec: options.no_exec,
        };
        let device = mount.mount_on(&point)?;
        // The kernel keeps other users out by default.
        let started = Session::from_fd(requests, device, SessionACL::All, Config::default())
            .and_then(|session| {
                // It is not set yet.
                let _ = notifier.set(session.notifier());
                thread::Builder::new()
                    .name("mount".to_owned())
                    .spawn(move || session.run())
            });
        let session = match started.context("serve", &point) {
            Ok(session) => session,
            Err(error) => {
                // Without a server nobody can use it; why there is none is the error that counts.
                let _ = MountPoint::at(&point).and_then(|point| point.unmount(Unmount::Detach));
                return Err(error.into());
            }
        };
        let point = MountPoint::at(&point)?;
        let mut mounted = Self {
            point,
            session,
            control: None,
            is_over: Arc::default(),
        };
        if let Some(directory) = &options.control {
            match Control::listen(directory, facts, mounted.unmounter()) {
                Ok(control) => mounted.control = Some(control),
                // Somebody else may have made that directory, which is no reason not to mount.
                Err(error) => log.log(&Event::NoControl { error }),
            }
        }
        if !options.prefetch.is_empty() {
            mounted.prefetch(catalogue, options, log);
        }
        Ok(mounted)
    }

    /// Fetches files while the mount is used already; how it ends is an event.
    fn prefetch(&self, catalogue: Arc<Catalogue>, options: &MountOptions, log: &Arc<dyn Log>) {
        let (patterns, cache) = (options.prefetch.clone(), options.cache.clone());
        let (log, events) = (Arc::clone(log), Arc::clone(log));
        let is_over = Arc::clone(&self.is_over);
        let fetcher = thread::Builder::new().name("mount-prefetch".to_owned());
        let begun = fetcher.spawn(move || {
            let is_over = || is_over.load(Ordering::Relaxed);
            let fetched = match &cache {
                Some(cache) => prefetch(&catalogue, cache, &patterns, &is_over),
                None => {
                    return log.log(&Event::NotPrefetched {
                        cause: LOCAL.to_owned(),
                    });
                }
            };
            log.log(&match fetched {
                Ok(prefetched) => Event::Prefetched { prefetched },
                Err(error) => Event::NotPrefetched {
                    cause: error.to_string(),
                },
            });
        });
        if let Err(error) = begun {
            let cause = error.to_string();
            events.log(&Event::NotPrefetched { cause });
        }
    }

    /// Returns what another thread can unmount with.
    pub fn unmounter(&self) -> Unmounter {
        let point = self.point.clone();
        Unmounter { point }
    }

    /// Waits until it is unmounted, by whomever, and nobody uses it any more.
    ///
    /// # Errors
    /// `Served` if the exchange with the kernel ended otherwise.
    pub fn wait(self) -> Result<(), MountError> {
        let ended = self.session.join();
        self.is_over.store(true, Ordering::Relaxed);
        drop(self.control);
        let served = ended.unwrap_or_else(|_panic| {
            Err(std::io::Error::other(
                "the thread that takes requests has panicked",
            ))
        });
        served.map_err(|source| MountError::Served {
            path: self.point.path().to_owned(),
            source,
        })
    }
}

impl Unmounter {
    /// Returns the mount point.
    pub fn path(&self) -> &Path {
        self.point.path()
    }

    pub(crate) fn point(&self) -> &MountPoint {
        &self.point
    }

    /// Unmounts; nothing happens if that was done.
    ///
    /// # Errors
    /// `Busy` if somebody uses it, and it is not to be detached; `Sys`.
    pub fn unmount(&self, how: Unmount) -> Result<(), MountError> {
        match self.point.unmount(how) {
            Err(error) if is_busy(&error.source) => Err(MountError::Busy { path: error.path }),
            unmounted => Ok(unmounted?),
        }
    }

    /// Returns who uses the mount, as far as this process may know.
    ///
    /// # Cost
    /// Some system calls for each open file of each process.
    pub fn holders(&self) -> Vec<Holder> {
        holders_of(self.point.path())
    }
}

/// Returns the whole path of a directory that can be mounted on.
fn usable(point: &Path) -> Result<PathBuf, MountError> {
    require_server(point)?;
    if look_at(point)?.kind != FileKind::Directory {
        return Err(MountError::NotADirectory {
            path: point.to_owned(),
        });
    }
    Ok(resolved(point)?)
}

/// Requires that what is mounted at a path, if something is, has a server. Only what the kernel cannot know tells: the
/// attributes that it remembers outlive a server, the free space is always asked for.
pub(crate) fn require_server(point: &Path) -> Result<(), MountError> {
    match free_space(point) {
        Err(error) if is_without_server(&error.source) => Err(MountError::Stale {
            path: point.to_owned(),
        }),
        // Whatever else it is will be met again.
        _ => Ok(()),
    }
}

/// Returns a path without links and dots.
#[expect(
    clippy::disallowed_methods,
    reason = "the operation and the path are added here"
)]
fn resolved(path: &Path) -> Result<PathBuf, SysError> {
    std::fs::canonicalize(path).context("resolve", path)
}

/// Requires that a mount does not hide the archive that it shows: each read of a volume would wait for itself.
///
/// # Errors
/// `HidesArchive`; `Sys` if one of the paths cannot be resolved.
pub fn require_apart(archive: &Path, point: &Path) -> Result<(), MountError> {
    require_server(point)?;
    if resolved(archive)?.starts_with(resolved(point)?) {
        return Err(MountError::HidesArchive {
            path: point.to_owned(),
        });
    }
    Ok(())
}
