//! Columns under each other: numbers to the right, what they are about last, to the left.

/// Rows with as many cells each.
pub(super) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new(heads: &[&str]) -> Self {
        Self {
            rows: vec![heads.iter().map(ToString::to_string).collect()],
        }
    }

    pub(super) fn push(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    pub(super) fn push_to(&self, text: &mut String) {
        for row in &self.rows {
            let (last, numbers) = row.split_last().expect("a row has cells");
            for (at, cell) in numbers.iter().enumerate() {
                let width = self.width(at);
                text.push_str(&format!("{cell:>width$}  "));
            }
            text.push_str(last);
            text.push('\n');
        }
    }

    fn width(&self, column: usize) -> usize {
        let widths = self.rows.iter().map(|row| row[column].chars().count());
        widths.max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(&["files", "n", "name"]);
        table.push(vec!["1".to_owned(), "1,000".to_owned(), "a".to_owned()]);
        let mut text = String::new();
        table.push_to(&mut text);
        assert_eq!(text, "files      n  name\n    1  1,000  a\n");
    }
}
