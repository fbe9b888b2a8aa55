//! `stook bench fs`.

use stook_bench::Remedy;
use stook_bench::fileset::{FilesetOptions, Filling, Jobs, Spec};
use stook_bench::fs::{Advice, Concern, FsBench, FsCaches, FsOptions, Phase, Tool, advise};
use stook_sys::Context;

use super::observer::BenchObserver;
use super::results::{ResultsWriter, now, or_header};
use crate::args::{BenchFsArgs, Common, PhaseName, ToolName};
use crate::exit::{CliError, Ending};
use crate::hints;
use crate::output;
use crate::progress::Reporter;
use crate::report::Measured;

const COMMAND: &str = "bench fs";

pub(crate) fn fs(args: &BenchFsArgs, common: &Common) -> Result<Ending, CliError> {
    let reporter = Reporter::new(common);
    let bench = or_header(prepared(args, common, &reporter), COMMAND, common)?;
    let header = bench.header(&now());
    let writer = ResultsWriter::begin(COMMAND, &header, &args.save, common)?;
    let observer = BenchObserver::new(&reporter, common).keeping(|sample| writer.keep(sample));
    let samples = writer.finish(bench.run(&observer))?;
    let advice = advise(&samples).into_iter();
    let (warnings, advice): (Vec<_>, Vec<_>) =
        advice.partition(|advice| advice.concern == Concern::Warning);
    let remedies = unique(&warnings);
    let measured = Measured {
        samples: samples.len(),
        warnings: warnings.into_iter().map(|advice| advice.text).collect(),
        advice: Some(advice.into_iter().map(|advice| advice.text).collect()),
        ..Measured::default()
    };
    writer.print(measured, &stook_bench::fs::text(&header, &samples))?;
    for remedy in remedies {
        output::message(&format!("hint: {}", hints::of_remedy(&remedy)));
    }
    Ok(Ending::Done)
}

/// Returns what helps against some warnings, each once: several targets may have the same ones.
fn unique(warnings: &[Advice]) -> Vec<Remedy> {
    let mut unique = Vec::new();
    for remedy in warnings
        .iter()
        .filter_map(|warning| warning.remedy.as_ref())
    {
        if !unique.contains(remedy) {
            unique.push(remedy.clone());
        }
    }
    unique
}

fn prepared(args: &BenchFsArgs, common: &Common, reporter: &Reporter) -> Result<FsBench, CliError> {
    // Nothing is measured yet that progress could be shown of.
    let observer = BenchObserver::new(reporter, common).quiet();
    Ok(FsBench::new(options(args)?, &observer)?)
}

fn options(args: &BenchFsArgs) -> Result<FsOptions, CliError> {
    let phases: Vec<Phase> = args.phases.iter().copied().map(Phase::from).collect();
    let tools: Vec<Tool> = args.tools.iter().copied().map(Tool::from).collect();
    Ok(FsOptions {
        targets: args.targets.clone(),
        files: FilesetOptions {
            spec: Spec::find(&args.spec)?,
            files: args.files,
            seed: args.seed,
            jobs: Jobs::Adaptive,
            filling: Filling::default(),
        },
        rounds: args.rounds,
        phases: if phases.is_empty() {
            Phase::ALL.to_vec()
        } else {
            phases
        },
        tools: if tools.is_empty() {
            Tool::ALL.to_vec()
        } else {
            tools
        },
        caches: if args.cold {
            FsCaches::Cold
        } else {
            FsCaches::AsLeft
        },
        work: args.work.clone().unwrap_or_else(std::env::temp_dir),
        stook: std::env::current_exe().context("find", "the running program")?,
    })
}

impl From<PhaseName> for Phase {
    fn from(name: PhaseName) -> Self {
        match name {
            PhaseName::Copy => Self::Copy,
            PhaseName::Untar => Self::Untar,
            PhaseName::Find => Self::Find,
            PhaseName::Stat => Self::Stat,
            PhaseName::Read => Self::Read,
            PhaseName::Tar => Self::Tar,
            PhaseName::CopyTree => Self::CopyTree,
            PhaseName::Delete => Self::Delete,
        }
    }
}

impl From<ToolName> for Tool {
    fn from(name: ToolName) -> Self {
        match name {
            ToolName::System => Self::System,
            ToolName::Stook => Self::Stook,
            ToolName::Single => Self::Single,
        }
    }
}
