//! The file `deleted`: names that are gone from the source.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use stook_sys::exists;

use super::block_file::{bad_file, open_blocks};
use super::blocks::{BlockReader, Fields, FileRole, PlanFileError};
use crate::ArchiveError;

/// The names in the file `deleted`.
pub(crate) struct DeletedNames {
    path: PathBuf,
    blocks: BlockReader<BufReader<File>>,
    block: Vec<u8>,
    at: usize,
    is_done: bool,
}

impl DeletedNames {
    pub(crate) fn open(path: &Path) -> Result<Option<Self>, ArchiveError> {
        if exists(path)?.is_none() {
            return Ok(None);
        }
        Ok(Some(Self {
            blocks: open_blocks(path, FileRole::Deleted).map_err(bad_file(path))?,
            path: path.to_owned(),
            block: Vec::new(),
            at: 0,
            is_done: false,
        }))
    }

    fn read(&mut self) -> Result<Option<Vec<u8>>, PlanFileError> {
        while self.at == self.block.len() {
            let Some((_, payload)) = self.blocks.next_block()? else {
                return Ok(None);
            };
            self.block.clear();
            self.block.extend_from_slice(payload);
            self.at = 0;
        }
        let mut fields = Fields(&self.block[self.at..]);
        let name = fields.bytes().map(<[u8]>::to_vec);
        self.at = self.block.len() - fields.0.len();
        match name {
            Some(name) => Ok(Some(name)),
            None => Err(self.blocks.malformed("it is no name")),
        }
    }
}

impl Iterator for DeletedNames {
    type Item = Result<Vec<u8>, ArchiveError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let read = self.read().map_err(bad_file(&self.path));
        self.is_done = !matches!(read, Ok(Some(_)));
        read.transpose()
    }
}
