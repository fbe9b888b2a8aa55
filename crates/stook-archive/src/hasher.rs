//! MD5 of volumes, on a thread of its own.
//!
//! ```text
//!   volume 3: [buffer][buffer][mark]...  ──┐
//!   volume 4: [buffer]                     ├──> one thread: a piece of each, side by side in lanes
//!   volume 5: [buffer][finish]           ──┘
//! ```
//! A volume's MD5 is one serial stream, so it must not hold up the writing: buffers that have been
//! written are handed to the thread. Streams of several volumes take hardly longer together than one
//! alone. A member that is given up is taken back out of the sum with [`VolumeHasher::mark`] and
//! [`VolumeHasher::rewind`].

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

use stook_md5::{Feed, Md5, update_many};
use stook_pool::Budget;
use stook_timers::scope;

use crate::ArchiveError;
use crate::buffers::Buffers;
use crate::memory::budget_bytes;

/// Bytes that may wait for the thread.
const WAITING_BYTES: usize = 16 << 20;

/// The thread; it ends when the last stream does.
#[derive(Debug)]
pub(crate) struct Hashing {
    shared: Arc<Shared>,
    sender: Option<Sender<(u64, Message)>>,
    thread: Option<JoinHandle<()>>,
    streams: AtomicU64,
}

#[derive(Debug)]
struct Shared {
    /// What waits, so that a fast writer does not fill the memory.
    waiting: Budget,
    /// Where buffers go once they are no longer needed.
    buffers: Arc<Buffers>,
}

/// The running MD5 of a volume; does nothing when no MD5 is wanted.
#[derive(Debug)]
pub(crate) struct VolumeHasher {
    stream: Option<(u64, Sender<(u64, Message)>)>,
    shared: Arc<Shared>,
}

/// An answer that comes when all before it is done.
pub(crate) type Answer<T> = Option<Receiver<T>>;

enum Message {
    Begin(Md5),
    Bytes(Vec<u8>),
    Mark,
    Rewind,
    State(SyncSender<Vec<u8>>),
    Finish(SyncSender<[u8; 16]>),
}

impl Hashing {
    /// # Errors
    /// `NoThread`.
    pub(crate) fn start(buffers: &Arc<Buffers>) -> Result<Self, ArchiveError> {
        let shared = Arc::new(Shared::new(buffers));
        let (sender, receiver) = channel();
        let spawner = stook_timers::spawner();
        let for_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new().spawn(move || {
            let _attached = spawner.attach();
            Streams::default().run(&receiver, &for_thread);
        });
        let thread = thread.map_err(ArchiveError::NoThread)?;
        Ok(Self {
            shared,
            sender: Some(sender),
            thread: Some(thread),
            streams: AtomicU64::new(0),
        })
    }

    /// Returns a hasher for a volume whose MD5 is not wanted.
    pub(crate) fn none(&self) -> VolumeHasher {
        VolumeHasher {
            stream: None,
            shared: Arc::clone(&self.shared),
        }
    }

    /// Begins a stream.
    pub(crate) fn begin(&self) -> VolumeHasher {
        self.go_on(Md5::new())
    }

    /// Goes on from a state saved by [`VolumeHasher::state`]; None if it cannot be used.
    pub(crate) fn resume(&self, saved: &[u8]) -> Option<VolumeHasher> {
        Md5::from_state(saved).map(|md5| self.go_on(md5))
    }

    fn go_on(&self, md5: Md5) -> VolumeHasher {
        let stream = self.streams.fetch_add(1, Ordering::Relaxed);
        let sender = self.sender.clone().map(|sender| (stream, sender));
        let hasher = VolumeHasher {
            stream: sender,
            shared: Arc::clone(&self.shared),
        };
        hasher.send(Message::Begin(md5));
        hasher
    }

    /// Returns how many hashers there are: each step of the thread goes through all streams.
    #[cfg(test)]
    pub(crate) fn hashers(&self) -> usize {
        // One for this, one for the thread.
        Arc::strong_count(&self.shared) - 2
    }
}

