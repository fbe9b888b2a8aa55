//! The one place where advice computed from figures comes onto the page.

use crate::fs;
use crate::record::{Kind, Results};

/// Returns advice on a run, a sentence each; nothing for kinds of runs about which there is none.
pub(super) fn of(results: &Results) -> Vec<String> {
    match results.header.kind {
        Kind::Fs => {
            let all = fs::advise(&results.samples).into_iter();
            all.map(|advice| advice.text).collect()
        }
        Kind::Cache | Kind::Update => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Header, Sample};

    #[test]
    fn what_the_figures_of_file_systems_say_is_on_the_page() {
        let sample = |tool: &str, phase: &str, real_seconds| Sample {
            labels: [("target", "nfs"), ("phase", phase), ("tool", tool)]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            real_seconds,
            ..Sample::default()
        };
        let rounds = (1..=3).flat_map(|round| {
            let samples = [
                sample("system", "untar", 150.0),
                sample("stook", "read", 1.0),
            ];
            samples.map(|sample| Sample { round, ..sample })
        });
        let results = Results {
            header: Header::new(Kind::Fs, ""),
            samples: rounds.collect(),
        };
        let advice = of(&results);
        assert!(
            advice[0].ends_with("keep this data set tarred"),
            "{advice:?}"
        );
    }
}
