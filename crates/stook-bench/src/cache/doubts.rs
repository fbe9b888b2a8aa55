//! What makes the samples of a state doubtful, in words: too short, too far apart, a slow first one, a busy machine, the
//! wrong reads.

use super::tables::{Group, Unproved, percent};
use crate::page_state::COLD_AT_MOST;
use crate::statistics::{Spread, median};

/// Starting a process takes about 1 ms, and as much more or less when the machine is busy.
const TOO_SHORT_SECONDS: f64 = 0.005;
/// The distance of the quartiles, as a share of the median.
const WIDE: f64 = 0.2;
/// How much longer the first run takes than the median of the others.
const SLOW_FIRST: f64 = 1.25;
/// The share of a run in which something waited for a processor, from which on its wall time is no longer its own.
const BUSY: f64 = 0.1;
/// Fewer runs say little about their spread.
const FEW: usize = 5;
/// What a hot run may read: stray blocks, logs.
const STRAY_BYTES: f64 = (1 << 20) as f64;

/// Returns a sentence for each doubt about all states: of what goes for each alike, there is one.
pub(super) fn doubts(states: &[Group<'_>]) -> Vec<String> {
    let rounds = states.iter().map(|group| group.samples.len()).min();
    let few = rounds.filter(|&rounds| rounds < FEW);
    let few = few.map(|rounds| {
        format!("only {rounds} of the {FEW} rounds that it takes to say anything of the spread")
    });
    few.into_iter()
        .chain(states.iter().flat_map(of_state))
        .collect()
}
fn of_state(group: &Group<'_>) -> Vec<String> {
    let real = group.real();
    let Some(spread) = Spread::of(&real) else {
        return Vec::new();
    };
    let state = group.state;
    let mut doubts = Vec::new();
    if spread.median < TOO_SHORT_SECONDS {
        doubts.push(format!(
            "{state}: a run takes {:.1} ms, not much more than starting a program",
            spread.median * 1e3
        ));
    }
    let width = (spread.upper_quartile - spread.lower_quartile) / spread.median;
    if width > WIDE {
        doubts.push(format!(
            "{state}: the quartiles lie {} of the median apart",
            percent(width)
        ));
    }
    if let Some(others) = real.split_first().and_then(|(_, others)| median(others))
        && spread.count >= 3
        && real[0] > SLOW_FIRST * others
    {
        doubts.push(format!(
            "{state}: the first run took {:.2} times as long as the others",
            real[0] / others
        ));
    }
    doubts.extend(unproved(group));
    doubts.extend(busy(group));
    doubts.extend(came_back(group));
    doubts.extend(wrong_reads(group));
    doubts
}

/// Why the state may be another one.
fn unproved(group: &Group<'_>) -> Option<String> {
    let why = match group.unproved? {
        Unproved::DataOnly => {
            "only the data of known files was dropped; names and inodes stayed in memory, and of files of other users nothing is known"
        }
        Unproved::NothingAsked => {
            "nothing that the command reads could be asked for, so nothing proves that it was not in memory"
        }
    };
    Some(format!("{}?: {why}", group.state))
}

/// Whether a part of the wall time is that of other programs.
fn busy(group: &Group<'_>) -> Option<String> {
    let share = median(&group.proved("waited_share")).filter(|share| *share > BUSY)?;
    Some(format!(
        "{}: during {} of a run, programs waited for a processor; its wall time holds what this one waited",
        group.state,
        percent(share)
    ))
}

/// Files of the system that other programs had read again before a run that was to be without them.
fn came_back(group: &Group<'_>) -> Option<String> {
    if group.state.ends_with("hot") {
        return None;
    }
    let shares = group.proved("pages_share");
    let more = shares.iter().filter(|share| **share > COLD_AT_MOST).count();
    (more > 0).then(|| {
        format!(
            "{}: before {more} of {} runs, other programs had read some of the files again",
            group.state,
            shares.len()
        )
    })
}

/// What the kernel counted during the run, against what was to be in memory.
fn wrong_reads(group: &Group<'_>) -> Option<String> {
    let read = median(&group.proved("read_bytes"))?;
    let state = group.state;
    if state.ends_with("hot") && read > STRAY_BYTES {
        return Some(format!(
            "{state}: a run read {:.1} MB from devices; not all is in memory",
            read / 1e6
        ));
    }
    let pages = median(&group.proved("pages"))?;
    if state.ends_with("cold") && pages > 0.0 && read == 0.0 {
        return Some(format!(
            "{state}: a run read nothing from devices by itself; is it a network file system?"
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use crate::cache::CacheTables;
    use crate::record::Sample;
    use serde_json::json;

    fn doubts_of(state: &str, times: &[f64], proof: &[(&str, u64)]) -> Vec<String> {
        let sample = |&real_seconds: &f64| Sample {
            labels: [("state".to_owned(), state.to_owned())].into(),
            real_seconds,
            proof: proof
                .iter()
                .map(|(name, value)| ((*name).to_owned(), json!(value)))
                .collect(),
            ..Sample::default()
        };
        let samples: Vec<Sample> = times.iter().map(sample).collect();
        CacheTables::of(&samples).doubts
    }

    #[test]
    fn good_samples_raise_no_doubt() {
        assert_eq!(
            doubts_of(
                "hot",
                &[1.0, 1.01, 0.99, 1.0, 1.02],
                &[("read_bytes", 4096)]
            ),
            [""; 0]
        );
    }

    #[test]
    fn each_doubt_is_raised_by_what_it_is_about() {
        let only = |state, times: &[f64], proof: &[(&str, u64)]| {
            let doubts = doubts_of(state, times, proof);
            assert_eq!(doubts.len(), 1, "{doubts:?}");
            doubts[0].clone()
        };
        assert_eq!(
            only("warm", &[1.0; 4], &[]),
            "only 4 of the 5 rounds that it takes to say anything of the spread"
        );
        let short = only("hot", &[0.001; 5], &[]);
        assert_eq!(
            short,
            "hot: a run takes 1.0 ms, not much more than starting a program"
        );
        let wide = only("cold", &[1.0, 1.3, 1.0, 1.3, 1.15], &[]);
        assert_eq!(wide, "cold: the quartiles lie 26.1 % of the median apart");
        let slow = only("hot", &[2.0, 1.0, 1.0, 1.0, 1.0], &[]);
        assert_eq!(
            slow,
            "hot: the first run took 2.00 times as long as the others"
        );
        let read = only("hot", &[1.0; 5], &[("read_bytes", 5_000_000), ("pages", 9)]);
        assert_eq!(
            read,
            "hot: a run read 5.0 MB from devices; not all is in memory"
        );
        let back = doubts_of("warm", &[1.0; 5], &[("pages_share", 1)]);
        assert_eq!(
            back,
            ["warm: before 5 of 5 runs, other programs had read some of the files again"]
        );
        let busy = doubts_of("hot", &[1.0; 5], &[("waited_share", 1)]);
        assert_eq!(
            busy,
            [
                "hot: during 100.0 % of a run, programs waited for a processor; its wall time holds what this one waited"
            ]
        );
        let unread = only("cold", &[1.0; 5], &[("read_bytes", 0), ("pages", 9)]);
        assert!(
            unread.starts_with("cold: a run read nothing from devices"),
            "{unread}"
        );
    }
}
