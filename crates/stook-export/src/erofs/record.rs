//! What an image was made of, in its first bytes, which the kernel does not read: so that it is never mounted with other volumes.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use stook_archive::{Archive, AsOf};
use stook_sys::{Context, open_file, read_up_to_at};

use super::format::{BLOCK, SLOT_OF_VOLUME, SLOTS, SUPER};
use crate::ExportError;
use crate::error::BadImage;

/// What an image begins with.
const MARK: &[u8] = b"stook image\n";

/// The version of the record.
const VERSION: u32 = 1;

/// A state of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageState {
    /// The run of stook that it is after; `None` if there was none, as in an archive of zstash.
    pub run: Option<i64>,
    /// The id of the last row.
    pub last_id: i64,
}

impl fmt::Display for ImageState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.run {
            Some(run) => write!(f, "run {run}, last id {}", self.last_id),
            None => write!(f, "last id {}", self.last_id),
        }
    }
}

/// What an image says it was made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageRecord {
    /// The state that it shows.
    pub state: ImageState,
    /// The volumes, in the order in which the kernel needs them.
    pub volumes: Vec<RecordedVolume>,
}

/// A volume that an image was made for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedVolume {
    /// Its file name.
    pub name: String,
    /// Its bytes.
    pub bytes: u64,
}

#[derive(Serialize, Deserialize)]
struct Line {
    version: u32,
    #[serde(flatten)]
    state: ImageState,
    volumes: usize,
}

/// Returns the state that an archive has, or had after a run.
pub(crate) fn state_of(archive: &Archive, as_of: AsOf) -> Result<ImageState, ExportError> {
    let runs = archive.runs()?;
    let state = match as_of {
        AsOf::Now => ImageState {
            run: runs.last().map(|run| run.id.0),
            last_id: archive.last_row()?.unwrap_or(0),
        },
        AsOf::Run(id) => {
            let until = runs.iter().take_while(|run| run.id.0 <= id.0);
            ImageState {
                run: Some(id.0),
                last_id: until
                    .filter_map(|run| run.last_file)
                    .map(|row| row.0)
                    .max()
                    .unwrap_or(0),
            }
        }
    };
    Ok(state)
}

/// Returns the first bytes of an image, as many as there are before the super block.
pub(super) fn record_bytes(state: ImageState, volumes: usize) -> Vec<u8> {
    let line = Line {
        version: VERSION,
        state,
        volumes,
    };
    let mut bytes = MARK.to_vec();
    bytes.extend(serde_json::to_vec(&line).expect("numbers can be written"));
    bytes.push(b'\n');
    bytes.resize(SUPER, 0);
    bytes
}

/// Reads what an image was made of.
///
/// # Errors
/// `Image` if stook has not written it, or another version of stook; `Sys`.
pub(crate) fn read_record(image: &Path) -> Result<ImageRecord, ExportError> {
    let file = open_file(image)?;
    let bad = |why| ExportError::Image {
        path: image.to_owned(),
        why,
    };
    let mut head = vec![0; SLOTS];
    let len = read_up_to_at(&file, &mut head, 0).context("read", image)?;
    let line = line_in(&head[..len]).ok_or_else(|| bad(BadImage::Foreign))?;
    if line.version != VERSION {
        return Err(bad(BadImage::Version(line.version)));
    }
    if line.volumes > usize::from(u16::MAX) {
        return Err(bad(BadImage::Foreign));
    }
    let mut slots = vec![0; line.volumes * SLOT_OF_VOLUME];
    let len = read_up_to_at(&file, &mut slots, SLOTS as u64).context("read", image)?;
    if len < slots.len() {
        return Err(bad(BadImage::Foreign));
    }
    Ok(ImageRecord {
        state: line.state,
        volumes: slots.chunks_exact(SLOT_OF_VOLUME).map(volume_in).collect(),
    })
}

fn line_in(head: &[u8]) -> Option<Line> {
    let rest = head.strip_prefix(MARK)?;
    let end = rest.iter().position(|&byte| byte == b'\n')?;
    serde_json::from_slice(&rest[..end]).ok()
}

fn volume_in(slot: &[u8]) -> RecordedVolume {
    let name = slot[..64].split(|&byte| byte == 0).next().unwrap_or(b"");
    let mut blocks = [0; 4];
    blocks.copy_from_slice(&slot[64..68]);
    RecordedVolume {
        name: String::from_utf8_lossy(name).into_owned(),
        bytes: u64::from(u32::from_le_bytes(blocks)) * BLOCK,
    }
}
