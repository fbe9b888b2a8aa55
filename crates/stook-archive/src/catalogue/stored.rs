//! Where files lie in their volumes, for who fetches them before they are read.

use std::ops::Range;

use stook_index::VolumeId;
use stook_tree::Pattern;

use super::{Catalogue, EntryId, HAS_MD5};
use crate::ArchiveError;

/// A header with its extension, where the index does not say how long it is.
const HEADER_BYTES: u64 = 2048;

/// Files that match patterns, and where they are.
#[derive(Debug, Default)]
pub struct StoredFiles {
    /// How many.
    pub files: u64,
    /// Bytes of their content.
    pub bytes: u64,
    /// Where they lie in the files of the volumes, in the order of the volumes: of compressed ones whole frames.
    pub ranges: Vec<(VolumeId, Range<u64>)>,
    /// Patterns that match nothing, by their place in the list.
    pub unmatched: Vec<usize>,
}

impl Catalogue {
    /// Returns which files match any of the patterns, and where they are stored. Ranges with less than `gap` bytes between them
    /// are one.
    ///
    /// # Errors
    /// `Sys` if a compressed volume cannot be opened.
    ///
    /// # Cost
    /// The path of each entry, 32 bytes for each file that matches.
    pub fn stored_files(&self, patterns: &[&[u8]], gap: u64) -> Result<StoredFiles, ArchiveError> {
        let patterns: Vec<Pattern> = patterns.iter().map(|text| Pattern::new(text)).collect();
        let mut has_matched = vec![false; patterns.len()];
        let mut found = StoredFiles::default();
        let mut stored = Vec::new();
        for entry in (0..).map_while(|number| self.entry(number)) {
            let path = self.path(entry);
            let mut is_wanted = false;
            for (pattern, has_matched) in patterns.iter().zip(&mut has_matched) {
                let matches = pattern.matches(&path);
                *has_matched |= matches;
                is_wanted |= matches;
            }
            if is_wanted && self.facts[entry.index()].has(HAS_MD5) {
                found.files += 1;
                found.bytes += self.size(entry);
                stored.push(self.stored_at(entry));
            }
        }
        stored.sort_unstable_by_key(|(volume, range)| (*volume, range.start));
        for (id, range) in stored {
            let range = self.volumes.stored_range(id, range)?;
            match found.ranges.last_mut() {
                Some((last, before)) if *last == id && range.start <= before.end + gap => {
                    before.end = before.end.max(range.end);
                }
                _ => found.ranges.push((id, range)),
            }
        }
        let unmatched = has_matched.iter().enumerate();
        let unmatched = unmatched.filter_map(|(place, matched)| (!matched).then_some(place));
        found.unmatched = unmatched.collect();
        Ok(found)
    }

    /// Forgets frames that are decoded: who reads next decodes anew.
    pub fn forget_content(&self) {
        self.volumes.forget_frames();
    }

    /// Header and content of a file, in the uncompressed volume.
    fn stored_at(&self, entry: EntryId) -> (VolumeId, Range<u64>) {
        let facts = &self.facts[entry.index()];
        let content = facts.content().unwrap_or(facts.offset + HEADER_BYTES);
        let range = facts.offset..content + facts.size;
        (self.volume_ids[facts.volume as usize], range)
    }
}
