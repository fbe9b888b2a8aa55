//! All directories of an archive, each with a number: those of rows, and those above them.

use std::collections::HashMap;

use super::part::PartRows;

/// All directories of all parts.
#[derive(Debug)]
pub(super) struct Directories<'p> {
    numbers: HashMap<(u32, &'p [u8]), u32>,
    /// Each comes behind its parent.
    pub(super) list: Vec<Directory<'p>>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Directory<'p> {
    pub(super) parent: u32,
    name: &'p [u8],
}

impl<'p> Directories<'p> {
    /// Returns the directories of the parts and all above them, and the number here of each directory of each part.
    pub(super) fn of(parts: &'p [PartRows]) -> (Self, Vec<Vec<u32>>) {
        let root = Directory {
            parent: 0,
            name: b"",
        };
        let mut directories = Self {
            numbers: HashMap::new(),
            list: vec![root],
        };
        let number = |path: &'p [u8]| directories.number(path);
        let mut number = number;
        let of_parts = parts
            .iter()
            .map(|part| part.paths.list().into_iter().map(&mut number).collect())
            .collect();
        (directories, of_parts)
    }

    fn number(&mut self, path: &'p [u8]) -> u32 {
        let mut number = 0;
        for name in components(path) {
            let next = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
            number = *self.numbers.entry((number, name)).or_insert_with(|| {
                let parent = number;
                self.list.push(Directory { parent, name });
                next
            });
        }
        number
    }

    pub(super) fn find(&self, path: &[u8]) -> Option<u32> {
        let mut components = components(path);
        components.try_fold(0, |number, name| self.numbers.get(&(number, name)).copied())
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn name(&self, number: u32) -> &'p [u8] {
        self.list[number as usize].name
    }
}

fn components(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|&byte| byte == b'/')
        .filter(|name| !name.is_empty())
}
