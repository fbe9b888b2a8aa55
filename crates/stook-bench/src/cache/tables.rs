//! The tables of a bench of caches: means and spread, shares of CPU and of being blocked, ratios, and what was proved.
//!
//! Pure: they come from samples alone, so that a file of results gives the same tables again.

use super::warnings::warnings;
use crate::record::Sample;
use crate::shares::Shares;
use crate::statistics::{Spread, ratio_of_medians, through_origin};
use crate::table::Table;
use crate::warnings::{Warning, proved};

/// In this order states are shown, if there are samples of them.
const STATES: [&str; 6] = [
    "cold",
    "warm",
    "hot",
    "local cold",
    "local warm",
    "local hot",
];
/// Which states are compared with which; of the last ones the first that there is.
const COMPARED: [(&str, &[&str]); 6] = [
    ("cold", &["hot"]),
    ("cold", &["warm"]),
    ("warm", &["hot"]),
    ("cold", &["local cold"]),
    // With hooks, warm is in memory what the local cold is: nothing.
    ("warm", &["local warm", "local cold"]),
    ("hot", &["local hot"]),
];

/// What samples of a bench of caches come to.
#[derive(Debug)]
pub struct CacheTables {
    /// A row for each state: means, median and spread, in seconds.
    pub times: Table,
    /// A row for each state: shares of the wall time.
    pub shares: Table,
    /// A row for each pair of states.
    pub ratios: Table,
    /// A row for each state: what was found in memory before the runs, and what they read from devices.
    pub proofs: Table,
    /// What makes the figures doubtful, a sentence each.
    pub warnings: Vec<String>,
}

impl CacheTables {
    /// Computes the tables from samples with the label `state`.
    pub fn of(samples: &[Sample]) -> Self {
        let states: Vec<Group<'_>> = STATES
            .iter()
            .filter_map(|name| Group::of(samples, name))
            .collect();
        Self {
            times: times(&states),
            shares: shares(&states),
            ratios: ratios(&states),
            proofs: proofs(&states),
            warnings: warnings(&states),
        }
    }

    /// Returns all of it as text.
    pub fn text(&self) -> String {
        let tables = [&self.times, &self.shares, &self.ratios, &self.proofs];
        let mut text = tables.map(Table::text).join("\n");
        for (number, warning) in self.warnings.iter().enumerate() {
            let before = if number == 0 { "\n" } else { "" };
            text.push_str(&format!("{before}warning: {warning}\n"));
        }
        text
    }
}

/// The samples of one state.
pub(super) struct Group<'a> {
    pub(super) state: &'static str,
    pub(super) samples: Vec<&'a Sample>,
    /// Why it is not proved that memory was without what the state is to be without.
    pub(super) unproved: Option<Warning>,
}

impl<'a> Group<'a> {
    fn of(samples: &'a [Sample], state: &'static str) -> Option<Self> {
        let samples: Vec<&Sample> = samples
            .iter()
            .filter(|sample| sample.label("state") == state)
            .collect();
        (!samples.is_empty()).then(|| Self {
            state,
            unproved: unproved(state, &samples),
            samples,
        })
    }

    /// The name in tables: with a question mark if the state is not proved.
    fn name(&self) -> String {
        let mark = if self.unproved.is_some() { "?" } else { "" };
        format!("{}{mark}", self.state)
    }

    pub(super) fn each(&self, figure: impl Fn(&Sample) -> f64) -> Vec<f64> {
        self.samples.iter().map(|sample| figure(sample)).collect()
    }

    pub(super) fn real(&self) -> Vec<f64> {
        self.each(|sample| sample.real_seconds)
    }

    /// The mean, as text; nothing if a sample does not have the figure.
    fn mean(&self, figure: impl Fn(&Sample) -> Option<f64>) -> String {
        let figures: Option<Vec<f64>> = self.samples.iter().map(|sample| figure(sample)).collect();
        let spread = figures.as_deref().and_then(Spread::of);
        spread.map_or(String::new(), |spread| seconds(spread.mean))
    }
}

/// Whether memory was without names and data, as far as samples say; those that say nothing of it are taken for what they
/// are called.
fn unproved(state: &str, samples: &[&Sample]) -> Option<Warning> {
    if state.ends_with("hot") {
        return None;
    }
    let is_asked = |sample: &Sample| {
        let shares = ["pages_share", "names_share"].map(|name| sample.proof.get(name));
        shares
            .into_iter()
            .flatten()
            .any(serde_json::Value::is_number)
    };
    let of_sample = |sample: &&Sample| match sample.proof.get("method")?.as_str()? {
        "fadvise" => Some(Warning::DataOnly),
        _ => (!is_asked(sample)).then_some(Warning::NothingAsked),
    };
    samples.iter().find_map(of_sample)
}

