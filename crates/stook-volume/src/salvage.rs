//! Finds the next member of a volume where the chain of headers is broken.
//!
//! A header is looked for at every byte, since a cut-off copy may have left any number of them.
//! The mark `ustar` narrows that down; so headers older than it (v7) are not found. A header
//! counts if its sum is right, its records make sense, and it is followed by another valid
//! header, the end marker or the end of the volume.
//!
//! A tar inside a member's content has such headers, too. What tells it apart: its chain comes to
//! its own end marker while the volume goes on, where the chain of the volume runs to the end of
//! the volume. A nested tar without end marker, in a member whose own header or successor is
//! damaged, cannot be told apart; nor can one that is cut off together with the volume unless it
//! begins right at the start of the content.

use crate::block::{self, Block, MARK, MARK_OFFSET, NAME, SIZE};
use crate::decode::{Found, HeaderCheck, decode_in};
use crate::error::VolumeError;
use crate::pax;
use crate::source::{ReadAt, Window};
use crate::{BLOCK, BLOCK_LEN, padding};

/// Bytes searched at a time.
const STRIDE: usize = 256 << 10;

/// Bytes looked at in front of a header block for the end of an extended header: the closing
/// record of any writer we know is far shorter.
const LOOK_BACK: usize = 2 * BLOCK_LEN;

/// What stands at some place of a volume.
#[derive(Debug)]
pub(crate) enum Look {
    Member(Box<Found>),
    EndMarker,
    /// The volume ends exactly here.
    EndOfFile,
    Broken(VolumeError),
}

/// The content of a member that may hold a chain of real members.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Content {
    pub(crate) start: u64,
    /// Where the next member should begin.
    pub(crate) end: u64,
    /// Whether a valid header, the end marker or the end of the volume stands there.
    pub(crate) lands: bool,
}

/// The outcome of a search.
#[derive(Debug)]
pub(crate) enum Search {
    /// A member, or the end marker, begins here.
    Found(u64),
    /// Nothing up to here, which is the end of the volume or of the part searched.
    Nothing(u64),
}

/// What becomes of a candidate.
enum Finding {
    Real(u64),
    No,
    /// It belongs to the content of a member: go on here.
    Nested(u64),
}

/// A look at a volume without the memory of a scan.
pub(crate) struct Salvage<'w, 'a, S: ReadAt + ?Sized> {
    pub(crate) window: &'w mut Window<'a, S>,
}

impl<S: ReadAt + ?Sized> Salvage<'_, '_, S> {
    /// Returns what stands at `offset`. Only a failing source is an error.
    pub(crate) fn look(&mut self, offset: u64) -> Result<Look, VolumeError> {
        Ok(match decode_in(self.window, offset) {
            Ok(Some(found)) => Look::Member(found),
            Ok(None) => Look::EndMarker,
            Err(error @ VolumeError::Io { .. }) => return Err(error),
            Err(error) if self.is_end_of_file(offset)? => {
                debug_assert!(
                    matches!(error, VolumeError::Truncated { .. }),
                    "no bytes can be nothing else"
                );
                Look::EndOfFile
            }
            Err(error) => Look::Broken(error),
        })
    }

    /// Returns true if the last byte of the volume stands right before `offset`.
    pub(crate) fn is_end_of_file(&mut self, offset: u64) -> Result<bool, VolumeError> {
        Ok(self.window.bytes(offset, 1)?.is_empty()
            && (offset == 0 || self.window.bytes(offset - 1, 1)?.len() == 1))
    }

