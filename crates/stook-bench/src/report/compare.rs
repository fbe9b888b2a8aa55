//! Several runs of the same side by side: what has the same labels in all of them stands in one row.
//!
//! The same is one kind of bench; of `bench cache`, also one command: different ones have nothing to be compared.

use crate::figure::{Chart, Cloud, Figure, Point, Scatter, Unit};
use crate::record::{Kind, Results};
use crate::statistics::ratio_of_medians;

use super::case::{Case, cases, find};
use super::part::figure;
use super::sheet::Sheet;

/// Runs of one subject side by side.
pub(super) struct Compared {
    pub(super) title: &'static str,
    pub(super) sheet: Sheet,
    /// A figure for each run but the first.
    pub(super) figures: Vec<Figure>,
}

/// Returns what is to be seen of each subject of which there are two runs or more. Runs are called `run 1` and so on.
pub(super) fn compare(all: &[Results]) -> Vec<Compared> {
    let names = (1..=all.len()).map(|number| format!("run {number}"));
    let named: Vec<(&Results, String)> = all.iter().zip(names).collect();
    let mut subjects: Vec<Subject<'_>> = Vec::new();
    for subject in all.iter().map(subject) {
        if !subjects.contains(&subject) {
            subjects.push(subject);
        }
    }
    let of_subject = |wanted: Subject<'_>| {
        let runs = named
            .iter()
            .filter(|(run, _)| subject(run) == wanted)
            .collect::<Vec<_>>();
        if runs.len() < 2 {
            return None;
        }
        let (title, labels) = labels(wanted.0);
        let cases: Vec<Vec<Case<'_>>> = runs
            .iter()
            .map(|(run, _)| cases(&run.samples, labels))
            .collect();
        let runs = Runs {
            names: runs.iter().map(|(_, name)| name.as_str()).collect(),
            rows: shared(&cases),
            cases,
        };
        Some(Compared {
            title,
            sheet: runs.sheet(title, labels),
            figures: runs.figures(title),
        })
    };
    subjects
        .into_iter()
        .filter_map(of_subject)
        .filter(|compared| !compared.sheet.is_empty())
        .collect()
}

/// What a run is about: its kind, and the command if there is only one.
type Subject<'a> = (Kind, Option<&'a serde_json::Value>);

fn subject(run: &Results) -> Subject<'_> {
    let command = match run.header.kind {
        Kind::Cache => run.header.options.get("command"),
        Kind::Fs | Kind::Update => None,
    };
    (run.header.kind, command)
}

/// Runs of one subject.
struct Runs<'a> {
    names: Vec<&'a str>,
    cases: Vec<Vec<Case<'a>>>,
    /// The labels that several runs have.
    rows: Vec<Vec<String>>,
}

fn labels(kind: Kind) -> (&'static str, &'static [&'static str]) {
    match kind {
        Kind::Fs => ("File systems", &["target", "phase", "tool"]),
        Kind::Cache => ("Caches", &["state"]),
        Kind::Update => ("Archivers", &["tool", "create", "update", "operation"]),
    }
}

impl<'a> Runs<'a> {
    fn case(&self, run: usize, row: &[String]) -> Option<&Case<'a>> {
        let row: Vec<&str> = row.iter().map(String::as_str).collect();
        find(&self.cases[run], &row)
    }

    fn sheet(&self, title: &str, labels: &[&str]) -> Sheet {
        let note = "Median seconds of each run, and its ratio to the first with the 95 % interval. Only what was measured in several runs under the same names.";
        let mut sheet = Sheet::new(&format!("{title}: medians"), note);
        sheet.folds = false;
        for (place, label) in labels.iter().enumerate() {
            sheet.texts(label, self.rows.iter().map(|row| row[place].clone()));
        }
        for (run, name) in self.names.iter().enumerate() {
            let medians = self
                .rows
                .iter()
                .map(|row| self.case(run, row).map(Case::median));
            sheet.figures(&format!("{name}, s"), medians);
        }
        for (run, name) in self.names.iter().enumerate().skip(1) {
            let shown = self.rows.iter().map(|row| self.ratio(run, row));
            sheet.shown(&format!("{name} / {}", self.names[0]), shown);
        }
        sheet
    }

    fn ratio(&self, run: usize, row: &[String]) -> (String, Option<f64>) {
        let both = self.case(0, row).zip(self.case(run, row));
        match both.and_then(|(first, other)| ratio_of_medians(&other.seconds(), &first.seconds())) {
            Some(ratio) => (
                format!("{:.2} ({:.2}–{:.2})", ratio.value, ratio.low, ratio.high),
                Some(ratio.value),
            ),
            None => ("–".to_owned(), None),
        }
    }

    fn figures(&self, title: &str) -> Vec<Figure> {
        let figure = |run: usize| {
            let title = format!("{title}: {} against {}", self.names[run], self.names[0]);
            let name = super::file_names(std::slice::from_ref(&title)).remove(0);
            figure(&name, &title, Chart::Scatter(self.scatter(run)))
        };
        (1..self.names.len()).map(figure).collect()
    }

    fn scatter(&self, run: usize) -> Scatter {
        let mut clouds: Vec<Cloud> = Vec::new();
        for row in &self.rows {
            let Some((first, other)) = self.case(0, row).zip(self.case(run, row)) else {
                continue;
            };
            let (name, rest) = row
                .split_first()
                .map_or(("", &row[..]), |(name, rest)| (name.as_str(), rest));
            let label = if rest.is_empty() {
                name.to_owned()
            } else {
                rest.join(" ")
            };
            let point = Point {
                x: first.median(),
                y: other.median(),
                label,
            };
            match clouds.iter_mut().find(|cloud| cloud.name == name) {
                Some(cloud) => cloud.points.push(point),
                None => clouds.push(Cloud {
                    name: name.to_owned(),
                    points: vec![point],
                }),
            }
        }
        let axis = |run: usize| format!("Seconds, {}", self.names[run]);
        Scatter {
            across: axis(0),
            up: axis(run),
            unit: Unit::Seconds,
            clouds,
        }
    }
}

/// The labels that at least two runs have, in the order of the first that has them.
fn shared(by_run: &[Vec<Case<'_>>]) -> Vec<Vec<String>> {
    let mut shared: Vec<Vec<String>> = Vec::new();
    for case in by_run.iter().flatten() {
        let runs = by_run
            .iter()
            .filter(|cases| cases.iter().any(|other| other.labels == case.labels))
            .count();
        if runs > 1 && !shared.contains(&case.labels) {
            shared.push(case.labels.clone());
        }
    }
    shared
}
