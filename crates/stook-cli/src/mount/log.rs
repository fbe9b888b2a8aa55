//! Where a mount says what went wrong: in a file, on stderr, or in the log of the system.

use std::fs::File;
use std::io::Write;
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use stook_mount::{Event, Log};
use stook_sys::append_to_file;

use super::typed::Typed;
use crate::exit::CliError;
use crate::mutex::lock;
use crate::output;
use crate::time::rfc3339;

/// Where the log of the system takes lines.
const SYSTEM_LOG: &str = "/dev/log";

/// A warning of a daemon, as `syslog(3)` numbers them: facility 3, severity 4.
const PRIORITY: u8 = 3 * 8 + 4;

#[derive(Debug)]
pub(crate) struct MountLog {
    file: Option<Mutex<File>>,
    /// Once the terminal is left.
    is_daemon: AtomicBool,
}

impl MountLog {
    pub(crate) fn open(typed: &Typed) -> Result<Arc<Self>, CliError> {
        let file = typed.log_path().map(append_to_file).transpose()?;
        Ok(Arc::new(Self {
            file: file.map(Mutex::new),
            is_daemon: AtomicBool::new(false),
        }))
    }

    /// From now on nobody reads stderr.
    pub(crate) fn left_terminal(&self) {
        self.is_daemon.store(true, Ordering::Relaxed);
    }

    /// Adds a line. One that cannot be written is lost: there is nobody to tell.
    pub(crate) fn line(&self, text: &str) {
        if let Some(file) = &self.file {
            let now = rfc3339(stook_sys::utc_now());
            let _ = lock(file).write_all(format!("{now} {text}\n").as_bytes());
        } else if self.is_daemon.load(Ordering::Relaxed) {
            let process = std::process::id();
            let line = format!("<{PRIORITY}>stook[{process}]: {text}");
            let _ = UnixDatagram::unbound()
                .and_then(|socket| socket.send_to(line.as_bytes(), SYSTEM_LOG));
        } else {
            output::message(text);
        }
    }
}

impl Log for MountLog {
    fn log(&self, event: &Event) {
        self.line(&event.to_string());
    }
}
