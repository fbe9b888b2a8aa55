//! The policy of the removal: whether the archive holds an entry, at the moment it would go.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use stook_sys::{Directory, FileId, FileKind, Links, Metadata, Stamp};
use stook_timers::scope;
use stook_tree::{Candidate, Decision, RemovalPolicy, Tree, TreeError, join};
use stook_volume::{Header, Kind, VolumeError, decode};

use super::evidence::{Evidence, Held, Place};
use super::{RemoveArchivedObserver, Staying};
use crate::read::{Volumes, file_md5};

pub(super) struct ArchivePolicy<'a, O> {
    pub(super) place: &'a Place<'a>,
    pub(super) evidence: &'a Evidence,
    pub(super) volumes: Volumes,
    /// The archive's own folder.
    pub(super) archive: Option<FileId>,
    pub(super) tree: &'a Tree,
    pub(super) observer: &'a O,
    pub(super) is_dry_run: bool,
    pub(super) staying: AtomicU64,
    /// Entries that were given another name.
    pub(super) set_aside: AtomicU64,
}

/// Names that entries are given before they go.
const ASIDE: (&[u8], &[u8]) = (b".stook-", b".removed");
/// No run that goes on leaves such a name for so long.
const MOMENT: Duration = Duration::from_millis(50);

/// Why an entry does not go.
enum Obstacle {
    Stays(Staying),
    WasGone,
    Stopped,
    Failed(&'static str, io::Error),
}

type Proof = Result<(), Obstacle>;

impl<O: RemoveArchivedObserver> RemovalPolicy for ArchivePolicy<'_, O> {
    fn prunes(&self, path: &[u8]) -> bool {
        self.place.filter.prunes(path)
    }

    fn enters(&self, directory: &Directory, path: &[u8]) -> bool {
        let is_archive = directory
            .own_metadata()
            .map(|metadata| Some(metadata.identity()) == self.archive);
        match is_archive {
            Ok(false) => true,
            Ok(true) => self.report(path, Err(Obstacle::Stays(Staying::Archive))),
            Err(error) => self.report(path, Err(Obstacle::Failed("look at", error))),
        }
    }

    fn selects(&self, path: &[u8]) -> bool {
        self.place.filter.selects(path)
    }

    fn keeps_archive(&self, path: &[u8]) -> bool {
        self.report(path, Err(Obstacle::Stays(Staying::Archive)));
        true
    }

    fn decide(&self, candidate: &Candidate<'_>) -> Decision {
        if self.observer.is_interrupted() || !self.place.filter.selects(candidate.path) {
            return Decision::Keep;
        }
        let _scope = scope!("compare");
        let proof = self.prove(candidate);
        match proof.and_then(|metadata| self.set_aside(candidate, &metadata)) {
            Ok(decision) => decision,
            Err(Obstacle::WasGone) => Decision::AlreadyGone,
            Err(obstacle) => {
                self.report(candidate.path, Err(obstacle));
                Decision::Keep
            }
        }
    }

    fn removes_empty(&self, directory: &Directory, path: &[u8]) -> bool {
        // The tree itself is the user's to name.
        path.is_empty()
            || !self.place.filter.selects(path)
            || self.report(path, self.prove_empty(directory, path))
    }

    fn removes(&self, path: &[u8]) -> bool {
        self.place.filter.selects(path)
    }
}

