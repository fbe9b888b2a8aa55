//! Parts of volumes in memory: on their way, or here. One list for all volumes of a store, within one budget.
//!
//! ```text
//!   prefetch ──> Waiting ──fetcher──> Here ──read to its end──> gone
//!                   └──failed──> gone: the reader that needs it asks again, and gets the error
//! ```

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard};

use crate::mutex::lock;

/// Memory for pieces: what four requests of a batch each need, and as much ready for the workers.
const MEMORY_BYTES: u64 = 48 << 20;

/// A part of a volume.
struct Piece {
    volume: u64,
    range: Range<u64>,
    /// None: it is on its way.
    bytes: Option<Vec<u8>>,
    is_taken: bool,
}

/// A piece that a fetcher is to fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) volume: u64,
    pub(super) range: Range<u64>,
}

/// What there is of the bytes at one place.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// So many bytes were copied.
    Copied(usize),
    /// None; the next piece begins so many bytes behind.
    Nothing(u64),
}

#[derive(Default)]
struct State {
    pieces: VecDeque<Piece>,
    is_closed: bool,
}

impl State {
    fn held(&self) -> u64 {
        let len = |piece: &Piece| piece.range.end - piece.range.start;
        self.pieces.iter().map(len).sum()
    }

    /// Makes room, at the cost of what has been here longest; returns false if there is none.
    fn make_room(&mut self, len: u64) -> bool {
        while self.held() + len > MEMORY_BYTES {
            let oldest = self.pieces.iter().position(|piece| piece.bytes.is_some());
            let Some(oldest) = oldest else { return false };
            self.pieces.remove(oldest);
        }
        true
    }

    fn find(&self, volume: u64, offset: u64) -> Option<usize> {
        let has = |piece: &Piece| piece.volume == volume && piece.range.contains(&offset);
        self.pieces.iter().position(has)
    }
}

/// Pieces, and who waits for them.
#[derive(Default)]
pub(super) struct Pieces {
    state: Mutex<State>,
    changed: Condvar,
}

impl Pieces {
    /// Copies what there is from an offset on; waits for what is on its way.
    pub(super) fn read(&self, volume: u64, offset: u64, buffer: &mut [u8]) -> Found {
        let mut state = lock(&self.state);
        loop {
            let Some(place) = state.find(volume, offset) else {
                let behind = state.pieces.iter().filter(|piece| piece.volume == volume);
                let starts = behind.map(|piece| piece.range.start);
                let next = starts.filter(|start| *start > offset).min();
                return Found::Nothing(next.map_or(u64::MAX, |next| next - offset));
            };
            let piece = &state.pieces[place];
            let Some(bytes) = &piece.bytes else {
                if state.is_closed {
                    return Found::Nothing(u64::MAX);
                }
                state = self.wait(state);
                continue;
            };
            let at = usize::try_from(offset - piece.range.start).unwrap_or(usize::MAX);
            let rest = bytes.get(at..).unwrap_or_default();
            let len = rest.len().min(buffer.len());
            buffer[..len].copy_from_slice(&rest[..len]);
            if len == rest.len() {
                state.pieces.remove(place);
            }
            return Found::Copied(len);
        }
    }

    /// Asks for a piece, unless its begin is there or there is no room; a fetcher takes it then.
    pub(super) fn want(&self, wanted: Wanted) {
        let mut state = lock(&self.state);
        let is_known = state.find(wanted.volume, wanted.range.start).is_some();
        // What is ready is not thrown away for what is only expected.
        let has_room = state.held() + (wanted.range.end - wanted.range.start) <= MEMORY_BYTES;
        if is_known || !has_room || state.is_closed {
            return;
        }
        state.pieces.push_back(Piece {
            volume: wanted.volume,
            range: wanted.range,
            bytes: None,
            is_taken: false,
        });
        drop(state);
        self.changed.notify_all();
    }

