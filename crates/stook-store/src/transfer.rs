//! What a transfer reports while it runs, and asks.

use crate::error::{StoreCause, StoreError};
use crate::store::Download;

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

/// Gets files one after the other; what keeps all others from coming as well ends it.
pub(crate) fn get_each(
    downloads: &[Download<'_>],
    arrived: &mut dyn FnMut(usize, Result<(), StoreError>),
    get: impl Fn(&Download<'_>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    for (place, download) in downloads.iter().enumerate() {
        match get(download) {
            Err(error) if ends_all(&error.cause) => return Err(error),
            got => arrived(place, got),
        }
    }
    Ok(())
}

fn ends_all(cause: &StoreCause) -> bool {
    matches!(
        cause,
        StoreCause::Interrupted
            | StoreCause::Login { .. }
            | StoreCause::NotLetIn { .. }
            | StoreCause::NoPlace
            | StoreCause::Timeout(_)
    )
}
