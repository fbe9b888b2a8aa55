//! The block functions of MD5, one family for each instruction set, and the choice between them.
//!
//! A family has a function for one stream, the fastest on a single chain of dependent steps, and functions
//! for several lanes. Lane `n` of every vector belongs to stream `n`; words get there by transposing four words
//! of all lanes at a time. No function allocates, schedules, or knows of padding.
//!
//! ```text
//! avx512.rs  avx2.rs  sse2.rs  neon.rs     instructions, loads, widths
//!     └────────┴──┬─────┴────────┘
//!            vectors.rs    scalar.rs       how a step is computed
//!                 └──┬────────┘
//!                rounds.rs                 the order of the steps
//! ```

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod neon;
mod rounds;
mod scalar;
#[cfg(target_arch = "x86_64")]
mod sse2;
#[cfg(any(
    target_arch = "x86_64",
    all(target_arch = "aarch64", target_endian = "little")
))]
mod vectors;

use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::sync::atomic::{AtomicU8, Ordering};

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
use neon as portable;
#[cfg(not(any(
    target_arch = "x86_64",
    all(target_arch = "aarch64", target_endian = "little")
)))]
use scalar as portable;
#[cfg(target_arch = "x86_64")]
use sse2 as portable;

/// Bytes in a block.
pub(crate) const BLOCK_BYTES: usize = 64;

/// What one application of the block function takes in.
pub(crate) type Block = [u8; BLOCK_BYTES];

/// The most lanes any function has.
pub(crate) const MAX_LANES: usize = 32;

/// The state of one stream.
pub(crate) type Chain = [u32; 4];

/// The state before the first block.
pub(crate) const START: Chain = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];

/// The states of all lanes: word `w` of lane `n` is `words[w][n]`.
#[derive(Default)]
#[repr(align(64))]
pub(crate) struct State {
    pub(crate) words: [[u32; MAX_LANES]; 4],
}

/// For each lane the place where its block number 0 is, or would be; only some of its blocks need exist.
pub(crate) type Starts = [*const Block; MAX_LANES];

/// A function for one stream.
///
/// # Safety
/// The processor must have the instructions of the function's family.
pub(crate) type Single = unsafe fn(&mut Chain, &[Block]);

/// A function for several lanes: adds the blocks of these numbers to lanes 0 up to the width.
///
/// # Safety
/// The processor must have the instructions of the function's family, and each of the lanes must have
/// readable memory at all blocks of these numbers.
pub(crate) type Lanes = unsafe fn(&mut State, &Starts, Range<usize>);

/// A function for several lanes.
pub(crate) struct Width {
    pub(crate) lanes: usize,
    /// What one block in each lane costs, in hundredths of what one costs a single stream; measured.
    cost: usize,
    pub(crate) run: Lanes,
}

impl Width {
    const fn new(lanes: usize, cost: usize, run: Lanes) -> Self {
        Self { lanes, cost, run }
    }

    /// The cost of so many blocks, of which the longest stream has some and the others have equal parts.
    fn cost_of(&self, load: Load) -> usize {
        let lanes = self.lanes.min(load.streams);
        let others = (load.blocks - load.longest).div_ceil(lanes - 1);
        if others < load.longest {
            others * self.cost + (load.longest - others) * 100
        } else {
            load.blocks.div_ceil(lanes) * self.cost
        }
    }
}

/// What there is to do.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    pub(crate) streams: usize,
    /// Of all streams together.
    pub(crate) blocks: usize,
    /// Of the longest stream.
    pub(crate) longest: usize,
}

/// The functions of one instruction set.
pub(crate) struct Family {
    pub(crate) single: Single,
    /// In ascending order.
    pub(crate) widths: &'static [Width],
}

/// Which instructions MD5 is computed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kernel {
    /// Vectors of up to 512 bits: 32 lanes at most. One stream alone runs in a vector, too.
    Avx512 = 1,
    /// Vectors of up to 256 bits: 16 lanes at most.
    Avx2,
    /// Vectors of 128 bits that every processor of the target has, of SSE2 or NEON: 8 lanes at most.
    Portable,
    /// No vectors: up to three streams side by side in ordinary registers.
    Scalar,
}

/// All kernels, the one that is usually fastest first.
const KERNELS: [Kernel; 4] = [
    Kernel::Avx512,
    Kernel::Avx2,
    Kernel::Portable,
    Kernel::Scalar,
];

/// The kernel selected; 0 if there is none.
static SELECTED: AtomicU8 = AtomicU8::new(0);

