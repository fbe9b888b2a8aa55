//! Lines about one thing each: entries, differences, runs, volumes, system calls.

use serde::Serialize;
use stook_archive::{Change, Difference, MetadataChange, PlannedVolume, RunCounts, Writer};
use stook_bench::profile::SystemCall;
use stook_sys::{CallCount, FileKind, Metadata, display_bytes};

use super::{JsonPath, file_time, time};
use crate::number::grouped;

/// A path and nothing else.
#[derive(Serialize)]
pub(crate) struct Tree {
    #[serde(flatten)]
    path: JsonPath,
}

impl Tree {
    pub(crate) fn new(path: &[u8]) -> Self {
        Self {
            path: JsonPath::new(path),
        }
    }
}

/// A path, and why it is named.
#[derive(Serialize)]
pub(crate) struct Word {
    #[serde(flatten)]
    path: JsonPath,
    why: &'static str,
}

impl Word {
    pub(crate) fn new(path: &[u8], why: &'static str) -> Self {
        Self {
            path: JsonPath::new(path),
            why,
        }
    }
}

/// An entry of a tree.
#[derive(Serialize)]
pub(crate) struct Entry {
    #[serde(flatten)]
    path: JsonPath,
    kind: &'static str,
    size: u64,
    mtime: String,
    inode: u64,
    mode: String,
    links: u32,
}

impl Entry {
    pub(crate) fn new(path: &[u8], metadata: &Metadata) -> Self {
        Self {
            path: JsonPath::new(path),
            kind: kind_word(metadata.kind),
            size: metadata.size,
            mtime: crate::time::rfc3339(metadata.mtime),
            inode: metadata.inode,
            mode: format!("{:o}", metadata.mode),
            links: metadata.links,
        }
    }
}

fn kind_word(kind: FileKind) -> &'static str {
    match kind {
        FileKind::File => "file",
        FileKind::Directory => "directory",
        FileKind::Symlink => "symlink",
        FileKind::Fifo => "fifo",
        FileKind::Socket => "socket",
        FileKind::CharDevice => "char-device",
        FileKind::BlockDevice => "block-device",
    }
}

/// An entry that a tree and an archive do not have alike.
#[derive(Serialize)]
pub(crate) struct Differing {
    #[serde(flatten)]
    path: JsonPath,
    change: &'static str,
    size: Option<u64>,
    mtime: Option<String>,
    archived_size: Option<u64>,
    archived_mtime: Option<String>,
    #[serde(flatten)]
    metadata: Option<OtherMetadata>,
}

/// Mode and owner, where they differ.
#[derive(Serialize)]
struct OtherMetadata {
    mode: Option<String>,
    uid: Option<u64>,
    gid: Option<u64>,
    archived_mode: Option<String>,
    archived_uid: Option<u64>,
    archived_gid: Option<u64>,
}

impl OtherMetadata {
    fn new(change: &MetadataChange) -> Self {
        let MetadataChange { mode, uid, gid } = change;
        let octal = |mode: u32| format!("{mode:o}");
        Self {
            mode: mode.map(|mode| octal(mode.now)),
            uid: uid.map(|uid| uid.now),
            gid: gid.map(|gid| gid.now),
            archived_mode: mode.map(|mode| octal(mode.archived)),
            archived_uid: uid.map(|uid| uid.archived),
            archived_gid: gid.map(|gid| gid.archived),
        }
    }
}

impl Differing {
    pub(crate) fn new(difference: &Difference) -> Self {
        let (archived_size, archived_mtime) = match difference.change {
            Change::Changed { size, mtime } => (size, mtime),
            Change::New | Change::Metadata(_) | Change::Deleted => (None, None),
        };
        let metadata = match &difference.change {
            Change::Metadata(change) => Some(OtherMetadata::new(change)),
            _ => None,
        };
        Self {
            path: JsonPath::new(&difference.path),
            change: change_word(&difference.change),
            size: difference.size,
            mtime: difference.mtime.map(file_time),
            archived_size,
            archived_mtime: archived_mtime.map(time),
            metadata,
        }
    }
}

