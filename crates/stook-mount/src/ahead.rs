//! Small files that are given to the kernel before it asks for them.
//!
//! ```text
//!   list d:   a b c d e f g h ...                    the kernel knows these files
//!   read a, b: in order                  ──worker──> c d e f        into the page cache: the reader asks for none of them
//!   read g: in order, behind all of these ─worker──> h i j k l m n o      each time twice as many
//! ```
//! A request and its answer wake two processes, which takes several times as long as to read a small file. Files are sent in the
//! order of their names, from the one on that is read, and only those of its directory that the kernel has been told of: it keeps
//! content of no others. A worker sends them, since the kernel makes it wait for readers of the same file, whom the thread that
//! takes requests may have to answer.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use stook_archive::{Catalogue, EntryId};
use stook_sys::lock;

/// Readers that are remembered; the one that came longest ago goes.
const STREAMS: usize = 16;

/// Entries that may lie between two files of one reader: large files and links among them are not sent.
const SLACK: u32 = 4;

/// Files that are sent first, and at most at a time.
const FIRST_FILES: u32 = 4;
const MOST_FILES: u32 = 64;

/// Bytes that are sent at a time, and one file more.
pub(crate) const MOST_BYTES: u64 = 1 << 20;

#[derive(Debug)]
pub(crate) struct Ahead {
    /// A bit for each entry that the kernel knows.
    known: Vec<AtomicU64>,
    /// The one that came last is the last.
    streams: Mutex<Vec<Stream>>,
}

#[derive(Debug, Clone, Copy)]
struct Stream {
    /// The file that was asked for when they were sent.
    begin: u32,
    /// The entry behind all that were read or sent.
    next: u32,
    files: u32,
}

impl Ahead {
    pub(crate) fn new(entries: usize) -> Self {
        let words = (0..entries.div_ceil(64)).map(|_| AtomicU64::new(0));
        Self {
            known: words.collect(),
            streams: Mutex::default(),
        }
    }

    pub(crate) fn set_known(&self, entry: EntryId) {
        let (word, bit) = place_of(entry);
        self.known[word].fetch_or(bit, Ordering::Relaxed);
    }

    pub(crate) fn forget(&self, entry: EntryId) {
        let (word, bit) = place_of(entry);
        self.known[word].fetch_and(!bit, Ordering::Relaxed);
    }

    pub(crate) fn is_known(&self, entry: EntryId) -> bool {
        let (word, bit) = place_of(entry);
        self.known[word].load(Ordering::Relaxed) & bit != 0
    }

    /// Learns that the kernel has asked for a small file; returns the entries to be sent.
    pub(crate) fn visit(&self, catalogue: &Catalogue, entry: EntryId) -> Option<Range<u32>> {
        let parent = catalogue.parent(entry)?;
        let end = catalogue.children(parent).next_back()?.number() + 1;
        let number = entry.number();
        let mut streams = lock(&self.streams);
        let belongs = |stream: &Stream| (stream.begin..stream.next + SLACK).contains(&number);
        let Some(place) = streams.iter().position(belongs) else {
            if streams.len() >= STREAMS {
                streams.remove(0);
            }
            streams.push(Stream {
                begin: number,
                next: number + 1,
                files: FIRST_FILES / 2,
            });
            return None;
        };
        let mut stream = streams.remove(place);
        if number < stream.next {
            // It is being sent.
            streams.push(stream);
            return None;
        }
        stream.files = (stream.files * 2).min(MOST_FILES);
        let ahead = number + 1..end.min(number + 1 + stream.files);
        (stream.begin, stream.next) = (number, ahead.end);
        streams.push(stream);
        let is_known = |&number: &u32| {
            let entry = catalogue.entry(number);
            entry.is_some_and(|entry| self.is_known(entry))
        };
        // Who looks up one name after the other has not been told of the next one.
        ahead.clone().next().filter(is_known)?;
        Some(ahead)
    }
}

fn place_of(entry: EntryId) -> (usize, u64) {
    let number = entry.number();
    ((number / 64) as usize, 1 << (number % 64))
}
