//! The map of a sparse member: which parts of the file are stored.
//!
//! Written as PAX sparse 1.0: the map stands in whole blocks before the data and counts in the
//! size of the header block. GNU tar and Python differ on a segment that does not fill its last
//! block (GNU pads it, Python does not), so only the last one may do that; see [`align_segments`].

use crate::header::Segment;
use crate::{BLOCK, BLOCK_LEN, number, padding};

/// A map as read: its segments and the bytes it takes in whole blocks.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Map {
    pub(crate) segments: Vec<Segment>,
    pub(crate) len: u64,
}

/// Why a map was not read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MapError {
    /// It goes on past the bytes at hand.
    NeedMore,
    Bad(&'static str),
}

/// Widens segments to whole blocks, as a sparse member stores them, and joins those that touch.
///
/// The segments must be in ascending order; what lies past `size` is cut off.
pub fn align_segments(segments: &[Segment], size: u64) -> Vec<Segment> {
    let mut aligned: Vec<Segment> = Vec::with_capacity(segments.len());
    for segment in segments {
        let start = segment.offset - segment.offset % BLOCK;
        let end = segment.offset.saturating_add(segment.len).min(size);
        let end = end.saturating_add(padding(end)).min(size);
        if segment.len == 0 || segment.offset >= size {
            continue;
        }
        match aligned.last_mut() {
            Some(last) if last.offset + last.len >= start => {
                last.len = last.len.max(end - last.offset);
            }
            _ => aligned.push(Segment {
                offset: start,
                len: end - start,
            }),
        }
    }
    aligned
}

/// Returns the bytes the segments hold together.
pub(crate) fn data_len(segments: &[Segment]) -> u64 {
    segments
        .iter()
        .fold(0, |sum, segment| sum.saturating_add(segment.len))
}

/// Appends the map, padded to whole blocks.
///
/// A file that ends in a hole gets an empty segment at its end: without it GNU tar restores such
/// a file too short.
pub(crate) fn put_map(segments: &[Segment], size: u64, out: &mut Vec<u8>) {
    let start = out.len();
    let ending = ending(segments, size);
    let numbers = std::iter::once(segments.len() as u64 + u64::from(ending.is_some())).chain(
        segments
            .iter()
            .chain(&ending)
            .flat_map(|segment| [segment.offset, segment.len]),
    );
    for number in numbers {
        number::put_decimal(number, out);
        out.push(b'\n');
    }
    let filled = out.len() - start;
    out.resize(start + filled.next_multiple_of(BLOCK_LEN), 0);
}

/// Returns the bytes that [`put_map`] appends.
pub(crate) fn map_len(segments: &[Segment], size: u64) -> u64 {
    let digits = |value: u64| u64::from(value.checked_ilog10().unwrap_or(0)) + 2;
    let ending = ending(segments, size);
    let count = segments.len() as u64 + u64::from(ending.is_some());
    let pairs = segments.iter().chain(&ending);
    let len = pairs.fold(digits(count), |sum, segment| {
        sum + digits(segment.offset) + digits(segment.len)
    });
    len + padding(len)
}

fn ending(segments: &[Segment], size: u64) -> Option<Segment> {
    let end = segments
        .last()
        .map_or(0, |last| last.offset.saturating_add(last.len));
    (end < size).then_some(Segment {
        offset: size,
        len: 0,
    })
}

/// Checks segments that are to be written.
pub(crate) fn check_writable(segments: &[Segment], size: u64) -> Result<(), &'static str> {
    check(segments, size)?;
    if segments.iter().any(|segment| segment.len == 0) {
        return Err("an empty segment of a sparse file");
    }
    let inner = segments.len().saturating_sub(1);
    if segments[..inner]
        .iter()
        .any(|segment| segment.len % BLOCK != 0)
    {
        return Err("a segment of a sparse file that ends within a block");
    }
    Ok(())
}

/// Checks that the segments ascend, do not overlap and end within the file.
pub(crate) fn check(segments: &[Segment], size: u64) -> Result<(), &'static str> {
    let mut reached = 0;
    for segment in segments {
        if segment.offset < reached {
            return Err("an overlap or a disorder of segments");
        }
        reached = segment
            .offset
            .checked_add(segment.len)
            .ok_or("a segment past all sizes")?;
    }
    if reached > size {
        Err("a segment past the size of the file")
    } else {
        Ok(())
    }
}

