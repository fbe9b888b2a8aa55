//! Names that share a file.

use std::collections::HashMap;

use super::facts::HAS_MD5;
use super::{Catalogue, EntryId};

/// Which entries share a file with others.
#[derive(Debug, Default)]
pub(super) struct Links {
    /// An entry and the first name of its file, ascending; the first name is among them.
    members: Vec<(u32, u32)>,
    /// A first name and how many names there are, ascending.
    counts: Vec<(u32, u32)>,
}

impl Links {
    /// Groups entries that name another as the first of their file, in the order of their rows, and only while that name has
    /// the same content, size, time, owner and mode. Where it has not, the next one takes its place.
    ///
    /// Runs may have named different firsts: a name that is the first of one group can be a further one of another. Then the
    /// two are one group.
    pub(super) fn of(catalogue: &Catalogue, mut linked: Vec<(u32, &[u8])>) -> Self {
        linked.sort_unstable_by_key(|&(entry, _)| catalogue.facts[entry as usize].row);
        let mut firsts: HashMap<&[u8], u32> = HashMap::new();
        let mut groups = Groups::default();
        for (entry, link) in linked {
            let named = || catalogue.find(link).map(|EntryId(entry)| entry);
            let first = firsts.get(link).copied().or_else(named);
            match first {
                Some(first) if first != entry && is_same(catalogue, first, entry) => {
                    groups.join(first, entry);
                }
                _ => {
                    firsts.insert(link, entry);
                }
            }
        }
        let members = groups.into_members(catalogue);
        let mut counts: Vec<(u32, u32)> = members.iter().map(|&(_, first)| (first, 0)).collect();
        counts.sort_unstable();
        counts.dedup();
        for (_, first) in &members {
            if let Ok(place) = counts.binary_search_by_key(first, |count| count.0) {
                counts[place].1 += 1;
            }
        }
        counts.shrink_to_fit();
        Self { members, counts }
    }

    /// Returns the first name of the file of an entry: mostly the entry itself.
    pub(super) fn first(&self, entry: EntryId) -> EntryId {
        let place = self
            .members
            .binary_search_by_key(&entry.0, |member| member.0);
        place.map_or(entry, |place| EntryId(self.members[place].1))
    }

    /// Returns how many names the file of an entry has.
    pub(super) fn count(&self, entry: EntryId) -> u32 {
        let first = self.first(entry);
        let place = self.counts.binary_search_by_key(&first.0, |count| count.0);
        place.map_or(1, |place| self.counts[place].1)
    }

    pub(super) fn heap_bytes(&self) -> usize {
        (self.members.capacity() + self.counts.capacity()) * size_of::<(u32, u32)>()
    }
}

/// Entries that share a file: a forest, in which each tree is a group.
#[derive(Debug, Default)]
struct Groups {
    /// Each entry leads to another one of its group, or to itself.
    parents: HashMap<u32, u32>,
}

impl Groups {
    /// # Cost
    /// Nearly constant: paths are halved on the way.
    fn root(&mut self, mut entry: u32) -> u32 {
        loop {
            let parent = *self.parents.entry(entry).or_insert(entry);
            if parent == entry {
                return entry;
            }
            let above = self.parents.get(&parent).copied().unwrap_or(parent);
            self.parents.insert(entry, above);
            entry = above;
        }
    }

    fn join(&mut self, first: u32, entry: u32) {
        let (first, entry) = (self.root(first), self.root(entry));
        self.parents.insert(entry, first);
    }

    /// Returns each entry with the one of its group that has the first row, ascending.
    fn into_members(mut self, catalogue: &Catalogue) -> Vec<(u32, u32)> {
        let entries: Vec<u32> = self.parents.keys().copied().collect();
        let mut members: Vec<(u32, u32)> = entries
            .into_iter()
            .map(|entry| (entry, self.root(entry)))
            .collect();
        let mut firsts: HashMap<u32, u32> = HashMap::new();
        let row = |entry: u32| catalogue.facts[entry as usize].row;
        for &(entry, root) in &members {
            let first = firsts.entry(root).or_insert(entry);
            if row(entry) < row(*first) {
                *first = entry;
            }
        }
        for (_, root) in &mut members {
            *root = firsts.get(root).copied().unwrap_or(*root);
        }
        members.sort_unstable();
        members
    }
}

fn is_same(catalogue: &Catalogue, first: u32, entry: u32) -> bool {
    let (one, other) = (
        &catalogue.facts[first as usize],
        &catalogue.facts[entry as usize],
    );
    let owner_of = |number: u32| {
        let shared = catalogue.shared.get(number as usize);
        shared.map(|shared| (shared.mode, shared.uid, shared.gid))
    };
    one.has(HAS_MD5)
        && other.has(HAS_MD5)
        && one.md5 == other.md5
        && one.size == other.size
        && one.mtime == other.mtime
        && owner_of(one.shared) == owner_of(other.shared)
}
