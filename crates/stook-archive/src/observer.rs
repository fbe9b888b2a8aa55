//! What operations report while they run: failures, damage, progress.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};

use stook_index::{IndexDamage, Interrupt, Row, Volume, VolumeId};
use stook_sys::{SysError, display_bytes};

use crate::ArchiveError;
use crate::cause::Cause;
use crate::deletions::UnlikelyDeletions;

/// One file that could not be archived or brought back; the rest goes on.
#[derive(Debug, Clone, thiserror::Error)]
#[error("cannot {operation} `{}`: {cause}", display_bytes(path))]
pub struct Failure {
    /// What was tried, as a verb.
    pub operation: &'static str,
    /// Path in the tree.
    pub path: Vec<u8>,
    /// Why it failed.
    #[source]
    pub cause: Cause,
}

impl Failure {
    pub(crate) fn new(operation: &'static str, path: &[u8], cause: impl Into<Cause>) -> Self {
        Self {
            operation,
            path: path.to_vec(),
            cause: cause.into(),
        }
    }

    /// A member that the index does not say enough of to be read.
    pub(crate) fn row(damage: &IndexDamage) -> Self {
        let path = damage.name.as_deref().unwrap_or(b"index.db");
        Self::new("read", path, Cause::Index(Box::new(damage.clone())))
    }

    pub(crate) fn io(operation: &'static str, path: &[u8], error: &std::io::Error) -> Self {
        Self::new(operation, path, error)
    }
}

/// Something in an archive that is not as it was written.
#[derive(Debug, Clone)]
pub struct Damage {
    /// Where it is.
    pub volume: VolumeId,
    /// The place in the volume, in bytes, if it is about one.
    pub offset: Option<u64>,
    /// The member that is affected, if it is one.
    pub member: Option<Vec<u8>>,
    /// What is wrong.
    pub cause: Cause,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.volume)?;
        if let Some(offset) = self.offset {
            write!(f, " at byte {offset}")?;
        }
        if let Some(member) = &self.member {
            write!(f, ", `{}`", display_bytes(member))?;
        }
        write!(f, ": {}", self.cause)
    }
}

/// A fact that is not an error, and that a program may have advice about.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Note {
    /// A volume in the archive's folder that the index does not have.
    #[error("{0} is not in the index")]
    NotIndexed(VolumeId),
    /// The capabilities of so many files were not restored.
    #[error("the capabilities of {} were left out", files(*.0))]
    CapabilitiesLeftOut(u64),
    /// So many built volumes have no MD5: only their lengths were compared.
    #[error("{} built without MD5, and compared by length alone", volumes(*.0))]
    NotVerified(u64),
    /// So many rows were read one after the other to find names.
    #[error("names were searched for in {0} rows, one after the other")]
    NamesScanned(u64),
    /// Mode or owner of so many entries changed, and nothing else: they are not archived again.
    #[error("only mode or owner of {} changed", entries(*.0))]
    MetadataChanged(u64),
    /// An update would stop before it writes anything.
    #[error("an update would stop: {0}")]
    WouldStop(UnlikelyDeletions),
    /// What a removal takes is not recorded: the tree is not known as the one that the archive was created from.
    #[error(
        "what is removed is not recorded: this is not the tree that the archive was created from"
    )]
    NotRecordedOfOtherTree,
    /// A part was built again, and so many members fewer were written: what was built before stays.
    #[error("what was built before stays: it has {}", more_members(*.0))]
    KeptBuilt(u64),
    /// The volume of a part was damaged between the decision to commit it and its turn. So many members of it count as failed.
    #[error("what was built of part {part:06} is damaged: {}", count_as_failed(*.members))]
    BuiltLost {
        /// Number of the part.
        part: u32,
        /// Members that were written.
        members: u64,
    },
    /// A transfer failed, and is tried again after so many seconds.
    #[error("{error}; it is tried again in {seconds} s")]
    TransferFailed {
        /// What happened.
        error: String,
        /// The pause.
        seconds: u64,
    },
    /// What a removal takes is not recorded, because an archive that only zstash has written stays as it is.
    #[error("what is removed is not recorded: only zstash has written the archive")]
    NotRecordedInForeignArchive,
    /// A new archive has compressed volumes.
    #[error("volumes are compressed: zstash cannot read this archive")]
    Compressed,
}

