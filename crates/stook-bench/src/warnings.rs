//! What makes figures doubtful: the one list for all benches, in types and in words.
//!
//! A warning never hides a figure. What must not be told at all is refused instead.

use std::fmt;

use crate::record::{Sample, WAITED_SHARE};
use crate::statistics::{Spread, median};

/// Fewer runs say little about their spread.
pub(crate) const ENOUGH_RUNS: usize = 5;
/// Starting a program takes about a millisecond, and more or less of it when the machine is busy.
pub(crate) const TOO_SHORT_SECONDS: f64 = 0.01;
/// The distance of the quartiles, as a share of the median.
const WIDE: f64 = 0.2;
/// How much longer the first run takes than the median of the others.
const SLOW_FIRST: f64 = 1.25;
/// The share of a run in which something waited for a processor, from which on its wall time is no longer its own.
const BUSY: f64 = 0.1;
/// What a run with everything in memory may read from devices: stray blocks, logs, and a hundredth of what it handles.
const STRAY_BYTES: f64 = (1 << 20) as f64;

/// A reason to look twice at figures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Warning {
    /// Everything was run so few times.
    FewRuns(usize),
    /// A run takes this many seconds.
    TooShort(f64),
    /// The quartiles lie this share of the median apart.
    Wide(f64),
    /// The first run took this many times as long as the others.
    SlowFirst(f64),
    /// In this share of the runs, programs waited for a processor.
    Busy(f64),
    /// A run read so many bytes from devices, though all was to be in memory.
    ReadThoughHot(f64),
    /// The server of the mount took so many bytes from where they should not have been, or where it should not have looked.
    FromElsewhere(f64),
    /// A run from the cold state read nothing from devices itself.
    ReadNothing,
    /// Before so many of so many cold or warm runs, some of the files were back in memory.
    CameBack(usize, usize),
    /// Only the data of known files was dropped.
    DataOnly,
    /// Nothing that was read could be asked for.
    NothingAsked,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        let text = match *self {
            Self::FewRuns(1) => "only one round, so the spread is not known",
            Self::FewRuns(runs) => &format!(
                "only {runs} of the {ENOUGH_RUNS} rounds that it takes to say anything of the spread"
            ),
            Self::TooShort(seconds) => &format!(
                "a run takes {:.1} ms, not much more than starting a program",
                seconds * 1e3
            ),
            Self::Wide(share) => {
                &format!("the quartiles lie {} of the median apart", percent(share))
            }
            Self::SlowFirst(times) => {
                &format!("the first run took {times:.2} times as long as the others")
            }
            Self::Busy(share) => &format!(
                "during {} of a run, programs waited for a processor; its wall time holds what this one waited",
                percent(share)
            ),
            Self::ReadThoughHot(bytes) => &format!(
                "a run read {:.1} MB from devices; not all is in memory",
                bytes / 1e6
            ),
            Self::FromElsewhere(bytes) => &format!(
                "in a run the server of the mount read {:.1} MB that belong to another state",
                bytes / 1e6
            ),
            Self::ReadNothing => {
                "a run read nothing from devices by itself; is it a network file system?"
            }
            Self::CameBack(runs, of) => &format!(
                "before {runs} of {of} runs, other programs had read some of the files again"
            ),
            Self::DataOnly => {
                "only the data of known files was dropped; names and inodes stayed in memory, and of files of other users nothing is known"
            }
            Self::NothingAsked => {
                "nothing that the command reads could be asked for, so nothing proves that it was not in memory"
            }
        };
        f.write_str(text)
    }
}

/// Returns what goes for all figures alike, of the least number of runs.
pub(crate) fn of_rounds(runs: Option<usize>) -> Option<Warning> {
    runs.filter(|runs| *runs < ENOUGH_RUNS)
        .map(Warning::FewRuns)
}

/// Returns what wall times alone say, in the order of the runs.
pub(crate) fn of_times(seconds: &[f64]) -> Vec<Warning> {
    let Some(spread) = Spread::of(seconds) else {
        return Vec::new();
    };
    let width = (spread.upper_quartile - spread.lower_quartile) / spread.median;
    let others = median(&seconds[1..]).filter(|_| spread.count >= 3);
    let first = others.map_or(0.0, |others| seconds[0] / others);
    let all = [
        (
            spread.median < TOO_SHORT_SECONDS,
            Warning::TooShort(spread.median),
        ),
        (width > WIDE, Warning::Wide(width)),
        (first > SLOW_FIRST, Warning::SlowFirst(first)),
    ];
    let found = all.into_iter().filter(|(is_raised, _)| *is_raised);
    found.map(|(_, warning)| warning).collect()
}

/// Returns whether a part of the wall time is that of other programs.
pub(crate) fn of_other_programs(samples: &[&Sample]) -> Option<Warning> {
    let share = median(&proved(samples, WAITED_SHARE)).filter(|share| *share > BUSY)?;
    Some(Warning::Busy(share))
}

/// Returns whether runs with everything in memory read from devices; a hundredth of `handled` bytes may be.
pub(crate) fn of_hot_reads(samples: &[&Sample], handled: f64) -> Option<Warning> {
    let read = median(&proved(samples, "read_bytes"))?;
    (read > STRAY_BYTES + handled / 100.0).then_some(Warning::ReadThoughHot(read))
}

/// Returns a figure of the proofs, without those that have none.
pub(crate) fn proved(samples: &[&Sample], name: &str) -> Vec<f64> {
    let figures = samples
        .iter()
        .filter_map(|sample| sample.proof.get(name)?.as_f64());
    figures.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steady_times_raise_no_warning() {
        assert_eq!(of_times(&[1.0, 1.01, 0.99, 1.0, 1.02]), []);
        assert_eq!(
            (of_times(&[]), of_rounds(Some(5)), of_rounds(None)),
            (vec![], None, None)
        );
    }

    #[test]
    fn each_warning_is_raised_by_what_it_is_about() {
        assert_eq!(of_times(&[0.001; 5]), [Warning::TooShort(0.001)]);
        assert_eq!(
            of_times(&[2.0, 1.0, 1.0, 1.0, 1.0]),
            [Warning::SlowFirst(2.0)]
        );
        let [Warning::Wide(share)] = of_times(&[1.0, 1.3, 1.0, 1.3, 1.15])[..] else {
            panic!("it is wide");
        };
        assert!((share - 0.3 / 1.15).abs() < 1e-9);
        assert_eq!(of_rounds(Some(4)), Some(Warning::FewRuns(4)));
        let with = |name: &str, value: f64| Sample {
            proof: [(name.to_owned(), value.into())].into(),
            ..Sample::default()
        };
        let read = with("read_bytes", 5e6);
        assert_eq!(
            of_hot_reads(&[&read], 0.0),
            Some(Warning::ReadThoughHot(5e6))
        );
        assert_eq!(of_hot_reads(&[&read], 1e9), None);
        let waited = |share| of_other_programs(&[&with(WAITED_SHARE, share)]);
        assert_eq!(
            (waited(0.5), waited(0.05)),
            (Some(Warning::Busy(0.5)), None)
        );
    }
}
