//! Sorts more members than fit into memory: runs of some 100 MB go to files, which are merged.
//!
//! A walk hands over directories in the order in which workers finish them; archive order is that of their paths. One
//! directory is in memory as a whole, as the walk needs it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use stook_sys::{Context, create_new_file, remove_file};

use super::block_file::{bad_file, open_blocks};
use super::blocks::{BlockReader, BlockWriter, FileRole};
use super::directory::PlanDirectory;
use super::member::{Group, GroupPiece, LinkNames};
use super::piece::{PieceEncoder, decode_piece};
use crate::ArchiveError;
use crate::mutex::lock;

/// Takes groups that must leave memory.
pub(crate) struct Sorter {
    directory: PlanDirectory,
    /// Bytes of groups in memory past which they are written.
    limit: usize,
    files: Mutex<Result<u32, ArchiveError>>,
    has_failed: AtomicBool,
}

impl Sorter {
    pub(crate) fn new(directory: &PlanDirectory, limit: usize) -> Self {
        Self {
            directory: directory.clone(),
            limit,
            files: Mutex::new(Ok(0)),
            has_failed: AtomicBool::new(false),
        }
    }

    pub(crate) fn is_too_much(&self, bytes: usize) -> bool {
        bytes > self.limit
    }

    /// Returns why a file could not be written, if one could not.
    pub(crate) fn require_sound(&self) -> Result<(), ArchiveError> {
        let mut files = lock(&self.files);
        match &*files {
            Ok(_) => Ok(()),
            Err(_) => std::mem::replace(&mut *files, Ok(0)).map(drop),
        }
    }

    /// Returns true once a file could not be written: the walk need not go on.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    /// Writes groups to a file, sorted. One at a time: memory is what is short.
    pub(crate) fn write(&self, mut groups: Vec<Group>) {
        let mut files = lock(&self.files);
        let Ok(number) = *files else { return };
        groups.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        *files = write_sorted(&self.directory, number, &groups).map(|()| number + 1);
        self.has_failed.store(files.is_err(), Ordering::Relaxed);
    }

    /// Returns all members in order, with those that are still in memory; None if all are.
    pub(crate) fn finish(self, rest: &mut Vec<Group>) -> Result<Option<Merge>, ArchiveError> {
        if matches!(*lock(&self.files), Ok(0)) {
            return Ok(None);
        }
        self.write(std::mem::take(rest));
        let files = self
            .files
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner)?;
        Merge::new(&self.directory, files).map(Some)
    }
}

/// Returns about how many bytes a group takes in memory.
pub(crate) fn held_bytes(group: &Group) -> usize {
    let listing = group.listing.as_ref();
    let entries = listing.map_or(0, |listing| listing.entries.len());
    // Space for names as they are, and for what growing vectors leave unused.
    size_of::<Group>() + group.path.len() + entries * 128
}

fn write_sorted(
    directory: &PlanDirectory,
    number: u32,
    groups: &[Group],
) -> Result<(), ArchiveError> {
    let path = directory.sorted(number);
    let file = BufWriter::new(create_new_file(&path)?);
    let write = || {
        let mut blocks = BlockWriter::new(file, FileRole::Sorted)?;
        let mut encoder = PieceEncoder::default();
        for group in groups {
            for entry in group.entries() {
                let name = group.name(entry);
                encoder.add(
                    &group.path,
                    name,
                    &group.metadata(entry),
                    None,
                    &mut |block| blocks.write(b'M', block),
                )?;
            }
        }
        encoder.finish(&mut |block| blocks.write(b'M', block))?;
        blocks.finish()?.flush()
    };
    Ok(write().context("write", &path)?)
}

/// Reads sorted files side by side.
pub(crate) struct Merge {
    directory: PlanDirectory,
    files: Vec<BlockReader<BufReader<File>>>,
    /// The next piece of each file. Pieces of one directory are all in one file.
    next: BinaryHeap<Reverse<(Vec<u8>, u32)>>,
    pieces: Vec<Option<GroupPiece>>,
}

impl Merge {
    fn new(directory: &PlanDirectory, count: u32) -> Result<Self, ArchiveError> {
        let mut merge = Self {
            directory: directory.clone(),
            files: Vec::new(),
            next: BinaryHeap::new(),
            pieces: Vec::new(),
        };
        for number in 0..count {
            let path = directory.sorted(number);
            merge
                .files
                .push(open_blocks(&path, FileRole::Sorted).map_err(bad_file(&path))?);
            merge.pieces.push(None);
            merge.advance(number)?;
        }
        Ok(merge)
    }

    /// Reads the next piece of a file.
    fn advance(&mut self, number: u32) -> Result<(), ArchiveError> {
        let blocks = &mut self.files[number as usize];
        let read = match blocks.next_block() {
            Ok(None) => Ok(None),
            Ok(Some((_, payload))) => {
                let piece = decode_piece(payload);
                piece.map(Some).map_err(|what| blocks.malformed(what))
            }
            Err(error) => Err(error),
        };
        let piece = read.map_err(bad_file(&self.directory.sorted(number)))?;
        if let Some(piece) = &piece {
            self.next.push(Reverse((piece.group.path.clone(), number)));
        }
        self.pieces[number as usize] = piece;
        Ok(())
    }

    /// Returns the next piece of all, with the first names of its files that have several.
    pub(crate) fn next_piece(
        &mut self,
        link_names: &LinkNames,
    ) -> Result<Option<GroupPiece>, ArchiveError> {
        let Some(Reverse((_, number))) = self.next.pop() else {
            return Ok(None);
        };
        let piece = self.pieces[number as usize].take();
        self.advance(number)?;
        Ok(piece.map(|mut piece| {
            for entry in piece.group.entries() {
                let metadata = piece.group.metadata(entry);
                let first = link_names.get(&metadata.identity());
                if let (true, Some(first)) = (metadata.links > 1, first) {
                    piece.link_names.insert(metadata.identity(), first.clone());
                }
            }
            piece
        }))
    }
}

impl Drop for Merge {
    fn drop(&mut self) {
        for number in (0_u32..).take(self.files.len()) {
            let _ = remove_file(&self.directory.sorted(number));
        }
    }
}