impl<O: RemoveArchivedObserver> ArchivePolicy<'_, O> {
    /// Returns true for a proof, and reports what stands against one.
    fn report(&self, path: &[u8], proof: Proof) -> bool {
        let written = || {
            let tree = self.tree.path();
            if path.is_empty() {
                tree
            } else {
                join(&tree, path)
            }
        };
        match proof {
            Ok(()) => return true,
            Err(Obstacle::Stays(why)) => {
                self.staying.fetch_add(1, Ordering::Relaxed);
                self.observer.stays(&written(), why);
            }
            Err(Obstacle::WasGone | Obstacle::Stopped) => {}
            Err(Obstacle::Failed(operation, source)) => self.observer.failed(&TreeError {
                path: written(),
                operation,
                source,
            }),
        }
        false
    }

    /// Proves that the archive holds a candidate, and returns what the proof is.
    fn prove(&self, candidate: &Candidate<'_>) -> Result<Metadata, Obstacle> {
        let Candidate {
            directory, name, ..
        } = *candidate;
        let metadata = directory
            .metadata(name, Links::Refuse)
            .map_err(failed_to("look at"))?;
        let held = match self.held(candidate.path, &metadata) {
            Err(Obstacle::Stays(Staying::New)) if is_just_going(candidate) => {
                return Err(Obstacle::WasGone);
            }
            other => other?,
        };
        match (metadata.kind, held.md5) {
            (FileKind::File, Some(md5)) => self.prove_file(directory, name, &metadata, md5),
            (FileKind::Symlink, None) => self.prove_link(candidate, &held),
            _ => Err(Obstacle::Stays(Staying::Changed)),
        }?;
        Ok(metadata)
    }

    /// Gives the candidate a name that nobody knows: what has taken its place since it was looked at is not removed,
    /// but gets its name back.
    fn set_aside(
        &self,
        candidate: &Candidate<'_>,
        metadata: &Metadata,
    ) -> Result<Decision, Obstacle> {
        let Candidate {
            directory, name, ..
        } = *candidate;
        if self.is_dry_run {
            return Ok(Decision::Remove);
        }
        let number = self.set_aside.fetch_add(1, Ordering::Relaxed);
        let middle = format!("{}-{number}", std::process::id());
        let aside = [ASIDE.0, middle.as_bytes(), ASIDE.1].concat();
        match directory.rename_to_new(name, &aside) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(Obstacle::WasGone),
            // The file system cannot, or nothing may be changed here: removing it will show.
            Err(_) => return Ok(Decision::Remove),
        }
        let is_it = |found: &Metadata| {
            found.identity() == metadata.identity()
                && (found.size, found.mtime) == (metadata.size, metadata.mtime)
        };
        if directory
            .metadata(&aside, Links::Refuse)
            .is_ok_and(|found| is_it(&found))
        {
            return Ok(Decision::RemoveAs(aside));
        }
        match directory.rename_to_new(&aside, name) {
            Ok(()) => Err(Obstacle::Stays(Staying::Changing)),
            Err(error) => {
                let aside = String::from_utf8_lossy(&aside);
                let why = format!("{} (it is `{aside}` now)", stook_sys::cause(&error));
                Err(Obstacle::Failed("put back", io::Error::other(why)))
            }
        }
    }

    fn held(&self, path: &[u8], metadata: &Metadata) -> Result<Held, Obstacle> {
        let id = self.place.row_of(path, metadata);
        id.and_then(|id| self.evidence.of(id))
            .map_err(Obstacle::Stays)
    }

    fn prove_file(
        &self,
        directory: &Directory,
        name: &[u8],
        metadata: &Metadata,
        md5: [u8; 16],
    ) -> Proof {
        let file = directory
            .open_file(name, Links::Refuse)
            .map_err(failed_to("open"))?;
        // Each name of it that goes meanwhile changes a time of the file.
        for _ in 0..metadata.links {
            let stamp = Stamp::of(&file).map_err(failed_to("look at"))?;
            let is_it = (stamp.identity, stamp.size, stamp.mtime)
                == (metadata.identity(), metadata.size, metadata.mtime);
            if !is_it || !stamp.settle() {
                break;
            }
            let found = self.md5_of(&file, metadata.size)?;
            // By its name: another file may have taken its place.
            if Stamp::at(directory, name).map_err(failed_to("look at"))? == stamp {
                return if found == md5 {
                    Ok(())
                } else {
                    Err(Obstacle::Stays(Staying::Changed))
                };
            }
        }
        Err(Obstacle::Stays(Staying::Changing))
    }

    fn md5_of(&self, file: &File, size: u64) -> Result<[u8; 16], Obstacle> {
        let md5 = file_md5(file, size, &self.volumes.buffers, || {
            self.observer.is_interrupted()
        });
        md5.map_err(failed_to("read"))?.ok_or(Obstacle::Stopped)
    }

    /// The index does not say where a link leads; its member does.
    fn prove_link(&self, candidate: &Candidate<'_>, held: &Held) -> Proof {
        let header = self.header(candidate.path, held)?;
        let target = candidate
            .directory
            .read_link(candidate.name)
            .map_err(failed_to("read"))?;
        let is_same = header.kind == Kind::Symlink && header.target == target;
        is_same
            .then_some(())
            .ok_or(Obstacle::Stays(Staying::Changed))
    }

    fn prove_empty(&self, directory: &Directory, path: &[u8]) -> Proof {
        let metadata = directory.own_metadata().map_err(failed_to("look at"))?;
        let held = self.held(path, &metadata)?;
        let is_same = self.header(path, &held)?.kind == Kind::Directory;
        is_same
            .then_some(())
            .ok_or(Obstacle::Stays(Staying::Changed))
    }

    /// Returns the header of what the archive holds at the path, as it stands in the volume.
    fn header(&self, path: &[u8], held: &Held) -> Result<Header, Obstacle> {
        let unreadable = |error| Obstacle::Failed("read the member of", error);
        let volume = self.volumes.get(held.volume);
        let volume = volume.map_err(|error| unreadable(error.source))?;
        let header = match decode(&*volume, held.offset) {
            Ok(member) => member.map(|member| member.header),
            Err(VolumeError::Io { source, .. }) => return Err(unreadable(source)),
            Err(_) => None,
        };
        let name = self.place.name_of(path);
        header
            .filter(|header| header.name == name)
            .ok_or(Obstacle::Stays(Staying::Unchecked))
    }
}

/// Returns true for a name that another run like this one has given, if it is gone a moment later.
fn is_just_going(candidate: &Candidate<'_>) -> bool {
    let Candidate {
        directory, name, ..
    } = *candidate;
    let is_aside = name.starts_with(ASIDE.0) && name.ends_with(ASIDE.1);
    is_aside && {
        std::thread::sleep(MOMENT);
        let found = directory.metadata(name, Links::Refuse);
        found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    }
}

/// Returns what an error of an operation means for the entry.
fn failed_to(operation: &'static str) -> impl Fn(io::Error) -> Obstacle {
    move |error| match error.kind() {
        io::ErrorKind::NotFound => Obstacle::WasGone,
        _ => Obstacle::Failed(operation, error),
    }
}