impl Kernel {
    /// Returns the kernels this processor can run, the one that is usually fastest first.
    pub fn available() -> impl Iterator<Item = Self> {
        KERNELS.into_iter().filter(|kernel| kernel.is_supported())
    }

    /// Returns the kernel in use: the one selected, else the first of those available.
    #[must_use]
    pub fn current() -> Self {
        let selected = SELECTED.load(Ordering::Relaxed);
        let kernel = KERNELS.into_iter().find(|kernel| *kernel as u8 == selected);
        kernel
            .or_else(|| Self::available().next())
            .unwrap_or(Self::Portable)
    }

    /// Returns the name, from which it can be parsed: `avx512`, `avx2`, `portable` or `scalar`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Avx512 => "avx512",
            Self::Avx2 => "avx2",
            Self::Portable => "portable",
            Self::Scalar => "scalar",
        }
    }

    fn is_supported(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                std::arch::is_x86_feature_detected!("avx512f")
                    && std::arch::is_x86_feature_detected!("avx512vl")
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => std::arch::is_x86_feature_detected!("avx2"),
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx512 | Self::Avx2 => false,
            Self::Portable | Self::Scalar => true,
        }
    }

    fn family(self) -> &'static Family {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => &avx512::FAMILY,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => &avx2::FAMILY,
            Self::Scalar => &scalar::FAMILY,
            _ => &portable::FAMILY,
        }
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Kernel {
    type Err = UnknownKernel;

    fn from_str(text: &str) -> Result<Self, UnknownKernel> {
        let found = KERNELS.into_iter().find(|kernel| kernel.name() == text);
        found.ok_or(UnknownKernel)
    }
}

/// Makes all later calls of the process use this kernel.
///
/// Digests do not depend on it. Calls that run meanwhile keep to the kernel they began with.
///
/// # Errors
/// [`Unsupported`] if this processor cannot run it; the kernel in use stays.
pub fn select(kernel: Kernel) -> Result<(), Unsupported> {
    if !kernel.is_supported() {
        return Err(Unsupported { kernel });
    }
    SELECTED.store(kernel as u8, Ordering::Relaxed);
    Ok(())
}

/// The processor lacks the instructions of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unsupported {
    kernel: Kernel,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "this processor has no {}", self.kernel)
    }
}

impl std::error::Error for Unsupported {}

/// No kernel has this name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownKernel;

impl fmt::Display for UnknownKernel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = KERNELS.map(Kernel::name).join(", ");
        write!(formatter, "the kernels are {names}")
    }
}

impl std::error::Error for UnknownKernel {}

/// The family in use, with the proof that the processor can run it.
#[derive(Clone, Copy)]
pub(crate) struct Engine {
    family: &'static Family,
}

impl Engine {
    /// The family of the kernel in use.
    pub(crate) fn current() -> Self {
        Self {
            family: Kernel::current().family(),
        }
    }

    /// Returns how many lanes to use; further streams wait for a free one.
    ///
    /// In wide functions a lane is slower. That does not pay where one stream is so long that it goes on for
    /// long after the others.
    pub(crate) fn lanes_for(self, load: Load) -> usize {
        if load.streams < 2 {
            return 1;
        }
        let best = self
            .family
            .widths
            .iter()
            .min_by_key(|width| width.cost_of(load));
        best.map_or(1, |width| width.lanes)
    }

    /// Returns the narrowest function for so many streams; None if that is the one for a single stream.
    pub(crate) fn width_for(self, streams: usize) -> Option<&'static Width> {
        let is_wide = |width: &&Width| streams > 1 && width.lanes >= streams;
        self.family.widths.iter().find(is_wide)
    }

    /// Adds blocks to one stream.
    pub(crate) fn single(self, chain: &mut Chain, blocks: &[Block]) {
        // SAFETY: `Kernel::current` is a kernel that `is_supported` has found the instructions for.
        unsafe { (self.family.single)(chain, blocks) }
    }
}

/// The block of a number in each lane.
///
/// # Safety
/// The first `N` lanes must have readable memory at this block, for as long as `'m`.
#[inline(always)]
unsafe fn blocks_at<'m, const N: usize>(starts: &Starts, number: usize) -> [&'m Block; N] {
    std::array::from_fn(|lane| {
        let block = starts[lane].wrapping_add(number);
        // SAFETY: the caller upholds it; a block is bytes and has no alignment.
        unsafe { &*block }
    })
}
