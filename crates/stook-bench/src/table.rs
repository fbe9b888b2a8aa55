//! Tables as aligned text: the first column to the left, figures to the right.

/// A table that is printed when it is full.
#[derive(Debug, Clone, Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Begins a table with the titles of its columns.
    pub fn new<S: Into<String>>(titles: impl IntoIterator<Item = S>) -> Self {
        let mut table = Self::default();
        table.row(titles);
        table
    }

    /// Adds a row; cells that it does not have stay empty.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Returns the lines, each with its end: columns two blanks apart, a rule below the titles.
    pub fn text(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for (number, row) in self.rows.iter().enumerate() {
            text.push_str(&line(row, &widths));
            if number == 0 {
                let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
                text.push_str(&line(&rule, &widths));
            }
        }
        text
    }
}

fn line(row: &[String], widths: &[usize]) -> String {
    let cells = row
        .iter()
        .zip(widths)
        .enumerate()
        .map(|(column, (cell, &width))| match column {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
    let text = cells.collect::<Vec<String>>().join("  ");
    format!("{}\n", text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::Table;

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(["state", "s", "share"]);
        table.row(["cold", "12.345", "0.9"]);
        table.row(["h", "1.0"]);
        let expected =
            "state       s  share\n-----  ------  -----\ncold   12.345    0.9\nh         1.0\n";
        assert_eq!(table.text(), expected);
    }
}
