//! `--timings`: the call paths, printed at the end of a command.

use crate::args::{Common, TimingsFormat};
use crate::exit::CliError;
use crate::output;

/// Starts measuring, if that was asked for.
pub(crate) fn begin(common: &Common) {
    if common.timings.is_some() {
        stook_timers::enable();
    }
}

/// Prints what was measured, to stderr or into the file that was named.
pub(crate) fn finish(common: &Common) -> Result<(), CliError> {
    let Some(format) = common.timings else {
        return Ok(());
    };
    let report = stook_timers::snapshot();
    let text = match format {
        TimingsFormat::Tree => report.tree(),
        TimingsFormat::Json => report.json(),
    };
    match &common.timings_to {
        Some(path) => stook_sys::write_file(path, format!("{}\n", text.trim_end()).as_bytes())?,
        None => output::message(text.trim_end()),
    }
    Ok(())
}
