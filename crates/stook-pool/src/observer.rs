//! What every operation reports to its caller. Each operation extends it with its own events.

/// Receives progress and failures, and is asked whether to end early; from several threads at once.
pub trait Observer: Sync {
    /// What the operation reports of an entry that it failed on.
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
