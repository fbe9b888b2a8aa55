//! What a user means by a pattern: a glob of paths below a tree, and what lies below those that match.
//!
//! Two meanings. stook's own: a pattern matches an entry if the glob matches its path or one above it, whether or not
//! that directory is listed anywhere. zstash's: the glob matches the whole path, and nothing else.
//!
//! A pattern also remembers whether it has matched, for somebody who mistyped it. It is compared by many threads, so
//! it is written to at most twice.

mod glob;

use std::sync::atomic::{AtomicU8, Ordering};

use glob::Glob;

/// A compiled pattern. A clone has not matched anything yet.
#[derive(Debug, Clone)]
pub struct Pattern {
    text: Vec<u8>,
    meaning: Meaning,
    seen: Seen,
}

#[derive(Debug, Clone)]
enum Meaning {
    /// No entry.
    Nothing,
    /// The tree itself, and so all that is in it.
    Tree,
    /// Paths that match, and all below them.
    Covering {
        glob: Glob,
        /// The text, if the glob does not match it: a file named `a[1]` is meant by `a[1]`, too.
        name: Option<Vec<u8>>,
        /// The path, if there are no wildcards in it.
        plain: Option<Vec<u8>>,
    },
    /// Paths that match.
    Whole(Glob),
}

/// What is known of the entries that a pattern was compared with.
#[derive(Debug, Default)]
struct Seen(AtomicU8);

/// Nothing has matched, and every entry that might was compared.
const UNMATCHED: u8 = 0;
/// Nothing has matched yet, but not every directory was looked into.
const UNKNOWN: u8 = 1;
const MATCHED: u8 = 2;

impl Pattern {
    /// Compiles a pattern of stook's own meaning; every text is one.
    ///
    /// `./` and `/` in front and `/` behind make no difference. The tree itself is `.`, and the empty text matches nothing.
    pub fn new(text: &[u8]) -> Self {
        Self::spelled(text, plain_spelling(text))
    }

    /// Compiles a pattern of zstash's meaning; a trailing `/` stands for `/*`.
    pub fn zstash(text: &[u8]) -> Self {
        let ending: &[u8] = if text.ends_with(b"/") { b"*" } else { b"" };
        Self {
            text: text.to_vec(),
            meaning: Meaning::Whole(Glob::new(&[text, ending].concat())),
            seen: Seen::default(),
        }
    }

    fn spelled(text: &[u8], spelling: Option<&[u8]>) -> Self {
        let meaning = match spelling {
            None => Meaning::Nothing,
            Some([]) => Meaning::Tree,
            Some(path) => {
                let glob = Glob::new(path);
                let name = glob.has_sets().then(|| path.to_vec());
                let plain = is_plain(path).then(|| path.to_vec());
                Meaning::Covering { glob, name, plain }
            }
        };
        Self {
            text: text.to_vec(),
            meaning,
            seen: Seen::default(),
        }
    }

    /// Returns the text that the pattern was made from.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Returns the one path that the pattern matches, not counting what is below it; `None` if it has wildcards.
    pub fn plain_path(&self) -> Option<&[u8]> {
        match &self.meaning {
            Meaning::Nothing | Meaning::Tree => None,
            Meaning::Covering { plain, .. } => plain.as_deref(),
            Meaning::Whole(_) => {
                Some(&*self.text).filter(|text| is_plain(text) && !text.ends_with(b"/"))
            }
        }
    }

    /// Returns the pattern without the name of a tree in front; None if that is not there.
    pub fn without_tree(&self, tree: &[u8]) -> Option<Self> {
        if matches!(self.meaning, Meaning::Whole(_)) {
            return None;
        }
        let tree = plain_spelling(tree).filter(|tree| !tree.is_empty())?;
        match plain_spelling(&self.text)?.strip_prefix(tree)? {
            [] => Some(Self::spelled(&self.text, Some(b""))),
            below @ [b'/', ..] => Some(Self::spelled(&self.text, plain_spelling(below))),
            _ => None,
        }
    }

    /// Returns true if the entry with this path is meant; the tree itself is the empty path.
    ///
    /// # Cost
    /// At most the length of the path times the number of elements; no allocation.
    pub fn matches(&self, path: &[u8]) -> bool {
        match &self.meaning {
            Meaning::Nothing => false,
            Meaning::Tree => true,
            Meaning::Covering { glob, name, .. } => {
                glob.covers(path) || name.as_ref().is_some_and(|name| is_at_or_below(path, name))
            }
            Meaning::Whole(glob) => glob.matches(path),
        }
    }

