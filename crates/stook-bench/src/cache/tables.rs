//! The tables of a bench of caches: means and spread, shares of CPU and of being blocked, ratios, and what was proved.
//!
//! Pure: they come from samples alone, so that a file of results gives the same tables again.

use super::mounted::{CLIENT_BLOCKED, DISK_BYTES, IN_CALLBACKS, STORE_BYTES, WAITING};
use super::states::{is_hot, name, place, ratios};
use super::warnings::warnings;
use crate::cases::{Case, Cases};
use crate::record::{Kind, Sample};
use crate::statistics::{Spread, median};
use crate::table::Table;
use crate::warnings::proved;

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
    /// A row for each state: what the server of a mount did; empty if none was asked.
    pub mounted: Table,
    /// What makes the figures doubtful, a sentence each.
    pub warnings: Vec<String>,
}

impl CacheTables {
    /// Computes the tables from samples with the label `state`.
    pub fn of(samples: &[Sample]) -> Self {
        let mut cases = Cases::of_samples(Kind::Cache, samples);
        cases.all.sort_by_key(place);
        Self {
            times: times(&cases.all),
            shares: shares(&cases.all),
            ratios: ratios(&cases),
            proofs: proofs(&cases.all),
            mounted: mounted(&cases.all),
            warnings: warnings(&cases.all),
        }
    }

    /// Returns all of it as text.
    pub fn text(&self) -> String {
        let tables = [&self.times, &self.shares, &self.ratios, &self.proofs];
        let mut text = tables.map(Table::text).join("\n");
        if !self.mounted.is_empty() {
            text.push_str(&format!("\n{}", self.mounted.text()));
        }
        for (number, warning) in self.warnings.iter().enumerate() {
            let before = if number == 0 { "\n" } else { "" };
            text.push_str(&format!("{before}warning: {warning}\n"));
        }
        text
    }
}

fn times(states: &[Case<'_>]) -> Table {
    let mut samples = states.iter().flat_map(|state| &state.samples);
    let has_served = samples.any(|sample| sample.served_seconds.is_some());
    let mut titles = vec!["state", "runs", "real s", "user s", "sys s"];
    titles.extend(has_served.then_some("served s"));
    titles.extend(["median s", "quartiles s", "min..max s"]);
    let mut table = Table::new(titles);
    for state in states {
        let mean = |figure: fn(&Sample) -> f64| seconds(state.spread(figure).mean);
        let real = state.spread(|sample| sample.real_seconds);
        let mut row = vec![name(state), real.count.to_string(), seconds(real.mean)];
        row.push(mean(|sample| sample.user_seconds));
        row.push(mean(|sample| sample.system_seconds));
        if has_served {
            let is_known = state
                .samples
                .iter()
                .all(|sample| sample.served_seconds.is_some());
            let served = || mean(|sample| sample.served_seconds.unwrap_or(0.0));
            row.push(is_known.then(served).unwrap_or_default());
        }
        let (lower, upper) = (seconds(real.lower_quartile), seconds(real.upper_quartile));
        row.extend([seconds(real.median), format!("{lower}..{upper}")]);
        row.push(format!("{}..{}", seconds(real.min), seconds(real.max)));
        table.row(row);
    }
    table
}

fn shares(states: &[Case<'_>]) -> Table {
    let mut table = Table::new(["state", "CPU", "WAITED FOR CPU", "BLOCKED"]);
    for state in states {
        if let Some(shares) = state.shares() {
            let [waited, blocked] = [shares.waited_text(percent), shares.blocked_text(percent)];
            table.row([name(state), percent(shares.cpu), waited, blocked]);
        }
    }
    table
}

fn proofs(states: &[Case<'_>]) -> Table {
    let mut table = Table::new([
        "state",
        "made with",
        "pages in memory",
        "names in memory",
        "read from devices",
    ]);
    for state in states {
        let samples = &state.samples;
        let method = samples[0]
            .proof
            .get("method")
            .and_then(|method| method.as_str());
        let Some(method) = method else { continue };
        let made_with = if is_hot(state) {
            "a run before"
        } else {
            method
        };
        let read = median(&proved(samples, "read_bytes"));
        table.row([
            name(state),
            made_with.to_owned(),
            range(&proved(samples, "pages_share")),
            range(&proved(samples, "names_share")),
            read.map_or(String::new(), |read| format!("{:.1} MB", read / 1e6)),
        ]);
    }
    table
}

/// The time in callbacks is that of the slides of CernVM-FS, beside the time that the command did nothing.
fn mounted(states: &[Case<'_>]) -> Table {
    let mut table = Table::new([
        "state",
        "in callbacks s",
        "waiting for a fetch s",
        "client BLOCKED s",
        "callbacks / BLOCKED",
        "from the store",
        "from the cache on disk",
    ]);
    for state in states {
        let figure = |name: &str| median(&proved(&state.samples, name));
        let Some(callbacks) = figure(IN_CALLBACKS) else {
            continue;
        };
        let blocked = figure(CLIENT_BLOCKED).unwrap_or(0.0);
        let ratio = (blocked > 0.0).then(|| format!("{:.2}", callbacks / blocked));
        let bytes = |name: &str| format!("{:.1} MB", figure(name).unwrap_or(0.0) / 1e6);
        table.row([
            name(state),
            seconds(callbacks),
            seconds(figure(WAITING).unwrap_or(0.0)),
            seconds(blocked),
            ratio.unwrap_or_default(),
            bytes(STORE_BYTES),
            bytes(DISK_BYTES),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::labels;

    fn sample(state: &str, round: u32, figures: [f64; 3], served: Option<f64>) -> Sample {
        let [real_seconds, user_seconds, system_seconds] = figures;
        Sample {
            round,
            labels: labels([("state", state)]),
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
        assert_eq!(ratios[0][0], "cold / hot");
        assert!(ratios[0][1].starts_with('2'), "{ratios:?}");
        assert_eq!(ratios[0][4..7], ["1.5", "0.30", "0"]);
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
        let of_command = ["cold / hot", "cold / warm", "warm / hot"];
        let of_local = of_command.map(|pair| format!("local {}", pair.replace("/ ", "/ local ")));
        let with_local = ["cold", "warm", "hot"].map(|state| format!("{state} / local {state}"));
        let all = [
            "cold",
            "warm",
            "hot",
            "local cold",
            "local warm",
            "local hot",
        ];
        let found = of(&all);
        for pair in of_command
            .iter()
            .map(ToString::to_string)
            .chain(of_local)
            .chain(with_local)
        {
            assert!(found.contains(&pair), "{pair} is not in {found:?}");
        }
        assert_eq!(found.len(), 9);
        // With hooks, warm is in memory what the local cold is: nothing.
        let with_hooks = of(&["cold", "warm", "hot", "local cold", "local hot"]);
        assert!(
            with_hooks.contains(&"warm / local cold".to_owned()),
            "{with_hooks:?}"
        );
    }

    #[test]
    fn no_samples_give_empty_tables() {
        let tables = CacheTables::of(&[]);
        assert!(cells(&tables.times).is_empty() && tables.warnings.is_empty());
    }
}
