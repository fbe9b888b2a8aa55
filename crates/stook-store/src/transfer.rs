//! What a transfer reports while it runs, and asks.

/// Receives how far transfers are; from several threads at once.
pub trait TransferObserver: Sync {
    /// So many bytes more were sent or received.
    fn transferred(&self, _bytes: u64) {}
    /// Returns true once the transfer should end: it does within a second then, with
    /// [`StoreCause::Interrupted`](crate::StoreCause::Interrupted).
    fn is_interrupted(&self) -> bool {
        false
    }
}

/// An observer that ignores everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl TransferObserver for Silent {}
