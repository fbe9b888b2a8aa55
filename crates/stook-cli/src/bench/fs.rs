//! `stook bench fs`.

use stook_archive::BaseObserver as _;
use stook_bench::fileset::{FilesetOptions, Jobs, Spec};
use stook_bench::fs::{FsBench, FsCaches, FsOptions, Phase, Tool};
use stook_bench::{Observer, Sample};
use stook_sys::Context;

use super::{Listener, now};
use crate::args::{BenchFsArgs, Common, PhaseName, ToolName};
use crate::exit::{CliError, Ending};
use crate::output::{self, Data};
use crate::progress::Reporter;

pub(crate) fn fs(args: &BenchFsArgs, common: &Common) -> Result<Ending, CliError> {
    let options = options(args)?;
    let reporter = Reporter::new(common);
    let bench = FsBench::new(options, &Silent(&reporter))?;
    let header = bench.header(&now());
    let listener = Listener::new(&reporter, &header, &args.save, common)?;
    let run = bench.run(&listener);
    let samples = listener.finish(run)?;
    if !common.json {
        let mut data = Data::new();
        data.text(&stook_bench::fs::text(&header, &samples))?;
        data.flush()?;
    }
    Ok(Ending::Done)
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

/// Listens while nothing is measured yet.
struct Silent<'a>(&'a Reporter);

impl Observer for Silent<'_> {
    fn progress(&self, _text: &str) {}

    fn warning(&self, text: &str) {
        output::message(&format!("warning: {text}"));
    }

    fn sampled(&self, _sample: &Sample) {}

    fn is_stopped(&self) -> bool {
        self.0.is_interrupted()
    }
}
