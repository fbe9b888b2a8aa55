//! `chgrp`: the group of an archive on HPSS.

use stook_store::HsiStore;

use super::argparse::{Values, display};
use super::context::Context;
use super::error::FrontError;
use super::messages;
use super::settings::place;
use crate::store_settings::settings;

pub(crate) fn chgrp(values: &Values, context: &Context) -> Result<(), FrontError> {
    let place = place(values.text("hpss").unwrap_or_default());
    if place == "none" {
        context.log.info(messages::CHGRP_UNAVAILABLE);
        return Ok(());
    }
    let group = display(values.text("group").unwrap_or_default());
    let store = HsiStore::new(&place, settings()?.hsi);
    Ok(store.change_group(&group, values.switch("R"))?)
}