fn change_word(change: &Change) -> &'static str {
    match change {
        Change::New => "new",
        Change::Changed { .. } => "changed",
        Change::Metadata(_) => "metadata",
        Change::Deleted => "deleted",
    }
}

/// Returns a difference as `diff` prints it.
pub(crate) fn difference_text(difference: &Difference) -> String {
    let word = change_word(&difference.change);
    let path = display_bytes(&difference.path);
    match &difference.change {
        Change::Metadata(change) => format!("{word:<8} {path}: {}", metadata_text(change)),
        _ => format!("{word:<8} {path}"),
    }
}

fn metadata_text(change: &MetadataChange) -> String {
    let MetadataChange { mode, uid, gid } = change;
    let mode = mode.map(|mode| format!("mode {:04o} -> {:04o}", mode.archived, mode.now));
    let uid = uid.map(|uid| format!("owner {} -> {}", uid.archived, uid.now));
    let gid = gid.map(|gid| format!("group {} -> {}", gid.archived, gid.now));
    let parts: Vec<String> = [mode, uid, gid].into_iter().flatten().collect();
    parts.join(", ")
}

/// A run, and the rows that belong to it; without a number, rows that no run added.
#[derive(Serialize)]
pub(crate) struct ListedRun<'a> {
    run: Option<i64>,
    command: Option<&'a str>,
    started: Option<String>,
    finished: Option<String>,
    added: u64,
    deleted: u64,
    failed: u64,
}

impl<'a> ListedRun<'a> {
    pub(crate) fn new(counts: &'a RunCounts) -> Self {
        let run = match &counts.writer {
            Writer::Run(run) => Some(run),
            Writer::Other => None,
        };
        Self {
            run: run.map(|run| run.id.0),
            command: run.map(|run| &*run.command),
            started: run.map(|run| time(run.started)),
            finished: run.and_then(|run| run.finished).map(time),
            added: counts.added,
            deleted: counts.deleted,
            failed: run.map_or(0, |run| run.failed),
        }
    }
}

/// Returns a run as `list --runs` prints it.
pub(crate) fn run_text(counts: &RunCounts) -> String {
    let (run, command, started, finished, failed) = match &counts.writer {
        Writer::Run(run) => (
            run.id.to_string(),
            &*run.command,
            run.started.to_string(),
            run.finished
                .map_or_else(|| "unfinished".to_owned(), |time| time.to_string()),
            run.failed,
        ),
        Writer::Other => ("-".to_owned(), "no run", "-".to_owned(), "-".to_owned(), 0),
    };
    format!(
        "{run:>4} {command:<8} {started:<26} {finished:<26} {:>12} added {:>12} deleted {:>8} failed",
        grouped(counts.added),
        grouped(counts.deleted),
        grouped(failed),
    )
}

/// A volume that would be written.
#[derive(Serialize)]
pub(crate) struct NewVolume {
    volume: String,
    members: u64,
    bytes: u64,
}

impl NewVolume {
    pub(crate) fn new(volume: &PlannedVolume) -> Self {
        Self {
            volume: volume.id.to_string(),
            members: volume.members,
            bytes: volume.bytes,
        }
    }

    pub(crate) fn text(&self) -> String {
        format!(
            "{}  {:>12} entries  {:>16} bytes",
            self.volume,
            grouped(self.members),
            grouped(self.bytes)
        )
    }
}

/// How often a system call was made.
#[derive(Serialize)]
pub(crate) struct Syscall<'a> {
    name: &'a str,
    calls: u64,
    errors: u64,
    seconds: f64,
}

impl<'a> Syscall<'a> {
    /// Returns a call of this program.
    pub(crate) fn new(count: &CallCount) -> Self {
        Self {
            name: count.name,
            calls: count.calls,
            errors: count.errors,
            seconds: count.total.as_secs_f64(),
        }
    }

    /// Returns a call of a program that is profiled.
    pub(crate) fn counted(call: &'a SystemCall) -> Self {
        Self {
            name: &call.name,
            calls: call.calls,
            errors: call.errors,
            seconds: call.seconds,
        }
    }
}
