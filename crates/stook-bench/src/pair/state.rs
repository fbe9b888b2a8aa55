//! The state before a run of a pair: made, and proved by asking the kernel for a sample of the inputs.

use std::collections::BTreeMap;

use serde_json::Value;
use stook_sys::{Forget, ResidencyQuery};

use super::{PairSide, PairSpec, PairState};
use crate::Observer;
use crate::error::BenchError;
use crate::job::Job;
use crate::page_state::{Inputs, Method, Reads, Shares};
use crate::proof::{self, Wanted};
use crate::remedy::Remedy;

/// How often the state is made before it counts as one that does not hold.
const ATTEMPTS: usize = 3;

/// Makes the states of a pair.
pub(super) struct Prover<'a> {
    spec: &'a PairSpec,
    method: Method,
}

impl<'a> Prover<'a> {
    pub(super) fn new(spec: &'a PairSpec) -> Self {
        Self {
            spec,
            method: Method::available(),
        }
    }

    /// Makes the state, and returns the proof for the sample.
    ///
    /// # Errors
    /// [`BenchError::Refused`] if it does not hold, or cannot be made.
    pub(super) fn make(
        &self,
        side: &PairSide,
        when: &str,
        observer: &dyn Observer,
    ) -> Result<BTreeMap<String, Value>, BenchError> {
        if self.spec.state == PairState::AsLeft {
            return Ok(BTreeMap::new());
        }
        let reads = if self.spec.reads_data {
            Reads::Data
        } else {
            Reads::Names
        };
        // Anew for each run, as the inputs may have been made for it.
        let inputs = Inputs::whole(&self.spec.inputs, reads, ResidencyQuery::Cachestat)?;
        let mut wrong = String::new();
        for _ in 0..ATTEMPTS {
            let shares = self.attempt(&inputs, when, observer)?;
            match self.wrong(&shares) {
                Some(found) => wrong = found,
                None => {
                    self.load(side, observer)?;
                    let mut proof = proof::described(&inputs, &shares);
                    proof.insert("left_out".to_owned(), inputs.left_out().to_string().into());
                    return Ok(proof);
                }
            }
            if self.spec.state == PairState::Hot && !self.spec.warm.is_empty() {
                let warm = Job::new(self.spec.warm.iter().cloned());
                let when = format!("{when}, to bring the inputs into memory");
                warm.succeed(&when, observer)?;
            }
        }
        let what = format!("{when}: the state does not hold: {wrong}");
        Err(BenchError::refused(what))
    }

    fn attempt(
        &self,
        inputs: &Inputs,
        when: &str,
        observer: &dyn Observer,
    ) -> Result<Shares, BenchError> {
        if observer.is_stopped() {
            return Err(BenchError::Interrupted);
        }
        if self.spec.state == PairState::Hot {
            return inputs.ask();
        }
        if self.method == Method::Fadvise {
            let what = format!("{when}: the caches cannot be dropped");
            return Err(BenchError::refused_with(Remedy::DropCachesAsRoot, what));
        }
        inputs.forget(self.method, Forget::Everything)
    }

    /// What does not hold. Where nothing can be asked for, as in memory, there is nothing to be wrong when it is hot.
    fn wrong(&self, shares: &Shares) -> Option<String> {
        if self.spec.state == PairState::Hot {
            return proof::wrong(shares, Wanted::InMemory, Wanted::InMemory);
        }
        if shares.pages.is_none() && shares.names.is_none() {
            return Some("nothing of the inputs can be asked for".to_owned());
        }
        proof::wrong(shares, Wanted::NotInMemory, Wanted::NotInMemory)
    }

    /// The inputs are to be cold, not the programs.
    fn load(&self, side: &PairSide, observer: &dyn Observer) -> Result<(), BenchError> {
        if self.spec.state == PairState::Cold {
            for command in &side.load {
                Job::new(command.iter().cloned()).run(observer)?;
            }
        }
        Ok(())
    }
}
