//! Names of the archive that the survey did not visit: which of them are gone from the source.
//!
//! A name that the filter does not select, or below a directory that could not be read, may well be there.

use std::collections::HashSet;

use stook_index::{Index, NameTable};
use stook_tree::Filter;

use crate::ArchiveError;
use crate::survey::Survey;

/// Decides which of the names that the survey did not visit are gone from the source.
pub(crate) struct NotVisited<'a> {
    filter: &'a Filter,
    /// Paths that could not be read: what is below them may well be there.
    unread: HashSet<Vec<u8>>,
    /// Entries that were met.
    pub(crate) found: u64,
    /// Their lengths: no other beginning of a path need be looked up.
    lengths: HashSet<usize>,
}

impl<'a> NotVisited<'a> {
    pub(crate) fn new(survey: &Survey, filter: &'a Filter) -> Self {
        Self {
            filter,
            unread: survey.unread.iter().cloned().collect(),
            found: survey.entries,
            lengths: survey.unread.iter().map(Vec::len).collect(),
        }
    }

    pub(crate) fn is_deleted(&self, name: &[u8]) -> bool {
        if !self.filter.selects(name) {
            return false;
        }
        if self.unread.is_empty() {
            return true;
        }
        let slashes = name
            .iter()
            .enumerate()
            .filter(|&(_, &byte)| byte == b'/')
            .map(|(at, _)| at);
        let mut ancestors = std::iter::once(0).chain(slashes).chain([name.len()]);
        !ancestors.any(|end| self.lengths.contains(&end) && self.unread.contains(&name[..end]))
    }
}

/// Returns how many names an update would record as deleted.
pub(crate) fn count_deleted(
    index: &Index,
    name_table: Option<&NameTable>,
    not_visited: &NotVisited<'_>,
) -> Result<u64, ArchiveError> {
    let mut count = 0;
    if let Some(name_table) = name_table.filter(|name_table| name_table.not_visited() > 0) {
        index.not_visited_names(name_table, |name| {
            count += u64::from(not_visited.is_deleted(name));
        })?;
    }
    Ok(count)
}
