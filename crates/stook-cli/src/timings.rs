//! `--timings`: the call paths, printed at the end of a command; and the trace of decisions.

use stook_bench::{Palette, flame_graph};
use stook_timers::Detail;

use crate::args::{Common, TimingsFormat};
use crate::exit::CliError;
use crate::output;

/// How often `-v` must be given for the trace.
const TRACE: u8 = 3;

/// Starts measuring and tracing, if that was asked for.
pub(crate) fn begin(common: &Common) {
    if common.verbose >= TRACE {
        tracing_subscriber::fmt()
            .with_max_level(tracing_subscriber::filter::LevelFilter::DEBUG)
            .with_writer(std::io::stderr)
            .with_target(false)
            .without_time()
            .with_ansi(false)
            .init();
    }
    match common.timings {
        None => {}
        Some(TimingsFormat::Cpu) => stook_timers::enable_with(Detail::Cpu),
        Some(TimingsFormat::Trace) => stook_timers::enable_with(Detail::Events),
        Some(
            TimingsFormat::Tree | TimingsFormat::Json | TimingsFormat::Folded | TimingsFormat::Svg,
        ) => stook_timers::enable(),
    }
}

/// Prints what was measured, to stderr or into the file that was named.
pub(crate) fn finish(common: &Common) -> Result<(), CliError> {
    let Some(format) = common.timings else {
        return Ok(());
    };
    let text = text(format)?;
    match &common.timings_to {
        Some(path) => stook_sys::write_file(path, format!("{}\n", text.trim_end()).as_bytes())?,
        None => output::message(text.trim_end()),
    }
    Ok(())
}

fn text(format: TimingsFormat) -> Result<String, CliError> {
    let report = stook_timers::snapshot();
    Ok(match format {
        TimingsFormat::Tree | TimingsFormat::Cpu => report.tree(),
        TimingsFormat::Json => report.json(),
        TimingsFormat::Folded => report.folded(),
        TimingsFormat::Svg => {
            let title = "stook: time by call path, all threads together";
            let drawing = flame_graph(&report.folded(), title, "microseconds", Palette::Green)?;
            String::from_utf8_lossy(&drawing).into_owned()
        }
        TimingsFormat::Trace => stook_timers::trace().chrome(),
    })
}
