//! Content compared with the MD5s of the index while it is read.
//!
//! A member of up to 64 MiB is read as a whole before its first byte is given out. Of a larger one the MD5 is taken while it is
//! read in order: if it is wrong, the read that reaches the end fails. Who reads a large member in another order gets bytes
//! that nobody has verified.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use stook_archive::EntryId;
use stook_md5::Md5;
use stook_sys::lock;

/// Larger members are verified only while they are read in order.
pub(crate) const MOST_AT_ONCE: u64 = 64 << 20;

/// Large members whose MD5 is being taken.
const MOST_RUNS: usize = 64;

/// Slices of one member that came before the one that is next: the kernel has several reads under way.
const MOST_EARLY: usize = 128;

#[derive(Debug)]
pub(crate) struct Verified {
    /// A bit for each entry.
    is_right: Vec<AtomicU64>,
    under_way: Mutex<HashSet<EntryId>>,
    ended: Condvar,
    runs: Mutex<HashMap<EntryId, Run>>,
    /// Large members that are damaged. The kernel asks again for what it was refused: it must not get it then.
    wrong: Mutex<HashSet<EntryId>>,
}

/// The MD5 of a large member, as far as it was read in order.
struct Run {
    md5: Md5,
    next: u64,
    early: BTreeMap<u64, Vec<u8>>,
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run")
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

/// What came of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Right,
    Wrong,
    /// The end has not been reached, or not in order.
    Unknown,
}

impl Verified {
    pub(crate) fn new(entries: usize) -> Self {
        Self {
            is_right: (0..entries.div_ceil(64))
                .map(|_| AtomicU64::new(0))
                .collect(),
            under_way: Mutex::default(),
            ended: Condvar::new(),
            runs: Mutex::default(),
            wrong: Mutex::default(),
        }
    }

    pub(crate) fn is_right(&self, entry: EntryId) -> bool {
        let (word, bit) = place_of(entry);
        self.is_right[word].load(Ordering::Acquire) & bit != 0
    }

    pub(crate) fn set_right(&self, entry: EntryId) {
        let (word, bit) = place_of(entry);
        self.is_right[word].fetch_or(bit, Ordering::Release);
    }

    /// Verifies a member, once however many ask at the same time: the others wait, and then see whether it is right.
    pub(crate) fn once<E>(
        &self,
        entry: EntryId,
        verify: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        if self.is_right(entry) {
            return Ok(());
        }
        let mut under_way = lock(&self.under_way);
        while !under_way.insert(entry) {
            under_way = self
                .ended
                .wait(under_way)
                .unwrap_or_else(PoisonError::into_inner);
        }
        drop(under_way);
        let _end = End {
            verified: self,
            entry,
        };
        if self.is_right(entry) {
            return Ok(());
        }
        verify()?;
        self.set_right(entry);
        Ok(())
    }

    /// Begins the MD5 of a large member: its first byte has been asked for. Before workers add slices, in any order.
    pub(crate) fn begin(&self, entry: EntryId) {
        let mut runs = lock(&self.runs);
        if runs.len() < MOST_RUNS || runs.contains_key(&entry) {
            runs.insert(entry, Run::new());
        }
    }

    /// Adds a slice of a large member that was read; says what is known of it by now.
    pub(crate) fn add(
        &self,
        entry: EntryId,
        (size, expected): (u64, [u8; 16]),
        (offset, bytes): (u64, &[u8]),
    ) -> Verdict {
        if lock(&self.wrong).contains(&entry) {
            return Verdict::Wrong;
        }
        let mut runs = lock(&self.runs);
        let Some(run) = runs.get_mut(&entry) else {
            return Verdict::Unknown;
        };
        run.add(offset, bytes);
        if run.early.len() > MOST_EARLY {
            runs.remove(&entry);
            return Verdict::Unknown;
        }
        if run.next < size {
            return Verdict::Unknown;
        }
        let run = runs.remove(&entry);
        drop(runs);
        match run.map(|run| run.md5.finish()) {
            Some(found) if found == expected => {
                self.set_right(entry);
                Verdict::Right
            }
            Some(_) => {
                lock(&self.wrong).insert(entry);
                Verdict::Wrong
            }
            None => Verdict::Unknown,
        }
    }
}

