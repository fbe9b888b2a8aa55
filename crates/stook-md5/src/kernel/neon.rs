//! MD5 in vectors of NEON, which every 64-bit ARM has: 4 lanes, or twice 4 side by side.
#![allow(
    clippy::wildcard_imports,
    reason = "intrinsics have names of their own"
)]

use std::arch::aarch64::*;
use std::ops::Range;

use super::rounds::{four_steps, rounds};
use super::vectors::{choices, splits, vectors};
use super::{Block, Family, MAX_LANES, Starts, State, Width, blocks_at, scalar};

pub(super) static FAMILY: Family = Family {
    single: scalar::single,
    widths: &[
        Width::new(4, 112, lanes::<1, 4>),
        Width::new(8, 154, lanes::<2, 8>),
    ],
};

vectors! {
    uint32x4_t of 4 lanes with "neon" in vreg,
    vaddq_u32, vdupq_n_u32, vld1q_u32, vst1q_u32
}
splits! {
    uint32x4_t with "neon",
    vaddq_u32, vsubq_u32, rotate, vshlq_n_u32, vshrq_n_u32
}
choices! {
    uint32x4_t with "neon",
    vaddq_u32, vandq_u32, and_not, vorrq_u32, veorq_u32, vshlq_n_u32, vshrq_n_u32
}

/// `!x & y`.
#[inline]
#[target_feature(enable = "neon")]
fn and_not(x: uint32x4_t, y: uint32x4_t) -> uint32x4_t {
    vbicq_u32(y, x)
}

/// Four words of all blocks: a vector for each word.
#[inline]
#[target_feature(enable = "neon")]
fn load_quarter(blocks: &[&Block; 4], quarter: usize) -> [uint32x4_t; 4] {
    let [r0, r1, r2, r3] = blocks.map(|block| {
        let bytes = &block.as_chunks::<16>().0[quarter];
        // SAFETY: the reference is to 16 bytes.
        vreinterpretq_u64_u8(unsafe { vld1q_u8(bytes.as_ptr()) })
    });
    let words = vreinterpretq_u32_u64;
    // Lanes 0 and 2 of two rows, then of the rows beside them, make a quarter of a column each.
    let (even01, odd01) = (
        vtrn1q_u32(words(r0), words(r1)),
        vtrn2q_u32(words(r0), words(r1)),
    );
    let (even23, odd23) = (
        vtrn1q_u32(words(r2), words(r3)),
        vtrn2q_u32(words(r2), words(r3)),
    );
    let halves = vreinterpretq_u64_u32;
    [
        words(vtrn1q_u64(halves(even01), halves(even23))),
        words(vtrn1q_u64(halves(odd01), halves(odd23))),
        words(vtrn2q_u64(halves(even01), halves(even23))),
        words(vtrn2q_u64(halves(odd01), halves(odd23))),
    ]
}
