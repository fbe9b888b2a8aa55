//! What zstash would say of volumes that an earlier run left here and this one sends.

use stook_archive::{StoreOptions, status};
use stook_sys::exists;

use super::context::Context;
use super::error::FrontError;
use super::messages;
use super::settings::Cache;
use super::update::open;

/// Says which volumes wait for their transfer, if the archive is here; returns whether there are any.
pub(crate) fn announce_waiting(
    context: &Context,
    cache: &Cache,
    store: Option<&StoreOptions>,
) -> Result<bool, FrontError> {
    if store.is_none() || exists(&cache.index())?.is_none() {
        return Ok(false);
    }
    let status = status(&open(cache)?, None)?;
    let waits = status.volumes.iter();
    let waits = waits.filter(|volume| volume.local.is_some() && volume.transfer.is_none());
    let mut has_any = false;
    for volume in waits {
        has_any = true;
        let path = cache.path_of(volume.volume);
        context.log.info(&messages::sending(&path));
    }
    Ok(has_any)
}
