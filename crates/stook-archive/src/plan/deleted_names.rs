//! The file `deleted`: names that are gone from the source.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use super::block_file::{bad_file, open_blocks};
use super::blocks::{BlockReader, Fields, FileRole, PlanFileError};
use super::directory::PlanDirectory;
use super::plan_file::PlanFile;
use crate::ArchiveError;

/// The names in the file `deleted`, as many as were planned.
pub(crate) struct DeletedNames {
    path: PathBuf,
    /// None if no name is gone: then the file need not be there.
    blocks: Option<BlockReader<BufReader<File>>>,
    block: Vec<u8>,
    at: usize,
    found: u64,
    planned: u64,
    is_done: bool,
}

impl DeletedNames {
    /// # Errors
    /// `BadPlanFile` if names are gone, and their file is missing or none.
    pub(crate) fn of(directory: &PlanDirectory, plan: &PlanFile) -> Result<Self, ArchiveError> {
        let path = directory.deleted();
        let blocks = match plan.deleted {
            0 => None,
            _ => Some(open_blocks(&path, FileRole::Deleted).map_err(bad_file(&path))?),
        };
        Ok(Self {
            path,
            blocks,
            block: Vec::new(),
            at: 0,
            found: 0,
            planned: plan.deleted,
            is_done: false,
        })
    }

    fn read(&mut self) -> Result<Option<Vec<u8>>, PlanFileError> {
        let Some(blocks) = &mut self.blocks else {
            return Ok(None);
        };
        while self.at == self.block.len() {
            let Some((_, payload)) = blocks.next_block()? else {
                let (found, planned) = (self.found, self.planned);
                return match found == planned {
                    true => Ok(None),
                    false => Err(PlanFileError::OtherNames { found, planned }),
                };
            };
            self.block.clear();
            self.block.extend_from_slice(payload);
            self.at = 0;
        }
        let mut fields = Fields(&self.block[self.at..]);
        let name = fields.bytes().map(<[u8]>::to_vec);
        self.at = self.block.len() - fields.0.len();
        match name {
            Some(name) => {
                self.found += 1;
                Ok(Some(name))
            }
            None => Err(blocks.malformed("it is no name")),
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
