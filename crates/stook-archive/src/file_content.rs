//! The content of a file that is archived: where its data lies, and its bytes, whole or slice by slice.

use std::fs::File;
use std::io;

use stook_pool::advance;
use stook_sys::{append_at, next_data_segment};
use stook_timers::scope;
use stook_volume::{Header, Segment, align_segments};

use crate::buffers::Buffers;
use crate::cause::Cause;
use crate::observer::Observer;
use crate::read::{BATCH_BYTES, ContentMd5, Interrupted};

/// Returns the data segments of a file with holes; None if storing them would save nothing.
pub(crate) fn holes(
    file: &File,
    size: u64,
    observer: &dyn Observer,
) -> io::Result<Option<Vec<Segment>>> {
    let mut segments: Vec<Segment> = Vec::new();
    let mut position = 0;
    while let Some(found) = next_data_segment(file, position, size)? {
        let (offset, len) = (found.offset, found.len);
        segments.push(Segment { offset, len });
        position = offset + len;
        if observer.is_interrupted() {
            return Err(Interrupted.into());
        }
    }
    let segments = align_segments(&segments, size);
    let data: u64 = segments.iter().map(|segment| segment.len).sum();
    // A line of the map takes at most 40 bytes.
    let map = 512 + 40 * segments.len() as u64;
    Ok((data + map < size).then_some(segments))
}

/// Appends the stored bytes of a file to the buffer; returns the MD5 of its content if it has holes.
pub(crate) fn read_content(
    file: &File,
    header: &Header,
    observer: &dyn Observer,
    bytes: &mut Vec<u8>,
) -> io::Result<Option<[u8; 16]>> {
    let Some(segments) = &header.sparse else {
        append(file, 0, header.size, bytes)?;
        return Ok(None);
    };
    let mut md5 = ContentMd5::new(&header.name, header.size, observer);
    for segment in segments {
        let start = append(file, segment.offset, segment.len, bytes)?;
        md5.update(segment.offset, &bytes[start..])?;
    }
    Ok(Some(md5.finish()?))
}

/// Sends the stored bytes of a file in slices; returns the MD5 of its content, None if stopped.
pub(crate) fn stream_content(
    file: &File,
    header: &Header,
    (buffers, observer): (&Buffers, &dyn Observer),
    send: &mut dyn FnMut(Vec<u8>) -> io::Result<bool>,
) -> io::Result<Option<[u8; 16]>> {
    let whole = [Segment {
        offset: 0,
        len: header.size,
    }];
    let segments = header.sparse.as_deref().unwrap_or(&whole);
    let mut md5 = ContentMd5::new(&header.name, header.size, observer);
    for segment in segments {
        let mut position = segment.offset;
        let end = segment.offset + segment.len;
        while position < end {
            let len = (end - position).min(BATCH_BYTES);
            let mut bytes = buffers.take(usize::try_from(len).map_err(io::Error::other)?);
            append(file, position, len, &mut bytes)?;
            md5.update(position, &bytes)?;
            advance(1);
            position += len;
            if !send(bytes)? {
                return Ok(None);
            }
        }
    }
    Ok(Some(md5.finish()?))
}

fn append(file: &File, offset: u64, len: u64, bytes: &mut Vec<u8>) -> io::Result<usize> {
    let _scope = scope!("read");
    let start = bytes.len();
    let len = usize::try_from(len).map_err(io::Error::other)?;
    if append_at(file, bytes, len, offset)? < len {
        return Err(Cause::Shrank.into());
    }
    Ok(start)
}