    /// Returns the length of a volume that ends at or before `bound`, by bisection.
    fn end_of_file(&mut self, bound: u64) -> Result<u64, VolumeError> {
        let (mut low, mut high) = (0, bound);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.window.bytes(middle, 1)?.is_empty() {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Ok(low)
    }

    /// Returns true if a member that ends where `look` was taken can be what it says.
    pub(crate) fn lands(&mut self, offset: u64, look: &Look) -> Result<bool, VolumeError> {
        match look {
            Look::Member(found) => Ok(found.is_extended || !self.is_orphan(offset)?),
            Look::EndMarker | Look::EndOfFile => Ok(true),
            Look::Broken(_) => Ok(false),
        }
    }

    /// Returns where the first byte that is not zero stands, or the length of the volume.
    pub(crate) fn skip_zeros(&mut self, offset: u64) -> Result<(u64, bool), VolumeError> {
        let mut at = offset;
        loop {
            let bytes = self.window.bytes(at, STRIDE)?;
            if let Some(position) = bytes.iter().position(|byte| *byte != 0) {
                return Ok((at + position as u64, false));
            }
            at += bytes.len() as u64;
            if bytes.len() < STRIDE {
                return Ok((at, true));
            }
        }
    }

    /// Returns where the search after a broken header at `offset` has to begin, or the place
    /// after the member if its end is certain in spite of the damage.
    pub(crate) fn after_broken(&mut self, offset: u64) -> Result<Search, VolumeError> {
        let mut at = offset;
        // A block at `offset` that is none leaves everything open from its second byte on.
        let mut from = offset.saturating_add(1);
        while let Some(block) = self.checksummed(at)? {
            from = at.saturating_add(BLOCK);
            let size = SIZE
                .number(&block, at, "size")
                .ok()
                .and_then(|size| u64::try_from(size).ok());
            let Some(size) = size else { break };
            let end = from.saturating_add(size).saturating_add(padding(size));
            if !block::is_extension(block::typeflag(&block)) {
                let look = self.look(end)?;
                return Ok(if self.lands(end, &look)? {
                    Search::Found(end)
                } else {
                    Search::Nothing(from)
                });
            }
            at = end;
        }
        Ok(Search::Nothing(from))
    }

    /// Searches for the next member from `from` on, up to `until`. `content` is what is known of
    /// the member whose content lies there.
    ///
    /// # Cost
    /// Reads every byte, and the headers of each chain it finds once more than a plain scan.
    pub(crate) fn search(
        &mut self,
        from: u64,
        until: u64,
        content: Option<Content>,
    ) -> Result<Search, VolumeError> {
        let mut at = from;
        while at < until {
            // The last header that counts begins before `until`.
            let left = usize::try_from(until - at).unwrap_or(STRIDE);
            let wanted = left.saturating_add(BLOCK_LEN - 1).min(STRIDE);
            let bytes = self.window.bytes(at, wanted)?;
            let len = bytes.len();
            if len == 0 {
                return Ok(Search::Nothing(self.end_of_file(at)?));
            }
            let mut resume = None;
            for candidate in candidates(bytes, at) {
                match self.examine(candidate, content)? {
                    Finding::Real(found) if found < until => return Ok(Search::Found(found)),
                    Finding::Real(_) => return Ok(Search::Nothing(until)),
                    Finding::No => {}
                    Finding::Nested(end) if self.window.bytes(end - 1, 1)?.is_empty() => {
                        return Ok(Search::Nothing(self.end_of_file(end)?));
                    }
                    Finding::Nested(end) => {
                        resume = Some(end);
                        break;
                    }
                }
            }
            at = match resume {
                Some(end) => end,
                None if len < wanted => return Ok(Search::Nothing(at + len as u64)),
                // A header may begin in the last bytes and end in the next ones.
                None => at + (len - BLOCK_LEN + 1) as u64,
            };
        }
        Ok(Search::Nothing(until))
    }

    fn examine(
        &mut self,
        candidate: u64,
        content: Option<Content>,
    ) -> Result<Finding, VolumeError> {
        if self.is_orphan(candidate)? {
            // Its name may be cut and its time rounded, but it tells how far the lost member goes.
            return Ok(match self.after_broken(candidate)? {
                Search::Found(end) => Finding::Real(end),
                Search::Nothing(_) => Finding::No,
            });
        }
        let Look::Member(found) = self.look(candidate)? else {
            return Ok(Finding::No);
        };
        let end = found.member.end;
        let look = self.look(end)?;
        let lands = self.lands(end, &look)?;
        if !lands && found.member.checksum == HeaderCheck::Absent {
            return Ok(Finding::No);
        }
        self.follow(candidate, end, look, content)
    }

    /// Follows the chain that begins with a member at `first` to where it ends, or past the content
    /// it lies in.
    fn follow(
        &mut self,
        first: u64,
        end: u64,
        look: Look,
        content: Option<Content>,
    ) -> Result<Finding, VolumeError> {
        let (mut at, mut look) = (end, look);
        let is_landed = content.is_some_and(|content| content.lands);
        let is_at_start = content.is_some_and(|content| content.start == first);
        loop {
            if let Some(content) = content.filter(|content| at >= content.end) {
                // A whole content that is a chain of members is a tar without end marker.
                let is_tar = is_landed && is_at_start;
                return Ok(if is_tar {
                    Finding::Nested(content.end)
                } else {
                    Finding::Real(first)
                });
            }
            let is_nested = match &look {
                Look::Member(found) => {
                    at = found.member.end;
                    look = self.look(at)?;
                    continue;
                }
                Look::EndMarker => {
                    let (stop, is_end) = self.skip_zeros(at)?;
                    // A volume that ends within a block was cut off, here in a nested tar.
                    is_landed || !is_end || (is_at_start && !stop.is_multiple_of(BLOCK))
                }
                Look::EndOfFile | Look::Broken(VolumeError::Truncated { .. }) => {
                    is_landed || is_at_start
                }
                Look::Broken(_) => is_landed,
            };
            return Ok(if is_nested {
                Finding::Nested(at)
            } else {
                Finding::Real(first)
            });
        }
    }

    /// Returns true if the header block at `offset` belongs to an extended header that is lost:
    /// the end of PAX records stands right before it, or a GNU long name that goes on its own.
    fn is_orphan(&mut self, offset: u64) -> Result<bool, VolumeError> {
        let start = offset.saturating_sub(LOOK_BACK as u64);
        let bytes = self.window.bytes(start, LOOK_BACK + BLOCK_LEN)?;
        let Some((before, block)) = bytes.split_last_chunk::<BLOCK_LEN>() else {
            return Ok(false);
        };
        if block::is_extension(block::typeflag(block)) {
            return Ok(false);
        }
        if pax::ends_in_record(before) {
            return Ok(true);
        }
        let name = NAME.text(block);
        Ok(name.len() == NAME.len()
            && before
                .chunks(BLOCK_LEN)
                .any(|chunk| chunk.starts_with(name)))
    }

    fn checksummed(&mut self, offset: u64) -> Result<Option<Block>, VolumeError> {
        let bytes = self.window.bytes(offset, BLOCK_LEN)?;
        Ok(bytes
            .first_chunk()
            .filter(|block| is_header(block))
            .copied())
    }
}

fn is_header(block: &Block) -> bool {
    !block::is_zero(block) && block::has_valid_checksum(block)
}

/// Returns the places in the bytes, which begin at `offset`, where a valid header block stands.
fn candidates(bytes: &[u8], offset: u64) -> Vec<u64> {
    let starts =
        memchr::memmem::find_iter(bytes, MARK).filter_map(|mark| mark.checked_sub(MARK_OFFSET));
    let valid = starts.filter(|start| bytes[*start..].first_chunk().is_some_and(is_header));
    valid.map(|start| offset + start as u64).collect()
}