impl Drop for Hashing {
    fn drop(&mut self) {
        drop(self.sender.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn new(buffers: &Arc<Buffers>) -> Self {
        Self {
            waiting: Budget::new(WAITING_BYTES.min(budget_bytes() / 2)),
            buffers: Arc::clone(buffers),
        }
    }
}

impl VolumeHasher {
    /// Returns a hasher that needs no thread, where no MD5 is wanted at all.
    pub(crate) fn none(buffers: &Arc<Buffers>) -> Self {
        Self {
            stream: None,
            shared: Arc::new(Shared::new(buffers)),
        }
    }

    /// Returns true if an MD5 is being taken.
    pub(crate) fn is_running(&self) -> bool {
        self.stream.is_some()
    }

    pub(crate) fn update(&self, bytes: Vec<u8>) {
        let Some((stream, sender)) = &self.stream else {
            return self.shared.buffers.give(bytes);
        };
        let len = bytes.len();
        self.shared.waiting.take(len);
        if sender.send((*stream, Message::Bytes(bytes))).is_err() {
            // The thread has panicked; who asks for the MD5 will hear of it.
            self.shared.waiting.give(len);
        }
    }

    /// Remembers the state before a member that may yet be given up.
    pub(crate) fn mark(&self) {
        self.send(Message::Mark);
    }

    /// Goes back to the last mark.
    pub(crate) fn rewind(&self) {
        self.send(Message::Rewind);
    }

    /// Asks for the state, from which a later run can go on.
    pub(crate) fn state(&self) -> Answer<Vec<u8>> {
        self.ask(Message::State)
    }

    /// Ends the stream and asks for the MD5 of everything.
    pub(crate) fn finish(self) -> Answer<[u8; 16]> {
        self.ask(Message::Finish)
    }

    fn send(&self, message: Message) {
        if let Some((stream, sender)) = &self.stream {
            // The thread ends only after all senders are gone.
            let _ = sender.send((*stream, message));
        }
    }

    fn ask<T>(&self, question: impl FnOnce(SyncSender<T>) -> Message) -> Answer<T> {
        self.stream.as_ref()?;
        let (sender, receiver) = sync_channel(1);
        self.send(question(sender));
        Some(receiver)
    }
}

/// Waits for an answer; None if no MD5 is taken.
///
/// # Panics
/// If the thread has panicked: a volume must not lose its MD5 in silence.
pub(crate) fn wait_for<T>(answer: Answer<T>) -> Option<T> {
    let answer = answer?.recv();
    Some(answer.expect("the MD5 thread answers all that it is asked"))
}

/// The streams, as the thread sees them.
#[derive(Default)]
struct Streams(BTreeMap<u64, Stream>);

struct Stream {
    md5: Md5,
    mark: Md5,
    waiting: VecDeque<Message>,
    /// Bytes of the first message that are done.
    done: usize,
}

impl Streams {
    fn run(&mut self, messages: &Receiver<(u64, Message)>, shared: &Shared) {
        while let Ok(first) = messages.recv() {
            self.accept(first);
            loop {
                messages.try_iter().for_each(|message| self.accept(message));
                self.answer_all();
                if !self.hash_a_piece_of_each(shared) {
                    break;
                }
            }
        }
    }

    fn accept(&mut self, (stream, message): (u64, Message)) {
        match message {
            Message::Begin(md5) => {
                let begun = Stream {
                    mark: md5.clone(),
                    md5,
                    waiting: VecDeque::new(),
                    done: 0,
                };
                self.0.insert(stream, begun);
            }
            other => {
                if let Some(stream) = self.0.get_mut(&stream) {
                    stream.waiting.push_back(other);
                }
            }
        }
    }

    /// Deals with everything up to the next bytes of each stream.
    fn answer_all(&mut self) {
        self.0.retain(|_, stream| stream.answer());
    }

    /// Adds to each stream as many bytes as all that have any can take, so that no lane is idle; false
    /// if there are none.
    fn hash_a_piece_of_each(&mut self, shared: &Shared) -> bool {
        let lens = self.0.values().filter_map(Stream::next_bytes);
        let Some(len) = lens.map(<[u8]>::len).min() else {
            return false;
        };
        let _scope = scope!("volume md5");
        let mut feeds = Vec::with_capacity(self.0.len());
        for stream in self.0.values_mut() {
            if let Some(Message::Bytes(bytes)) = stream.waiting.front() {
                let bytes = &bytes[stream.done..stream.done + len];
                stream.done += len;
                feeds.push(Feed {
                    md5: &mut stream.md5,
                    bytes,
                });
            }
        }
        update_many(&mut feeds);
        drop(feeds);
        for stream in self.0.values_mut() {
            stream.drop_done(shared);
        }
        true
    }
}

impl Stream {
    /// What is left of the bytes that are next.
    fn next_bytes(&self) -> Option<&[u8]> {
        match self.waiting.front() {
            Some(Message::Bytes(bytes)) => Some(&bytes[self.done..]),
            _ => None,
        }
    }

    fn drop_done(&mut self, shared: &Shared) {
        if self.next_bytes().is_some_and(<[u8]>::is_empty)
            && let Some(Message::Bytes(bytes)) = self.waiting.pop_front()
        {
            self.done = 0;
            shared.waiting.give(bytes.len());
            shared.buffers.give(bytes);
        }
    }

    /// Returns false when the stream has ended. Whoever asked may have gone; then nobody needs the answer.
    fn answer(&mut self) -> bool {
        while self.next_bytes().is_none() {
            match self.waiting.pop_front() {
                Some(Message::Mark) => self.mark = self.md5.clone(),
                Some(Message::Rewind) => self.md5 = self.mark.clone(),
                Some(Message::State(reply)) => {
                    let _ = reply.send(self.md5.state().to_vec());
                }
                Some(Message::Finish(reply)) => {
                    let _ = reply.send(self.md5.clone().finish());
                    return false;
                }
                Some(Message::Begin(_) | Message::Bytes(_)) | None => return true,
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use stook_md5::md5_many;

    use super::*;

    fn md5_of(bytes: &[u8]) -> [u8; 16] {
        md5_many(&[bytes])[0]
    }

    #[test]
    fn state_survives_a_restart() {
        let hashing = Hashing::start(&Arc::default()).unwrap();
        let first = hashing.begin();
        first.update(vec![1; 512 * 3]);
        let state = wait_for(first.state()).unwrap();
        let second = hashing.resume(&state).unwrap();
        second.update(vec![2; 100]);
        let whole = [vec![1; 512 * 3], vec![2; 100]].concat();
        assert_eq!(wait_for(second.finish()), Some(md5_of(&whole)));
        assert!(hashing.resume(b"short").is_none());
        assert_eq!(wait_for(hashing.none().finish()), None);
    }

    #[test]
    fn a_member_that_is_given_up_leaves_no_trace() {
        let hashing = Hashing::start(&Arc::default()).unwrap();
        let hasher = hashing.begin();
        hasher.update(b"kept".to_vec());
        hasher.mark();
        hasher.update(b"given up".to_vec());
        hasher.rewind();
        hasher.update(b" too".to_vec());
        assert_eq!(wait_for(hasher.finish()), Some(md5_of(b"kept too")));
    }

    #[test]
    fn streams_side_by_side_do_not_mix() {
        let hashing = Hashing::start(&Arc::default()).unwrap();
        let streams: Vec<VolumeHasher> = (0..20).map(|_| hashing.begin()).collect();
        let mut whole = vec![Vec::new(); streams.len()];
        for round in 0..50_usize {
            for (number, hasher) in (0_u8..).zip(&streams) {
                let len = (round * 977 + usize::from(number) * 131) % 5000;
                whole[usize::from(number)].extend(vec![number; len]);
                hasher.update(vec![number; len]);
            }
        }
        for (hasher, whole) in streams.into_iter().zip(&whole) {
            assert_eq!(wait_for(hasher.finish()), Some(md5_of(whole)));
        }
    }
}
