//! Where the wall time of a command went: on a processor, waiting for one, and blocked.
//!
//! Let c be CPU time, w the time that threads waited for a processor, and r wall time. At every moment at which something of
//! the command ran or waited for a processor, at least one thread adds to c + w. So for at least r - c - w neither
//! was the case: everything was blocked. With one thread that is exact, with more it is the least.
//!
//! The kernel tells w of a command with one thread and no children. Of others it tells nothing; but they cannot have waited
//! in more of the time than any program of the machine did, which is counted for the machine (`/proc/pressure/cpu`).

use crate::record::{Sample, WAITED_SHARE};
use crate::statistics::{cpu_share, through_origin};

/// How long something waited for a processor, as a share of the wall time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Waited {
    /// As long as this.
    Exactly(f64),
    /// Not longer than this.
    AtMost(f64),
}

/// Shares of the wall time, over some runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shares {
    /// On a processor; more than 1 where several threads ran.
    pub cpu: f64,
    /// Waiting for a processor; None if that is not known.
    pub waited: Option<Waited>,
}

impl Shares {
    /// Returns those of some samples; None if no time passed.
    pub fn of(samples: &[&Sample]) -> Option<Self> {
        let real: Vec<f64> = samples.iter().map(|sample| sample.real_seconds).collect();
        let cpu: Vec<f64> = samples.iter().map(|sample| sample.cpu_seconds()).collect();
        let each = |waited: fn(&Sample) -> Option<f64>| -> Option<Vec<f64>> {
            samples.iter().map(|sample| waited(sample)).collect()
        };
        let share = |waited: Vec<f64>| through_origin(&waited, &real);
        let exactly = each(|sample| sample.run_delay_seconds).and_then(share);
        let at_most = || each(at_most).and_then(share).map(Waited::AtMost);
        Some(Self {
            cpu: cpu_share(&cpu, &real)?,
            waited: exactly.map(Waited::Exactly).or_else(at_most),
        })
    }

    /// Returns the share of the time, at least, in which everything was blocked: waiting for a disk, a network, a lock, a
    /// time, but not for a processor. None if it is not known how long that was.
    pub fn blocked(&self) -> Option<f64> {
        let (Waited::Exactly(waited) | Waited::AtMost(waited)) = self.waited?;
        Some((1.0 - self.cpu - waited).max(0.0))
    }

    /// Returns the time waiting for a processor as a cell, `-` if it is not known.
    pub(crate) fn waited_text(&self, show: impl Fn(f64) -> String) -> String {
        match self.waited {
            Some(Waited::Exactly(share)) => show(share),
            Some(Waited::AtMost(share)) => format!("<={}", show(share)),
            None => "-".to_owned(),
        }
    }

    /// Returns the time blocked as a cell, `-` if it is not known.
    pub(crate) fn blocked_text(&self, show: impl Fn(f64) -> String) -> String {
        match (self.waited, self.blocked()) {
            (Some(Waited::AtMost(_)), Some(share)) => format!(">={}", show(share)),
            (_, Some(share)) => show(share),
            (_, None) => "-".to_owned(),
        }
    }
}

/// The most that a run may have waited for a processor, in seconds.
fn at_most(sample: &Sample) -> Option<f64> {
    let of_machine = || Some(sample.proof.get(WAITED_SHARE)?.as_f64()? * sample.real_seconds);
    sample.run_delay_seconds.or_else(of_machine)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(cpu: f64, run_delay: Option<f64>, of_machine: Option<f64>) -> Sample {
        let proof = of_machine.map(|share| (WAITED_SHARE.to_owned(), share.into()));
        Sample {
            real_seconds: 2.0,
            user_seconds: cpu,
            run_delay_seconds: run_delay,
            proof: proof.into_iter().collect(),
            ..Sample::default()
        }
    }

    fn texts(samples: &[Sample]) -> [String; 2] {
        let shares = Shares::of(&samples.iter().collect::<Vec<_>>()).unwrap();
        let show = |share: f64| format!("{:.0} %", share * 100.0);
        [shares.waited_text(show), shares.blocked_text(show)]
    }

    #[test]
    fn waiting_for_a_processor_is_not_blocked() {
        let of = |delay, of_machine| {
            texts(&[
                sample(0.4, delay, of_machine),
                sample(0.4, delay, of_machine),
            ])
        };
        assert_eq!(of(Some(0.6), None), ["30 %", "50 %"]);
        assert_eq!(of(Some(0.6), Some(0.9)), ["30 %", "50 %"]);
        assert_eq!(of(None, Some(0.1)), ["<=10 %", ">=70 %"]);
        assert_eq!(of(None, Some(1.0)), ["<=100 %", ">=0 %"]);
        assert_eq!(of(None, None), ["-", "-"]);
    }

    #[test]
    fn one_run_of_which_it_is_not_known_leaves_a_bound_or_nothing() {
        let known = sample(0.4, Some(0.2), Some(0.5));
        assert_eq!(
            texts(&[known.clone(), sample(0.4, None, Some(0.3))]),
            ["<=20 %", ">=60 %"]
        );
        assert_eq!(texts(&[known, sample(0.4, None, None)]), ["-", "-"]);
        assert_eq!(Shares::of(&[]), None);
        // Several threads.
        assert_eq!(texts(&[sample(3.0, Some(0.2), None)]), ["10 %", "0 %"]);
    }
}
