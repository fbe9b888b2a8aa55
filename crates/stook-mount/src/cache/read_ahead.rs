//! Who reads in order, and how far ahead of it blocks should be fetched.
//!
//! A stream is a place where somebody reads on. It begins with any read, and says nothing then; from the second block in order on,
//! what is fetched ahead doubles up to the limit. When a stream comes near the end of its volume it goes on in the next
//! one, since members lie in the order of their paths across volumes.
//!
//! # Source
//! The doubling window is that of Linux's readahead, `mm/readahead.c`.

use std::ops::Range;
use std::sync::Mutex;
use std::time::Instant;

use stook_sys::lock;

use super::key::{BLOCK_BYTES, VolumeKey};

/// Streams that are remembered; the one that was read longest ago goes.
const STREAMS: usize = 64;

/// A read so many blocks before or behind the expected one still belongs to the stream: parts of one file are read by
/// several threads, in any order.
const SLACK: u64 = 4;

/// The first blocks that are fetched ahead.
const FIRST_WINDOW: u64 = 2;

/// All streams.
#[derive(Debug)]
pub(super) struct ReadAhead {
    streams: Mutex<Vec<Stream>>,
    /// The most blocks ahead of one stream.
    most: u64,
}

#[derive(Debug)]
struct Stream {
    volume: VolumeKey,
    /// The block behind all that were read.
    next: u64,
    /// The block behind all that were asked for.
    asked: u64,
    /// Blocks to be fetched ahead; 0: it is not known yet whether anybody reads on.
    window: u64,
    used: Instant,
}

impl ReadAhead {
    /// Returns one that fetches so many bytes ahead of a stream at most.
    pub(super) fn new(bytes: u64) -> Self {
        Self {
            streams: Mutex::default(),
            most: bytes / BLOCK_BYTES,
        }
    }

    /// Learns that blocks are read; returns the blocks to be fetched ahead, no more than there is room for in memory. They may
    /// lie behind the end of the volume.
    pub(super) fn visit(
        &self,
        volume: VolumeKey,
        read: &Range<u64>,
        room: impl FnOnce() -> u64,
    ) -> Option<Range<u64>> {
        if self.most == 0 {
            return None;
        }
        let mut streams = lock(&self.streams);
        let now = Instant::now();
        let belongs = |stream: &Stream| {
            stream.volume == volume
                && read.start + SLACK >= stream.next
                && read.start <= stream.next + SLACK
        };
        let Some(place) = streams.iter().position(belongs) else {
            begin(&mut streams, volume, read.end, now);
            return None;
        };
        let stream = &mut streams[place];
        stream.used = now;
        if read.end <= stream.next {
            return None;
        }
        stream.next = read.end;
        stream.window = (stream.window * 2).max(FIRST_WINDOW).min(self.most);
        stream.asked = stream.asked.max(stream.next);
        let end = stream.next + stream.window;
        // A few large requests rather than one for each block.
        if end < stream.asked + stream.window.div_ceil(2) {
            return None;
        }
        let ahead = stream.asked..end.min(stream.asked + room());
        stream.asked = ahead.end;
        (!ahead.is_empty()).then_some(ahead)
    }

    /// Lets a stream go on in another volume, where so many blocks from the begin on are fetched already.
    pub(super) fn go_on(&self, volume: VolumeKey, asked: u64) {
        let mut streams = lock(&self.streams);
        if !streams
            .iter()
            .any(|stream| stream.volume == volume && stream.next == 0)
        {
            begin(&mut streams, volume, 0, Instant::now());
        }
        let begun = |stream: &&mut Stream| stream.volume == volume && stream.next == 0;
        if let Some(stream) = streams.iter_mut().find(begun) {
            stream.asked = stream.asked.max(asked);
            stream.window = stream.window.max(asked);
        }
    }
}

fn begin(streams: &mut Vec<Stream>, volume: VolumeKey, next: u64, used: Instant) {
    if streams.len() >= STREAMS {
        let oldest = streams
            .iter()
            .enumerate()
            .min_by_key(|(_, stream)| stream.used);
        if let Some((place, _)) = oldest {
            streams.swap_remove(place);
        }
    }
    streams.push(Stream {
        volume,
        next,
        asked: next,
        window: 0,
        used,
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const VOLUME: VolumeKey = VolumeKey([1; 16]);

    /// Reads one block after the other; returns the blocks that were fetched ahead of each.
    fn read(ahead: &ReadAhead, blocks: Range<u64>) -> Vec<Range<u64>> {
        let visit = |number| ahead.visit(VOLUME, &(number..number + 1), || 100);
        blocks.filter_map(visit).collect()
    }

    #[test]
    fn who_reads_in_order_gets_ever_more_ahead() {
        let ahead = ReadAhead::new(8 * BLOCK_BYTES);
        let asked = read(&ahead, 10..40);
        assert_eq!(asked[..3], [12..14, 14..17, 17..22]);
        // Each block is asked for once, never more than the limit ahead.
        for (one, next) in asked.iter().zip(&asked[1..]) {
            assert_eq!(one.end, next.start);
        }
        assert_eq!(asked.last().map(|last| last.end), Some(46));
        assert!(asked.iter().all(|range| range.end - range.start <= 8));
        // The same again, or anywhere else, says nothing.
        assert_eq!(ahead.visit(VOLUME, &(39..40), || 100), None);
        assert_eq!(ahead.visit(VOLUME, &(100..101), || 100), None);
        assert_eq!(ahead.visit(VolumeKey([2; 16]), &(40..41), || 100), None);
    }

    #[test]
    fn no_more_is_fetched_ahead_than_there_is_room_for() {
        let ahead = ReadAhead::new(8 * BLOCK_BYTES);
        read(&ahead, 0..5);
        let visit = |number, room| ahead.visit(VOLUME, &(number..number + 1), || room);
        let asked = visit(9, 3).unwrap();
        assert_eq!(asked.end - asked.start, 3);
        assert_eq!(visit(10, 0), None);
        // What there was no room for is asked for later.
        assert_eq!(visit(11, 100).map(|range| range.start), Some(asked.end));
        let none = ReadAhead::new(0);
        assert_eq!(read(&none, 0..10), []);
    }

    #[test]
    fn a_stream_goes_on_in_the_next_volume() {
        let ahead = ReadAhead::new(8 * BLOCK_BYTES);
        ahead.go_on(VOLUME, 3);
        ahead.go_on(VOLUME, 5);
        assert_eq!(ahead.visit(VOLUME, &(0..1), || 100), Some(5..9));
    }
}
