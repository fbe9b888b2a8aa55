//! A part of a volume in memory. Small members are slices of it; what lies past it is read slice by slice.

use std::io;

use stook_md5::md5_many;
use stook_timers::scope;
use stook_volume::{Decoded, Member, decode, decode_bytes};

use super::BATCH_BYTES;
use super::batch::RowBatch;
use super::member::segments_of;
use super::volume::VolumeBytes;
use crate::buffers::Buffers;
use crate::cause::Cause;

/// The bytes of a volume from one place on, as many as were asked for and are there.
pub(crate) struct LoadedRange<'a> {
    volume: &'a dyn VolumeBytes,
    start: u64,
    bytes: Vec<u8>,
    /// Where its memory goes in the end.
    buffers: &'a Buffers,
}

impl<'a> LoadedRange<'a> {
    /// Reads `len` bytes from `start`, or as many as there are, in one call.
    pub(crate) fn read(
        volume: &'a dyn VolumeBytes,
        buffers: &'a Buffers,
        start: u64,
        len: u64,
    ) -> io::Result<Self> {
        let _scope = scope!("read");
        let len = usize::try_from(len).map_err(io::Error::other)?;
        let mut bytes = buffers.take(len);
        volume.append_at(&mut bytes, len, start)?;
        Ok(Self {
            volume,
            start,
            bytes,
            buffers,
        })
    }

    /// Reads a batch.
    pub(crate) fn of(
        batch: &RowBatch,
        volume: &'a dyn VolumeBytes,
        buffers: &'a Buffers,
    ) -> io::Result<Self> {
        Self::read(volume, buffers, batch.start(), batch.loaded_len())
    }

    pub(crate) fn into_bytes(mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Decodes the member at `offset`.
    pub(crate) fn member(&self, offset: u64) -> Result<Member, Cause> {
        let _scope = scope!("decode");
        let at = usize::try_from(offset.saturating_sub(self.start)).unwrap_or(usize::MAX);
        let bytes = self.bytes().get(at..).unwrap_or_default();
        match decode_bytes(bytes, offset)? {
            Decoded::Member(member) => Ok(member),
            Decoded::End => Err(Cause::NoMember),
            Decoded::NeedMore(_) => decode(self.volume, offset)?.ok_or(Cause::NoMember),
        }
    }

    /// Takes the MD5s of members side by side, which is several times faster than one by one. None for those
    /// with holes, or with content past the range.
    pub(crate) fn md5s<'m>(
        &self,
        members: impl Iterator<Item = Option<&'m Member>>,
    ) -> Vec<Option<[u8; 16]>> {
        let _scope = scope!("md5");
        let contents: Vec<Option<&[u8]>> = members
            .map(|member| {
                let member = member.filter(|member| member.header.sparse.is_none())?;
                self.slice(member.data_offset, usize::try_from(member.data_len).ok()?)
            })
            .collect();
        let messages: Vec<&[u8]> = contents.iter().flatten().copied().collect();
        let mut md5s = md5_many(&messages).into_iter();
        let digest = |content: &Option<&[u8]>| content.and_then(|_| md5s.next());
        contents.iter().map(digest).collect()
    }

    fn slice(&self, offset: u64, len: usize) -> Option<&[u8]> {
        let at = usize::try_from(offset.checked_sub(self.start)?).ok()?;
        self.bytes().get(at..at.checked_add(len)?)
    }

    /// Shows the stored data of a member, slice by slice, with the place of each slice in the file.
    pub(crate) fn content<E: From<io::Error>>(
        &self,
        member: &Member,
        mut visit: impl FnMut(u64, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut stored = member.data_offset;
        for segment in &*segments_of(member) {
            self.slices(stored, segment.len, |position, bytes| {
                visit(segment.offset + (position - stored), bytes)
            })?;
            stored += segment.len;
        }
        Ok(())
    }

    /// Shows `len` bytes of the volume from `start` on, slice by slice.
    pub(crate) fn slices<E: From<io::Error>>(
        &self,
        start: u64,
        len: u64,
        mut visit: impl FnMut(u64, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut done = 0;
        while done < len {
            let slice = (len - done).min(BATCH_BYTES);
            let next = (len - done - slice).min(BATCH_BYTES);
            if next > 0 && self.volume.is_far() {
                self.volume.prefetch(start + done + slice, next);
            }
            self.with_bytes(start + done, slice, |bytes| visit(start + done, bytes))?;
            done += slice;
        }
        Ok(())
    }

    fn with_bytes<E: From<io::Error>>(
        &self,
        offset: u64,
        len: u64,
        visit: impl FnOnce(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let len = usize::try_from(len).map_err(io::Error::other)?;
        if let Some(bytes) = self.slice(offset, len) {
            return visit(bytes);
        }
        let mut bytes = self.buffers.take(len);
        {
            let _scope = scope!("read");
            if self.volume.append_at(&mut bytes, len, offset)? < len {
                return Err(io::Error::other("the volume ends before it does").into());
            }
        }
        let result = visit(&bytes);
        self.buffers.give(bytes);
        result
    }
}

impl Drop for LoadedRange<'_> {
    fn drop(&mut self) {
        self.buffers.give(std::mem::take(&mut self.bytes));
    }
}
