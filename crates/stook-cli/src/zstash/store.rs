//! From zstash's names of places to stores.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use stook_archive::StoreOptions;
use stook_store::{
    DirectoryStore, HsiOptions, HsiStore, Interruption, Location, ProgramOptions, Store,
};

use super::error::FrontError;
use super::settings::variable;

/// zstash tries once; a glitch of the network is not worth a failed run of days.
const RETRY_FOR: Duration = Duration::from_secs(30);

/// Returns the store that a place stands for: a path is one of HPSS. None for `none`.
pub(crate) fn store(
    place: &str,
    keeps_volumes: bool,
    interrupted: &Arc<AtomicBool>,
) -> Result<Option<StoreOptions>, FrontError> {
    if place == "none" {
        return Ok(None);
    }
    let place = if place.contains("://") || place.starts_with("hpss:") {
        place.to_owned()
    } else {
        format!("hpss:{place}")
    };
    let store: Arc<dyn Store> = match Location::parse(&place)? {
        Location::Directory(path) => Arc::new(DirectoryStore::new(path)),
        Location::Hpss(path) => Arc::new(HsiStore::new(&path, hsi(interrupted))),
        other => {
            let text = format!("cannot use `{other}`: this front reaches HPSS and directories");
            return Err(FrontError::raised("ValueError", text));
        }
    };
    let mut options = StoreOptions::new(store, place);
    options.keeps_volumes = keeps_volumes;
    options.retry_for = RETRY_FOR;
    // zstash takes the place that is named.
    options.changes_store = true;
    Ok(Some(options))
}

/// The program is named by `STOOK_HSI`, arguments in front of all others stand in `STOOK_HSI_ARGUMENTS`.
pub(crate) fn hsi(interrupted: &Arc<AtomicBool>) -> HsiOptions {
    let words = |name| {
        let text = variable(name).unwrap_or_default();
        let words = text.split(u8::is_ascii_whitespace);
        let words = words.filter(|word| !word.is_empty());
        words
            .map(|word| OsString::from_vec(word.to_vec()))
            .collect::<Vec<OsString>>()
    };
    let path = variable("STOOK_HSI").filter(|path| !path.is_empty());
    let path = path.map_or_else(
        || "hsi".into(),
        |path| PathBuf::from(OsString::from_vec(path)),
    );
    let flag = Arc::clone(interrupted);
    let mut program = ProgramOptions::new(path);
    program.arguments = words("STOOK_HSI_ARGUMENTS");
    program.interruption = Interruption::new(move || flag.load(Ordering::Relaxed));
    HsiOptions {
        program,
        ..HsiOptions::default()
    }
}
