//! Which paths an operation is about: those included, less those excluded.

use crate::Pattern;

/// Patterns to include and to exclude. Without any, every path is selected. A clone's patterns have matched nothing yet.
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

    /// Returns true if the path is to be worked on. The path is that of an entry: patterns that match it are not
    /// [`unmatched`](Self::unmatched) any more, whatever the others say.
    pub fn selects(&self, path: &[u8]) -> bool {
        let is_included = any_finds(&self.include, path, false) || self.include.is_empty();
        !any_finds(&self.exclude, path, !is_included) && is_included
    }

    /// Returns true if nothing below the directory can be selected, so that it need not be read.
    pub fn prunes(&self, directory: &[u8]) -> bool {
        let is_pruned = self.excludes_all_below(directory) || self.includes_none_below(directory);
        if is_pruned {
            self.pass_over(directory);
        }
        is_pruned
    }

    fn excludes_all_below(&self, directory: &[u8]) -> bool {
        let excludes_all =
            |pattern: &Pattern| pattern.matches_all_below(directory) && pattern.covers(directory);
        self.exclude.iter().any(excludes_all)
    }

    fn includes_none_below(&self, directory: &[u8]) -> bool {
        let may_include =
            |pattern: &Pattern| pattern.matches(directory) || pattern.may_match_below(directory);
        !self.include.is_empty() && !self.include.iter().any(may_include)
    }

    /// Notes an entry that is not asked about otherwise, and whose directory, if it is one, is not looked into: patterns
    /// that match it are not unmatched; of those that may match below it nothing is known.
    pub fn note_unread(&self, path: &[u8]) {
        self.note(path);
        self.pass_over(path);
    }

    /// Notes an entry that is not asked about otherwise.
    pub fn note(&self, path: &[u8]) {
        for pattern in self.patterns().filter(|pattern| !pattern.has_matched()) {
            pattern.finds(path);
        }
    }

    /// Returns true if each pattern has matched something.
    pub fn have_all_matched(&self) -> bool {
        self.patterns().all(Pattern::has_matched)
    }

    /// Returns the patterns that match no entry. Those that might match where nobody has looked are not among them.
    pub fn unmatched(&self) -> Vec<&Pattern> {
        self.patterns()
            .filter(|pattern| pattern.is_unmatched())
            .collect()
    }

    pub(crate) fn pass_over(&self, directory: &[u8]) {
        for pattern in self.patterns() {
            pattern.pass_over(directory);
        }
    }

    /// Puts another pattern in a place, counted in the order of [`patterns`](Self::patterns).
    pub(crate) fn replace(&mut self, at: usize, pattern: Pattern) {
        let mut patterns = self.include.iter_mut().chain(&mut self.exclude);
        if let Some(place) = patterns.nth(at) {
            *place = pattern;
        }
    }

    pub(crate) fn patterns(&self) -> impl Iterator<Item = &Pattern> {
        self.include.iter().chain(&self.exclude)
    }
}

/// Returns true if any pattern matches; once that is known, only those are compared that have matched nothing yet.
fn any_finds(patterns: &[Pattern], path: &[u8], mut is_known: bool) -> bool {
    let mut is_found = false;
    for pattern in patterns {
        if (!is_known || !pattern.has_matched()) && pattern.finds(path) {
            is_found = true;
            is_known = true;
        }
    }
    is_found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(texts: &[&str]) -> Vec<Pattern> {
        texts
            .iter()
            .map(|text| Pattern::new(text.as_bytes()))
            .collect()
    }

    fn filter(include: &[&str], exclude: &[&str]) -> Filter {
        Filter {
            include: patterns(include),
            exclude: patterns(exclude),
        }
    }

    fn unmatched(filter: &Filter) -> Vec<String> {
        let text = |pattern: &&Pattern| String::from_utf8(pattern.text().to_vec()).unwrap();
        filter.unmatched().iter().map(text).collect()
    }

    #[test]
    fn zstash_leaves_an_empty_directory_whose_content_is_excluded() {
        let filter = Filter {
            include: Vec::new(),
            exclude: vec![Pattern::zstash(b"d/"), Pattern::zstash(b"e")],
        };
        assert!(filter.selects(b"d") && !filter.selects(b"d/x") && !filter.selects(b"e"));
        assert!(!filter.prunes(b"d") && filter.prunes(b"d/x") && !filter.prunes(b"e"));
    }

    #[test]
    fn exclude_wins_over_include() {
        let filter = filter(&["*.nc", "run"], &["run/tmp"]);
        assert!(filter.selects(b"a/b.nc"));
        assert!(filter.selects(b"run/log"));
        assert!(filter.selects(b"run"));
        assert!(!filter.selects(b"run/tmp"));
        assert!(!filter.selects(b"run/tmp/x.nc"));
        assert!(!filter.selects(b"b.txt"));
        assert!(filter.prunes(b"run/tmp"));
        assert!(!filter.prunes(b"run"));
        assert!(Filter::default().selects(b"anything"));
    }

    #[test]
    fn directories_without_anything_included_are_pruned() {
        let filter = filter(&["a/b", "c*", "d/*.o"], &[]);
        for pruned in ["b", "a/c", "a/bb", "e/d"] {
            assert!(filter.prunes(pruned.as_bytes()), "{pruned}");
        }
        for entered in ["", "a", "a/b", "a/b/x", "c", "cc/x", "d", "d/x"] {
            assert!(!filter.prunes(entered.as_bytes()), "{entered}");
        }
    }

    #[test]
    fn a_pattern_that_another_one_hides_has_matched_too() {
        let filter = filter(&["*.c", "a.*"], &["b*", "b.c", "*.o", "x"]);
        for path in ["a.c", "b.c", "m.o"] {
            filter.selects(path.as_bytes());
        }
        assert_eq!(unmatched(&filter), ["x"]);
    }

    #[test]
    fn nothing_is_said_of_patterns_for_what_was_not_read() {
        let filter = filter(&[], &["keep", "keep/x", "other/x", "*.o"]);
        assert!(!filter.selects(b"keep"));
        assert!(filter.prunes(b"keep"));
        assert_eq!(unmatched(&filter), ["other/x"]);
        filter.note_unread(b"other");
        assert_eq!(unmatched(&filter), [""; 0]);
        assert!(!filter.have_all_matched());
    }
}
