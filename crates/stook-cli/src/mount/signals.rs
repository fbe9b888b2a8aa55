//! What signals do to a mount: the first one unmounts, unless somebody uses it; the next one detaches.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::pipe;
use stook_mount::{Holder, MountError, Unmount, Unmounter};
use stook_sys::{Context, display_path};

use super::log::MountLog;
use crate::exit::CliError;

/// Users of a mount that are named.
const MOST_NAMED: usize = 10;

/// Signals that have come, and are heeded later.
#[derive(Debug)]
pub(crate) struct Signals {
    receiver: UnixStream,
}

impl Signals {
    /// From now on SIGINT, SIGTERM and SIGHUP do not end the process, but wait.
    pub(crate) fn hold() -> Result<Self, CliError> {
        let operation = "wait for signals of";
        let itself = "/proc/self";
        let (receiver, sender) = UnixStream::pair().context(operation, itself)?;
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            sender
                .try_clone()
                .and_then(|sender| pipe::register(signal, sender).map(drop))
                .context(operation, itself)?;
        }
        Ok(Self { receiver })
    }

    /// Starts a thread that heeds them, those first that have come already.
    pub(crate) fn unmount(self, unmounter: Unmounter, log: Arc<MountLog>) -> Result<(), CliError> {
        thread::Builder::new()
            .name("mount-signals".to_owned())
            .spawn(move || heed(self.receiver, &unmounter, &log))
            .map(drop)
            .context("wait for signals of", "/proc/self")?;
        Ok(())
    }
}

fn heed(mut signals: UnixStream, unmounter: &Unmounter, log: &MountLog) {
    let mut how = Unmount::Unused;
    while signals.read_exact(&mut [0]).is_ok() {
        match unmounter.unmount(how) {
            Ok(()) => {}
            Err(error @ MountError::Busy { .. }) => {
                log.line(&format!("{error}; {}", users(unmounter)));
                how = Unmount::Detach;
            }
            Err(error) => log.line(&error.to_string()),
        }
    }
}

fn users(unmounter: &Unmounter) -> String {
    let point = display_path(unmounter.path());
    let detach = format!("a second signal detaches it, as `umount -l {point}` does");
    let holders = unmounter.holders();
    if holders.is_empty() {
        return format!("who uses it is not to be seen from here; {detach}");
    }
    let named: Vec<String> = holders.iter().take(MOST_NAMED).map(user).collect();
    let more = match holders.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("used by {}{more}; {detach}", named.join(", "))
}

fn user(holder: &Holder) -> String {
    format!("{} ({}: {})", holder.name, holder.process, holder.how)
}
