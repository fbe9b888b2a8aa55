//! From zstash's names of places to stores: a path is one of HPSS, all else a location as stook has it.

use std::time::Duration;

use stook_archive::StoreOptions;

use super::error::FrontError;
use crate::stores::open;

/// zstash tries once; a glitch of the network is not worth a failed run of days.
const RETRY_FOR: Duration = Duration::from_secs(30);

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
    let mut options = StoreOptions::new(open(&place)?, place);
    options.keeps_volumes = keeps_volumes;
    options.retry_for = RETRY_FOR;
    // zstash takes the place that is named.
    options.changes_store = true;
    Ok(Some(options))
}
