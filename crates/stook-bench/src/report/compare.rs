//! Several runs of the same side by side: what has the same labels in all of them stands in one row.
//!
//! The same is one kind of bench; of `bench cache`, also one command: different ones have nothing to be compared.

use super::section::{Against, Exhibit, scatter};
use super::words::file_names;
use crate::cases::{Case, Cases, labels};
use crate::figure::Figure;
use crate::record::{Kind, Results};
use crate::table::Table;

/// Runs of one subject side by side.
pub(super) struct Compared {
    /// A figure for each run but the first.
    pub(super) exhibit: Exhibit,
    /// The title of the table, and the table.
    pub(super) table: (String, Table),
}

/// Returns what a kind of bench is about.
fn subject(kind: Kind) -> &'static str {
    match kind {
        Kind::Fs => "File systems",
        Kind::Cache => "Caches",
        Kind::Update => "Archivers",
    }
}

/// What a run is about: its kind, and the command if there is only one.
type Subject<'a> = (Kind, Option<&'a serde_json::Value>);

fn subject_of(run: &Results) -> Subject<'_> {
    let kind = run.header.kind;
    let command = run.header.options.get("command");
    (kind, command.filter(|_| kind == Kind::Cache))
}

/// Returns what is to be seen of each subject of which there are two runs or more. Runs are called `run 1` and so on.
pub(super) fn compare(all: &[Results]) -> Vec<Compared> {
    let mut subjects: Vec<Subject<'_>> = Vec::new();
    for subject in all.iter().map(subject_of) {
        if !subjects.contains(&subject) {
            subjects.push(subject);
        }
    }
    let compared = subjects.into_iter().filter_map(|wanted| {
        let numbered = all.iter().enumerate();
        let runs = numbered.filter(|(_, run)| subject_of(run) == wanted);
        let runs = Runs::of(wanted.0, &runs.collect::<Vec<_>>());
        (!runs.rows.is_empty()).then(|| runs.compared())
    });
    compared.collect()
}

/// Runs of one subject.
struct Runs<'a> {
    kind: Kind,
    names: Vec<String>,
    cases: Vec<Cases<'a>>,
    /// The labels that several runs have, in the order of the first that has them.
    rows: Vec<Vec<String>>,
}

impl<'a> Runs<'a> {
    fn of(kind: Kind, runs: &[(usize, &'a Results)]) -> Self {
        let cases: Vec<Cases<'a>> = runs.iter().map(|(_, run)| Cases::of(run)).collect();
        let mut rows: Vec<Vec<String>> = Vec::new();
        for case in cases.iter().flat_map(|cases| &cases.all) {
            let runs = cases
                .iter()
                .filter(|cases| cases.find(&case.labels).is_some());
            if runs.count() > 1 && !rows.contains(&case.labels) {
                rows.push(case.labels.clone());
            }
        }
        let names = runs.iter().map(|(number, _)| format!("run {}", number + 1));
        Self {
            kind,
            names: names.collect(),
            cases,
            rows,
        }
    }

    fn compared(&self) -> Compared {
        let title = subject(self.kind);
        let caption = "What was measured in both runs under the same names. Below the dashed line the later of the two in the list is faster.";
        Compared {
            exhibit: Exhibit {
                title: title.to_owned(),
                caption: caption.to_owned(),
                figures: (1..self.names.len())
                    .filter_map(|run| self.figure(run))
                    .collect(),
            },
            table: (format!("{title}: medians"), self.table()),
        }
    }

    /// Returns the cases of a row in the first run and in this one.
    fn both(&self, run: usize, row: &[String]) -> Option<[&Case<'a>; 2]> {
        Some([self.cases[0].find(row)?, self.cases[run].find(row)?])
    }

    fn table(&self) -> Table {
        let mut table = Table::default();
        for (place, label) in labels(self.kind).iter().enumerate() {
            table.texts(label, self.rows.iter().map(|row| row[place].clone()));
        }
        for (cases, name) in self.cases.iter().zip(&self.names) {
            let cases = self.rows.iter().map(|row| cases.find(row));
            table.figures(
                &format!("{name}, s"),
                cases.map(|case| case.map(Case::median)),
            );
        }
        for (run, name) in self.names.iter().enumerate().skip(1) {
            let ratio = |row: &Vec<String>| {
                let [first, other] = self.both(run, row)?;
                other.ratio_to(first)
            };
            let cells = self.rows.iter().map(ratio).map(|ratio| match ratio {
                Some(ratio) => {
                    let text = format!("{:.2} ({:.2}–{:.2})", ratio.value, ratio.low, ratio.high);
                    (text, Some(ratio.value))
                }
                None => ("–".to_owned(), None),
            });
            table.written(&format!("{name} / {}", self.names[0]), cells);
        }
        table
    }

    fn figure(&self, run: usize) -> Option<Figure> {
        let (name, first) = (&self.names[run], &self.names[0]);
        let title = format!("{}: {name} against {first}", subject(self.kind));
        let points = self.rows.iter().filter_map(|row| -> Option<Against<'_>> {
            let [first, other] = self.both(run, row)?;
            let label = match &row[1..] {
                [] => row[0].clone(),
                rest => rest.join(" "),
            };
            Some((row[0].clone(), label, first, other))
        });
        let file = file_names(std::slice::from_ref(&title)).remove(0);
        Some(Figure::new(&file, &title, scatter(first, name, points)?))
    }
}
