//! From typed patterns to filters: files with patterns are read, and names of trees are recognised in front of them.

use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use stook_archive::BaseObserver as _;
use stook_archive::{Jobs, Observer};
use stook_sys::{Context, Directory, Links};
use stook_tree::{
    Filter, Pattern, SearchOptions, SearchRoot, Searched, SearchedTree, Tree, search, split,
};

use crate::args::FilterArgs;
use crate::exit::CliError;
use crate::progress::Reporter;

/// What stands in front of the text in files of some editors.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Returns the filter, each pattern as it was typed.
///
/// # Errors
/// If a file with patterns cannot be read.
pub(crate) fn filter(args: &FilterArgs, pattern: fn(&[u8]) -> Pattern) -> Result<Filter, CliError> {
    let mut filter = Filter {
        include: args
            .include
            .iter()
            .map(|text| pattern(text.as_bytes()))
            .collect(),
        exclude: args
            .exclude
            .iter()
            .map(|text| pattern(text.as_bytes()))
            .collect(),
    };
    for path in &args.exclude_from {
        let bytes = if path.as_os_str() == "-" {
            stdin().context("read", "stdin")?
        } else {
            stook_sys::read_all(path)?
        };
        filter.exclude.extend(listed(&bytes).map(pattern));
    }
    Ok(filter)
}

fn stdin() -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the lines of a file that are patterns.
fn listed(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let text = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    let lines = text.split(|&byte| byte == b'\n');
    lines
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .filter(|line| !line.is_empty() && !line.starts_with(b"#"))
}

/// Returns the filter for a tree: patterns that match nothing in it are taken without its name, if they do then.
///
/// # Errors
/// As [`filter`].
pub(crate) fn filter_for(args: &FilterArgs, tree: &Path, links: Links) -> Result<Filter, CliError> {
    let filter = filter(args, Pattern::new)?;
    if filter.is_empty() {
        return Ok(filter);
    }
    let path = tree.as_os_str().as_bytes();
    let name = tree.file_name().unwrap_or_default().as_bytes();
    let opened = Directory::open(tree).map_err(|error| error.source);
    let searched_tree = SearchedTree {
        path: path.to_vec(),
        root: SearchRoot::of(opened, name),
    };
    let options = SearchOptions {
        jobs: Jobs::Adaptive,
        links,
        all_patterns: false,
        is_stopped: &|| false,
    };
    let found = search(&filter, &[searched_tree], &options);
    Ok(found.filters.into_iter().flatten().next().unwrap_or(filter))
}

/// Finds out what the filter means in each of the trees that are to be removed. Returns groups of trees, each with its
/// filter: in most cases all of them with the one that was typed.
///
/// # Errors
/// `NoMatch` if a pattern matches nothing in any of them.
pub(crate) fn select(
    filter: Filter,
    trees: Vec<Tree>,
    jobs: Jobs,
    reporter: &Reporter,
) -> Result<Vec<(Vec<Tree>, Filter)>, CliError> {
    if filter.is_empty() {
        return Ok(vec![(trees, filter)]);
    }
    reporter.phase("match", None, None);
    let searched: Vec<SearchedTree> = trees.iter().map(searched).collect();
    let is_missing = |tree: &SearchedTree| matches!(tree.root, SearchRoot::Missing);
    let Searched {
        filters,
        unmatched,
        unread,
    } = search(
        &filter,
        &searched,
        &SearchOptions {
            jobs,
            links: Links::Refuse,
            all_patterns: true,
            is_stopped: &|| reporter.is_interrupted(),
        },
    );
    // Trees that are not there are removed already.
    let is_error = !unmatched.is_empty() && !searched.iter().all(is_missing);
    if is_error && !reporter.is_interrupted() {
        for pattern in &unmatched {
            reporter.unmatched_as_json(pattern.text());
        }
        let patterns = unmatched.iter().map(|pattern| pattern.text().to_vec());
        return Err(CliError::NoMatch {
            patterns: patterns.collect(),
            unread,
        });
    }
    let mut groups = Vec::new();
    let mut as_typed = Vec::new();
    for (tree, own) in trees.into_iter().zip(filters) {
        match own {
            Some(own) => groups.push((vec![tree], own)),
            None => as_typed.push(tree),
        }
    }
    if !as_typed.is_empty() {
        groups.push((as_typed, filter));
    }
    Ok(groups)
}

fn searched(tree: &Tree) -> SearchedTree {
    let path = tree.path();
    let root = SearchRoot::of(tree.open(), split(&path).1);
    SearchedTree { path, root }
}

/// Warns of patterns that match nothing.
pub(crate) fn warn_of_unmatched(filter: &Filter, reporter: &Reporter) {
    for pattern in filter.unmatched() {
        reporter.unmatched(pattern.text());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_patterns_unless_they_are_empty_or_comments() {
        let found = |text: &str| -> Vec<String> {
            let lines = listed(text.as_bytes());
            lines
                .map(|line| String::from_utf8(line.to_vec()).unwrap())
                .collect()
        };
        assert_eq!(found("a\n\n# b\n c \r\n./#d\n"), ["a", " c ", "./#d"]);
        assert_eq!(found("\u{feff}a\nb"), ["a", "b"]);
        assert_eq!(found(""), [""; 0]);
    }
}
