//! MD5 in vectors of SSE2, which every x86-64 has: 4 lanes, or twice 4 side by side.
#![allow(
    clippy::wildcard_imports,
    reason = "intrinsics have names of their own"
)]

use std::arch::x86_64::*;
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
    __m128i of 4 lanes with "sse2" in xmm_reg,
    _mm_add_epi32, _mm_set1_epi32, _mm_loadu_si128, _mm_storeu_si128
}
splits! {
    __m128i with "sse2",
    _mm_add_epi32, _mm_sub_epi32, rotate, _mm_slli_epi32, _mm_srli_epi32
}
choices! {
    __m128i with "sse2",
    _mm_add_epi32, _mm_and_si128, _mm_andnot_si128, _mm_or_si128, _mm_xor_si128, _mm_slli_epi32, _mm_srli_epi32
}

/// Four words of all blocks: a vector for each word.
#[inline]
#[target_feature(enable = "sse2")]
fn load_quarter(blocks: &[&Block; 4], quarter: usize) -> [__m128i; 4] {
    let [r0, r1, r2, r3] = blocks.map(|block| {
        let bytes = &block.as_chunks::<16>().0[quarter];
        // SAFETY: the reference is to 16 bytes, and the load needs no alignment.
        unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
    });
    let (low01, high01) = (_mm_unpacklo_epi32(r0, r1), _mm_unpackhi_epi32(r0, r1));
    let (low23, high23) = (_mm_unpacklo_epi32(r2, r3), _mm_unpackhi_epi32(r2, r3));
    [
        _mm_unpacklo_epi64(low01, low23),
        _mm_unpackhi_epi64(low01, low23),
        _mm_unpacklo_epi64(high01, high23),
        _mm_unpackhi_epi64(high01, high23),
    ]
}
