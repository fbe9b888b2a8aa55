//! `stook bench fs`: what small files cost on each of several file systems.
//!
//! ```text
//!   file set ──> set.tar, set/ (an archive)          made once, below the work folder
//!   for each round, phase, target, tool:
//!     [drop caches] sync ──> timed run ──> sample ──> is all there?
//! ```
//! Phases of one kind stand next to each other in time, so that what disturbs the machine disturbs all targets. Three
//! tools do the same work: those of the system, stook, and one thread of ours that times every operation. Each has a
//! folder of its own below each target, and unpacks its own tree there. Nothing outside these folders is touched.

mod advice;
mod figures;
mod options;
mod packed;
mod phase;
mod round;
mod single;
mod tables;
mod target;
mod versions;

use std::collections::BTreeMap;

use crate::Observer;
use crate::error::BenchError;
use crate::fileset::{self, Properties};
use crate::page_state;
use crate::record::{Header, Kind, Sample};
use crate::scratch::ScratchDirectory;

pub use advice::{Advice, Concern, advise};
pub(crate) use figures::Figures;
pub use options::{FsCaches, FsOptions};
pub use phase::{Phase, Tool};
pub use tables::text;

use packed::Packed;
use target::Target;

/// A bench whose targets and programs have been looked at: nothing is written yet.
#[derive(Debug)]
pub struct FsBench {
    options: FsOptions,
    properties: Properties,
    targets: Vec<Target>,
    programs: BTreeMap<String, String>,
}

impl FsBench {
    /// Looks at targets and programs.
    ///
    /// # Errors
    /// [`BenchError::Usage`] for a choice that makes no sense, [`BenchError::Missing`] for a program that is not there,
    /// [`BenchError::Refused`] for a target that cannot be used: it says why, with figures.
    pub fn new(mut options: FsOptions, observer: &dyn Observer) -> Result<Self, BenchError> {
        options.check()?;
        options.choose_once();
        let properties = fileset::properties(&options.files, observer)?;
        let targets = target::look_at_all(&options, &properties)?;
        if options.caches == FsCaches::Cold {
            // Whoever may not hears of it now, and not after the files are made.
            page_state::drop_all()?;
        }
        let programs = versions::programs(&options, observer)?;
        Ok(Self {
            options,
            properties,
            targets,
            programs,
        })
    }

    /// Returns what holds for all samples.
    pub fn header(&self, started: &str) -> Header {
        let mut header = Header::new(Kind::Fs, started);
        header.programs.clone_from(&self.programs);
        header.options = self.options.described();
        header.files = serde_json::to_value(&self.properties).ok();
        header.facts = self
            .targets
            .iter()
            .map(|target| (target.label.clone(), target.facts.clone()))
            .collect();
        header
    }

    /// Makes the file set, measures, and removes all that was made, however it ends.
    ///
    /// # Errors
    /// What ended it, with the target and the phase.
    pub fn run(&self, observer: &dyn Observer) -> Result<Vec<Sample>, BenchError> {
        let mut folders = Vec::new();
        let measured = self.run_in(&mut folders, observer);
        for folder in folders {
            if let Err(error) = folder.remove() {
                observer.warning(&error.to_string());
            }
        }
        measured
    }

    fn run_in(
        &self,
        folders: &mut Vec<ScratchDirectory>,
        observer: &dyn Observer,
    ) -> Result<Vec<Sample>, BenchError> {
        let places = self.targets.iter().map(|target| target.path.as_path());
        for place in places.chain([self.options.work.as_path()]) {
            folders.push(ScratchDirectory::make(place)?);
        }
        let (work, targets) = folders.split_last().expect("there is the work folder");
        let packed = Packed::make(&self.options, work, observer)?;
        let bench = round::Bench {
            options: &self.options,
            targets: &self.targets,
            places: targets,
            packed: &packed,
            observer,
        };
        bench.run()
    }
}
