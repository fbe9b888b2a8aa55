//! What makes the samples of a state doubtful: what goes for all samples, and states that may be other ones.

use super::mounted::{DISK_BYTES, STORE_BYTES};
use super::states::{self, is_hot, unproved};
use crate::cases::Case;
use crate::page_state::COLD_AT_MOST;
use crate::statistics::median;
use crate::warnings::{Warning, of_hot_reads, of_other_programs, of_rounds, of_times, proved};

/// Returns a sentence for each warning about all states: of what goes for each alike, there is one.
pub(super) fn warnings(states: &[Case<'_>]) -> Vec<String> {
    let rounds = states.iter().map(|state| state.samples.len()).min();
    let few = of_rounds(rounds).map(|few| few.to_string());
    let of_states = states.iter().flat_map(|state| {
        let warnings = of_state(state).into_iter();
        warnings.map(|warning| match warning {
            Warning::DataOnly | Warning::NothingAsked => format!("{}?: {warning}", state.labels[0]),
            warning => format!("{}: {warning}", state.labels[0]),
        })
    });
    few.into_iter().chain(of_states).collect()
}

fn of_state(state: &Case<'_>) -> Vec<Warning> {
    let samples = &state.samples;
    let mut warnings = of_times(&state.seconds());
    warnings.extend(unproved(state));
    warnings.extend(of_other_programs(samples));
    let most = |name: &str| proved(samples, name).into_iter().fold(0.0, f64::max);
    let wrong = match states::state(state).0 {
        "cold" => most(DISK_BYTES),
        "warm" => most(STORE_BYTES),
        _ => most(STORE_BYTES) + most(DISK_BYTES),
    };
    warnings.extend((wrong > 0.0).then_some(Warning::FromElsewhere(wrong)));
    if is_hot(state) {
        warnings.extend(of_hot_reads(samples, 0.0));
        return warnings;
    }
    let shares = proved(samples, "pages_share");
    let more = shares.iter().filter(|share| **share > COLD_AT_MOST).count();
    warnings.extend((more > 0).then_some(Warning::CameBack(more, shares.len())));
    let has_pages = median(&proved(samples, "pages")).is_some_and(|pages| pages > 0.0);
    let reads_nothing = median(&proved(samples, "read_bytes")) == Some(0.0);
    if states::state(state).0 == "cold" && has_pages && reads_nothing {
        warnings.push(Warning::ReadNothing);
    }
    warnings
}

#[cfg(test)]
mod tests {
    use crate::cache::CacheTables;
    use crate::record::Sample;

    fn only(state: &str, proof: &[(&str, u64)]) -> String {
        let sample = Sample {
            labels: crate::record::labels([("state", state)]),
            real_seconds: 1.0,
            proof: proof
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).into()))
                .collect(),
            ..Sample::default()
        };
        let warnings = CacheTables::of(&vec![sample; 5]).warnings;
        assert!(warnings.len() < 2, "{warnings:?}");
        warnings.concat()
    }

    #[test]
    fn each_state_has_its_own() {
        let read = [("read_bytes", 5_000_000), ("pages", 9)];
        assert_eq!(
            only("hot", &read),
            "hot: a run read 5.0 MB from devices; not all is in memory"
        );
        assert_eq!(only("cold", &read), "");
        assert_eq!(
            only("warm", &[("pages_share", 1)]),
            "warm: before 5 of 5 runs, other programs had read some of the files again"
        );
        let unread = only("cold", &[("read_bytes", 0), ("pages", 9)]);
        assert!(
            unread.starts_with("cold: a run read nothing from devices"),
            "{unread}"
        );
    }
}
