//! MD5 of streams that arrive in pieces, one by one or many at once.
//!
//! A stream keeps what does not fill a block until more comes. Its state can be saved and taken up again.

use std::fmt;

use crate::kernel::{BLOCK_BYTES, Block, Chain, Engine, START};
use crate::lanes::{self, Job};

/// Bytes of a saved state.
pub const STATE_BYTES: usize = 24 + BLOCK_BYTES;

/// The MD5 of one stream.
///
/// # Examples
/// ```
/// let mut md5 = stook_md5::Md5::new();
/// md5.update(b"a");
/// md5.update(b"bc");
/// assert_eq!(md5.finish(), stook_md5::md5_many(&[b"abc"])[0]);
/// ```
#[derive(Clone)]
pub struct Md5 {
    chain: Chain,
    /// Bytes so far.
    len: u64,
    /// The last bytes, which do not fill a block; behind them is what was there before.
    partial: Block,
}

/// Bytes that go to a stream.
#[derive(Debug)]
pub struct Feed<'a> {
    /// The stream.
    pub md5: &'a mut Md5,
    /// What comes next in it.
    pub bytes: &'a [u8],
}

impl Md5 {
    /// Returns the MD5 of a stream in which nothing has come yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            chain: START,
            len: 0,
            partial: [0; BLOCK_BYTES],
        }
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        let engine = Engine::current();
        let Job { chain, pieces } = self.take_in(bytes);
        for piece in pieces {
            engine.single(chain, piece);
        }
        self.keep_rest(bytes);
    }

    /// Returns the MD5 of all bytes.
    #[must_use]
    pub fn finish(mut self) -> [u8; 16] {
        let tail = Tail::new(&self.partial[..self.partial_len()], self.len);
        Engine::current().single(&mut self.chain, tail.blocks());
        digest(&self.chain)
    }

    /// Returns all there is to know of the stream, for [`Self::from_state`].
    ///
    /// The four words of the state, the number of whole blocks in eight bytes (all of them little-endian),
    /// the number of bytes behind them, and these bytes, filled up with zeros.
    #[must_use]
    pub fn state(&self) -> [u8; STATE_BYTES] {
        let mut bytes = [0; STATE_BYTES];
        let (chain, rest) = bytes.split_at_mut(16);
        chain.copy_from_slice(&digest(&self.chain));
        let (blocks, rest) = rest.split_at_mut(8);
        blocks.copy_from_slice(&(self.len / BLOCK_BYTES as u64).to_le_bytes());
        let partial = &self.partial[..self.partial_len()];
        rest[0] = partial.len().to_le_bytes()[0];
        rest[1..=partial.len()].copy_from_slice(partial);
        bytes
    }

    /// Returns the stream whose [`Self::state`] this is; None if it cannot be one.
    #[must_use]
    pub fn from_state(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; STATE_BYTES] = bytes.try_into().ok()?;
        let (words, rest) = bytes.split_first_chunk::<16>()?;
        let (blocks, rest) = rest.split_first_chunk::<8>()?;
        let (partial_len, rest) = rest.split_first()?;
        let (partial, zeros) = rest.split_at_checked(usize::from(*partial_len))?;
        if zeros.iter().any(|byte| *byte != 0) {
            return None;
        }
        let blocks = u64::from_le_bytes(*blocks);
        let mut md5 = Self {
            chain: std::array::from_fn(|n| u32::from_le_bytes(words.as_chunks().0[n])),
            len: blocks.wrapping_mul(BLOCK_BYTES as u64) + u64::from(*partial_len),
            ..Self::new()
        };
        md5.partial[..partial.len()].copy_from_slice(partial);
        Some(md5)
    }

    /// Takes in what fills a block. The job has the whole blocks; once it is done, `keep_rest` is due.
    fn take_in<'a>(&'a mut self, bytes: &'a [u8]) -> Job<'a> {
        let filled = self.partial_len();
        self.len = self.len.wrapping_add(bytes.len() as u64);
        let free = &mut self.partial[filled..];
        let mut pieces = [&[][..], bytes.as_chunks().0];
        if filled > 0 {
            let taken = bytes.len().min(free.len());
            let is_full = taken == free.len();
            free[..taken].copy_from_slice(&bytes[..taken]);
            pieces[1] = bytes[taken..].as_chunks().0;
            if is_full {
                pieces[0] = std::slice::from_ref(&self.partial);
            }
        }
        Job {
            chain: &mut self.chain,
            pieces,
        }
    }

    /// Keeps the last bytes of a piece that was taken in, if they belong to a block that is not full.
    fn keep_rest(&mut self, bytes: &[u8]) {
        let len = self.partial_len();
        // A piece shorter than that has been added to an older rest.
        if let Some(start) = bytes.len().checked_sub(len) {
            self.partial[..len].copy_from_slice(&bytes[start..]);
        }
    }

    fn partial_len(&self) -> usize {
        usize::from((self.len % BLOCK_BYTES as u64).to_le_bytes()[0])
    }
}

