//! `stook mount --native`: the kernel reads the volumes by itself, through an image.

use stook_export::{NativeMount, mount_native, require_native};
use stook_mount::require_apart;

use super::typed::Typed;
use crate::args::Common;
use crate::exit::{CliError, Ending};
use crate::options;
use crate::progress::observed;
use crate::store_settings;
use crate::stores::is_url;

pub(super) fn mount(typed: &Typed, common: &Common) -> Result<Ending, CliError> {
    refuse_options(typed)?;
    require_native()?;
    let path = typed.archive()?;
    require_apart(&path, &typed.mountpoint)?;
    stook_sys::give_back_large_blocks();
    let mut archive = options::open(&path)?;
    let options = NativeMount {
        as_of: options::as_of(&archive, &typed.as_of)?,
        folder: store_settings::images()?,
        image: typed.image.clone(),
        no_exec: typed.no_exec,
    };
    if typed.is_fake {
        return Ok(Ending::Done);
    }
    observed(common, |reporter| {
        mount_native(&mut archive, &typed.mountpoint, &options, reporter)
    })?;
    Ok(Ending::Done)
}

/// The kernel does the mounting, and no process of stook is there afterwards.
fn refuse_options(typed: &Typed) -> Result<(), CliError> {
    let cache = &typed.source.cache;
    let refused = [
        (typed.verify, "--verify", "the kernel verifies nothing"),
        (
            typed.all_versions,
            "--all-versions",
            "an image shows one state",
        ),
        (
            typed.foreground,
            "--foreground",
            "no process serves the mount",
        ),
        (typed.log.is_some(), "--log", "no process serves the mount"),
        (
            cache.cache.is_some(),
            "--cache",
            "the kernel reads the volumes themselves",
        ),
        (
            cache.offline,
            "--offline",
            "the kernel reads the volumes themselves",
        ),
        (
            typed.source.place.store.is_some(),
            "--store",
            "all volumes must be in the archive's folder",
        ),
    ];
    if let Some((_, option, why)) = refused.into_iter().find(|(is_given, ..)| *is_given) {
        return Err(unfit(option, why));
    }
    if typed.archive()?.to_str().is_some_and(is_url) {
        return Err(unfit(
            "a URL",
            "all volumes must be in a folder of this machine",
        ));
    }
    Ok(())
}

fn unfit(option: &str, why: &str) -> CliError {
    CliError::Option {
        option: "--native",
        value: option.to_owned(),
        why: why.to_owned(),
    }
}
