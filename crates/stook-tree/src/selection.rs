//! Which entries an operation is about: by path, by kind, by size and by time.

use stook_sys::{FileKind, Metadata, Timestamp};

use crate::Filter;
use crate::path::join;

/// What an entry must be like. Without any condition every entry is selected.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// By path.
    pub filter: Filter,
    /// If there are any, it must be of one of these kinds.
    pub kinds: Vec<FileKind>,
    /// It must be a regular file of more bytes than this: other kinds have a size that is about themselves.
    pub larger_than: Option<u64>,
    /// It must have changed later than this.
    pub newer_than: Option<Timestamp>,
}

impl Selection {
    /// Returns true if path and kind alone do not tell what is selected.
    pub fn needs_facts(&self) -> bool {
        self.larger_than.is_some() || self.newer_than.is_some()
    }

    /// Returns true if an entry of this kind may be selected.
    pub fn admits_kind(&self, kind: FileKind) -> bool {
        let is_sized = self.larger_than.is_none() || kind == FileKind::File;
        is_sized && (self.kinds.is_empty() || self.kinds.contains(&kind))
    }

    /// Returns true if an entry of a directory is not selected, whatever its facts are.
    pub fn rules_out(&self, directory: &[u8], name: &[u8], kind: FileKind) -> bool {
        let is_admitted = self.admits_kind(kind);
        if !is_admitted && self.filter.have_all_matched() {
            return true;
        }
        // What is not of the right kind is an entry all the same: a pattern that matches it matches something.
        let is_selected = self.filter.is_empty() || self.filter.selects(&join(directory, name));
        !is_admitted || !is_selected
    }

    /// Returns true if an entry that is not ruled out is selected.
    pub fn admits(&self, metadata: &Metadata) -> bool {
        self.larger_than.is_none_or(|size| metadata.size > size)
            && self.newer_than.is_none_or(|time| metadata.mtime > time)
    }

    /// Returns true if the entry with this path is selected.
    pub fn selects(&self, path: &[u8], metadata: &Metadata) -> bool {
        self.filter.selects(path) && self.admits_kind(metadata.kind) && self.admits(metadata)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pattern;

    fn metadata(kind: FileKind, size: u64, seconds: i64) -> Metadata {
        let mut metadata = Metadata::of_kind(kind);
        metadata.size = size;
        metadata.mtime.seconds = seconds;
        metadata
    }

    #[test]
    fn all_conditions_must_hold_and_limits_are_strict() {
        let selection = Selection {
            filter: Filter {
                include: vec![Pattern::new(b"d/*")],
                exclude: Vec::new(),
            },
            kinds: vec![FileKind::File, FileKind::Symlink],
            larger_than: Some(10),
            newer_than: Some(Timestamp {
                seconds: 100,
                nanoseconds: 0,
            }),
        };
        let selects = |path: &str, kind, size, seconds| {
            selection.selects(path.as_bytes(), &metadata(kind, size, seconds))
        };
        assert!(selects("d/f", FileKind::File, 11, 101));
        assert!(!selects("e/f", FileKind::File, 11, 101));
        assert!(!selects("d/f", FileKind::File, 10, 101));
        assert!(!selects("d/f", FileKind::File, 11, 100));
        assert!(!selects("d/f", FileKind::Symlink, 11, 101));
        assert!(selection.needs_facts());
        assert!(!selection.rules_out(b"d", b"f", FileKind::File));
        assert!(selection.rules_out(b"", b"f", FileKind::File));
        assert!(selection.rules_out(b"d", b"f", FileKind::Fifo));
    }

    #[test]
    fn without_conditions_all_is_selected() {
        let selection = Selection::default();
        for kind in [FileKind::File, FileKind::Directory, FileKind::Socket] {
            assert!(selection.selects(b"", &metadata(kind, 0, i64::MIN)));
        }
        assert!(!selection.needs_facts());
    }
}
