//! Files that are being read: their readers, and how far ahead of each it was read.
//!
//! The kernel does not say when a file is opened or closed (the answer ENOSYS ends that), so both are kept by file, and expire.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use stook_archive::{EntryId, MemberReader};
use stook_sys::lock;

/// Files whose readers are kept.
const MOST_READERS: usize = 512;

/// How long a reader stays without being used.
const EXPIRES: Duration = Duration::from_secs(30);

/// Bytes that are fetched ahead of somebody who reads in order, if that takes round trips: some 100 ms at 1 Gbit/s.
const AHEAD_BYTES: u64 = 8 << 20;

#[derive(Debug, Default)]
pub(crate) struct Readers {
    readers: Mutex<HashMap<EntryId, Kept>>,
}

#[derive(Debug)]
struct Kept {
    reader: Arc<MemberReader>,
    used: Instant,
    /// Where the last read ended.
    next: u64,
    /// What was asked for ahead ends here.
    ahead: u64,
}

impl Readers {
    pub(crate) fn get(&self, entry: EntryId) -> Option<Arc<MemberReader>> {
        let readers = lock(&self.readers);
        readers.get(&entry).map(|kept| Arc::clone(&kept.reader))
    }

    pub(crate) fn keep(&self, entry: EntryId, reader: &Arc<MemberReader>) {
        let mut readers = lock(&self.readers);
        if readers.len() >= MOST_READERS {
            drop_old(&mut readers);
        }
        readers.entry(entry).or_insert_with(|| Kept {
            reader: Arc::clone(reader),
            used: Instant::now(),
            next: 0,
            ahead: 0,
        });
    }

    /// Takes note of a read, and has fetched what comes next, if the file is read in order and lies far away.
    pub(crate) fn was_read(&self, entry: EntryId, offset: u64, len: u64) {
        let mut readers = lock(&self.readers);
        let Some(kept) = readers.get_mut(&entry) else {
            return;
        };
        kept.used = Instant::now();
        // The kernel reads ahead on its own, so a read may be some steps before or behind the last one.
        let is_in_order = offset.abs_diff(kept.next) <= AHEAD_BYTES / 8;
        let end = offset + len;
        kept.next = kept.next.max(end);
        if !is_in_order {
            (kept.next, kept.ahead) = (end, end);
            return;
        }
        let half_is_left = kept.ahead >= kept.next + AHEAD_BYTES / 2;
        if half_is_left || !kept.reader.is_far() || kept.next >= kept.reader.size() {
            return;
        }
        let (from, to) = (kept.ahead.max(kept.next), kept.next + AHEAD_BYTES);
        kept.ahead = to;
        let reader = Arc::clone(&kept.reader);
        drop(readers);
        reader.prefetch(from, to - from);
    }
}

/// Drops what nobody used for a while; if that is nothing, what was used longest ago.
fn drop_old(readers: &mut HashMap<EntryId, Kept>) {
    let now = Instant::now();
    readers.retain(|_, kept| now.duration_since(kept.used) < EXPIRES);
    if readers.len() < MOST_READERS {
        return;
    }
    let oldest = readers.iter().min_by_key(|(_, kept)| kept.used);
    if let Some(oldest) = oldest.map(|(&entry, _)| entry) {
        readers.remove(&oldest);
    }
}
