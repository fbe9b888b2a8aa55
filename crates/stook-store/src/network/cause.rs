//! Why a connection failed: the system's error where one is behind it, else the words of whoever failed.

use std::error::Error;
use std::io;

use crate::error::StoreCause;

/// Returns why there is no answer, or no whole one.
pub(crate) fn connection_cause(error: &reqwest::Error) -> StoreCause {
    let kind = if error.is_timeout() {
        io::ErrorKind::TimedOut
    } else if error.is_body() || error.is_decode() {
        io::ErrorKind::UnexpectedEof
    } else {
        io::ErrorKind::Other
    };
    let mut deepest: &dyn Error = error;
    while let Some(source) = deepest.source() {
        if let Some(system) = source.downcast_ref::<io::Error>()
            && let Some(number) = system.raw_os_error()
        {
            return StoreCause::Io(io::Error::from_raw_os_error(number));
        }
        deepest = source;
    }
    StoreCause::Io(io::Error::new(kind, deepest.to_string()))
}
