//! What to measure: targets, phases, tools.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::error::BenchError;
use crate::fileset::FilesetOptions;

/// One kind of work on a target, in the order in which they are done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// The packed set comes to the target: one large file.
    Copy,
    /// It is unpacked there.
    Untar,
    /// All names of the tree are found.
    Find,
    /// Size and time of every entry are looked at.
    Stat,
    /// Every file is read.
    Read,
    /// The tree is packed.
    Tar,
    /// The tree is copied within the target.
    CopyTree,
    /// The tree is removed; its copy is not, so that this is as many files as in all other phases.
    Delete,
}

impl Phase {
    /// All phases.
    pub const ALL: [Self; 8] = [
        Self::Copy,
        Self::Untar,
        Self::Find,
        Self::Stat,
        Self::Read,
        Self::Tar,
        Self::CopyTree,
        Self::Delete,
    ];

    /// Returns its name, as in options, labels and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Copy => "copy",
            Self::Untar => "untar",
            Self::Find => "find",
            Self::Stat => "stat",
            Self::Read => "read",
            Self::Tar => "tar",
            Self::CopyTree => "copy-tree",
            Self::Delete => "delete",
        }
    }

    /// Returns the phases that make what this one works on.
    pub(super) fn needs(self, tool: Tool) -> &'static [Self] {
        match (self, tool) {
            (Self::Copy, _) => &[],
            // What the archive holds is read in place.
            (Self::Untar, _) | (Self::Read, Tool::Stook) => &[Self::Copy],
            _ => &[Self::Copy, Self::Untar],
        }
    }
}

/// What does the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tool {
    /// `cp`, `tar`, `find`, `xargs`, `cat` and `rm`.
    System,
    /// The stook program.
    Stook,
    /// One thread of this process, one operation after the other, each of them timed.
    Single,
}

impl Tool {
    /// All tools.
    pub const ALL: [Self; 3] = [Self::System, Self::Stook, Self::Single];

    /// Returns its name, as in options, labels and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Stook => "stook",
            Self::Single => "single",
        }
    }
}

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
        let wrong = |what: &str| Err(BenchError::Usage(what.to_owned()));
        if self.targets.is_empty() {
            return wrong("no target was given");
        }
        if self.rounds == 0 {
            return wrong("zero rounds measure nothing; give --rounds 1 or more");
        }
        if self.phases.is_empty() || self.tools.is_empty() {
            return wrong("no phase or no tool was chosen");
        }
        Ok(())
    }

    /// What was chosen twice is done once.
    pub(super) fn choose_once(&mut self) {
        self.phases.sort_unstable();
        self.phases.dedup();
        let chosen = std::mem::take(&mut self.tools);
        for tool in chosen {
            if !self.tools.contains(&tool) {
                self.tools.push(tool);
            }
        }
    }

    /// Returns the phases to go through with a tool, in their order: those chosen and those that they need.
    pub(super) fn steps(&self, tool: Tool) -> Vec<Phase> {
        let is_needed = |step: Phase| {
            let mut chosen = self.phases.iter();
            self.phases.contains(&step) || chosen.any(|phase| phase.needs(tool).contains(&step))
        };
        Phase::ALL
            .into_iter()
            .filter(|phase| is_needed(*phase))
            .collect()
    }

    /// Returns what was asked for, in the words of the command line.
    pub(super) fn described(&self) -> BTreeMap<String, Value> {
        let phases: Vec<&str> = self.phases.iter().map(|phase| phase.name()).collect();
        let tools: Vec<&str> = self.tools.iter().map(|tool| tool.name()).collect();
        let mut described = BTreeMap::new();
        described.insert("spec".to_owned(), json!(self.files.spec.name));
        described.insert("files".to_owned(), json!(self.files.files));
        described.insert("seed".to_owned(), json!(self.files.seed));
        described.insert("rounds".to_owned(), json!(self.rounds));
        described.insert("phases".to_owned(), json!(phases));
        described.insert("tools".to_owned(), json!(tools));
        described.insert("cold".to_owned(), json!(self.caches == FsCaches::Cold));
        described
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fileset::{Jobs, Spec};

    #[test]
    fn phases_that_others_need_are_steps_of_a_tool() {
        let options = FsOptions {
            targets: Vec::new(),
            files: FilesetOptions {
                spec: Spec::named("arc").unwrap(),
                files: 1,
                seed: 1,
                jobs: Jobs::Adaptive,
            },
            rounds: 1,
            phases: vec![Phase::Stat],
            tools: vec![Tool::Single],
            caches: FsCaches::AsLeft,
            work: PathBuf::new(),
            stook: PathBuf::new(),
        };
        let steps = [Phase::Copy, Phase::Untar, Phase::Stat];
        assert_eq!(options.steps(Tool::Single), steps);
    }
}
