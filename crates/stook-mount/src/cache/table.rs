//! Blocks in memory, and those on their way: a thread that needs a block finds it, waits for it, or is the one to fetch it.
//!
//! ```text
//!   claim ──> Here(block)
//!        ├──> Loading(flight)   another thread has claimed it: wait for that block, and no other
//!        └──> Claimed(claim)    fetch it: arrived(block), failed(error), or dropped: a waiting thread claims it anew
//! ```
//! Blocks that were fetched ahead and that nobody has read yet are counted: so much may be fetched ahead that none of them is dropped
//! unread. Of all blocks in memory the one that was used longest ago goes first; of two parts of a large table. Parts are locked apart
//! from each other, and no lock is held while anything is read or copied.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use stook_sys::lock;

use super::block::Block;
use super::counters::Counters;
use super::error::ReadError;
use super::flight::{Flight, Outcome};
use super::key::{BLOCK_BYTES, BlockKey};
use super::mirrors::Effort;

/// Parts that are locked apart from each other.
const PARTS: usize = 16;

/// Up to this budget all parts are looked at for the oldest block: 1024 blocks, some microseconds.
const SMALL_BUDGET: u64 = 256 << 20;

/// Blocks in memory and on their way.
#[derive(Debug)]
pub(super) struct BlockTable {
    parts: [Mutex<HashMap<BlockKey, Slot>>; PARTS],
    budget: u64,
    /// Parts that are looked at for the oldest block.
    looked_at: usize,
    held: AtomicU64,
    /// Bytes that were fetched ahead and that nobody has read.
    unread: AtomicU64,
    /// Counts uses; the time of a use is its number.
    uses: AtomicU64,
    counters: Arc<Counters>,
}

#[derive(Debug)]
enum Slot {
    Here {
        block: Block,
        used: u64,
        is_unread: bool,
    },
    Loading(Arc<Flight>),
}

/// What a thread finds that needs a block.
#[derive(Debug)]
pub(super) enum Claim {
    Here(Block),
    Loading(Arc<Flight>),
    Claimed(ClaimedBlock),
}

/// A block that the thread which has this is to fetch.
#[derive(Debug)]
pub(super) struct ClaimedBlock {
    table: Arc<BlockTable>,
    key: BlockKey,
    flight: Arc<Flight>,
    is_over: bool,
}

impl ClaimedBlock {
    pub(super) fn key(&self) -> &BlockKey {
        &self.key
    }

    /// Has the block, for somebody who reads it now, or ahead of a reader.
    pub(super) fn arrived(mut self, block: Block, effort: Effort) {
        let is_ahead = effort == Effort::Ahead;
        self.table
            .keep(self.key, block.clone(), &self.flight, is_ahead);
        self.end(Outcome::Arrived(block));
    }

    pub(super) fn failed(mut self, error: ReadError) {
        self.table.forget(&self.key);
        self.end(Outcome::Failed(error));
    }

    fn end(&mut self, outcome: Outcome) {
        self.is_over = true;
        self.flight.end(outcome);
    }
}

impl Drop for ClaimedBlock {
    fn drop(&mut self) {
        if !self.is_over {
            self.table.forget(&self.key);
            self.end(Outcome::Abandoned);
        }
    }
}

impl BlockTable {
    pub(super) fn new(budget: u64, counters: Arc<Counters>) -> Arc<Self> {
        Arc::new(Self {
            parts: Default::default(),
            budget,
            looked_at: if budget <= SMALL_BUDGET { PARTS } else { 2 },
            held: AtomicU64::new(0),
            unread: AtomicU64::new(0),
            uses: AtomicU64::new(0),
            counters,
        })
    }

