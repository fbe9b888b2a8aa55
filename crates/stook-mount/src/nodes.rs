//! Inode numbers, and the entries that they stand for.
//!
//! A number is the id of the row of a file's first name, so it stays the same while the archive grows. A directory without a
//! row has a hash of its path, above 2^63. In the directory of versions, which is a tree of its own, a bit is set in each number.
//! Two numbers are taken: 1 is the root's, so the row with id 1 gets another one, and of
//! two hashes that are equal the second is moved.
//!
//! ```text
//!   dense    by row: the entry, or NONE      4 bytes a row, up to four rows an entry; most archives need nothing else
//!   others   (number, entry), ascending      16 bytes: rows beyond, and hashes
//! ```

use std::collections::HashMap;

use stook_archive::{Catalogue, EntryId};

/// The number of the root, fixed by FUSE.
pub(crate) const ROOT: u64 = 1;

/// The number of the row with id 1.
const FIRST_ROW: u64 = (1 << 61) | 1;

/// Set in all numbers of the tree of versions, and in no other.
pub(crate) const VERSION: u64 = 1 << 62;

pub(crate) fn is_version(number: u64) -> bool {
    number & VERSION != 0
}

const NONE: u32 = u32::MAX;

/// Rows that have a place in `dense`, for each entry.
const ROWS_AN_ENTRY: u64 = 4;

#[derive(Debug)]
pub(crate) struct Nodes {
    dense: Vec<u32>,
    others: Vec<(u64, u32)>,
    /// Entries whose number was taken.
    moved: HashMap<u32, u64>,
}

impl Nodes {
    pub(crate) fn of(catalogue: &Catalogue) -> Self {
        let most = catalogue.len() as u64 * ROWS_AN_ENTRY + 1024;
        let mut nodes = Self {
            dense: Vec::new(),
            others: Vec::new(),
            moved: HashMap::new(),
        };
        for entry in entries(catalogue).skip(1) {
            if catalogue.first_name(entry) != entry {
                continue;
            }
            let inode = usual_number(catalogue, entry);
            match usize::try_from(inode) {
                Ok(place) if inode < most => {
                    if nodes.dense.len() <= place {
                        nodes.dense.resize(place + 1, NONE);
                    }
                    nodes.dense[place] = entry.number();
                }
                _ => nodes.others.push((inode, entry.number())),
            }
        }
        nodes.dense.shrink_to_fit();
        nodes.others.sort_unstable();
        nodes.move_twins();
        nodes.others.shrink_to_fit();
        nodes
    }

    /// Gives entries with the number of another one the next that is free.
    fn move_twins(&mut self) {
        for place in 1..self.others.len() {
            let before = self.others[place - 1].0;
            let (number, entry) = &mut self.others[place];
            if *number <= before {
                *number = before.saturating_add(1);
                self.moved.insert(*entry, *number);
            }
        }
    }

    /// Returns the inode number of an entry: the same for all names of a file.
    pub(crate) fn number(&self, catalogue: &Catalogue, entry: EntryId) -> u64 {
        if entry == EntryId::ROOT {
            return ROOT;
        }
        if !self.moved.is_empty()
            && let Some(&number) = self.moved.get(&entry.number())
        {
            return number;
        }
        usual_number(catalogue, entry)
    }

    /// Returns the entry with an inode number: of a file with several names, the first.
    pub(crate) fn entry(&self, catalogue: &Catalogue, number: u64) -> Option<EntryId> {
        if number == ROOT {
            return Some(EntryId::ROOT);
        }
        let place = usize::try_from(number).ok();
        let dense = place.and_then(|place| self.dense.get(place)).copied();
        let entry = match dense {
            Some(NONE) | None => {
                let found = self.others.binary_search_by_key(&number, |other| other.0);
                self.others[found.ok()?].1
            }
            Some(entry) => entry,
        };
        catalogue.entry(entry)
    }
}

fn usual_number(catalogue: &Catalogue, entry: EntryId) -> u64 {
    match catalogue.inode(entry) {
        ROOT => FIRST_ROW,
        inode => inode & !VERSION,
    }
}

pub(crate) fn entries(catalogue: &Catalogue) -> impl Iterator<Item = EntryId> {
    (0..u32::MAX).map_while(|number| catalogue.entry(number))
}
