//! The rounds: which run comes when, what stands before and after it untimed.

use std::path::Path;

use stook_sys::{Directory, SysError, display_path, exists, look_at};

use super::figures::DROPPED;
use super::options::{FsCaches, FsOptions, Phase, Tool};
use super::packed::Packed;
use super::target::{Target, ToolPlace};
use super::{commands, single, verify};
use crate::Observer;
use crate::error::BenchError;
use crate::page_state;
use crate::record::Sample;
use crate::scratch::ScratchDirectory;

/// Everything that is ready to be measured.
pub(super) struct Bench<'a> {
    pub(super) options: &'a FsOptions,
    pub(super) targets: &'a [Target],
    /// A folder below each target.
    pub(super) places: &'a [ScratchDirectory],
    pub(super) packed: &'a Packed,
    pub(super) observer: &'a dyn Observer,
}

/// One run.
struct Run<'a> {
    round: u32,
    phase: Phase,
    target: &'a Target,
    tool: Tool,
    place: &'a ToolPlace,
}

impl Bench<'_> {
    /// Goes through all rounds.
    ///
    /// # Errors
    /// The first failure, with target and phase. Samples until then have been told to the observer.
    pub(super) fn run(&self) -> Result<Vec<Sample>, BenchError> {
        let mut places = Vec::new();
        for place in self.places {
            let tools = self.options.tools.iter();
            let made = tools.map(|tool| Ok((*tool, ToolPlace::make(place, *tool)?)));
            places.push(made.collect::<Result<Vec<_>, BenchError>>()?);
        }
        let mut samples = Vec::new();
        for round in 1..=self.options.rounds {
            for phase in Phase::ALL {
                for (target, tools) in self.targets.iter().zip(&places) {
                    self.tell(round, phase, target);
                    for (tool, place) in rotated(tools, round) {
                        let run = Run {
                            round,
                            phase,
                            target,
                            tool: *tool,
                            place,
                        };
                        samples.extend(self.step(&run)?);
                    }
                }
            }
            if round < self.options.rounds {
                self.tidy(&places)?;
            }
        }
        Ok(samples)
    }

    fn tell(&self, round: u32, phase: Phase, target: &Target) {
        if self.options.phases.contains(&phase) {
            let (rounds, phase) = (self.options.rounds, phase.name());
            self.observer.progress(&format!(
                "round {round} of {rounds}: {phase} on `{}`",
                target.label
            ));
        }
    }

    /// Does a phase if it is chosen, or needed and not done yet; returns the sample of one that is chosen.
    fn step(&self, run: &Run<'_>) -> Result<Option<Sample>, BenchError> {
        let is_chosen = self.options.phases.contains(&run.phase);
        let is_needed = || -> Result<bool, BenchError> {
            Ok(self.options.steps(run.tool).contains(&run.phase) && self.is_to_do(run)?)
        };
        if !is_chosen && !is_needed()? {
            return Ok(None);
        }
        let done = self.prepared(run, is_chosen).and_then(|()| self.timed(run));
        let sample = done.map_err(|error| run.told(error))?;
        if !is_chosen {
            return Ok(None);
        }
        self.observer.sampled(&sample);
        Ok(Some(sample))
    }

    /// What a phase makes is there already if an earlier round left it.
    fn is_to_do(&self, run: &Run<'_>) -> Result<bool, BenchError> {
        match run.place.product(run.tool, run.phase) {
            Some(product) => Ok(exists(&product)?.is_none()),
            None => Ok(true),
        }
    }

    /// Untimed, what comes before a run: nothing is left to be written, so that no run pays for the one before it.
    fn prepared(&self, run: &Run<'_>, is_chosen: bool) -> Result<(), BenchError> {
        if run.phase == Phase::Untar && run.tool != Tool::Stook {
            // `stook extract` makes its folder itself.
            stook_sys::create_directory(&run.place.tree())?;
        }
        // A file system that cannot sync has nothing to write, or tells when it closes.
        let _ = Directory::open(run.place.folder())?.sync_file_system();
        if is_chosen && self.options.caches == FsCaches::Cold {
            page_state::drop_all()?;
        }
        if run.phase == Phase::Copy {
            self.packed.warm(run.tool)?;
        }
        Ok(())
    }

    fn timed(&self, run: &Run<'_>) -> Result<Sample, BenchError> {
        let Run {
            phase,
            tool,
            place,
            round,
            ..
        } = *run;
        let mut sample = match commands::job(tool, phase, place, self.packed, &self.options.stook) {
            Some(job) => {
                let ran = job.succeed(&run.when(), self.observer)?;
                // Its status is that of the last program of the pipe.
                if tool == Tool::System && phase == Phase::Read && !ran.stderr.is_empty() {
                    return Err(BenchError::Command {
                        command: job.text(),
                        when: run.when(),
                        ending: "not all was read".to_owned(),
                        stderr: ran.stderr,
                    });
                }
                ran.sample(round)
            }
            None => single::run(phase, place, &self.packed.tar, round, self.observer)?,
        };
        self.verify(run)?;
        let labels = [
            ("target", run.target.label.as_str()),
            ("phase", phase.name()),
            ("tool", tool.name()),
        ];
        sample.labels = labels
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        (sample.files, sample.bytes) = self.handled(phase, tool)?;
        if self.options.caches == FsCaches::Cold {
            sample.proof.insert(DROPPED.to_owned(), true.into());
        }
        Ok(sample)
    }

    /// Returns the files and the bytes that a phase handles.
    fn handled(&self, phase: Phase, tool: Tool) -> Result<(Option<u64>, Option<u64>), BenchError> {
        let count = self.packed.count;
        Ok(match phase {
            Phase::Copy => (None, Some(self.packed.bytes(tool)?)),
            Phase::Find | Phase::Stat | Phase::Delete => (Some(count.files), None),
            Phase::Untar | Phase::Read | Phase::Tar | Phase::CopyTree => {
                (Some(count.files), Some(count.bytes))
            }
        })
    }

    /// Looks whether all is there that the phase must have made.
    fn verify(&self, run: &Run<'_>) -> Result<(), BenchError> {
        let Some(product) = run.place.product(run.tool, run.phase) else {
            let is_left = run.phase == Phase::Delete && exists(&run.place.tree())?.is_some();
            return if is_left {
                Err(wrong(&run.place.tree(), "is still there"))
            } else {
                Ok(())
            };
        };
        match run.phase {
            Phase::Untar | Phase::CopyTree => {
                let found = verify::count(&product)?;
                if found == self.packed.count {
                    return Ok(());
                }
                Err(verify::differs(&product, found, self.packed.count))
            }
            _ => {
                let files = match run.tool {
                    Tool::Stook => verify::files_in(&product)?,
                    Tool::System | Tool::Single => vec![product.clone()],
                };
                let sizes = files.iter().map(|file| Ok(look_at(file)?.size));
                let bytes: u64 = sizes.sum::<Result<u64, SysError>>()?;
                let least = match run.phase {
                    Phase::Copy => self.packed.bytes(run.tool)?,
                    _ => self.packed.count.bytes,
                };
                if bytes >= least {
                    Ok(())
                } else {
                    Err(wrong(&product, "is not complete"))
                }
            }
        }
    }

    /// Removes what the chosen phases will make again.
    fn tidy(&self, places: &[Vec<(Tool, ToolPlace)>]) -> Result<(), BenchError> {
        for (work, tools) in self.places.iter().zip(places) {
            for (tool, place) in tools {
                let phases = self.options.phases.iter();
                let products = phases.filter_map(|phase| place.product(*tool, *phase));
                for product in products {
                    let name = product.strip_prefix(work.path());
                    work.clear(name.expect("it is made there"))?;
                }
            }
        }
        Ok(())
    }
}

fn wrong(path: &Path, what: &str) -> BenchError {
    BenchError::Refused {
        what: format!("`{}` {what}", display_path(path)),
        hint: None,
    }
}

/// Each round begins with another tool, so that none always has the caches of the one before it.
fn rotated<T>(tools: &[T], round: u32) -> impl Iterator<Item = &T> {
    let first = (round - 1) as usize % tools.len().max(1);
    tools[first..].iter().chain(&tools[..first])
}

impl Run<'_> {
    fn text(&self) -> String {
        format!(
            "{} on `{}` with {}",
            self.phase.name(),
            self.target.label,
            self.tool.name()
        )
    }

    fn when(&self) -> String {
        format!("in round {}, {}", self.round, self.text())
    }

    /// A failed command names the run itself.
    fn told(&self, error: BenchError) -> BenchError {
        match error {
            BenchError::Interrupted | BenchError::Command { .. } => error,
            error => BenchError::During {
                when: self.when(),
                source: Box::new(error),
            },
        }
    }
}