struct End<'v> {
    verified: &'v Verified,
    entry: EntryId,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        lock(&self.verified.under_way).remove(&self.entry);
        self.verified.ended.notify_all();
    }
}

impl Run {
    fn new() -> Self {
        Self {
            md5: Md5::new(),
            next: 0,
            early: BTreeMap::new(),
        }
    }

    fn add(&mut self, offset: u64, bytes: &[u8]) {
        if offset > self.next {
            self.early.insert(offset, bytes.to_vec());
            return;
        }
        self.hash(offset, bytes);
        while let Some((&offset, _)) = self.early.first_key_value()
            && offset <= self.next
            && let Some(bytes) = self.early.remove(&offset)
        {
            self.hash(offset, &bytes);
        }
    }

    /// Part of it, or all, may have been read before.
    fn hash(&mut self, offset: u64, bytes: &[u8]) {
        let known = usize::try_from(self.next - offset).unwrap_or(usize::MAX);
        let Some(new) = bytes.get(known..) else {
            return;
        };
        self.md5.update(new);
        self.next += new.len() as u64;
    }
}

fn place_of(entry: EntryId) -> (usize, u64) {
    let number = entry.number();
    ((number / 64) as usize, 1 << (number % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: usize = 3000;

    fn content() -> Vec<u8> {
        (0..=250).cycle().take(SIZE).collect()
    }

    fn read(verified: &Verified, expected: [u8; 16], order: &[(usize, usize)]) -> Vec<Verdict> {
        let content = content();
        if order.iter().any(|(from, _)| *from == 0) {
            verified.begin(EntryId::ROOT);
        }
        let add = |&(from, to): &(usize, usize)| {
            let bytes = &content[from..to];
            verified.add(EntryId::ROOT, (SIZE as u64, expected), (from as u64, bytes))
        };
        order.iter().map(add).collect()
    }

    #[test]
    fn slices_may_come_early_and_twice() {
        let verified = Verified::new(1);
        let expected = stook_md5::md5_many(&[&content()])[0];
        let order = [(2000, 3000), (0, 1000), (500, 1500), (1500, 2100)];
        let verdicts = read(&verified, expected, &order);
        assert_eq!(verdicts[3], Verdict::Right);
        assert!(
            verdicts[..3]
                .iter()
                .all(|verdict| *verdict == Verdict::Unknown)
        );
        assert!(verified.is_right(EntryId::ROOT));
    }

    #[test]
    fn what_is_wrong_is_said_at_the_end() {
        let verified = Verified::new(1);
        let verdicts = read(&verified, [0; 16], &[(0, 1000), (1000, 3000)]);
        assert_eq!(verdicts, [Verdict::Unknown, Verdict::Wrong]);
        assert!(!verified.is_right(EntryId::ROOT));
        // Once that is known, nothing of it is given out.
        let verdicts = read(&verified, [0; 16], &[(1000, 1100)]);
        assert_eq!(verdicts, [Verdict::Wrong]);
        // Nothing is known of what was not read from its beginning.
        let verdicts = read(&Verified::new(1), [0; 16], &[(1000, 3000)]);
        assert_eq!(verdicts, [Verdict::Unknown]);
    }

    #[test]
    fn a_member_is_verified_once() {
        let verified = Verified::new(1);
        let calls = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    verified
                        .once(EntryId::ROOT, || {
                            calls.fetch_add(1, Ordering::Relaxed);
                            Ok::<(), ()>(())
                        })
                        .unwrap();
                });
            }
        });
        assert_eq!(calls.load(Ordering::Relaxed), 1);
        assert_eq!(verified.once(EntryId::ROOT, || Err("again")), Ok(()));
    }
}