impl Default for Md5 {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Md5 {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Md5")
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

/// Adds bytes to many streams at once.
///
/// # Cost
/// Streams that get about as many bytes as the others cost least. One alone costs as much as with
/// [`Md5::update`]. Allocates about 60 bytes a stream.
pub fn update_many(feeds: &mut [Feed<'_>]) {
    let mut jobs: Vec<Job<'_>> = feeds
        .iter_mut()
        .map(|feed| feed.md5.take_in(feed.bytes))
        .collect();
    lanes::run(Engine::current(), &mut jobs);
    for feed in feeds {
        feed.md5.keep_rest(feed.bytes);
    }
}

/// Returns the MD5 of every message, in their order.
///
/// # Cost
/// Messages of about one length cost least. The longest ones are begun first, so that few lanes are idle at
/// the end. Allocates about 200 bytes a message.
#[must_use]
pub fn md5_many(messages: &[&[u8]]) -> Vec<[u8; 16]> {
    let mut chains = vec![START; messages.len()];
    let split = messages.iter().map(|message| message.as_chunks());
    let tails: Vec<Tail> = split
        .clone()
        .zip(messages)
        .map(|((_, rest), message)| Tail::new(rest, message.len() as u64))
        .collect();
    let mut jobs: Vec<Job<'_>> = split
        .zip(&tails)
        .zip(&mut chains)
        .map(|(((whole, _), tail), chain)| Job {
            chain,
            pieces: [whole, tail.blocks()],
        })
        .collect();
    lanes::run(Engine::current(), &mut jobs);
    chains.iter().map(digest).collect()
}

/// The end of a message with its padding: one block or two.
struct Tail {
    blocks: [Block; 2],
    count: usize,
}

impl Tail {
    /// The tail after whole blocks, from what is left of `len` bytes.
    fn new(rest: &[u8], len: u64) -> Self {
        let mut blocks = [[0; BLOCK_BYTES]; 2];
        blocks[0][..rest.len()].copy_from_slice(rest);
        blocks[0][rest.len()] = 0x80;
        // The length in bits takes the last eight bytes.
        let count = if rest.len() < BLOCK_BYTES - 8 { 1 } else { 2 };
        let bits = len.wrapping_mul(8);
        blocks[count - 1][BLOCK_BYTES - 8..].copy_from_slice(&bits.to_le_bytes());
        Self { blocks, count }
    }

    fn blocks(&self) -> &[Block] {
        &self.blocks[..self.count]
    }
}

fn digest(chain: &Chain) -> [u8; 16] {
    let mut digest = [0; 16];
    for (bytes, word) in digest.as_chunks_mut::<4>().0.iter_mut().zip(chain) {
        *bytes = word.to_le_bytes();
    }
    digest
}