    /// Returns true if the pattern certainly matches every path below the directory; the root is the empty path.
    pub fn matches_all_below(&self, directory: &[u8]) -> bool {
        match &self.meaning {
            Meaning::Nothing => false,
            Meaning::Tree => true,
            Meaning::Covering { glob, .. } => {
                self.matches(directory) || glob.matches_all_below(directory)
            }
            Meaning::Whole(glob) => glob.matches_all_below(directory),
        }
    }

    /// Returns false if a directory all of which the pattern matches is to be looked into all the same: as zstash means it, `a/*` leaves
    /// the directory `a` as an entry, if it is empty.
    pub(crate) fn covers(&self, directory: &[u8]) -> bool {
        match &self.meaning {
            Meaning::Nothing | Meaning::Tree | Meaning::Covering { .. } => true,
            Meaning::Whole(_) => self.matches(directory),
        }
    }

    /// Returns false if the pattern certainly matches no path below the directory, unless it matches that itself.
    pub fn may_match_below(&self, directory: &[u8]) -> bool {
        match &self.meaning {
            Meaning::Nothing | Meaning::Tree => false,
            Meaning::Covering { glob, .. } | Meaning::Whole(glob) => {
                glob.may_match_below(directory)
            }
        }
    }

    /// Returns true if the path matches, and remembers it.
    pub(crate) fn finds(&self, path: &[u8]) -> bool {
        let is_match = self.matches(path);
        if is_match && !self.has_matched() {
            self.seen.0.store(MATCHED, Ordering::Relaxed);
        }
        is_match
    }

    /// Remembers that nothing below the directory was compared.
    pub(crate) fn pass_over(&self, directory: &[u8]) {
        if self.is_unmatched() && self.may_match_below(directory) {
            // A match that another thread has just found outweighs this.
            self.seen.0.fetch_max(UNKNOWN, Ordering::Relaxed);
        }
    }

    /// Returns true if the pattern has matched something.
    pub(crate) fn has_matched(&self) -> bool {
        self.seen.0.load(Ordering::Relaxed) == MATCHED
    }

    /// Returns true if the pattern has certainly matched nothing so far.
    pub(crate) fn is_unmatched(&self) -> bool {
        self.seen.0.load(Ordering::Relaxed) == UNMATCHED
    }
}

impl Clone for Seen {
    fn clone(&self) -> Self {
        Self::default()
    }
}

fn is_at_or_below(path: &[u8], directory: &[u8]) -> bool {
    path.strip_prefix(directory)
        .is_some_and(|rest| matches!(rest.first(), None | Some(b'/')))
}

fn is_plain(text: &[u8]) -> bool {
    !text.iter().any(|byte| b"*?[".contains(byte))
}

