//! The scheduler: which stream is in which lane, and when it leaves.
//!
//! A stream joins a lane and leaves it at block boundaries, so streams of any lengths mix:
//! ```text
//! clock     0    1    2    3    4    5    6    7
//! lane 0   [A    A    A    A    A][a   ][F    F   ...     a piece, then a second one, then the next stream
//! lane 1   [B    B   ][b    b   ][E    E    E ...
//! lane 2   [C    C    C    C    C    C    C   ...
//! ```
//! All lanes go on together until the first of them comes to the end of its piece. Live lanes are always
//! the first ones: when no stream is waiting, the last live lane moves into one that became free, and
//! narrower functions take over. The longest streams are begun first, so that few lanes idle at the end.

use std::ops::Range;

use crate::kernel::{Block, Chain, Engine, Load, MAX_LANES, Starts, State};

/// Blocks to be added to one stream: a piece, then another one.
pub(crate) struct Job<'m> {
    pub(crate) chain: &'m mut Chain,
    pub(crate) pieces: [&'m [Block]; 2],
}

/// Does all jobs.
pub(crate) fn run(engine: Engine, jobs: &mut [Job<'_>]) {
    let mut waiting = longest_last(jobs);
    let limit = engine.lanes_for(load(&waiting));
    let mut lanes = Lanes::new(engine, jobs);
    while lanes.live < limit
        && let Some((_, job)) = waiting.pop()
    {
        lanes.live += 1;
        lanes.join(lanes.live - 1, job);
    }
    while lanes.live > 0 {
        lanes.advance();
        for lane in (0..lanes.live).rev() {
            if lanes.ends[lane] == lanes.clock && !lanes.begin(lane) {
                lanes.leave(lane);
                match waiting.pop() {
                    Some((_, job)) => lanes.join(lane, job),
                    None => lanes.close(lane),
                }
            }
        }
    }
}

/// The numbers of blocks and of the jobs that have any, in ascending order of blocks.
fn longest_last(jobs: &[Job<'_>]) -> Vec<(usize, usize)> {
    let blocks = |job: &Job<'_>| job.pieces[0].len() + job.pieces[1].len();
    let mut keys: Vec<(usize, usize)> = jobs.iter().map(blocks).zip(0..).collect();
    keys.retain(|(blocks, _)| *blocks > 0);
    keys.sort_unstable();
    keys
}

fn load(waiting: &[(usize, usize)]) -> Load {
    Load {
        streams: waiting.len(),
        blocks: waiting.iter().map(|(blocks, _)| blocks).sum(),
        longest: waiting.last().map_or(0, |(blocks, _)| *blocks),
    }
}

struct Lanes<'j, 'm> {
    engine: Engine,
    jobs: &'j mut [Job<'m>],
    state: State,
    /// Lanes in use; those behind them are idle.
    live: usize,
    /// Blocks that every lane has gone through since the first of them began.
    clock: usize,
    /// In each live lane there is memory at the blocks from `clock` to `ends`, and it is that of the job.
    starts: Starts,
    ends: [usize; MAX_LANES],
    /// What comes after the present piece.
    next: [&'m [Block]; MAX_LANES],
    /// The job of each lane.
    job: [usize; MAX_LANES],
}

impl<'j, 'm> Lanes<'j, 'm> {
    fn new(engine: Engine, jobs: &'j mut [Job<'m>]) -> Self {
        Self {
            engine,
            jobs,
            state: State::default(),
            live: 0,
            clock: 0,
            starts: [std::ptr::null(); MAX_LANES],
            ends: [0; MAX_LANES],
            next: [&[]; MAX_LANES],
            job: [0; MAX_LANES],
        }
    }

    /// Puts a job that has blocks into a lane.
    fn join(&mut self, lane: usize, number: usize) {
        let job = &self.jobs[number];
        for (all, word) in self.state.words.iter_mut().zip(*job.chain) {
            all[lane] = word;
        }
        let [first, second] = job.pieces;
        self.job[lane] = number;
        self.set_piece(lane, first);
        self.next[lane] = second;
        if first.is_empty() {
            self.begin(lane);
        }
    }

    fn set_piece(&mut self, lane: usize, piece: &'m [Block]) {
        self.starts[lane] = piece.as_ptr().wrapping_sub(self.clock);
        self.ends[lane] = self.clock + piece.len();
    }

    /// Goes on to the next piece of a lane; false if there is none.
    fn begin(&mut self, lane: usize) -> bool {
        let piece = std::mem::take(&mut self.next[lane]);
        self.set_piece(lane, piece);
        !piece.is_empty()
    }

    /// Gives the job of a lane its state.
    fn leave(&mut self, lane: usize) {
        let job = &mut self.jobs[self.job[lane]];
        for (word, all) in job.chain.iter_mut().zip(&self.state.words) {
            *word = all[lane];
        }
    }

    /// Moves the last live lane into a free one.
    fn close(&mut self, lane: usize) {
        self.live -= 1;
        let last = self.live;
        for all in &mut self.state.words {
            all[lane] = all[last];
        }
        self.starts[lane] = self.starts[last];
        self.ends[lane] = self.ends[last];
        self.next[lane] = self.next[last];
        self.job[lane] = self.job[last];
    }

    /// Goes on in all lanes to the first end of a piece.
    fn advance(&mut self) {
        let end = self.ends[..self.live]
            .iter()
            .copied()
            .min()
            .unwrap_or(self.clock);
        let numbers = self.clock..end;
        self.clock = end;
        let Some(width) = self.engine.width_for(self.live) else {
            return self.advance_alone(numbers);
        };
        // An idle lane goes through the blocks of another one, for nothing.
        for lane in self.live..width.lanes {
            self.starts[lane] = self.starts[0];
        }
        // SAFETY: the width is the engine's; each of its lanes has blocks up to its end, of which `end` is
        // the least.
        unsafe { (width.run)(&mut self.state, &self.starts, numbers) };
    }

    /// Goes on in the first lane, the only live one.
    fn advance_alone(&mut self, numbers: Range<usize>) {
        let start = self.starts[0].wrapping_add(numbers.start);
        // SAFETY: the lane has memory at all of these blocks, which belongs to its job.
        let blocks = unsafe { std::slice::from_raw_parts(start, numbers.len()) };
        let mut chain = self.state.words.each_ref().map(|all| all[0]);
        self.engine.single(&mut chain, blocks);
        for (all, word) in self.state.words.iter_mut().zip(chain) {
            all[0] = word;
        }
    }
}
