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
    /// Groups entries that name another as the first of their file, as `extract` does: in the order of their rows, and only
    /// while that name has the same content, size, time, owner and mode. Where it has not, the next one takes its place.
    pub(super) fn of(catalogue: &Catalogue, mut linked: Vec<(u32, &[u8])>) -> Self {
        linked.sort_unstable_by_key(|&(entry, _)| catalogue.facts[entry as usize].row);
        let mut firsts: HashMap<&[u8], u32> = HashMap::new();
        let mut groups: HashMap<u32, u32> = HashMap::new();
        for (entry, link) in linked {
            let named = || catalogue.find(link).map(|EntryId(entry)| entry);
            let first = firsts.get(link).copied().or_else(named);
            match first.map(|first| groups.get(&first).copied().unwrap_or(first)) {
                Some(first) if first != entry && is_same(catalogue, first, entry) => {
                    groups.insert(first, first);
                    groups.insert(entry, first);
                }
                _ => {
                    firsts.insert(link, entry);
                }
            }
        }
        let mut members: Vec<(u32, u32)> = groups.into_iter().collect();
        members.sort_unstable();
        members.shrink_to_fit();
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
