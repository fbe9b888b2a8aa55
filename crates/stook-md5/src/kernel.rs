//! The MD5 block function on eight messages at once: lane `n` of every vector belongs to message `n`.
//!
//! Written on plain arrays, which the compiler turns into vector instructions: those of AVX2 in the copy
//! that is compiled for it, those of the target's baseline in the other.
//!
//! # Source
//! RFC 1321.

/// Messages at once.
pub(crate) const LANES: usize = 8;

/// Bytes in a block.
pub(crate) const BLOCK: usize = 64;

/// One word of each lane.
type Words = [u32; LANES];

/// The four state words of all lanes.
pub(crate) type State = [Words; 4];

/// The state before the first block.
pub(crate) const START: [u32; 4] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];

/// The integer part of 2^32 times the absolute sine of 1 to 64.
const SINES: [u32; 64] = [
    0xd76a_a478,
    0xe8c7_b756,
    0x2420_70db,
    0xc1bd_ceee,
    0xf57c_0faf,
    0x4787_c62a,
    0xa830_4613,
    0xfd46_9501,
    0x6980_98d8,
    0x8b44_f7af,
    0xffff_5bb1,
    0x895c_d7be,
    0x6b90_1122,
    0xfd98_7193,
    0xa679_438e,
    0x49b4_0821,
    0xf61e_2562,
    0xc040_b340,
    0x265e_5a51,
    0xe9b6_c7aa,
    0xd62f_105d,
    0x0244_1453,
    0xd8a1_e681,
    0xe7d3_fbc8,
    0x21e1_cde6,
    0xc337_07d6,
    0xf4d5_0d87,
    0x455a_14ed,
    0xa9e3_e905,
    0xfcef_a3f8,
    0x676f_02d9,
    0x8d2a_4c8a,
    0xfffa_3942,
    0x8771_f681,
    0x6d9d_6122,
    0xfde5_380c,
    0xa4be_ea44,
    0x4bde_cfa9,
    0xf6bb_4b60,
    0xbebf_bc70,
    0x289b_7ec6,
    0xeaa1_27fa,
    0xd4ef_3085,
    0x0488_1d05,
    0xd9d4_d039,
    0xe6db_99e5,
    0x1fa2_7cf8,
    0xc4ac_5665,
    0xf429_2244,
    0x432a_ff97,
    0xab94_23a7,
    0xfc93_a039,
    0x655b_59c3,
    0x8f0c_cc92,
    0xffef_f47d,
    0x8584_5dd1,
    0x6fa8_7e4f,
    0xfe2c_e6e0,
    0xa301_4314,
    0x4e08_11a1,
    0xf753_7e82,
    0xbd3a_f235,
    0x2ad7_d2bb,
    0xeb86_d391,
];

const SHIFTS: [[u32; 4]; 4] = [
    [7, 12, 17, 22],
    [5, 9, 14, 20],
    [4, 11, 16, 23],
    [6, 10, 15, 21],
];

/// Which copy of the block function runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kernel {
    #[cfg(target_arch = "x86_64")]
    Avx2,
    Portable,
}

impl Kernel {
    /// Returns the fastest one that this processor can run.
    pub(crate) fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            return Self::Avx2;
        }
        Self::Portable
    }

    /// Adds one block to each lane.
    pub(crate) fn compress(self, state: &mut State, blocks: &[&[u8; BLOCK]; LANES]) {
        match self {
            // SAFETY: the variant is made by `detect` alone, after it has found AVX2.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => unsafe { compress_avx2(state, blocks) },
            Self::Portable => compress(state, blocks),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn compress_avx2(state: &mut State, blocks: &[&[u8; BLOCK]; LANES]) {
    compress(state, blocks);
}

#[inline(always)]
fn compress(state: &mut State, blocks: &[&[u8; BLOCK]; LANES]) {
    let words = transpose(blocks);
    let [mut a, mut b, mut c, mut d] = *state;
    for (step, (sine, shift)) in SINES.into_iter().zip(shifts()).enumerate() {
        let (mixed, word) = match step / 16 {
            0 => (each(|n| d[n] ^ (b[n] & (c[n] ^ d[n]))), step),
            1 => (each(|n| c[n] ^ (d[n] & (b[n] ^ c[n]))), 5 * step + 1),
            2 => (each(|n| b[n] ^ c[n] ^ d[n]), 3 * step + 5),
            _ => (each(|n| c[n] ^ (b[n] | !d[n])), 7 * step),
        };
        let word = words[word % 16];
        let sum = each(|n| {
            a[n].wrapping_add(mixed[n])
                .wrapping_add(sine)
                .wrapping_add(word[n])
        });
        a = d;
        d = c;
        c = b;
        b = each(|n| b[n].wrapping_add(sum[n].rotate_left(shift)));
    }
    for (word, added) in state.iter_mut().zip([a, b, c, d]) {
        *word = each(|n| word[n].wrapping_add(added[n]));
    }
}

#[inline(always)]
fn shifts() -> impl Iterator<Item = u32> {
    (0..64).map(|step| SHIFTS[step / 16][step % 4])
}

#[inline(always)]
fn each(word: impl Fn(usize) -> u32) -> Words {
    std::array::from_fn(word)
}

/// Word `n` of all blocks, for every `n`.
#[inline(always)]
fn transpose(blocks: &[&[u8; BLOCK]; LANES]) -> [Words; 16] {
    std::array::from_fn(|word| {
        each(|lane| {
            let at = 4 * word;
            let block = blocks[lane];
            u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]])
        })
    })
}
