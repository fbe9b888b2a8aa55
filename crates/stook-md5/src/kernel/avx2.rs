//! MD5 in vectors of AVX2: 4 lanes, 8, or twice 8 side by side.
//!
//! One vector's steps take four or five cycles each, of which its instructions fill a part; two vectors
//! fill the core. One stream alone is faster in ordinary registers, whose rotation is one instruction.
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
        Width::new(4, 110, four::lanes::<1, 4>),
        Width::new(8, 113, eight::lanes::<1, 8>),
        Width::new(16, 160, eight::lanes::<2, 16>),
    ],
};

/// Words `4 * quarter` to `4 * quarter + 3` of a block.
#[inline]
#[target_feature(enable = "avx2")]
fn load_row(block: &Block, quarter: usize) -> __m128i {
    let bytes = &block.as_chunks::<16>().0[quarter];
    // SAFETY: the reference is to 16 bytes, and the load needs no alignment.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

mod four {
    use super::*;

    vectors! {
        __m128i of 4 lanes with "avx2" in xmm_reg,
        _mm_add_epi32, _mm_set1_epi32, _mm_loadu_si128, _mm_storeu_si128
    }
    splits! {
        __m128i with "avx2",
        _mm_add_epi32, _mm_sub_epi32, rotate, _mm_slli_epi32, _mm_srli_epi32
    }
    choices! {
        __m128i with "avx2",
        _mm_add_epi32, _mm_and_si128, _mm_andnot_si128, _mm_or_si128, _mm_xor_si128, _mm_slli_epi32, _mm_srli_epi32
    }

    /// Four words of all blocks: a vector for each word.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn load_quarter(blocks: &[&Block; 4], quarter: usize) -> [__m128i; 4] {
        let [r0, r1, r2, r3] = std::array::from_fn(|n| load_row(blocks[n], quarter));
        let (low01, high01) = (_mm_unpacklo_epi32(r0, r1), _mm_unpackhi_epi32(r0, r1));
        let (low23, high23) = (_mm_unpacklo_epi32(r2, r3), _mm_unpackhi_epi32(r2, r3));
        [
            _mm_unpacklo_epi64(low01, low23),
            _mm_unpackhi_epi64(low01, low23),
            _mm_unpacklo_epi64(high01, high23),
            _mm_unpackhi_epi64(high01, high23),
        ]
    }
}

mod eight {
    use super::*;

    vectors! {
        __m256i of 8 lanes with "avx2" in ymm_reg,
        _mm256_add_epi32, _mm256_set1_epi32, _mm256_loadu_si256, _mm256_storeu_si256
    }
    splits! {
        __m256i with "avx2",
        _mm256_add_epi32, _mm256_sub_epi32, rotate, _mm256_slli_epi32, _mm256_srli_epi32
    }
    choices! {
        __m256i with "avx2",
        _mm256_add_epi32, _mm256_and_si256, _mm256_andnot_si256, _mm256_or_si256, _mm256_xor_si256, _mm256_slli_epi32, _mm256_srli_epi32
    }

    /// Four words of all blocks: a vector for each word.
    ///
    /// Lanes `n` and `n + 4` share a row, so that loads do what crosses the halves of a vector.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn load_quarter(blocks: &[&Block; 8], quarter: usize) -> [__m256i; 4] {
        let [r0, r1, r2, r3] = std::array::from_fn(|n| {
            let low = _mm256_castsi128_si256(load_row(blocks[n], quarter));
            _mm256_inserti128_si256::<1>(low, load_row(blocks[n + 4], quarter))
        });
        let (low01, high01) = (_mm256_unpacklo_epi32(r0, r1), _mm256_unpackhi_epi32(r0, r1));
        let (low23, high23) = (_mm256_unpacklo_epi32(r2, r3), _mm256_unpackhi_epi32(r2, r3));
        [
            _mm256_unpacklo_epi64(low01, low23),
            _mm256_unpackhi_epi64(low01, low23),
            _mm256_unpacklo_epi64(high01, high23),
            _mm256_unpackhi_epi64(high01, high23),
        ]
    }
}
