//! The same work done by several programs, interleaved, from a state that is made and proved before each run.
//!
//! What is compared comes as a [`PairSpec`], which a harness writes; this only measures.
//!
//! ```text
//! first      unless sides show what they did in round 1:  each side once, untimed, and its evidence
//! a round    the sides in a random order:  prepare > sync > make the state > prove it > run, timed > tidy
//! the end    when all rounds are made, or another one would not fit into the budget
//! ```
//! Whatever goes wrong ends it with an error that says why: a side that fails, a state that does not hold, evidence that
//! is not the same for all sides.

mod state;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use stook_sys::{Context, Directory};

use crate::cases::Case;
use crate::error::BenchError;
use crate::job::{Job, Output};
use crate::random::Random;
use crate::record::Sample;
use crate::warnings::{of_hot_reads, of_other_programs, of_rounds, of_times};
use crate::{Observer, Warning};
use state::Prover;

/// What is in memory when a side begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PairState {
    /// The inputs are.
    Hot,
    /// Nothing is.
    Cold,
    /// What was there before: nothing is made, and nothing proved.
    AsLeft,
}

/// What is compared. Commands are lists of words.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairSpec {
    /// The sides; all must have the same evidence.
    pub sides: Vec<PairSide>,
    /// How many rounds.
    pub rounds: u32,
    /// Seconds for everything together; the second round is made unless the first took more than that alone.
    #[serde(default)]
    pub budget_seconds: Option<f64>,
    /// Of the order of sides.
    #[serde(default)]
    pub seed: u64,
    /// What is in memory.
    pub state: PairState,
    /// Files that the sides read, of which the kernel is asked; a random sample is enough.
    #[serde(default)]
    pub inputs: Vec<PathBuf>,
    /// Whether they are read, and not only their names.
    #[serde(default)]
    pub reads_data: bool,
    /// Reads the inputs, if they are to be in memory and are not.
    #[serde(default)]
    pub warm: Vec<String>,
    /// Directories whose file systems are synced before each run.
    #[serde(default)]
    pub sync: Vec<PathBuf>,
    /// Where stdout goes for the evidence.
    #[serde(default)]
    pub stdout: Option<PathBuf>,
    /// Whether evidence comes from the first timed round, and not from runs before it.
    #[serde(default)]
    pub evidence_in_first_round: bool,
    /// Files that each run handles.
    #[serde(default)]
    pub files: Option<u64>,
    /// Bytes that each run handles.
    #[serde(default)]
    pub bytes: Option<u64>,
}

/// One program's way to do the work.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairSide {
    /// How it is called.
    pub name: String,
    /// What is timed.
    pub command: Vec<String>,
    /// Makes what the command needs, before each run.
    #[serde(default)]
    pub prepare: Vec<String>,
    /// Takes down what `prepare` made, after each run, also one that failed.
    #[serde(default)]
    pub tidy: Vec<String>,
    /// Prints what the outcome shows, as one value of JSON.
    #[serde(default)]
    pub evidence: Vec<String>,
    /// Commands that load the programs of the side, which are not to be cold.
    #[serde(default)]
    pub load: Vec<Vec<String>>,
    /// Variables that are set for the command.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
}

/// What came of a pair.
#[derive(Debug, Clone, PartialEq)]
pub struct PairOutcome {
    /// One for each run, in their order, with the label `side`.
    pub samples: Vec<Sample>,
    /// What all sides showed.
    pub facts: Value,
    /// What makes the figures doubtful, by side; an empty name stands for all.
    pub warnings: Vec<(String, Warning)>,
}

/// Measures a pair.
///
/// # Errors
/// [`BenchError::Refused`] if a state cannot be made or does not hold, or the evidence differs;
/// [`BenchError::Command`] if a command fails; [`BenchError::Usage`] for a spec without sides or rounds.
pub fn pair(spec: &PairSpec, observer: &dyn Observer) -> Result<PairOutcome, BenchError> {
    if spec.sides.is_empty() || spec.rounds == 0 {
        return Err(BenchError::usage(
            "there must be a side and a round".to_owned(),
        ));
    }
    let mut trial = Trial {
        spec,
        observer,
        prover: Prover::new(spec),
        facts: BTreeMap::new(),
        samples: Vec::new(),
        begun: Instant::now(),
    };
    trial.run()?;
    let facts = trial.facts.into_values().next().unwrap_or(Value::Null);
    Ok(PairOutcome {
        warnings: warnings(spec, &trial.samples),
        samples: trial.samples,
        facts,
    })
}

struct Trial<'a> {
    spec: &'a PairSpec,
    observer: &'a dyn Observer,
    prover: Prover<'a>,
    /// What each side showed, by name.
    facts: BTreeMap<&'a str, Value>,
    samples: Vec<Sample>,
    begun: Instant,
}

impl<'a> Trial<'a> {
    fn run(&mut self) -> Result<(), BenchError> {
        if !self.spec.evidence_in_first_round {
            for side in &self.spec.sides {
                self.observer.progress(&format!("untimed: {}", side.name));
                self.run_side(side, None)?;
            }
        }
        let (mut round, mut took) = (0, 0.0);
        while self.is_another(round, took) {
            round += 1;
            let begun = Instant::now();
            for (order, side) in self.shuffled(round).into_iter().enumerate() {
                self.run_side(side, Some((round, order + 1)))?;
            }
            took = begun.elapsed().as_secs_f64();
        }
        Ok(())
    }

