//! The rounds: which run comes when, what stands before and after it untimed, and whether it did all of its work: a tool
//! that fails in silence is not a fast one.

use std::path::{Path, PathBuf};

use stook_sys::{Directory, display_path, exists};

use super::figures::DROPPED;
use super::options::{FsCaches, FsOptions};
use super::packed::{Packed, files_in, size_of};
use super::phase::{Phase, Tool};
use super::single;
use super::target::Target;
use crate::Observer;
use crate::error::BenchError;
use crate::page_state;
use crate::record::{Sample, labels};
use crate::scratch::ScratchDirectory;
use crate::trees;

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
    /// That of the tool below the target.
    folder: PathBuf,
}

impl Bench<'_> {
    /// Goes through all rounds.
    ///
    /// # Errors
    /// The first failure, with target and phase. The observer has the samples until then.
    pub(super) fn run(&self) -> Result<Vec<Sample>, BenchError> {
        for place in self.places {
            for tool in &self.options.tools {
                place.make_directory(tool.name())?;
            }
        }
        let mut samples = Vec::new();
        for round in 1..=self.options.rounds {
            for phase in Phase::ALL {
                for (target, place) in self.targets.iter().zip(self.places) {
                    samples.extend(self.phase(round, phase, target, place)?);
                }
            }
            if round < self.options.rounds {
                self.remove_products()?;
            }
        }
        Ok(samples)
    }

    /// Does a phase on a target with all tools. Each round begins with another one, so that none always has the caches of
    /// the one before it.
    fn phase(
        &self,
        round: u32,
        phase: Phase,
        target: &Target,
        place: &ScratchDirectory,
    ) -> Result<Vec<Sample>, BenchError> {
        if self.options.phases.contains(&phase) {
            let (rounds, name, label) = (self.options.rounds, phase.name(), &target.label);
            let text = format!("round {round} of {rounds}: {name} on `{label}`");
            self.observer.progress(&text);
        }
        let tools = &self.options.tools;
        let (before, first) = tools.split_at((round - 1) as usize % tools.len());
        let mut samples = Vec::new();
        for &tool in first.iter().chain(before) {
            let folder = place.path().join(tool.name());
            samples.extend(self.step(&Run {
                round,
                phase,
                target,
                tool,
                folder,
            })?);
        }
        Ok(samples)
    }

    /// Does a phase if it is chosen, or needed and not done yet; returns the sample of one that is chosen.
    fn step(&self, run: &Run<'_>) -> Result<Option<Sample>, BenchError> {
        let is_chosen = self.options.phases.contains(&run.phase);
        if !is_chosen && !self.is_to_do(run)? {
            return Ok(None);
        }
        let done = self.prepared(run, is_chosen).and_then(|()| self.timed(run));
        let sample = done.map_err(|error| run.during(error))?;
        if !is_chosen {
            return Ok(None);
        }
        self.observer.sampled(&sample);
        Ok(Some(sample))
    }

    /// Whether others need what a phase makes, and no earlier round has left it there.
    fn is_to_do(&self, run: &Run<'_>) -> Result<bool, BenchError> {
        let is_needed = self.options.steps(run.tool).contains(&run.phase);
        Ok(match run.product() {
            Some(product) => is_needed && exists(&product)?.is_none(),
            None => is_needed,
        })
    }

    /// Untimed, what comes before a run: nothing is left to be written, so that no run pays for the one before it.
    fn prepared(&self, run: &Run<'_>, is_chosen: bool) -> Result<(), BenchError> {
        if run.phase == Phase::Untar && run.tool != Tool::Stook {
            // `stook extract` makes its folder itself.
            stook_sys::create_directory(&run.folder.join("tree"))?;
        }
        // A file system that cannot sync has nothing to write, or tells when it closes.
        let _ = Directory::open(&run.folder)?.sync_file_system();
        if is_chosen && self.options.caches == FsCaches::Cold {
            page_state::drop_all()?;
        }
        if run.phase == Phase::Copy {
            self.packed.warm(run.tool)?;
        }
        Ok(())
    }

    fn timed(&self, run: &Run<'_>) -> Result<Sample, BenchError> {
        let Run { phase, tool, .. } = *run;
        let mut sample = match self.packed.commands.job(tool, phase, &run.folder) {
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
                ran.sample(run.round)
            }
            None => single::run(
                phase,
                &run.folder,
                &self.packed.tar,
                run.round,
                self.observer,
            )?,
        };
        self.verify(run)?;
        sample.labels = labels([
            ("target", &run.target.label),
            ("phase", phase.name()),
            ("tool", tool.name()),
        ]);
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
            _ => (Some(count.files), Some(count.bytes)),
        })
    }

    /// Looks whether all is there that the phase must have made.
    fn verify(&self, run: &Run<'_>) -> Result<(), BenchError> {
        let Some(product) = run.product() else {
            let tree = run.folder.join("tree");
            let is_left = run.phase == Phase::Delete && exists(&tree)?.is_some();
            return if is_left {
                Err(wrong(&tree, "is still there"))
            } else {
                Ok(())
            };
        };
        let expected = self.packed.count;
        if matches!(run.phase, Phase::Untar | Phase::CopyTree) {
            let found = trees::count(&product, self.observer)?;
            if found == expected {
                return Ok(());
            }
            let of = |count: trees::Count| (count.files, count.bytes);
            let ((files, bytes), (all, of_all)) = (of(found), of(expected));
            let what = format!("holds {files} files of {bytes} bytes, and not {all} of {of_all}");
            return Err(wrong(&product, &what));
        }
        let files = match run.tool {
            Tool::Stook => files_in(&product)?,
            Tool::System | Tool::Single => vec![product.clone()],
        };
        let least = match run.phase {
            Phase::Copy => self.packed.bytes(run.tool)?,
            _ => expected.bytes,
        };
        if size_of(&files)? < least {
            return Err(wrong(&product, "is not complete"));
        }
        Ok(())
    }

    /// Removes what the chosen phases will make again.
    fn remove_products(&self) -> Result<(), BenchError> {
        for place in self.places {
            for tool in &self.options.tools {
                for product in self
                    .options
                    .phases
                    .iter()
                    .filter_map(|phase| phase.product(*tool))
                {
                    place.clear(Path::new(tool.name()).join(product))?;
                }
            }
        }
        Ok(())
    }
}

fn wrong(path: &Path, what: &str) -> BenchError {
    BenchError::refused(format!("`{}` {what}", display_path(path)))
}

impl Run<'_> {
    fn product(&self) -> Option<PathBuf> {
        let name = self.phase.product(self.tool)?;
        Some(self.folder.join(name))
    }

    fn when(&self) -> String {
        let (phase, label, tool) = (self.phase.name(), &self.target.label, self.tool.name());
        format!("in round {}, {phase} on `{label}` with {tool}", self.round)
    }

    /// Says in which run it was; a failed command says so itself.
    fn during(&self, error: BenchError) -> BenchError {
        match error {
            BenchError::Interrupted | BenchError::Command { .. } => error,
            error => BenchError::During {
                when: self.when(),
                source: Box::new(error),
            },
        }
    }
}
