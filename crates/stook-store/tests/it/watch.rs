//! An observer that ends a transfer at a moment that a test knows.

use stook_store::TransferObserver;

/// Interrupted when something has come about.
pub(crate) struct When<F>(pub(crate) F);

impl<F: Fn() -> bool + Sync> TransferObserver for When<F> {
    fn is_interrupted(&self) -> bool {
        (self.0)()
    }
}
