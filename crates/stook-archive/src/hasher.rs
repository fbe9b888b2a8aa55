//! MD5 of one stream, and of a volume on a thread of its own.
//!
//! A volume's MD5 is one serial stream, so it must not hold up the writing: buffers that have been
//! written are handed to the thread. A member that is given up is taken back out of the sum with
//! [`VolumeHasher::mark`] and [`VolumeHasher::rewind`].

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use md5::digest::common::hazmat::SerializableState;
use md5::{Digest, Md5};
use stook_timers::scope;

use crate::buffers::Buffers;

/// Adds a hole of a sparse file, which reads as zeros.
pub(crate) fn update_zeros(md5: &mut Md5, mut len: u64) {
    static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
    while len > 0 {
        let count = len.min(ZEROS.len() as u64);
        md5.update(&ZEROS[..usize::try_from(count).unwrap_or(0)]);
        len -= count;
    }
}

/// The running MD5 of a volume; does nothing when no MD5 is wanted.
#[derive(Debug)]
pub(crate) struct VolumeHasher {
    worker: Option<(SyncSender<Message>, JoinHandle<()>)>,
    /// Where buffers go once they are no longer needed.
    buffers: Arc<Buffers>,
}

enum Message {
    Bytes(Vec<u8>),
    Mark,
    Rewind,
    State(SyncSender<Vec<u8>>),
    Finish(SyncSender<[u8; 16]>),
}

/// Buffers that may wait for the thread; each holds a few MiB at most.
const QUEUE: usize = 4;

impl VolumeHasher {
    /// A hasher for a volume whose MD5 is not wanted.
    pub(crate) fn none(buffers: &Arc<Buffers>) -> Self {
        Self {
            worker: None,
            buffers: Arc::clone(buffers),
        }
    }

    /// Starts anew, or from a state saved by [`Self::state`]; None if the state cannot be used.
    pub(crate) fn start(saved: Option<&[u8]>, buffers: &Arc<Buffers>) -> Option<Self> {
        let md5 = match saved {
            Some(bytes) => Md5::deserialize(bytes.try_into().ok()?).ok()?,
            None => Md5::new(),
        };
        let (sender, receiver) = sync_channel(QUEUE);
        let spawner = stook_timers::spawner();
        let give_back = Arc::clone(buffers);
        let thread = std::thread::spawn(move || {
            let _attached = spawner.attach();
            run(md5, &receiver, &give_back);
        });
        Some(Self {
            worker: Some((sender, thread)),
            buffers: Arc::clone(buffers),
        })
    }

    /// Returns true if an MD5 is being taken.
    pub(crate) fn is_running(&self) -> bool {
        self.worker.is_some()
    }

    pub(crate) fn update(&self, bytes: Vec<u8>) {
        if self.is_running() {
            self.send(Message::Bytes(bytes));
        } else {
            self.buffers.give(bytes);
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

    /// Returns the state, from which a later run can go on.
    pub(crate) fn state(&self) -> Option<Vec<u8>> {
        self.ask(Message::State)
    }

    /// Returns the MD5 of everything.
    pub(crate) fn finish(self) -> Option<[u8; 16]> {
        self.ask(Message::Finish)
    }

    fn send(&self, message: Message) {
        if let Some((sender, _)) = &self.worker {
            // The thread ends only after the channel does.
            let _ = sender.send(message);
        }
    }

    fn ask<T>(&self, question: impl FnOnce(SyncSender<T>) -> Message) -> Option<T> {
        self.worker.as_ref()?;
        let (sender, receiver) = sync_channel(1);
        self.send(question(sender));
        receiver.recv().ok()
    }
}

impl Drop for VolumeHasher {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.worker.take() {
            drop(sender);
            let _ = thread.join();
        }
    }
}

fn run(mut md5: Md5, messages: &Receiver<Message>, buffers: &Buffers) {
    let mut mark = md5.clone();
    for message in messages {
        // Whoever asked may have gone; then nobody needs the answer.
        match message {
            Message::Bytes(bytes) => {
                let _scope = scope!("volume md5");
                md5.update(&bytes);
                buffers.give(bytes);
            }
            Message::Mark => mark = md5.clone(),
            Message::Rewind => md5 = mark.clone(),
            Message::State(reply) => drop(reply.send(md5.serialize().to_vec())),
            Message::Finish(reply) => drop(reply.send(md5.clone().finalize().into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn md5_of(bytes: &[u8]) -> [u8; 16] {
        Md5::digest(bytes).into()
    }

    #[test]
    fn state_survives_a_restart() {
        let first = VolumeHasher::start(None, &Arc::default()).unwrap();
        first.update(vec![1; 512 * 3]);
        let state = first.state().unwrap();
        let second = VolumeHasher::start(Some(&state), &Arc::default()).unwrap();
        second.update(vec![2; 100]);
        let whole = [vec![1; 512 * 3], vec![2; 100]].concat();
        assert_eq!(second.finish(), Some(md5_of(&whole)));
        assert!(VolumeHasher::start(Some(b"short"), &Arc::default()).is_none());
        assert_eq!(VolumeHasher::none(&Arc::default()).finish(), None);
    }

    #[test]
    fn a_member_that_is_given_up_leaves_no_trace() {
        let hasher = VolumeHasher::start(None, &Arc::default()).unwrap();
        hasher.update(b"kept".to_vec());
        hasher.mark();
        hasher.update(b"given up".to_vec());
        hasher.rewind();
        hasher.update(b" too".to_vec());
        assert_eq!(hasher.finish(), Some(md5_of(b"kept too")));
    }
}
