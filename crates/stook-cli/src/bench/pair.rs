//! `stook bench pair`: measures what a harness has written down, for programs: what it prints is always JSON.

use stook_bench::{BenchError, PairSpec, Sample, pair};

use super::observer::BenchObserver;
use crate::args::{BenchPairArgs, Common};
use crate::exit::{CliError, Ending};
use crate::output::{self, Data};
use crate::progress::Reporter;
use crate::report::{Header, Line, Paired, Summary};

pub(crate) fn measure(args: &BenchPairArgs, common: &Common) -> Result<Ending, CliError> {
    output::line(&Line::Header(Header::new("bench pair")))?;
    let text = stook_sys::read_text(&args.spec)?;
    let spec: PairSpec = serde_json::from_str(&text).map_err(|error| {
        let path = stook_sys::display_path(&args.spec);
        BenchError::usage(format!("cannot use `{path}`: {error}"))
    })?;
    let reporter = Reporter::new(common);
    // Samples are printed at the end: those of a pair that is refused count for nothing.
    let show = |sample: &Sample| {
        if !common.quiet {
            let (side, round, seconds) = (sample.label("side"), sample.round, sample.real_seconds);
            output::message(&format!("round {round}: {side} {seconds:.3} s"));
        }
        true
    };
    let observer = BenchObserver::new(&reporter, common).keeping(show);
    let outcome = pair(&spec, &observer)?;
    let mut data = Data::new();
    for sample in &outcome.samples {
        data.json(&Line::Sample(sample))?;
    }
    data.json(&Line::Summary(Summary::Paired(Paired::of(&outcome))))?;
    data.flush()?;
    Ok(Ending::Done)
}