/// Returns the path as entries of a tree have it; empty for the tree itself, None for what is no path.
fn plain_spelling(text: &[u8]) -> Option<&[u8]> {
    text.iter().find(|&&byte| byte != b'/')?;
    let mut path = text;
    while let Some(rest) = path.strip_prefix(b"/").or(path.strip_prefix(b"./")) {
        path = rest;
    }
    while let Some(rest) = path.strip_suffix(b"/").or(path.strip_suffix(b"/.")) {
        path = rest;
    }
    Some(if path == b"." { b"" } else { path })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, path: &str) -> bool {
        Pattern::new(pattern.as_bytes()).matches(path.as_bytes())
    }

    #[test]
    fn a_pattern_without_wildcards_is_a_path() {
        let plain = |text: &str| {
            Pattern::new(text.as_bytes())
                .plain_path()
                .map(<[u8]>::to_vec)
        };
        assert_eq!(plain("./a/b/"), Some(b"a/b".to_vec()));
        for none in ["", "/", ".", "a*", "a?", "a[1]"] {
            assert_eq!(plain(none), None, "{none}");
        }
        let below = Pattern::new(b"tree/a").without_tree(b"tree").unwrap();
        assert_eq!(below.plain_path(), Some(&b"a"[..]));
        assert_eq!(Pattern::zstash(b"a/b").plain_path(), Some(&b"a/b"[..]));
        assert_eq!(Pattern::zstash(b"a/").plain_path(), None);
        assert_eq!(Pattern::zstash(b"./a*").plain_path(), None);
    }

    #[test]
    fn a_directory_is_meant_with_all_below_it_however_it_is_spelled() {
        for spelling in ["d", "./d", "/d", "d/", "././/d//", "/./d/.", "d/./"] {
            for path in ["d", "d/x", "d/x/y"] {
                assert!(matches(spelling, path), "{spelling} {path}");
            }
            for path in ["", "dd", "x/d"] {
                assert!(!matches(spelling, path), "{spelling} {path}");
            }
        }
        assert!(matches("*/d", "x/d/y"));
        assert!(!matches("..", "d"));
    }

    #[test]
    fn the_tree_is_a_dot_and_an_empty_text_is_nothing() {
        for tree in [".", "./", "/.", "./."] {
            assert!(matches(tree, "") && matches(tree, "a/b"), "{tree}");
            assert!(Pattern::new(tree.as_bytes()).matches_all_below(b""));
        }
        for nothing in ["", "/", "//"] {
            assert!(!matches(nothing, "") && !matches(nothing, "a"), "{nothing}");
        }
    }

    #[test]
    fn a_name_with_brackets_is_meant_by_itself_too() {
        for path in ["a[1].txt", "a[1].txt/x", "a1.txt", "a1.txt/x"] {
            assert!(matches("a[1].txt", path), "{path}");
        }
        assert!(!matches("a[1].txt", "a[1].txt~"));
        assert!(Pattern::new(b"a[1]").matches_all_below(b"a[1]"));
        assert!(Pattern::new(b"a[1]/b").may_match_below(b"a[1]"));
    }

    #[test]
    fn zstash_compares_whole_paths_only() {
        let matches = |pattern: &str, path: &str| {
            Pattern::zstash(pattern.as_bytes()).matches(path.as_bytes())
        };
        assert!(matches("d", "d") && !matches("d", "d/x"));
        assert!(matches("d/", "d/x/y") && !matches("d/", "d"));
        assert!(!matches("./d", "d") && !matches("a[1]", "a[1]"));
        assert!(Pattern::zstash(b"t/d").without_tree(b"t").is_none());
    }

    #[test]
    fn the_name_of_a_tree_is_taken_off_as_it_was_typed() {
        let without = |pattern: &str, tree: &str| {
            let pattern = Pattern::new(pattern.as_bytes());
            pattern.without_tree(tree.as_bytes())
        };
        for (pattern, tree) in [
            ("t/d", "t"),
            ("./t/d/", "t/"),
            ("/a/t/d", "/a/t"),
            ("../t/d", "../t/"),
            // As paths below `t//` are printed.
            ("t//d", "t//"),
            ("t/./d", "t/."),
        ] {
            let found = without(pattern, tree).unwrap();
            assert!(found.matches(b"d/x") && !found.matches(b"e"), "{pattern}");
            assert_eq!(found.text(), pattern.as_bytes());
        }
        assert!(without("t", "t").unwrap().matches(b"anything"));
        for (pattern, tree) in [("td", "t"), ("d", "t"), ("d", "."), ("", "t"), ("a/d", "/")] {
            assert!(without(pattern, tree).is_none(), "{pattern} {tree}");
        }
    }

    #[test]
    fn whole_directories_are_recognised() {
        let all_below = |pattern: &str, directory: &str| {
            Pattern::new(pattern.as_bytes()).matches_all_below(directory.as_bytes())
        };
        assert!(all_below("build", "build"));
        assert!(all_below("build", "build/x"));
        assert!(all_below("build/*", "build"));
        assert!(all_below("build/", "build/x"));
        assert!(all_below("*", "a"));
        assert!(!all_below("build/*.o", "build"));
        assert!(!all_below("build/x", "build"));
        assert!(all_below("*", ""));
        assert!(!all_below("*/*", ""));
        assert!(!all_below("/", ""));
    }

    #[test]
    fn what_was_passed_over_is_unknown_and_a_match_outweighs_it() {
        let pattern = Pattern::new(b"a/*.o");
        pattern.pass_over(b"b");
        assert!(pattern.is_unmatched());
        pattern.pass_over(b"a");
        assert!(!pattern.is_unmatched() && !pattern.has_matched());
        assert!(pattern.finds(b"a/x.o") && pattern.has_matched());
        pattern.pass_over(b"a");
        assert!(pattern.has_matched());
        assert!(pattern.clone().is_unmatched());
    }
}