    /// Whether there is a next round: a second one unless the first took all the time alone, others while it lasts.
    fn is_another(&self, done: u32, took: f64) -> bool {
        if done == 0 || done >= self.spec.rounds {
            return done < self.spec.rounds;
        }
        let is_short = done == 1 && !self.spec.evidence_in_first_round;
        let spent = if is_short {
            0.0
        } else {
            self.begun.elapsed().as_secs_f64()
        };
        self.spec
            .budget_seconds
            .is_none_or(|budget| spent + took <= budget)
    }

    /// The sides in a random order, another one each round.
    fn shuffled(&self, round: u32) -> Vec<&'a PairSide> {
        let mut random = Random::new(self.spec.seed.wrapping_add(u64::from(round) << 32));
        let mut sides: Vec<&PairSide> = self.spec.sides.iter().collect();
        for last in (1..sides.len()).rev() {
            sides.swap(last, random.index(last + 1));
        }
        sides
    }

    /// One run of a side with all around it; timed in a round, and without one for its evidence alone.
    fn run_side(
        &mut self,
        side: &'a PairSide,
        round: Option<(u32, usize)>,
    ) -> Result<(), BenchError> {
        if self.observer.is_stopped() {
            return Err(BenchError::Interrupted);
        }
        let when = match round {
            Some((round, _)) => format!("in round {round}, {}", side.name),
            None => format!("in the untimed run, {}", side.name),
        };
        let done = self
            .untimed(&side.prepare, &format!("{when}, before it"))
            .and_then(|()| self.prepared(side, round, &when));
        let tidied = self.untimed(&side.tidy, &format!("{when}, after it"));
        done.and(tidied)
    }

    fn prepared(
        &mut self,
        side: &'a PairSide,
        round: Option<(u32, usize)>,
        when: &str,
    ) -> Result<(), BenchError> {
        let shows = !side.evidence.is_empty() && !self.facts.contains_key(&*side.name);
        for place in &self.spec.sync {
            let opened = Directory::open(place)?;
            opened.sync_file_system().context("sync", place)?;
        }
        let mut proof = BTreeMap::new();
        if round.is_some() {
            proof = self.prover.make(side, when, self.observer)?;
        }
        let mut job = Job::new(side.command.iter().cloned());
        let variables = side.environment.iter();
        job.environment = variables
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        job.output = if shows { Output::Kept } else { Output::Dropped };
        let ran = job.succeed(when, self.observer)?;
        if let Some((round, order)) = round {
            let mut sample = ran.sample(round);
            sample.labels.insert("side".to_owned(), side.name.clone());
            (sample.files, sample.bytes) = (self.spec.files, self.spec.bytes);
            sample.proof.append(&mut proof);
            sample.proof.insert("order".to_owned(), order.into());
            let read = ran.read_bytes.into();
            sample.proof.insert("read_bytes".to_owned(), read);
            self.observer.sampled(&sample);
            self.samples.push(sample);
        }
        if shows {
            self.show(side, &ran.stdout, when)?;
        }
        Ok(())
    }

    /// Asks what the outcome shows, which must be the same for all sides.
    fn show(&mut self, side: &'a PairSide, stdout: &[u8], when: &str) -> Result<(), BenchError> {
        if let Some(path) = &self.spec.stdout {
            stook_sys::write_file(path, stdout)?;
        }
        let evidence = Job {
            output: Output::Kept,
            ..Job::new(side.evidence.iter().cloned())
        };
        let printed = evidence.succeed(&format!("{when}, as evidence"), self.observer)?;
        let shown: Value = serde_json::from_slice(&printed.stdout).map_err(|error| {
            BenchError::refused(format!("{when}: the evidence is no JSON: {error}"))
        })?;
        if let Some((first, known)) = self.facts.iter().find(|(_, known)| **known != shown) {
            let what = format!("{first} and {} differ: {known} and {shown}", side.name);
            return Err(BenchError::refused(what));
        }
        self.facts.insert(&side.name, shown);
        Ok(())
    }

    fn untimed(&self, command: &[String], when: &str) -> Result<(), BenchError> {
        if command.is_empty() {
            return Ok(());
        }
        let job = Job::new(command.iter().cloned());
        job.succeed(when, self.observer).map(drop)
    }
}

fn warnings(spec: &PairSpec, samples: &[Sample]) -> Vec<(String, Warning)> {
    let of_side = |side: &PairSide| Case::with(samples, &[("side", side.name.as_str())]);
    let cases = spec
        .sides
        .iter()
        .filter_map(|side| Some((side, of_side(side)?)));
    let cases: Vec<(&PairSide, Case<'_>)> = cases.collect();
    // As many rounds as were asked for are enough.
    let least = cases.iter().map(|(_, case)| case.samples.len()).min();
    let few = of_rounds(least.filter(|least| *least < spec.rounds as usize));
    let mut found: Vec<(String, Warning)> =
        few.into_iter().map(|few| (String::new(), few)).collect();
    #[expect(clippy::cast_precision_loss, reason = "a hundredth of it, roughly")]
    let handled = spec.bytes.unwrap_or(0) as f64;
    for (side, case) in cases {
        let mut of_side = of_times(&case.seconds());
        of_side.extend(of_other_programs(&case.samples));
        if spec.state == PairState::Hot {
            of_side.extend(of_hot_reads(&case.samples, handled));
        }
        found.extend(
            of_side
                .into_iter()
                .map(|warning| (side.name.clone(), warning)),
        );
    }
    found
}
