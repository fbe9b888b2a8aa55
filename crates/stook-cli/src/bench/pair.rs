//! `stook bench pair`: measures what a harness has written down.

use stook_archive::BaseObserver as _;
use stook_bench::{BenchError, Observer, PairSpec, Sample, pair};

use crate::args::{BenchPairArgs, Common};
use crate::exit::{CliError, Ending};
use crate::output::{self, Data};
use crate::progress::Reporter;

pub(crate) fn measure(args: &BenchPairArgs, common: &Common) -> Result<Ending, CliError> {
    let text = stook_sys::read_text(&args.spec)?;
    let spec: PairSpec = serde_json::from_str(&text).map_err(|error| {
        let path = stook_sys::display_path(&args.spec);
        BenchError::Usage(format!("cannot use `{path}`: {error}"))
    })?;
    let reporter = Reporter::new(common);
    let listener = Listener {
        reporter: &reporter,
        is_quiet: common.quiet,
    };
    let outcome = pair(&spec, &listener)?;
    let mut data = Data::new();
    for sample in &outcome.samples {
        data.line(&sample.line())?;
    }
    data.line(&outcome.line())?;
    data.flush()?;
    Ok(Ending::Done)
}

/// Samples are printed at the end: those of a pair that is refused count for nothing.
struct Listener<'a> {
    reporter: &'a Reporter,
    is_quiet: bool,
}

impl Observer for Listener<'_> {
    fn progress(&self, text: &str) {
        if !self.is_quiet {
            output::message(text);
        }
    }

    fn warning(&self, text: &str) {
        output::message(&format!("warning: {text}"));
    }

    fn sampled(&self, sample: &Sample) {
        let (side, round) = (sample.label("side"), sample.round);
        self.progress(&format!(
            "round {round}: {side} {:.3} s",
            sample.real_seconds
        ));
    }

    fn is_stopped(&self) -> bool {
        self.reporter.is_interrupted()
    }
}