fn times(states: &[Group<'_>]) -> Table {
    let has_served = states
        .iter()
        .any(|group| group.samples.iter().any(|s| s.served_seconds.is_some()));
    let mut titles = vec!["state", "runs", "real s", "user s", "sys s"];
    if has_served {
        titles.push("served s");
    }
    titles.extend(["median s", "quartiles s", "min..max s"]);
    let mut table = Table::new(titles);
    for group in states {
        let Some(real) = Spread::of(&group.real()) else {
            continue;
        };
        let mut row = vec![group.name(), real.count.to_string(), seconds(real.mean)];
        row.push(group.mean(|sample| Some(sample.user_seconds)));
        row.push(group.mean(|sample| Some(sample.system_seconds)));
        if has_served {
            row.push(group.mean(|sample| sample.served_seconds));
        }
        row.push(seconds(real.median));
        row.push(format!(
            "{}..{}",
            seconds(real.lower_quartile),
            seconds(real.upper_quartile)
        ));
        row.push(format!("{}..{}", seconds(real.min), seconds(real.max)));
        table.row(row);
    }
    table
}

fn shares(states: &[Group<'_>]) -> Table {
    let mut table = Table::new(["state", "CPU", "WAITED FOR CPU", "BLOCKED"]);
    for group in states {
        if let Some(shares) = Shares::of(&group.samples) {
            let [waited, blocked] = [shares.waited_text(percent), shares.blocked_text(percent)];
            table.row([group.name(), percent(shares.cpu), waited, blocked]);
        }
    }
    table
}

fn ratios(states: &[Group<'_>]) -> Table {
    let mut table = Table::new(["compared", "real", "user", "sys", "of medians", "95 %"]);
    let find = |name: &str| states.iter().find(|group| group.state == name);
    for (name, others) in COMPARED {
        let Some((a, b)) = find(name).zip(others.iter().find_map(|other| find(other))) else {
            continue;
        };
        let slope = |figure: fn(&Sample) -> f64| {
            let slope = through_origin(&a.each(figure), &b.each(figure));
            slope.map_or("-".to_owned(), ratio)
        };
        let mut row = vec![format!("{} / {}", a.name(), b.name())];
        row.push(slope(|sample| sample.real_seconds));
        row.push(slope(|sample| sample.user_seconds));
        row.push(slope(|sample| sample.system_seconds));
        if let Some(of_medians) = ratio_of_medians(&a.real(), &b.real()) {
            row.push(ratio(of_medians.value));
            row.push(format!(
                "{}..{}",
                ratio(of_medians.low),
                ratio(of_medians.high)
            ));
        }
        table.row(row);
    }
    table
}

fn proofs(states: &[Group<'_>]) -> Table {
    let mut table = Table::new([
        "state",
        "made with",
        "pages in memory",
        "names in memory",
        "read from devices",
    ]);
    for group in states {
        let Some(method) = group.samples[0]
            .proof
            .get("method")
            .and_then(|method| method.as_str())
        else {
            continue;
        };
        let read = Spread::of(&proved(&group.samples, "read_bytes"));
        let made_with = if group.state.ends_with("hot") {
            "a run before"
        } else {
            method
        };
        table.row([
            group.name(),
            made_with.to_owned(),
            range(&proved(&group.samples, "pages_share")),
            range(&proved(&group.samples, "names_share")),
            read.map_or(String::new(), |read| format!("{:.1} MB", read.median / 1e6)),
        ]);
    }
    table
}

/// The least and the greatest share, or the one if they look the same.
fn range(shares: &[f64]) -> String {
    match Spread::of(shares) {
        None => "not known".to_owned(),
        Some(spread) if percent(spread.min) == percent(spread.max) => percent(spread.min),
        Some(spread) => format!("{}..{}", percent(spread.min), percent(spread.max)),
    }
}

fn seconds(seconds: f64) -> String {
    let digits = if seconds < 10.0 { 4 } else { 2 };
    format!("{seconds:.digits$}")
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn ratio(ratio: f64) -> String {
    let digits = if ratio < 100.0 { 2 } else { 0 };
    format!("{ratio:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(state: &str, round: u32, figures: [f64; 3], served: Option<f64>) -> Sample {
        let [real_seconds, user_seconds, system_seconds] = figures;
        Sample {
            round,
            labels: [("state".to_owned(), state.to_owned())].into(),
            real_seconds,
            user_seconds,
            system_seconds,
            served_seconds: served,
            run_delay_seconds: Some(0.2 * real_seconds),
            ..Sample::default()
        }
    }

    fn cells(table: &Table) -> Vec<Vec<String>> {
        let lines = table.text();
        let cells = |line: &str| {
            line.split("  ")
                .map(str::trim)
                .filter(|cell| !cell.is_empty())
                .map(str::to_owned)
                .collect()
        };
        lines.lines().skip(2).map(cells).collect()
    }

    #[test]
    fn the_estimators_give_what_is_computed_by_hand() {
        // cold: real 1, 2, 3; hot: real 1, 1, 2. Through the origin: (1 + 2 + 6) / (1 + 1 + 4) = 1.5.
        let mut samples = Vec::new();
        for (round, (cold, hot)) in [(1.0, 1.0), (2.0, 1.0), (3.0, 2.0)].into_iter().enumerate() {
            let round = u32::try_from(round).unwrap() + 1;
            samples.push(sample("cold", round, [cold, 0.1 * cold, 0.0], None));
            samples.push(sample("hot", round, [hot, 0.5 * hot, 0.25 * hot], None));
        }
        let tables = CacheTables::of(&samples);
        let ratios = cells(&tables.ratios);
        // User: (0.05 + 0.1 + 0.3) / (0.25 + 0.25 + 1) = 0.3; medians: 2 / 1.
        assert_eq!(ratios.len(), 1);
        assert_eq!(
            ratios[0][..5],
            ["cold / hot", "1.50", "0.30", "0.00", "2.00"]
        );
        assert_eq!(
            cells(&tables.shares),
            [
                ["cold", "10.0 %", "20.0 %", "70.0 %"],
                ["hot", "75.0 %", "20.0 %", "5.0 %"]
            ]
        );
        let times = cells(&tables.times);
        assert_eq!(
            times[0],
            [
                "cold",
                "3",
                "2.0000",
                "0.2000",
                "0.0000",
                "2.0000",
                "1.5000..2.5000",
                "1.0000..3.0000"
            ]
        );
    }

    #[test]
    fn what_serves_the_command_is_not_blocked() {
        let samples = [1, 2].map(|round| sample("cold", round, [1.0, 0.1, 0.1], Some(0.5)));
        let tables = CacheTables::of(&samples);
        assert_eq!(
            cells(&tables.shares),
            [["cold", "70.0 %", "20.0 %", "10.0 %"]]
        );
        assert!(tables.times.text().contains("served s") && tables.times.text().contains("0.5000"));
    }

    #[test]
    fn a_cold_state_that_is_not_proved_is_marked_wherever_it_is_named() {
        let names_with = |proof: &[(&str, serde_json::Value)]| {
            let sample = |state| Sample {
                proof: proof
                    .iter()
                    .map(|(name, value)| ((*name).to_owned(), value.clone()))
                    .collect(),
                ..sample(state, 1, [1.0, 0.1, 0.1], None)
            };
            let tables = CacheTables::of(&["cold", "hot"].map(sample));
            let all = [
                &tables.times,
                &tables.shares,
                &tables.ratios,
                &tables.proofs,
            ];
            let names = all.map(|table| cells(table)[0][0].clone());
            let warnings = tables
                .warnings
                .iter()
                .filter(|warning| warning.starts_with("cold?"));
            (names, warnings.cloned().collect::<Vec<String>>())
        };
        let proved = [
            ("method", "drop_caches".into()),
            ("pages_share", 0.0.into()),
        ];
        let (names, warnings) = names_with(&proved);
        assert_eq!(
            (names, warnings.len()),
            (["cold", "cold", "cold / hot", "cold"].map(str::to_owned), 0)
        );
        let nothing = [
            ("method", "drop_caches".into()),
            ("pages_share", serde_json::Value::Null),
        ];
        let data_only = [("method", "fadvise".into()), ("pages_share", 0.0.into())];
        for (proof, why) in [
            (&nothing, "could be asked"),
            (&data_only, "names and inodes stayed"),
        ] {
            let (names, warnings) = names_with(proof);
            assert_eq!(names, ["cold?", "cold?", "cold? / hot", "cold?"]);
            assert!(
                warnings.len() == 1 && warnings[0].contains(why),
                "{warnings:?}"
            );
        }
    }

    #[test]
    fn local_states_are_compared_with_what_is_in_memory_as_much() {
        let of = |states: &[&str]| {
            let samples: Vec<Sample> = states
                .iter()
                .map(|state| sample(state, 1, [1.0; 3], None))
                .collect();
            let rows = cells(&CacheTables::of(&samples).ratios);
            rows.into_iter()
                .map(|row| row[0].clone())
                .collect::<Vec<String>>()
        };
        assert_eq!(
            of(&STATES),
            [
                "cold / hot",
                "cold / warm",
                "warm / hot",
                "cold / local cold",
                "warm / local warm",
                "hot / local hot"
            ]
        );
        let with_hooks = of(&["cold", "warm", "hot", "local cold", "local hot"]);
        assert_eq!(
            with_hooks[3..],
            ["cold / local cold", "warm / local cold", "hot / local hot"]
        );
    }

    #[test]
    fn no_samples_give_empty_tables() {
        let tables = CacheTables::of(&[]);
        assert!(cells(&tables.times).is_empty() && tables.warnings.is_empty());
    }
}