fn more_members(number: u64) -> String {
    match number {
        1 => "one more member".to_owned(),
        number => format!("{number} more members"),
    }
}

fn count_as_failed(members: u64) -> String {
    match members {
        1 => "its member counts as failed".to_owned(),
        members => format!("its {members} members count as failed"),
    }
}

fn files(number: u64) -> String {
    match number {
        1 => "a file".to_owned(),
        number => format!("{number} files"),
    }
}

fn volumes(number: u64) -> String {
    match number {
        1 => "a volume was".to_owned(),
        number => format!("{number} volumes were"),
    }
}

fn entries(number: u64) -> String {
    match number {
        1 => "an entry".to_owned(),
        number => format!("{number} entries"),
    }
}

/// Why an entry is left out on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SkipReason {
    /// Archives have no sockets.
    #[error("it is a socket")]
    Socket,
}

/// What became of a selected member.
#[derive(Debug, Clone, Copy)]
pub struct MemberDone<'a> {
    /// Its row.
    pub row: &'a Row,
    /// Whether the volume has it as a further name of a file; false if that could not be read.
    pub is_hard_link: bool,
    /// How it ended.
    pub end: MemberEnd<'a>,
}

/// How it ended with a member.
#[derive(Debug, Clone, Copy)]
pub enum MemberEnd<'a> {
    /// It was written.
    Extracted,
    /// It was there already, with the same size and time.
    Unchanged,
    /// Its bytes were read, and are right.
    Verified,
    /// It failed.
    Failed(&'a Failure),
}

/// A search through fewer rows takes a tenth of a second at most.
const MANY_ROWS: u64 = 100_000;

/// Says that names were searched for without hashes, if that was felt.
pub(crate) fn note_scan(rows: u64, observer: &dyn Observer) {
    if rows >= MANY_ROWS {
        observer.note(&Note::NamesScanned(rows));
    }
}

