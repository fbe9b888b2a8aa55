//! What keeps an archive and its store from agreeing.

use stook_index::VolumeId;
use stook_store::StoreError;
use stook_sys::SysError;

/// An error of the store of an archive, or of what it holds.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransferError {
    /// An operation of the store failed.
    #[error(transparent)]
    Store(Box<StoreError>),
    /// A new archive was to be sent to where one is.
    #[error("cannot create an archive in `{store}`: it holds one already")]
    HoldsArchive {
        /// The place.
        store: String,
    },
    /// The store has another archive, or somebody else has added to this one there.
    #[error(
        "the index in `{store}` holds what the one here does not, or belongs to another archive"
    )]
    Diverged {
        /// The place.
        store: String,
    },
    /// The store had the archive, and has not any more: it is not mounted, say.
    #[error("`{store}` has no index, although this archive was sent there")]
    Gone {
        /// The place.
        store: String,
    },
    /// The store is the archive's own folder, whatever way leads there.
    #[error("cannot send to `{store}`: it is the folder of the archive")]
    OwnFolder {
        /// The place.
        store: String,
    },
    /// A volume here is not what was written; nothing of it is sent.
    #[error("cannot send `{volume}`: it has changed since it was written")]
    LocalDamage {
        /// The volume.
        volume: VolumeId,
    },
    /// A volume here cannot be read.
    #[error("cannot read `{volume}`: {}", stook_sys::cause(&source.source))]
    Unreadable {
        /// The volume.
        volume: VolumeId,
        /// Why.
        source: SysError,
    },
    /// The store has another file under the name of a volume.
    #[error("cannot put `{volume}` to `{store}`: it holds another file of this name")]
    HoldsOther {
        /// The volume.
        volume: VolumeId,
        /// The place.
        store: String,
    },
    /// The archive has another store.
    #[error("cannot send to `{given}`: the volumes of this archive are in `{recorded}`")]
    OtherStore {
        /// The place that was recorded.
        recorded: String,
        /// The place that was named.
        given: String,
    },
    /// The archive has no store, and none was named.
    #[error("this archive has no store")]
    NoStore,
    /// The store has no archive.
    #[error("cannot read the archive in `{store}`: it has no index.db")]
    NoIndex {
        /// The place.
        store: String,
    },
    /// Volumes waiting for their transfer may not take as much as one volume.
    #[error("volumes in transfer may take {spool} bytes, and one volume takes up to {needed}")]
    SmallSpool {
        /// The limit.
        spool: u64,
        /// The least that would do.
        needed: u64,
    },
    /// A volume is neither here nor in the store.
    #[error("cannot find `{volume}`: it is neither here nor in `{store}`")]
    Missing {
        /// The first of them.
        volume: VolumeId,
        /// The place.
        store: String,
    },
}

impl From<StoreError> for TransferError {
    fn from(error: StoreError) -> Self {
        Self::Store(Box::new(error))
    }
}
