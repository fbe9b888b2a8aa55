//! What to measure: targets, phases, tools.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::phase::{Phase, Tool};
use crate::error::BenchError;
use crate::fileset::FilesetOptions;

/// What the caches hold when a phase begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FsCaches {
    /// What the phase before has left there.
    #[default]
    AsLeft,
    /// Nothing: pages, names and inodes are dropped.
    Cold,
}

/// What to measure.
#[derive(Debug, Clone)]
pub struct FsOptions {
    /// Directories, each on the file system that it stands for.
    pub targets: Vec<PathBuf>,
    /// The files.
    pub files: FilesetOptions,
    /// How often everything is measured.
    pub rounds: u32,
    /// The phases that are timed; what they need is done untimed.
    pub phases: Vec<Phase>,
    /// The tools.
    pub tools: Vec<Tool>,
    /// What the caches hold.
    pub caches: FsCaches,
    /// Where the file set is made and packed.
    pub work: PathBuf,
    /// The stook program.
    pub stook: PathBuf,
}

impl FsOptions {
    /// # Errors
    /// [`BenchError::Usage`].
    pub(super) fn check(&self) -> Result<(), BenchError> {
        if self.rounds == 0 {
            return Err(BenchError::no_rounds());
        }
        let wrong = if self.targets.is_empty() {
            "no target was given"
        } else if self.phases.is_empty() || self.tools.is_empty() {
            "no phase or no tool was chosen"
        } else {
            return Ok(());
        };
        Err(BenchError::usage(wrong))
    }

    /// What was chosen twice is done once.
    pub(super) fn choose_once(&mut self) {
        self.phases.sort_unstable();
        self.phases.dedup();
        self.tools = crate::cases::unique(self.tools.drain(..));
    }

    /// Returns the phases to go through with a tool, in their order: those chosen and those that they need.
    pub(super) fn steps(&self, tool: Tool) -> Vec<Phase> {
        let is_step = |step: &Phase| {
            let mut chosen = self.phases.iter();
            chosen.any(|phase| phase == step || phase.needs(tool).contains(step))
        };
        Phase::ALL.into_iter().filter(is_step).collect()
    }

    /// Returns what was asked for, in the words of the command line.
    pub(super) fn described(&self) -> BTreeMap<String, Value> {
        let phases: Vec<&str> = self.phases.iter().map(|phase| phase.name()).collect();
        let tools: Vec<&str> = self.tools.iter().map(|tool| tool.name()).collect();
        let described = [
            ("spec", json!(self.files.spec.name)),
            ("files", json!(self.files.files)),
            ("seed", json!(self.files.seed)),
            ("rounds", json!(self.rounds)),
            ("phases", json!(phases)),
            ("tools", json!(tools)),
            ("cold", json!(self.caches == FsCaches::Cold)),
        ];
        described
            .map(|(name, value)| (name.to_owned(), value))
            .into()
    }
}