/// Receives what an operation on an archive reports besides progress and failures, from several threads at once.
pub trait Observer: stook_pool::Observer<Failure = Failure> {
    /// A phase begins, with what it will do as far as that is known. Progress is that of the phase from now on.
    fn phase(&self, _name: &'static str, _entries: Option<u64>, _bytes: Option<u64>) {}
    /// An entry is left out on purpose.
    fn skipped(&self, _path: &[u8], _reason: SkipReason) {}
    /// Something is damaged.
    fn damaged(&self, _damage: &Damage) {}
    /// Something in the index is damaged.
    fn index_damaged(&self, _damage: &IndexDamage) {}
    /// A fact that the user should know; not an error.
    fn noted(&self, _text: &str) {}
    /// Such a fact with a kind, for a program that has advice about it.
    fn note(&self, note: &Note) {
        self.noted(&note.to_string());
    }
    /// An entry was archived, extracted or checked.
    fn done(&self, _path: &[u8]) {}
    /// A finer part of a phase begins.
    fn step(&self, _name: &'static str) {}
    /// All volumes before this one are in the index; volumes behind it may be under way.
    fn volume_is_next(&self, _volume: VolumeId) {}
    /// An entry was written into a volume. Those of one volume come in order.
    fn archived(&self, _volume: VolumeId, _path: &[u8]) {}
    /// A volume is durable under its name, with all its members, and comes into the index next. They come in order. A break keeps it
    /// out of the index, and ends the run.
    fn volume_is_ready(&self, _volume: &Volume) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
    /// A selected member was extracted or verified, or failed; in any order.
    fn member(&self, _member: &MemberDone<'_>) {}
    /// Holes of a file have been hashed for a while, up to this byte; reported again and again.
    fn hashing_holes(&self, _path: &[u8], _done: u64, _size: u64) {}
    /// Returns what ends statements on the index once the operation should end early.
    fn interrupt(&self) -> Interrupt {
        Interrupt::never()
    }
}

/// An observer that ignores everything.
#[derive(Debug, Default, Clone, Copy)]
pub struct Silent;

impl stook_pool::Observer for Silent {
    type Failure = Failure;
}

impl Observer for Silent {}

/// Returns an error once the operation should end early.
pub(crate) fn require_going_on(observer: &dyn Observer) -> Result<(), ArchiveError> {
    if observer.is_interrupted() {
        Err(ArchiveError::Interrupted)
    } else {
        Ok(())
    }
}

/// Passes everything on, and counts. What is asked and reported most needs no trait in scope.
pub(crate) struct CountingObserver<'a> {
    inner: &'a dyn Observer,
    failures: AtomicU64,
    damages: AtomicU64,
}

impl<'a> CountingObserver<'a> {
    pub(crate) fn new(inner: &'a dyn Observer) -> Self {
        Self {
            inner,
            failures: AtomicU64::new(0),
            damages: AtomicU64::new(0),
        }
    }

    pub(crate) fn advanced(&self, entries: u64, bytes: u64) {
        self.inner.advanced(entries, bytes);
    }

    pub(crate) fn failed(&self, failure: &Failure) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        self.inner.failed(failure);
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.inner.is_interrupted()
    }

    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    pub(crate) fn damages(&self) -> u64 {
        self.damages.load(Ordering::Relaxed)
    }
}

impl stook_pool::Observer for CountingObserver<'_> {
    type Failure = Failure;

    fn advanced(&self, entries: u64, bytes: u64) {
        self.advanced(entries, bytes);
    }
    fn failed(&self, failure: &Failure) {
        self.failed(failure);
    }
    fn is_interrupted(&self) -> bool {
        self.is_interrupted()
    }
}

impl Observer for CountingObserver<'_> {
    fn phase(&self, name: &'static str, entries: Option<u64>, bytes: Option<u64>) {
        self.inner.phase(name, entries, bytes);
    }
    fn skipped(&self, path: &[u8], reason: SkipReason) {
        self.inner.skipped(path, reason);
    }
    fn damaged(&self, damage: &Damage) {
        self.damages.fetch_add(1, Ordering::Relaxed);
        self.inner.damaged(damage);
    }
    fn index_damaged(&self, damage: &IndexDamage) {
        self.damages.fetch_add(1, Ordering::Relaxed);
        self.inner.index_damaged(damage);
    }
    fn noted(&self, text: &str) {
        self.inner.noted(text);
    }
    fn note(&self, note: &Note) {
        self.inner.note(note);
    }
    fn done(&self, path: &[u8]) {
        self.inner.done(path);
    }
    fn step(&self, name: &'static str) {
        self.inner.step(name);
    }
    fn volume_is_next(&self, volume: VolumeId) {
        self.inner.volume_is_next(volume);
    }
    fn archived(&self, volume: VolumeId, path: &[u8]) {
        self.inner.archived(volume, path);
    }
    fn volume_is_ready(&self, volume: &Volume) -> ControlFlow<()> {
        self.inner.volume_is_ready(volume)
    }
    fn member(&self, member: &MemberDone<'_>) {
        self.inner.member(member);
    }
    fn hashing_holes(&self, path: &[u8], done: u64, size: u64) {
        self.inner.hashing_holes(path, done, size);
    }
    fn interrupt(&self) -> Interrupt {
        self.inner.interrupt()
    }
}

/// A member that cannot be read because its volume cannot.
pub(crate) fn sys_failure(path: &[u8], error: &SysError) -> Failure {
    Failure::new("read", path, error)
}
