//! `stook mount`, and the program called as `mount.stook`: opens the archive, mounts it, and serves it until it is unmounted.
//!
//! ```text
//!   stook mount ──starts──> stook mount, as a child ──mounted──> goes on without a terminal
//!       └──────────────── ends when the child says so, or with its status
//! ```
//! The child is a new process, not a fork: by now there may be threads, which a fork would lose.

mod daemon;
mod helper;
mod log;
mod measured;
mod native;
mod signals;
mod talk;
mod typed;

use std::sync::Arc;

use stook_archive::{CatalogueOptions, Versions};
use stook_mount::{Log, MountOptions, Mounted, Shown, require_apart};
use stook_sys::display_path;

pub(crate) use self::helper::words;
use self::log::MountLog;
pub(crate) use self::measured::server_at;
use self::signals::Signals;
pub(crate) use self::talk::talk;
use self::typed::Typed;
use crate::args::{Common, MountArgs};
use crate::exit::{CliError, Ending};
use crate::options;
use crate::progress::Reporter;
use crate::stores::{Opened, is_url};

pub(crate) fn mount(args: &MountArgs, common: &Common) -> Result<Ending, CliError> {
    let typed = Typed::of(args)?;
    if typed.native {
        return native::mount(&typed, common);
    }
    if !typed.foreground && !daemon::is_child() {
        return daemon::start(common);
    }
    let log = MountLog::open(&typed)?;
    let Some((mounted, signals)) = begin(&typed, common, &log)? else {
        return Ok(Ending::Done);
    };
    signals.unmount(mounted.unmounter(), Arc::clone(&log))?;
    if daemon::is_child() {
        daemon::say_mounted()?;
        log.left_terminal();
    }
    mounted.wait()?;
    Ok(Ending::Done)
}

/// Opens the archive and mounts it; `None` if it is not to be mounted.
fn begin(
    typed: &Typed,
    common: &Common,
    log: &Arc<MountLog>,
) -> Result<Option<(Mounted, Signals)>, CliError> {
    let archive = typed.archive()?;
    if !archive.to_str().is_some_and(is_url) {
        require_apart(&archive, &typed.mountpoint)?;
    }
    stook_sys::give_back_large_blocks();
    let mut opened = Opened::to_serve(&archive, &typed.source)?;
    let cache = opened.volumes();
    let as_of = options::as_of(&opened.archive, &typed.as_of)?;
    let loaded = CatalogueOptions {
        as_of,
        decode_threads: Some(typed.decode_threads()),
        ..CatalogueOptions::default()
    };
    let reporter = Reporter::without_signals(common);
    let main = opened.archive.catalogue(&loaded, &reporter)?;
    let all = CatalogueOptions {
        versions: Versions::All,
        ..loaded
    };
    let load_all = || opened.archive.catalogue(&all, &reporter);
    let versions = typed.all_versions.then(load_all).transpose()?;
    let shown = Shown { main, versions };
    // SQLite is closed by this: who updates the archive does not wait for a mount.
    drop(opened);
    reporter.finish();
    if typed.is_fake {
        return Ok(None);
    }
    let options = MountOptions {
        source: display_path(&archive),
        allow_other: typed.allow_other,
        no_exec: typed.no_exec,
        verify: typed.verify,
        control: Some(talk::directory_of(stook_sys::effective_user())),
        cache,
        prefetch: typed.prefetch.clone(),
    };
    // They cost 20 ns a scope, and `stook talk` can ask for them; --timings may have asked for more.
    if !stook_timers::is_enabled() {
        stook_timers::enable();
    }
    let log = Arc::clone(log) as Arc<dyn Log>;
    // One that comes while it is being mounted must not leave a mount without a server.
    let signals = Signals::hold()?;
    let mounted = Mounted::mount(shown, &typed.mountpoint, &options, &log)?;
    Ok(Some((mounted, signals)))
}
