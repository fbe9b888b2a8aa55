//! From zstash's names of places to stores: a path is one of HPSS, all else a location as stook has it.

use std::time::Duration;

use stook_archive::{Archive, StoreOptions};

use super::error::FrontError;
use crate::stores::{lasting_name, location_of, open};

/// zstash tries once; a glitch of the network is not worth a failed run of days.
const RETRY_FOR: Duration = Duration::from_secs(30);

/// Returns the place of an archive as zstash names it, from its own records: a path of HPSS, or a location. `none` if it has none.
pub(crate) fn recorded_place(archive: &Archive) -> Result<String, FrontError> {
    let place = archive.store_place()?.unwrap_or_else(|| "none".to_owned());
    Ok(match place.strip_prefix("hpss:") {
        Some(path) => path.to_owned(),
        // A path would be one of HPSS here.
        None if place.starts_with('/') => format!("file://{place}"),
        None => place,
    })
}

/// Returns true for a place that zstash knows, too.
pub(crate) fn is_zstashs(place: &str) -> bool {
    place.starts_with("globus://") || !place.contains("://")
}

/// Returns how volumes get to a place and back; None for `none`.
pub(crate) fn store(place: &str, keeps_volumes: bool) -> Result<Option<StoreOptions>, FrontError> {
    if place == "none" {
        return Ok(None);
    }
    let place = if place.contains("://") || place.starts_with("hpss:") {
        place.to_owned()
    } else {
        format!("hpss:{place}")
    };
    let name = lasting_name(location_of(&place)?)?;
    let mut options = StoreOptions::new(open(&place)?, name);
    options.keeps_volumes = keeps_volumes;
    options.retry_for = RETRY_FOR;
    // zstash takes the place that is named.
    options.changes_store = true;
    Ok(Some(options))
}
