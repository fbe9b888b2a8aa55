//! The stores that a volume can be read from, in turn: what each has under its name, and what is done when one fails.
//!
//! ```text
//!   a request ──> the mirror that answered last ──fails──> the next one ──> ... ──> all failed: pause, and again
//! ```
//! - A mirror is looked at once for each volume. Its validator holds for it alone: equal bytes have other entity tags elsewhere.
//! - A mirror whose volume has another size than the index says, or changes, is not asked for that volume any more.
//! - Blocks on disk carry the validator that they came with: those of another state than the mirror has now are not used, and a
//!   mirror that turns out to have another state than blocks that were given out is refused.
//! - One that lacks the volume is asked again a while later: somebody may be filling it.
//! - Pauses grow; after the deadline the error of the mirror that may come back, or else of the first one, is returned.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

use stook_store::{Advice, Store, StoreCause, StoreError, StoredFile};
use stook_sys::lock;

use super::block::Origin;
use super::counters::Counters;
use super::error::ReadError;
use super::key::VolumeIdentity;

/// The pause after all mirrors have failed; it doubles up to the second one, which is no longer than an interruption may
/// take.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_millis(900);

/// How long a mirror is not asked again for a volume that it does not have.
const ABSENCE: Duration = Duration::from_secs(10);

/// How hard is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effort {
    /// A reader waits: until the deadline.
    Reader,
    /// Nobody waits yet: each mirror once.
    Ahead,
}

/// What a mirror has under the name of a volume.
#[derive(Debug, Clone, Default)]
struct Copy {
    /// A file of the right size, and its validator: once it is known, nothing else is read from there.
    file: Option<StoredFile>,
    /// Why it is not asked.
    refused: Option<Refused>,
    /// The validator that blocks on disk came with which were given out before anybody looked.
    given: Option<u64>,
}

#[derive(Debug, Clone)]
struct Refused {
    error: ReadError,
    /// When it is asked again; None: never.
    end: Option<Instant>,
}

/// A volume as the mirrors have it.
#[derive(Debug)]
pub(super) struct Copies {
    pub(super) identity: VolumeIdentity,
    /// One for each mirror.
    copies: Vec<Mutex<Copy>>,
    /// Whether somebody has looked before the first block on disk was used.
    has_looked: Once,
}

impl Copies {
    pub(super) fn new(identity: VolumeIdentity, mirrors: &Mirrors) -> Self {
        Self {
            identity,
            copies: mirrors.stores.iter().map(|_| Mutex::default()).collect(),
            has_looked: Once::new(),
        }
    }
}

/// The stores, and which of them answered last.
#[derive(Debug)]
pub(super) struct Mirrors {
    stores: Vec<Arc<dyn Store>>,
    /// Hashes of their names.
    hashes: Vec<u64>,
    deadline: Duration,
    is_offline: bool,
    preferred: AtomicUsize,
    counters: Arc<Counters>,
    /// Set once the cache is closed, which ends pauses.
    is_closed: Mutex<bool>,
    closed: Condvar,
}

/// Why a round over all mirrors has failed.
#[derive(Debug, Default)]
struct Failed {
    first: Option<ReadError>,
    /// Of one that may come back.
    passing: Option<ReadError>,
}

impl Failed {
    fn add(&mut self, error: ReadError) {
        let may_pass = matches!(&error, ReadError::Store(error) if error.advice() == Advice::Retry);
        if may_pass && self.passing.is_none() {
            self.passing = Some(error.clone());
        }
        self.first.get_or_insert(error);
    }
}

impl Mirrors {
    pub(super) fn new(
        stores: Vec<Arc<dyn Store>>,
        deadline: Duration,
        is_offline: bool,
        counters: Arc<Counters>,
    ) -> Self {
        Self {
            hashes: stores
                .iter()
                .map(|store| Origin::hash(store.name()))
                .collect(),
            stores,
            deadline,
            is_offline,
            preferred: AtomicUsize::new(0),
            counters,
            is_closed: Mutex::default(),
            closed: Condvar::new(),
        }
    }

    pub(super) fn is_offline(&self) -> bool {
        self.is_offline
    }

    pub(super) fn is_closed(&self) -> bool {
        *lock(&self.is_closed)
    }

    /// Ends all pauses; what is asked for from now on fails.
    pub(super) fn close(&self) {
        *lock(&self.is_closed) = true;
        self.closed.notify_all();
    }

    /// Returns how messages name the place of the volumes.
    pub(super) fn name(&self) -> &str {
        self.stores.first().map_or("", |store| store.name())
    }

    /// Finds a mirror that has the volume: the only one that is asked for it from now on, since nothing but this file says
    /// what the volume is.
    pub(super) fn bind(&self, copies: &Copies) -> Result<(usize, StoredFile), ReadError> {
        let name = || copies.identity.name.clone();
        if self.is_offline {
            return Err(ReadError::Unidentified { name: name() });
        }
        let bound = self.ask(copies, Effort::Reader, &mut |number, file| {
            Ok((number, file.clone()))
        })?;
        let elsewhere = ReadError::NoStore { name: name() };
        for (number, copy) in copies.copies.iter().enumerate() {
            if number != bound.0 {
                let error = elsewhere.clone();
                lock(copy).refused = Some(Refused { error, end: None });
            }
        }
        Ok(bound)
    }

