//! What the kernel holds of files in memory: making it forget, and proving that it did.

use stook_sys::Forget;

use crate::error::BenchError;

/// Makes the whole machine cold: the kernel forgets data, names and inodes of all files.
///
/// # Errors
/// [`BenchError::Refused`] where this user may not.
pub fn drop_all() -> Result<(), BenchError> {
    stook_sys::drop_caches(Forget::Everything).map_err(|error| BenchError::Refused {
        what: format!("the caches cannot be dropped: {error}"),
        hint: Some("only root may drop them, and not in every container".to_owned()),
    })
}
