//! What every store does, and what it says about itself.

use std::fmt;
use std::ops::Range;
use std::path::Path;

use crate::error::{Difference, StoreCause, StoreError};
use crate::transfer::TransferObserver;

/// A flat place that holds files under plain names; several threads use it at once.
///
/// A name is one path component: not empty, neither `.` nor `..`, no `/` and no NUL. Stores refuse others with
/// [`StoreCause::Name`](crate::StoreCause::Name).
pub trait Store: fmt::Debug + Send + Sync {
    /// Returns how messages name the place: what the user wrote, without credentials.
    fn name(&self) -> &str;

    /// Returns what the store can do and prove.
    fn abilities(&self) -> Abilities;

    /// Makes the place if it is missing, and makes sure that files can be put there. Nothing stays that was not there.
    ///
    /// # Errors
    /// As [`Store::put`].
    fn prepare(&self) -> Result<(), StoreError>;

    /// Puts a local file. Nobody sees a part of it under its name, where [`Abilities::is_atomic`].
    ///
    /// # Errors
    /// [`StoreCause::Exists`](crate::StoreCause::Exists) if the condition does not hold, and nothing has changed then;
    /// [`StoreCause::Different`](crate::StoreCause::Different) if what arrived is not what was sent.
    ///
    /// # Cost
    /// Memory of a few buffers, whatever the size of the file.
    fn put(
        &self,
        upload: &Upload<'_>,
        observer: &dyn TransferObserver,
    ) -> Result<Stored, StoreError>;

    /// Proves anew that a file has this size and MD5, as far as the store can; returns how it did. Bytes are read
    /// back only for [`Proof::ReadBack`].
    ///
    /// # Errors
    /// [`StoreCause::Different`](crate::StoreCause::Different) if it has not.
    fn verify(
        &self,
        file: &Upload<'_>,
        observer: &dyn TransferObserver,
    ) -> Result<Stored, StoreError>;

    /// Gets files, in the order that suits the store. Each is written to its path, durably, in the place of what
    /// is there, and reported to `arrived`; of one that failed nothing stays; the store goes on with the others after one that fails.
    ///
    /// # Errors
    /// What keeps all files that are left from coming: [`Advice::Login`](crate::Advice::Login), say.
    fn get(
        &self,
        downloads: &[Download<'_>],
        observer: &dyn TransferObserver,
        arrived: &mut dyn FnMut(usize, Result<(), StoreError>),
    ) -> Result<(), StoreError>;

    /// Reads bytes from an offset into the buffer; fewer only at the end of the file.
    ///
    /// # Errors
    /// [`StoreCause::NoRanges`](crate::StoreCause::NoRanges) where the store has none;
    /// [`StoreCause::Changed`](crate::StoreCause::Changed) if the file is not of this version any more.
    fn read_range(
        &self,
        file: &StoredFile,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<usize, StoreError>;

    /// Reads a range and hands it over in pieces, in order, as they arrive: whoever waits for the first bytes need not wait
    /// for the last. What was handed over before an error is right.
    ///
    /// # Errors
    /// As [`Store::read_range`]; [`StoreCause::Different`](crate::StoreCause::Different) if the file ends within the range.
    ///
    /// # Cost
    /// Where the store has nothing better, memory for the whole range, which is one piece then.
    fn read_pieces(
        &self,
        file: &StoredFile,
        range: Range<u64>,
        take: &mut dyn FnMut(&[u8]),
    ) -> Result<(), StoreError> {
        let failed = |cause| StoreError::new("read", &file.name, self.name(), cause);
        let expected = range.end.saturating_sub(range.start);
        let len = usize::try_from(expected).map_err(|_too_long| failed(StoreCause::NoRanges))?;
        let mut bytes = vec![0; len];
        let read = self.read_range(file, range.start, &mut bytes)?;
        take(&bytes[..read]);
        if read < len {
            let found = read as u64;
            return Err(failed(Difference::Size { expected, found }.into()));
        }
        Ok(())
    }

    /// Returns all files, sorted by name. An empty list if the place does not exist.
    ///
    /// # Errors
    /// [`StoreCause::NoList`](crate::StoreCause::NoList) where the store cannot list.
    fn list(&self) -> Result<Vec<StoredFile>, StoreError>;

    /// Returns what the store says of a file; None if it is not there.
    ///
    /// # Errors
    /// If the store cannot be asked.
    fn stat(&self, name: &str) -> Result<Option<StoredFile>, StoreError>;

    /// Deletes a file; one that is not there is no error.
    ///
    /// # Errors
    /// If it stays.
    fn delete(&self, name: &str) -> Result<(), StoreError>;
}

/// What a store can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one independent fact about a store"
)]
pub struct Abilities {
    /// How [`Store::put`] proves a file if nothing more is asked for.
    pub gives: Proof,
    /// The proof without which no local file may be deleted.
    pub minimum: Proof,
    /// Whether conditions other than [`Condition::Always`] hold against other writers.
    pub is_conditional: bool,
    /// Whether a file appears under its name only as a whole.
    pub is_atomic: bool,
    /// Whether [`Store::read_range`] works.
    pub has_ranges: bool,
    /// Whether anything can be put.
    pub is_writable: bool,
}