/// Reads a map of version 1.0 from the start of a member's data, which takes `stored` bytes with
/// the map. Empty segments are left out.
pub(crate) fn read_map(bytes: &[u8], stored: u64) -> Result<Map, MapError> {
    let stored_len = usize::try_from(stored).unwrap_or(usize::MAX);
    let area = &bytes[..bytes.len().min(stored_len)];
    // At the end of the area a number cannot go on.
    let missing = if area.len() == stored_len {
        MapError::Bad("no end")
    } else {
        MapError::NeedMore
    };
    let mut lines = Lines {
        bytes: area,
        at: 0,
        missing,
    };
    let count = lines.number()?;
    // Each segment takes four characters at least.
    if count > stored / 4 {
        return Err(MapError::Bad("more segments than it has room for"));
    }
    let mut segments = Vec::new();
    let mut reached = 0;
    for _ in 0..count {
        let segment = Segment {
            offset: lines.number()?,
            len: lines.number()?,
        };
        if segment.offset < reached {
            return Err(MapError::Bad("an overlap or a disorder of segments"));
        }
        reached = segment
            .offset
            .checked_add(segment.len)
            .ok_or(MapError::Bad("a segment past all sizes"))?;
        if segment.len > 0 {
            segments.push(segment);
        }
    }
    let len = lines.at as u64 + padding(lines.at as u64);
    if len > stored {
        return Err(MapError::Bad("no end"));
    }
    Ok(Map { segments, len })
}

/// Numbers in lines.
struct Lines<'a> {
    bytes: &'a [u8],
    at: usize,
    missing: MapError,
}

impl Lines<'_> {
    fn number(&mut self) -> Result<u64, MapError> {
        let rest = &self.bytes[self.at..];
        let line = &rest[..rest.len().min(21)];
        match memchr::memchr(b'\n', line) {
            Some(end) => {
                self.at += end + 1;
                number::decimal(&line[..end]).ok_or(MapError::Bad("a malformed number"))
            }
            None if line.len() == 21 => Err(MapError::Bad("a malformed number")),
            None if self.missing == MapError::NeedMore => Err(MapError::NeedMore),
            None => Err(MapError::Bad("no end")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(pairs: &[(u64, u64)]) -> Vec<Segment> {
        pairs
            .iter()
            .map(|(offset, len)| Segment {
                offset: *offset,
                len: *len,
            })
            .collect()
    }

    #[test]
    fn maps_come_back() {
        for (list, size) in [
            (segments(&[]), 0),
            (segments(&[]), 1 << 40),
            (segments(&[(0, 512), (4096, 1024)]), 5120),
            (segments(&[(512, 512), (1 << 40, 100)]), (1 << 40) + 100),
            (
                (0..500)
                    .map(|n| Segment {
                        offset: n * 8192,
                        len: 4096,
                    })
                    .collect(),
                500 * 8192,
            ),
        ] {
            let mut out = vec![1, 2, 3];
            put_map(&list, size, &mut out);
            let map = &out[3..];
            assert_eq!(map.len() as u64, map_len(&list, size));
            assert_eq!(map.len() % BLOCK_LEN, 0);
            let stored = map.len() as u64 + data_len(&list);
            assert_eq!(
                read_map(map, stored),
                Ok(Map {
                    segments: list,
                    len: map.len() as u64
                })
            );
            assert_eq!(read_map(&map[..1], stored), Err(MapError::NeedMore));
        }
    }

    #[test]
    fn bad_maps_are_named() {
        for (text, problem) in [
            (
                &b"2\n0\n8\n4\n8\n"[..],
                "an overlap or a disorder of segments",
            ),
            (b"x\n", "a malformed number"),
            (b"1\n5\n-3\n", "a malformed number"),
            (b"1\n18446744073709551615\n2\n", "a segment past all sizes"),
            (b"1\n18446744073709551616\n2\n", "a malformed number"),
            (b"999\n0\n8\n", "more segments than it has room for"),
            (b"9999999999999999999999999\n", "a malformed number"),
            (b"5\n0\n1\n", "a malformed number"),
        ] {
            let mut block = text.to_vec();
            block.resize(BLOCK_LEN, 0);
            assert_eq!(
                read_map(&block, 512),
                Err(MapError::Bad(problem)),
                "{}",
                text.escape_ascii()
            );
        }
        assert_eq!(read_map(b"1\n0\n5", 5), Err(MapError::Bad("no end")));
    }

    #[test]
    fn segments_are_widened_and_joined() {
        let given = segments(&[(10, 5), (600, 100), (5000, 10), (9000, 0), (9990, 100)]);
        assert_eq!(
            align_segments(&given, 10_000),
            segments(&[(0, 1024), (4608, 512), (9728, 272)])
        );
        assert_eq!(align_segments(&segments(&[(50, 10)]), 20), []);
        assert!(check_writable(&align_segments(&given, 10_000), 10_000).is_ok());
        assert!(check_writable(&given, 10_000).is_err());
    }
}
