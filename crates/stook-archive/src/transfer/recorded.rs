//! Whether a store still holds what was put on record.

use stook_index::Transfer;
use stook_store::StoredFile;

/// Returns true if the file in the store is the one that was sent, as far as its length and version tell.
pub(super) fn is_as_sent(file: &StoredFile, sent: &Transfer) -> bool {
    // Some stores tell versions of single files, but not in their listings.
    let is_same_version =
        |version: &str| sent.version.as_deref().is_none_or(|sent| sent == version);
    let version = file.version.as_ref();
    sent.size == file.size && version.is_none_or(|version| is_same_version(&version.0))
}