/// How it is known that a store holds the bytes of a file; a later one proves more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Proof {
    /// The store says that it has as many bytes.
    Size,
    /// A hash was computed on the way, by the store or on its side of the connection, and is that of the file.
    HashedInTransfer,
    /// The bytes were read from where they lie and hashed.
    ReadBack,
}

impl Proof {
    /// Returns the word for it: in the index, in JSON, and in texts.
    pub fn word(self) -> &'static str {
        match self {
            Self::Size => "size",
            Self::HashedInTransfer => "hashed in transfer",
            Self::ReadBack => "read back",
        }
    }

    /// Returns the proof that this word stands for.
    pub fn from_word(word: &str) -> Option<Self> {
        let all = [Self::Size, Self::HashedInTransfer, Self::ReadBack];
        all.into_iter().find(|proof| proof.word() == word)
    }
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A file to be put, or to be compared with what the store holds.
#[derive(Debug, Clone, Copy)]
pub struct Upload<'a> {
    /// Its name in the store.
    pub name: &'a str,
    /// Where its bytes lie.
    pub path: &'a Path,
    /// Its length in bytes.
    pub size: u64,
    /// Its MD5. None: the store takes it from the file on the way.
    pub md5: Option<[u8; 16]>,
    /// What may be in its place.
    pub condition: &'a Condition,
    /// The proof that is asked for; the store gives at least [`Abilities::gives`], and never less than this unless it
    /// cannot: [`Stored::proof`] says which it is.
    pub proof: Proof,
}

/// What may have a name for [`Store::put`] to go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// Whatever it is.
    Always,
    /// Nothing.
    New,
    /// A file of this version.
    Unchanged(FileVersion),
}

impl Condition {
    /// Returns this condition where the store keeps it against other writers, none where it cannot.
    #[must_use]
    pub fn where_possible(self, store: &dyn Store) -> Self {
        match store.abilities().is_conditional {
            true => self,
            false => Self::Always,
        }
    }
}

/// State of a file in a store: as long as it has the same version, it has the same bytes. An entity tag, say.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FileVersion(pub String);

/// What a store says of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredFile {
    /// Its name.
    pub name: String,
    /// Its length in bytes.
    pub size: u64,
    /// Its version; None where the store has none.
    pub version: Option<FileVersion>,
}

/// A file that a store holds, as far as that was proved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// How.
    pub proof: Proof,
    /// Its version then; None where the store has none.
    pub version: Option<FileVersion>,
}

/// A file to be got.
#[derive(Debug, Clone, Copy)]
pub struct Download<'a> {
    /// Its name in the store.
    pub name: &'a str,
    /// Where it goes.
    pub path: &'a Path,
    /// The length it must have; None if that is not known.
    pub size: Option<u64>,
}
