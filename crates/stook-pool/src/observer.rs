//! What every operation tells whoever started it. Operations extend it by what only they have to tell.

/// Receives progress and failures, and is asked whether to end early; from several threads at once.
pub trait Observer: Sync {
    /// What the operation tells of an entry that it failed on.
    type Failure;

    /// So many more entries and bytes are done.
    fn advanced(&self, _entries: u64, _bytes: u64) {}

    /// The operation failed on an entry; the rest goes on.
    fn failed(&self, _failure: &Self::Failure) {}

    /// Returns true once the operation should end early, and from then on.
    fn is_interrupted(&self) -> bool {
        false
    }
}