    /// Waits for a piece that somebody wants, and takes it; None once nothing is wanted any more.
    pub(super) fn take(&self) -> Option<Wanted> {
        let mut state = lock(&self.state);
        loop {
            if state.is_closed {
                return None;
            }
            let is_free = |piece: &&mut Piece| piece.bytes.is_none() && !piece.is_taken;
            if let Some(piece) = state.pieces.iter_mut().find(is_free) {
                piece.is_taken = true;
                return Some(Wanted {
                    volume: piece.volume,
                    range: piece.range.clone(),
                });
            }
            state = self.wait(state);
        }
    }

    /// Has the bytes of a piece that was taken, or drops it.
    pub(super) fn arrived(&self, wanted: &Wanted, bytes: Option<Vec<u8>>) {
        let mut state = lock(&self.state);
        let is_it = |piece: &Piece| {
            piece.is_taken && piece.volume == wanted.volume && piece.range == wanted.range
        };
        if let Some(place) = state.pieces.iter().position(is_it) {
            match bytes {
                Some(bytes) => state.pieces[place].bytes = Some(bytes),
                None => drop(state.pieces.remove(place)),
            }
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Keeps bytes that were read with more than was asked for.
    pub(super) fn keep(&self, volume: u64, offset: u64, bytes: Vec<u8>) {
        let mut state = lock(&self.state);
        let len = bytes.len() as u64;
        if state.find(volume, offset).is_none() && state.make_room(len) {
            state.pieces.push_back(Piece {
                volume,
                range: offset..offset + len,
                bytes: Some(bytes),
                is_taken: true,
            });
        }
    }

    /// Ends all waiting.
    pub(super) fn close(&self) {
        lock(&self.state).is_closed = true;
        self.changed.notify_all();
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let waited = self.changed.wait(state);
        waited.unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(range: Range<u64>) -> Wanted {
        Wanted { volume: 1, range }
    }

    #[test]
    fn what_is_wanted_arrives_and_goes_when_it_was_read() {
        let pieces = Pieces::default();
        let mut buffer = [0; 4];
        assert_eq!(pieces.read(1, 0, &mut buffer), Found::Nothing(u64::MAX));
        pieces.want(wanted(10..16));
        pieces.want(wanted(10..12));
        let taken = pieces.take().unwrap();
        assert_eq!(taken, wanted(10..16));
        assert_eq!(pieces.read(1, 4, &mut buffer), Found::Nothing(6));
        std::thread::scope(|scope| {
            let reading = scope.spawn(|| {
                let mut buffer = [0; 4];
                (pieces.read(1, 11, &mut buffer), buffer)
            });
            pieces.arrived(&taken, Some(vec![0, 1, 2, 3, 4, 5]));
            assert_eq!(reading.join().unwrap(), (Found::Copied(4), [1, 2, 3, 4]));
        });
        assert_eq!(pieces.read(2, 11, &mut buffer), Found::Nothing(u64::MAX));
        assert_eq!(pieces.read(1, 15, &mut buffer), Found::Copied(1));
        assert_eq!(pieces.read(1, 15, &mut buffer), Found::Nothing(u64::MAX));
    }

    #[test]
    fn memory_is_bounded_and_failures_leave_nothing() {
        let pieces = Pieces::default();
        let half = MEMORY_BYTES / 2;
        for number in 0..3 {
            pieces.want(wanted(number * half..(number + 1) * half));
        }
        assert_eq!(lock(&pieces.state).pieces.len(), 2);
        let taken = pieces.take().unwrap();
        pieces.arrived(&taken, None);
        assert_eq!(lock(&pieces.state).held(), half);
        pieces.keep(1, 5 * half, vec![0; 10]);
        pieces.keep(1, 6 * half, vec![0; 20]);
        assert_eq!(lock(&pieces.state).held(), half + 30);
        pieces.close();
        assert_eq!(pieces.take(), None);
        assert_eq!(pieces.read(1, half, &mut [0]), Found::Nothing(u64::MAX));
    }
}
