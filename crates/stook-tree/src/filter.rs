//! Which paths an operation is about: those included, less those excluded.

use crate::Pattern;

/// Patterns to include and to exclude. Without any, every path is selected.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// If there are any, a path must match one of these.
    pub include: Vec<Pattern>,
    /// A path must match none of these.
    pub exclude: Vec<Pattern>,
}

impl Filter {
    /// Returns true if there are no patterns.
    pub fn is_empty(&self) -> bool {
        self.include.is_empty() && self.exclude.is_empty()
    }

    /// Returns true if the path is to be worked on.
    pub fn selects(&self, path: &[u8]) -> bool {
        let is_included =
            self.include.is_empty() || self.include.iter().any(|pattern| pattern.matches(path));
        is_included && !self.exclude.iter().any(|pattern| pattern.matches(path))
    }

    /// Returns true if nothing below the directory can be selected, so that it need not be read.
    pub fn prunes(&self, directory: &[u8]) -> bool {
        self.exclude
            .iter()
            .any(|pattern| pattern.matches_all_below(directory))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exclude_wins_over_include() {
        let patterns = |texts: &[&str]| {
            texts
                .iter()
                .map(|text| Pattern::new(text.as_bytes()))
                .collect()
        };
        let filter = Filter {
            include: patterns(&["*.nc", "run/"]),
            exclude: patterns(&["run/tmp/*"]),
        };
        assert!(filter.selects(b"a/b.nc"));
        assert!(filter.selects(b"run/log"));
        assert!(!filter.selects(b"run/tmp/x.nc"));
        assert!(!filter.selects(b"b.txt"));
        assert!(filter.prunes(b"run/tmp"));
        assert!(!filter.prunes(b"run"));
        assert!(Filter::default().selects(b"anything"));
    }
}