    /// Returns whether a block on disk is of the state that a mirror has now, or of the one that others had which were given
    /// out, as far as anybody knows.
    pub(super) fn accepts(&self, copies: &Copies, origin: Origin) -> bool {
        copies.has_looked.call_once(|| {
            if !self.is_offline && !self.stores.is_empty() {
                let preferred = self.preferred.load(Ordering::Relaxed);
                // If nobody can be asked what is here must do.
                if let Err(error) = self.file_at(copies, preferred) {
                    self.remember(copies, preferred, &error);
                }
            }
        });
        let number = self.hashes.iter().position(|hash| *hash == origin.store);
        let Some(number) = number else {
            // From a place that is no mirror now: its name, size and MD5 are those of the index.
            return true;
        };
        let mut copy = lock(&copies.copies[number]);
        let known = copy.file.as_ref().map(Origin::validator_of);
        let expected = known.unwrap_or_else(|| *copy.given.get_or_insert(origin.validator));
        expected == origin.validator
    }

    /// Returns the name of a mirror.
    pub(super) fn store_name(&self, number: usize) -> &str {
        self.stores[number].name()
    }

    /// Reads a part of a volume from one mirror or another. `read` goes on where it was, whichever it is given.
    pub(super) fn read(
        &self,
        copies: &Copies,
        effort: Effort,
        read: &mut dyn FnMut(&dyn Store, &StoredFile) -> Result<(), StoreError>,
    ) -> Result<(), ReadError> {
        self.ask(copies, effort, &mut |number, file| {
            self.counters.fetches.increase();
            read(&*self.stores[number], file)
        })
    }

    fn ask<T>(
        &self,
        copies: &Copies,
        effort: Effort,
        attempt: &mut dyn FnMut(usize, &StoredFile) -> Result<T, StoreError>,
    ) -> Result<T, ReadError> {
        let end = Instant::now() + self.deadline;
        let mut pause = FIRST_PAUSE;
        loop {
            let mut failed = Failed::default();
            if let Some(done) = self.ask_each(copies, end, &mut failed, attempt)? {
                return Ok(done);
            }
            let may_go_on = effort == Effort::Reader && Instant::now() + pause < end;
            match failed.passing {
                Some(_) if may_go_on => self.wait(pause)?,
                Some(error) => return Err(error),
                None => {
                    let name = copies.identity.name.clone();
                    return Err(failed.first.unwrap_or(ReadError::NoStore { name }));
                }
            }
            self.counters.retries.increase();
            pause = LONGEST_PAUSE.min(pause * 2);
        }
    }

    /// Asks each mirror once, the one that answered last first; None if all have failed.
    fn ask_each<T>(
        &self,
        copies: &Copies,
        end: Instant,
        failed: &mut Failed,
        attempt: &mut dyn FnMut(usize, &StoredFile) -> Result<T, StoreError>,
    ) -> Result<Option<T>, ReadError> {
        let count = self.stores.len();
        let first = self.preferred.load(Ordering::Relaxed);
        for turn in 0..count {
            let number = (first + turn) % count;
            let answer = self.file_at(copies, number).and_then(|file| {
                if turn > 0 {
                    self.counters.failovers.increase();
                }
                attempt(number, &file).map_err(ReadError::from)
            });
            match answer {
                Ok(done) => {
                    // Who lacks one volume is still the first to ask for others.
                    if failed.passing.is_some() {
                        self.preferred.store(number, Ordering::Relaxed);
                    }
                    return Ok(Some(done));
                }
                Err(error) => {
                    self.remember(copies, number, &error);
                    failed.add(error);
                }
            }
            if self.is_closed() {
                return Err(ReadError::Closed);
            }
            if Instant::now() >= end {
                break;
            }
        }
        Ok(None)
    }

    /// Returns what a mirror has under the name of the volume.
    fn file_at(&self, copies: &Copies, number: usize) -> Result<StoredFile, ReadError> {
        let copy = lock(&copies.copies[number]).clone();
        let is_over = |end: Option<Instant>| end.is_some_and(|end| Instant::now() >= end);
        if let Some(refused) = copy.refused.filter(|refused| !is_over(refused.end)) {
            return Err(refused.error);
        }
        if let Some(file) = copy.file {
            return Ok(file);
        }
        // Not under the lock: two that look at once do no harm.
        let (store, identity) = (&self.stores[number], &copies.identity);
        let of_file = |cause| StoreError {
            operation: "read",
            file: identity.name.clone(),
            store: store.name().to_owned(),
            cause,
        };
        let file = store.stat(&identity.name)?;
        let file = file.ok_or_else(|| of_file(StoreCause::NotFound))?;
        if let Some(expected) = identity.size.filter(|size| *size != file.size) {
            return Err(ReadError::Size {
                name: identity.name.clone(),
                store: store.name().to_owned(),
                expected,
                found: file.size,
            });
        }
        let mut copy = lock(&copies.copies[number]);
        let validator = Origin::validator_of(&file);
        if copy.file.is_none() && copy.given.is_some_and(|given| given != validator) {
            return Err(of_file(StoreCause::Changed).into());
        }
        // Of two that looked at once the first one counts: all reads are of one state.
        Ok(copy.file.get_or_insert(file).clone())
    }

    /// Remembers what keeps a mirror from being asked for this volume again.
    fn remember(&self, copies: &Copies, number: usize, error: &ReadError) {
        let end = match error {
            ReadError::Size { .. } => None,
            ReadError::Store(error) => match error.cause {
                StoreCause::Changed | StoreCause::NoRanges => None,
                StoreCause::NotFound => Some(Instant::now() + ABSENCE),
                _ => return,
            },
            _ => return,
        };
        let error = error.clone();
        lock(&copies.copies[number]).refused = Some(Refused { error, end });
    }

    fn wait(&self, pause: Duration) -> Result<(), ReadError> {
        let is_closed = lock(&self.is_closed);
        let waited = self
            .closed
            .wait_timeout_while(is_closed, pause, |is_closed| !*is_closed);
        let (is_closed, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if *is_closed {
            return Err(ReadError::Closed);
        }
        Ok(())
    }
}
