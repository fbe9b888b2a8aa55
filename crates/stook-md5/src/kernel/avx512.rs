//! MD5 in vectors of AVX-512: one stream alone, 4 lanes, 8, 16, or twice 16 side by side.
//!
//! A round's function of three words is one instruction, and so is the rotation.
#![allow(
    clippy::wildcard_imports,
    reason = "intrinsics have names of their own"
)]

use std::arch::x86_64::*;
use std::ops::Range;

use super::rounds::{four_steps, rounds};
use super::vectors::{splits, vectors};
use super::{Block, Chain, Family, MAX_LANES, Starts, State, Width, blocks_at};

pub(super) static FAMILY: Family = Family {
    single: one::single,
    widths: &[
        Width::new(4, 105, four::lanes::<1, 4>),
        Width::new(8, 108, eight::lanes::<1, 8>),
        Width::new(16, 153, sixteen::lanes::<1, 16>),
        Width::new(32, 233, sixteen::lanes::<2, 32>),
    ],
};

/// Words `4 * quarter` to `4 * quarter + 3` of a block.
#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
fn load_row(block: &Block, quarter: usize) -> __m128i {
    let bytes = &block.as_chunks::<16>().0[quarter];
    // SAFETY: the reference is to 16 bytes, and the load needs no alignment.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

/// Makes the steps of the rounds. The numbers are the tables of their functions: bit `4 * b + 2 * c + d`.
macro_rules! tables {
    ($vector:ident, $rotate:ident, $logic:ident, $low32:ident, $high32:ident, $low64:ident, $high64:ident) => {
        tables!(f 0xca $vector $logic);
        tables!(g 0xe4 $vector $logic);
        tables!(h 0x96 $vector $logic);
        tables!(i 0x39 $vector $logic);

        #[inline]
        #[target_feature(enable = "avx512f,avx512vl")]
        fn rotate<const LEFT: i32, const RIGHT: i32>(x: $vector) -> $vector {
            $rotate::<LEFT>(x)
        }

        /// Four words of all blocks: a vector for each word. Each 128 bits are transposed by themselves.
        #[inline]
        #[target_feature(enable = "avx512f,avx512vl")]
        fn load_quarter<const LANES: usize>(blocks: &[&Block; LANES], quarter: usize) -> [$vector; 4] {
            let [r0, r1, r2, r3] = std::array::from_fn(|n| load_rows(blocks, n, quarter));
            let (low01, high01) = ($low32(r0, r1), $high32(r0, r1));
            let (low23, high23) = ($low32(r2, r3), $high32(r2, r3));
            [
                $low64(low01, low23),
                $high64(low01, low23),
                $low64(high01, high23),
                $high64(high01, high23),
            ]
        }
    };
    ($round:ident $table:literal $vector:ident $logic:ident) => {
        #[inline]
        #[target_feature(enable = "avx512f,avx512vl")]
        fn $round<const LEFT: i32, const RIGHT: i32, const N: usize>(
            a: &mut [$vector; N],
            [b, c, d]: [[$vector; N]; 3],
            word: [$vector; N],
            sine: u32,
        ) {
            for n in 0..N {
                let late = $logic::<$table>(b[n], c[n], d[n]);
                a[n] = finish::<LEFT, RIGHT, false, N>(b[n], begin(a[n], word[n], sine), late);
            }
        }
    };
}

mod four {
    use super::*;

    vectors! {
        __m128i of 4 lanes with "avx512f,avx512vl" in xmm_reg,
        _mm_add_epi32, _mm_set1_epi32, _mm_loadu_si128, _mm_storeu_si128
    }
    splits! {
        __m128i with "avx512f,avx512vl",
        _mm_add_epi32, _mm_sub_epi32, rotate, _mm_slli_epi32, _mm_srli_epi32
    }
    tables! {
        __m128i, _mm_rol_epi32, _mm_ternarylogic_epi32,
        _mm_unpacklo_epi32, _mm_unpackhi_epi32, _mm_unpacklo_epi64, _mm_unpackhi_epi64
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512vl")]
    fn load_rows<const LANES: usize>(
        blocks: &[&Block; LANES],
        row: usize,
        quarter: usize,
    ) -> __m128i {
        load_row(blocks[row], quarter)
    }
}

mod eight {
    use super::*;

    vectors! {
        __m256i of 8 lanes with "avx512f,avx512vl" in ymm_reg,
        _mm256_add_epi32, _mm256_set1_epi32, _mm256_loadu_si256, _mm256_storeu_si256
    }
    splits! {
        __m256i with "avx512f,avx512vl",
        _mm256_add_epi32, _mm256_sub_epi32, rotate, _mm256_slli_epi32, _mm256_srli_epi32
    }
    tables! {
        __m256i, _mm256_rol_epi32, _mm256_ternarylogic_epi32,
        _mm256_unpacklo_epi32, _mm256_unpackhi_epi32, _mm256_unpacklo_epi64, _mm256_unpackhi_epi64
    }

    /// Lanes `row` and `row + 4`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl")]
    pub(super) fn load_rows<const LANES: usize>(
        blocks: &[&Block; LANES],
        row: usize,
        quarter: usize,
    ) -> __m256i {
        let low = _mm256_castsi128_si256(load_row(blocks[row], quarter));
        _mm256_inserti128_si256::<1>(low, load_row(blocks[row + 4], quarter))
    }
}

mod sixteen {
    use super::*;

    vectors! {
        __m512i of 16 lanes with "avx512f,avx512vl" in zmm_reg,
        _mm512_add_epi32, _mm512_set1_epi32, _mm512_loadu_si512, _mm512_storeu_si512
    }
    tables! {
        __m512i, _mm512_rol_epi32, _mm512_ternarylogic_epi32,
        _mm512_unpacklo_epi32, _mm512_unpackhi_epi32, _mm512_unpacklo_epi64, _mm512_unpackhi_epi64
    }

    /// `b + rotate(early + late)`. A split rotation would be too much work: these vectors take two cycles' worth
    /// of a core that has units of 256 bits.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl")]
    fn finish<const LEFT: i32, const RIGHT: i32, const SUBTRACT: bool, const N: usize>(
        b: __m512i,
        early: __m512i,
        late: __m512i,
    ) -> __m512i {
        _mm512_add_epi32(
            b,
            rotate::<LEFT, RIGHT>(_mm512_add_epi32(in_order(early), late)),
        )
    }

    /// Lanes `row`, `row + 4`, `row + 8` and `row + 12`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl")]
    fn load_rows<const LANES: usize>(
        blocks: &[&Block; LANES],
        row: usize,
        quarter: usize,
    ) -> __m512i {
        let low = _mm512_castsi256_si512(eight::load_rows(blocks, row, quarter));
        _mm512_inserti64x4::<1>(low, eight::load_rows(blocks, row + 8, quarter))
    }
}

mod one {
    //! One stream, in all lanes of a vector.
    //!
    //! A step's chain is logic, addition, shift, addition, at a cycle each. It needs what is not part of the
    //! chain to be out of its way, so the order of the instructions is fixed, and ordinary registers, which
    //! are idle otherwise, add words and sines.

    use super::*;

    #[target_feature(enable = "avx512f,avx512vl")]
    pub(super) fn single(chain: &mut Chain, blocks: &[Block]) {
        let [mut a, mut b, mut c, mut d] =
            chain.map(|word| [_mm_cvtsi32_si128(word.cast_signed())]);
        for block in blocks {
            let before = [a, b, c, d];
            let words = block.as_chunks::<4>().0;
            rounds!(a, b, c, d, words);
            for (word, before) in [&mut a, &mut b, &mut c, &mut d].into_iter().zip(before) {
                word[0] = _mm_add_epi32(word[0], before[0]);
            }
        }
        *chain = [a, b, c, d].map(|[word]| _mm_cvtsi128_si32(word).cast_unsigned());
    }

    macro_rules! step {
        ($round:ident $table:literal) => {
            #[inline]
            #[target_feature(enable = "avx512f,avx512vl")]
            fn $round<const LEFT: i32, const RIGHT: i32, const N: usize>(
                a: &mut [__m128i; N],
                [b, c, d]: [[__m128i; N]; 3],
                word: [u8; 4],
                sine: u32,
            ) {
                let sum = u32::from_le_bytes(word).wrapping_add(sine);
                // SAFETY: the processor has the instructions, as the attribute says; the only memory they
                // read is `sum`.
                unsafe {
                    std::arch::asm!(
                        "vpaddd {early}, {a}, [{sum}]{{1to4}}",
                        "vmovdqa64 {late}, {b}",
                        "vpternlogd {late}, {c}, {d}, {table}",
                        "vpslld {base}, {early}, {left}",
                        "vpaddd {base}, {base}, {b}",
                        "vpaddd {early}, {early}, {late}",
                        "vpslld {late}, {late}, {left}",
                        "vpsrld {early}, {early}, {right}",
                        "vpaddd {base}, {base}, {late}",
                        "vpaddd {a}, {base}, {early}",
                        a = inout(xmm_reg) a[0],
                        b = in(xmm_reg) b[0],
                        c = in(xmm_reg) c[0],
                        d = in(xmm_reg) d[0],
                        early = out(xmm_reg) _,
                        late = out(xmm_reg) _,
                        base = out(xmm_reg) _,
                        sum = in(reg) &raw const sum,
                        table = const $table,
                        left = const LEFT,
                        right = const RIGHT,
                        options(pure, readonly, nostack, preserves_flags)
                    );
                }
            }
        };
    }
    step!(f 0xca);
    step!(g 0xe4);
    step!(h 0x96);
    step!(i 0x39);
}