    pub(super) fn held_bytes(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    /// Returns a block that is here.
    pub(super) fn get(&self, key: &BlockKey) -> Option<Block> {
        self.take(lock(self.part_of(key)).get_mut(key)?)
    }

    /// Uses a block, if it is here.
    fn take(&self, slot: &mut Slot) -> Option<Block> {
        let Slot::Here {
            block,
            used,
            is_unread,
        } = slot
        else {
            return None;
        };
        *used = self.uses.fetch_add(1, Ordering::Relaxed);
        if std::mem::take(is_unread) {
            self.unread.fetch_sub(block.len() as u64, Ordering::Relaxed);
        }
        Some(block.clone())
    }

    /// Returns what there is of a block; if there is nothing it is claimed.
    pub(super) fn claim(self: &Arc<Self>, key: BlockKey) -> Claim {
        let mut part = lock(self.part_of(&key));
        if let Some(block) = part.get_mut(&key).and_then(|slot| self.take(slot)) {
            return Claim::Here(block);
        }
        match part.get(&key) {
            Some(Slot::Loading(flight)) => {
                flight.want();
                Claim::Loading(Arc::clone(flight))
            }
            _ => {
                let flight = Arc::<Flight>::default();
                part.insert(key, Slot::Loading(Arc::clone(&flight)));
                Claim::Claimed(ClaimedBlock {
                    table: Arc::clone(self),
                    key,
                    flight,
                    is_over: false,
                })
            }
        }
    }

    /// Returns true if a block is here or on its way; this is no use of it.
    pub(super) fn is_known(&self, key: &BlockKey) -> bool {
        lock(self.part_of(key)).contains_key(key)
    }

    /// Claims a block that nobody has or fetches; what is there is not used by this.
    pub(super) fn claim_missing(self: &Arc<Self>, key: BlockKey) -> Option<ClaimedBlock> {
        // Between the two somebody may have claimed it: then this is a use, which does no harm.
        match self.is_known(&key) {
            true => None,
            false => match self.claim(key) {
                Claim::Claimed(claimed) => Some(claimed),
                _ => None,
            },
        }
    }

    /// Returns how many bytes may be fetched ahead now: half of the memory, without what nobody has read yet.
    pub(super) fn room_ahead(&self) -> u64 {
        (self.budget / 2).saturating_sub(self.unread.load(Ordering::Relaxed))
    }

    /// Drops all blocks that are here.
    pub(super) fn clear(&self) {
        for part in &self.parts {
            lock(part).retain(|_, slot| match slot {
                Slot::Here {
                    block, is_unread, ..
                } => {
                    self.dropped(block, *is_unread);
                    false
                }
                Slot::Loading(_) => true,
            });
        }
    }

    fn part_of(&self, key: &BlockKey) -> &Mutex<HashMap<BlockKey, Slot>> {
        // Blocks behind one another are in different parts.
        &self.parts[key.spread() % PARTS]
    }

    fn keep(&self, key: BlockKey, block: Block, flight: &Flight, is_ahead: bool) {
        let len = block.len() as u64;
        let used = self.uses.fetch_add(1, Ordering::Relaxed);
        if len > self.budget {
            self.forget(&key);
            return;
        }
        self.held.fetch_add(len, Ordering::Relaxed);
        let mut part = lock(self.part_of(&key));
        let is_unread = is_ahead && !flight.is_wanted();
        if is_unread {
            self.unread.fetch_add(len, Ordering::Relaxed);
        }
        part.insert(
            key,
            Slot::Here {
                block,
                used,
                is_unread,
            },
        );
        drop(part);
        while self.held_bytes() > self.budget {
            let is_evicted =
                self.evict_oldest(&key, self.looked_at) || self.evict_oldest(&key, PARTS);
            if !is_evicted {
                return;
            }
        }
    }

    /// Drops, of so many parts of the table, the block that was used longest ago; false if there is none but the newest of
    /// all.
    fn evict_oldest(&self, newest: &BlockKey, looked_at: usize) -> bool {
        let first = newest.spread();
        let parts = (first..first + looked_at).map(|place| &self.parts[place % PARTS]);
        let oldest_of = |part: &Mutex<HashMap<BlockKey, Slot>>| {
            let part = lock(part);
            let used = part.iter().filter_map(|(key, slot)| match slot {
                Slot::Here {
                    used, is_unread, ..
                } if key != newest => {
                    // What is about to be read counts as if it were used later than all that was read.
                    let bonus = if *is_unread {
                        self.budget / BLOCK_BYTES
                    } else {
                        0
                    };
                    Some((*used + bonus, *key))
                }
                _ => None,
            });
            used.min_by_key(|(used, _)| *used)
        };
        let Some((_, oldest)) = parts.filter_map(oldest_of).min_by_key(|(used, _)| *used) else {
            return false;
        };
        let mut part = lock(self.part_of(&oldest));
        if let Some(Slot::Here {
            block, is_unread, ..
        }) = part.get(&oldest)
        {
            self.dropped(block, *is_unread);
            self.counters.memory_evicted.increase();
            part.remove(&oldest);
        }
        true
    }

    fn dropped(&self, block: &Block, is_unread: bool) {
        let len = block.len() as u64;
        self.held.fetch_sub(len, Ordering::Relaxed);
        if is_unread {
            self.unread.fetch_sub(len, Ordering::Relaxed);
        }
    }

    fn forget(&self, key: &BlockKey) {
        lock(self.part_of(key)).remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::block::Origin;
    use crate::cache::key::VolumeKey;

    fn key(number: u64) -> BlockKey {
        let volume = VolumeKey([1; 16]);
        BlockKey { volume, number }
    }

    fn table(budget: u64) -> Arc<BlockTable> {
        BlockTable::new(budget, Arc::default())
    }

    fn block(byte: u8) -> Block {
        let origin = Origin {
            store: 1,
            validator: 2,
        };
        Block::new(vec![byte; 100], origin)
    }

    #[test]
    fn one_fetches_and_the_others_wait_for_it() {
        let table = table(1000);
        let Claim::Claimed(claimed) = table.claim(key(1)) else {
            panic!("it is not there")
        };
        std::thread::scope(|scope| {
            let waiting = [(); 4].map(|()| {
                let Claim::Loading(flight) = table.claim(key(1)) else {
                    panic!("it is on its way")
                };
                scope.spawn(move || flight.wait())
            });
            // Another block is another matter.
            assert!(matches!(table.claim(key(2)), Claim::Claimed(_)));
            claimed.arrived(block(7), Effort::Reader);
            for waiting in waiting {
                let outcome = waiting.join().unwrap();
                assert!(matches!(outcome, Outcome::Arrived(block) if *block == [7; 100]));
            }
        });
        assert!(matches!(table.claim(key(1)), Claim::Here(_)));
    }

    #[test]
    fn what_failed_is_claimed_anew() {
        let table = table(1000);
        for is_told in [true, false] {
            let claimed = table.claim_missing(key(1)).unwrap();
            let Claim::Loading(flight) = table.claim(key(1)) else {
                panic!("it is on its way")
            };
            if is_told {
                claimed.failed(ReadError::Closed);
                assert!(matches!(flight.wait(), Outcome::Failed(ReadError::Closed)));
            } else {
                drop(claimed);
                assert!(matches!(flight.wait(), Outcome::Abandoned));
            }
        }
        assert!(table.claim_missing(key(1)).is_some());
    }

    #[test]
    fn memory_is_bounded_and_what_is_used_stays() {
        let table = table(2000);
        for number in 0..200 {
            table
                .claim_missing(key(number))
                .unwrap()
                .arrived(block(1), Effort::Reader);
            assert!(table.held_bytes() <= 2000);
            assert!(
                number == 0 || matches!(table.claim(key(0)), Claim::Here(_)),
                "{number}"
            );
        }
        assert_eq!(table.counters.memory_evicted.get(), 180);
        table.clear();
        assert_eq!(table.held_bytes(), 0);
        let none = self::table(0);
        none.claim_missing(key(1))
            .unwrap()
            .arrived(block(1), Effort::Reader);
        assert_eq!(none.held_bytes(), 0);
        assert!(none.claim_missing(key(1)).is_some());
    }

    #[test]
    fn what_is_fetched_ahead_counts_until_it_is_read() {
        let table = table(1000);
        assert_eq!(table.room_ahead(), 500);
        let ahead = |number| table.claim_missing(key(number)).unwrap();
        ahead(1).arrived(block(1), Effort::Ahead);
        ahead(2).arrived(block(1), Effort::Ahead);
        assert_eq!(table.room_ahead(), 300);
        assert!(matches!(table.claim(key(1)), Claim::Here(_)));
        assert!(matches!(table.claim(key(1)), Claim::Here(_)));
        assert_eq!(table.room_ahead(), 400);
        // Somebody waits for it.
        let claimed = ahead(3);
        assert!(matches!(table.claim(key(3)), Claim::Loading(_)));
        claimed.arrived(block(1), Effort::Ahead);
        assert_eq!(table.room_ahead(), 400);
        // What is dropped unread does not count, either.
        for number in 10..40 {
            ahead(number).arrived(block(1), Effort::Reader);
        }
        assert_eq!(table.room_ahead(), 500);
    }
}
