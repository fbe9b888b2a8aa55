//! What is said of one run: sentences, figures and tables, before they are put on a page.

use crate::cases::Case;
use crate::figure::{Chart, Cloud, Figure, Point, Scatter, Unit};
use crate::table::Table;

/// Figures that are read together.
pub(super) struct Exhibit {
    /// What they show.
    pub(super) title: String,
    /// How they are to be read.
    pub(super) caption: String,
    /// The figures: one, or several beside each other.
    pub(super) figures: Vec<Figure>,
}

/// A table with what stands above it.
pub(super) struct TitledTable {
    pub(super) title: String,
    /// How it is to be read, if that must be said.
    pub(super) note: String,
    pub(super) table: Table,
}

/// All that is said about one run.
#[derive(Default)]
pub(super) struct Section {
    /// What was compared, in a few words.
    pub(super) title: String,
    /// What was measured, in one sentence.
    pub(super) measured: String,
    /// What the figures say, the most important first.
    pub(super) findings: Vec<String>,
    pub(super) exhibits: Vec<Exhibit>,
    pub(super) tables: Vec<TitledTable>,
}

impl Section {
    /// Adds a figure that stands alone.
    pub(super) fn figure(&mut self, name: &str, title: &str, caption: &str, chart: Chart) {
        self.exhibit(title, caption, vec![Figure::new(name, title, chart)]);
    }

    /// Adds figures that are read together, unless there are none.
    pub(super) fn exhibit(&mut self, title: &str, caption: &str, figures: Vec<Figure>) {
        if !figures.is_empty() {
            self.exhibits.push(Exhibit {
                title: title.to_owned(),
                caption: caption.to_owned(),
                figures,
            });
        }
    }

    /// Adds a table, unless it is empty.
    pub(super) fn table(&mut self, title: &str, note: &str, table: Table) {
        if !table.is_empty() {
            self.tables.push(TitledTable {
                title: title.to_owned(),
                note: note.to_owned(),
                table,
            });
        }
    }
}

/// Two cases of the same that are drawn against each other: the series, the name of the point, and the cases.
pub(super) type Against<'a> = (String, String, &'a Case<'a>, &'a Case<'a>);

/// Returns median times against each other; below the line of equality, `up` takes less. None without points.
pub(super) fn scatter<'a>(
    across: &str,
    up: &str,
    all: impl Iterator<Item = Against<'a>>,
) -> Option<Chart> {
    let mut clouds: Vec<Cloud> = Vec::new();
    for (name, label, x, y) in all {
        let (x, y) = (x.median(), y.median());
        let point = Point { x, y, label };
        match clouds.iter_mut().find(|cloud| cloud.name == name) {
            Some(cloud) => cloud.points.push(point),
            None => clouds.push(Cloud {
                name,
                points: vec![point],
            }),
        }
    }
    (!clouds.is_empty()).then(|| {
        Chart::Scatter(Scatter {
            across: format!("Seconds, {across}"),
            up: format!("Seconds, {up}"),
            unit: Unit::Seconds,
            clouds,
        })
    })
}
