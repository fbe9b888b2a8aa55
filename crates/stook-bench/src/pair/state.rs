//! The state before a run of a pair: made, and proved by asking the kernel for a sample of the inputs.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use stook_sys::{Forget, ResidencyQuery};

use super::{PairSide, PairSpec, PairState};
use crate::Observer;
use crate::error::BenchError;
use crate::job::Job;
use crate::page_state::{COLD_AT_MOST, HOT_AT_LEAST, Inputs, Method, Reads, Shares};

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
            match self.wrong(shares) {
                Some(found) => wrong = found,
                None => {
                    self.load(side, observer)?;
                    return Ok(self.proof(&inputs, shares));
                }
            }
            if self.spec.state == PairState::Hot && !self.spec.warm.is_empty() {
                let warm = Job::new(self.spec.warm.iter().cloned());
                warm.succeed(
                    &format!("{when}, to bring the inputs into memory"),
                    observer,
                )?;
            }
        }
        Err(BenchError::Refused {
            what: format!("{when}: the state does not hold: {wrong}"),
            hint: None,
        })
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
            return Err(BenchError::Refused {
                what: format!("{when}: the caches cannot be dropped"),
                hint: Some("only root may drop them, and not in every container".to_owned()),
            });
        }
        inputs.forget(self.method, Forget::Everything)
    }

    /// What does not hold. Where nothing can be asked for, as in memory, there is nothing to be wrong when it is hot.
    fn wrong(&self, shares: Shares) -> Option<String> {
        let both = [(shares.pages, "pages"), (shares.names, "names")];
        let is_hot = self.spec.state == PairState::Hot;
        if !is_hot && both.iter().all(|(share, _)| share.is_none()) {
            return Some("nothing of the inputs can be asked for".to_owned());
        }
        both.into_iter().find_map(|(share, what)| {
            let share = share?;
            let is_wrong = if is_hot {
                share < HOT_AT_LEAST
            } else {
                share > COLD_AT_MOST
            };
            let text = format!("{:.1} % of the {what} are in memory", share * 100.0);
            is_wrong.then_some(text)
        })
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

    fn proof(&self, inputs: &Inputs, shares: Shares) -> BTreeMap<String, Value> {
        let facts = [
            ("files", json!(inputs.count())),
            ("pages_share", json!(shares.pages)),
            ("names_share", json!(shares.names)),
            ("left_out", json!(inputs.left_out().to_string())),
        ];
        facts.map(|(name, value)| (name.to_owned(), value)).into()
    }
}
