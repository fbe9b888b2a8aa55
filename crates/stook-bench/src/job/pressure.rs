//! For how much of a run some program of the machine waited for a processor.
//!
//! The kernel counts this for the machine as a whole, so it is the most that a command can have waited, not what it did.

use std::path::Path;
use std::time::{Duration, Instant};

const PRESSURE: &str = "/proc/pressure/cpu";

/// The count before a run.
#[derive(Debug)]
pub(crate) struct Pressure {
    began: Instant,
    /// None where the kernel does not count it.
    waited: Option<Duration>,
}

impl Pressure {
    pub(crate) fn begin() -> Self {
        Self {
            began: Instant::now(),
            waited: waited(),
        }
    }

    /// Returns the share of the time since then in which somebody waited.
    pub(crate) fn share(&self) -> Option<f64> {
        let waited = waited()?.checked_sub(self.waited?)?;
        Some((waited.as_secs_f64() / self.began.elapsed().as_secs_f64()).min(1.0))
    }
}

fn waited() -> Option<Duration> {
    waited_in(&stook_sys::read_text(Path::new(PRESSURE)).ok()?)
}

/// `some avg10=0.00 avg60=0.12 avg300=0.08 total=4711`: microseconds.
///
/// # Source
/// `Documentation/accounting/psi.rst` of Linux.
fn waited_in(text: &str) -> Option<Duration> {
    let line = text.lines().find(|line| line.starts_with("some "))?;
    let (_, total) = line.rsplit_once("total=")?;
    total.trim().parse().ok().map(Duration::from_micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_of_those_that_wait_is_read() {
        let text = "some avg10=0.00 avg60=0.12 avg300=0.08 total=4711\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
        assert_eq!(waited_in(text), Some(Duration::from_micros(4711)));
        assert_eq!(waited_in("full avg10=0.00 total=7\n"), None);
        assert_eq!(waited_in(""), None);
    }

    #[test]
    fn the_share_of_a_time_is_a_share() {
        match Pressure::begin().share() {
            None => stook_testkit::skip!("the kernel does not count who waits for a processor"),
            Some(share) => assert!((0.0..=1.0).contains(&share), "{share}"),
        }
    }
}
