//! What few entries have: each kind in a list of its own, sorted by entry.

use super::EntryId;

/// What few entries have.
#[derive(Debug, Default)]
pub(super) struct Extras {
    /// An entry, and where the target of its link ends in `target_bytes`.
    targets: Vec<(u32, usize)>,
    target_bytes: Vec<u8>,
    devices: Vec<(u32, (u32, u32))>,
    /// Names of rows that are not the paths of their entries.
    raw_names: Vec<(u32, Box<[u8]>)>,
}

impl Extras {
    /// Adds to an entry; entries must ascend.
    pub(super) fn add(&mut self, entry: u32, target: &[u8], device: (u32, u32), raw_name: &[u8]) {
        if !target.is_empty() {
            self.target_bytes.extend_from_slice(target);
            self.targets.push((entry, self.target_bytes.len()));
        }
        if device != (0, 0) {
            self.devices.push((entry, device));
        }
        if !raw_name.is_empty() {
            self.raw_names.push((entry, raw_name.into()));
        }
    }

    pub(super) fn shrink_to_fit(&mut self) {
        self.targets.shrink_to_fit();
        self.target_bytes.shrink_to_fit();
        self.devices.shrink_to_fit();
        self.raw_names.shrink_to_fit();
    }

    pub(super) fn target(&self, entry: EntryId) -> &[u8] {
        let Some(place) = place_of(&self.targets, entry) else {
            return b"";
        };
        let start = match place {
            0 => 0,
            place => self.targets[place - 1].1,
        };
        &self.target_bytes[start..self.targets[place].1]
    }

    pub(super) fn device(&self, entry: EntryId) -> (u32, u32) {
        place_of(&self.devices, entry).map_or((0, 0), |place| self.devices[place].1)
    }

    pub(super) fn raw_name(&self, entry: EntryId) -> Option<&[u8]> {
        place_of(&self.raw_names, entry).map(|place| &*self.raw_names[place].1)
    }

    pub(super) fn target_bytes(&self) -> usize {
        self.target_bytes.len()
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let raw_names = self.raw_names.iter().map(|(_, name)| name.len());
        self.target_bytes.capacity()
            + self.targets.capacity() * size_of::<(u32, usize)>()
            + self.devices.capacity() * size_of::<(u32, (u32, u32))>()
            + self.raw_names.capacity() * size_of::<(u32, Box<[u8]>)>()
            + raw_names.sum::<usize>()
    }
}

fn place_of<T>(list: &[(u32, T)], entry: EntryId) -> Option<usize> {
    list.binary_search_by_key(&entry.0, |item| item.0).ok()
}
