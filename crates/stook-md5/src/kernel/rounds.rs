//! The 64 steps of MD5 as a macro: each kernel brings its own step of each round, all share the order.
//!
//! A macro, because a rotation must be a literal for the instructions that take it so, and because steps
//! written out do not depend on the compiler's unrolling.
//!
//! # Source
//! RFC 1321.

/// Runs the steps of one block on four variables, with the functions `f`, `g`, `h` and `i` in scope.
///
/// A function `f::<LEFT, RIGHT, _>(&mut a, [b, c, d], word, sine)` does
/// `a = b + rotate(a + F(b, c, d) + word + sine)`; `LEFT` is the rotation and `RIGHT` what it lacks to 32.
/// `words[n]` is word `n` of the block. The optional statement is run for each quarter of the block before
/// the steps that use its words for the first time, so that loads are spread over the steps.
macro_rules! rounds {
    ($a:ident, $b:ident, $c:ident, $d:ident, $words:ident) => {
        rounds!($a, $b, $c, $d, $words, _quarter => {});
    };
    ($a:ident, $b:ident, $c:ident, $d:ident, $words:ident, $quarter:pat => $load:block) => {
        let $quarter = 0_usize;
        $load
        four_steps!(f [7 12 17 22] $a $b $c $d, $words [0 1 2 3] [0xd76a_a478 0xe8c7_b756 0x2420_70db 0xc1bd_ceee]);
        let $quarter = 1_usize;
        $load
        four_steps!(f [7 12 17 22] $a $b $c $d, $words [4 5 6 7] [0xf57c_0faf 0x4787_c62a 0xa830_4613 0xfd46_9501]);
        let $quarter = 2_usize;
        $load
        four_steps!(f [7 12 17 22] $a $b $c $d, $words [8 9 10 11] [0x6980_98d8 0x8b44_f7af 0xffff_5bb1 0x895c_d7be]);
        let $quarter = 3_usize;
        $load
        four_steps!(f [7 12 17 22] $a $b $c $d, $words [12 13 14 15] [0x6b90_1122 0xfd98_7193 0xa679_438e 0x49b4_0821]);
        four_steps!(g [5 9 14 20] $a $b $c $d, $words [1 6 11 0] [0xf61e_2562 0xc040_b340 0x265e_5a51 0xe9b6_c7aa]);
        four_steps!(g [5 9 14 20] $a $b $c $d, $words [5 10 15 4] [0xd62f_105d 0x0244_1453 0xd8a1_e681 0xe7d3_fbc8]);
        four_steps!(g [5 9 14 20] $a $b $c $d, $words [9 14 3 8] [0x21e1_cde6 0xc337_07d6 0xf4d5_0d87 0x455a_14ed]);
        four_steps!(g [5 9 14 20] $a $b $c $d, $words [13 2 7 12] [0xa9e3_e905 0xfcef_a3f8 0x676f_02d9 0x8d2a_4c8a]);
        four_steps!(h [4 11 16 23] $a $b $c $d, $words [5 8 11 14] [0xfffa_3942 0x8771_f681 0x6d9d_6122 0xfde5_380c]);
        four_steps!(h [4 11 16 23] $a $b $c $d, $words [1 4 7 10] [0xa4be_ea44 0x4bde_cfa9 0xf6bb_4b60 0xbebf_bc70]);
        four_steps!(h [4 11 16 23] $a $b $c $d, $words [13 0 3 6] [0x289b_7ec6 0xeaa1_27fa 0xd4ef_3085 0x0488_1d05]);
        four_steps!(h [4 11 16 23] $a $b $c $d, $words [9 12 15 2] [0xd9d4_d039 0xe6db_99e5 0x1fa2_7cf8 0xc4ac_5665]);
        four_steps!(i [6 10 15 21] $a $b $c $d, $words [0 7 14 5] [0xf429_2244 0x432a_ff97 0xab94_23a7 0xfc93_a039]);
        four_steps!(i [6 10 15 21] $a $b $c $d, $words [12 3 10 1] [0x655b_59c3 0x8f0c_cc92 0xffef_f47d 0x8584_5dd1]);
        four_steps!(i [6 10 15 21] $a $b $c $d, $words [8 15 6 13] [0x6fa8_7e4f 0xfe2c_e6e0 0xa301_4314 0x4e08_11a1]);
        four_steps!(i [6 10 15 21] $a $b $c $d, $words [4 11 2 9] [0xf753_7e82 0xbd3a_f235 0x2ad7_d2bb 0xeb86_d391]);
    };
}

/// Four steps, after which the variables are back in their places.
macro_rules! four_steps {
    (
        $step:ident [$s0:literal $s1:literal $s2:literal $s3:literal]
        $a:ident $b:ident $c:ident $d:ident,
        $words:ident [$w0:literal $w1:literal $w2:literal $w3:literal]
        [$k0:literal $k1:literal $k2:literal $k3:literal]
    ) => {
        $step::<$s0, { 32 - $s0 }, _>(&mut $a, [$b, $c, $d], $words[$w0], $k0);
        $step::<$s1, { 32 - $s1 }, _>(&mut $d, [$a, $b, $c], $words[$w1], $k1);
        $step::<$s2, { 32 - $s2 }, _>(&mut $c, [$d, $a, $b], $words[$w2], $k2);
        $step::<$s3, { 32 - $s3 }, _>(&mut $b, [$c, $d, $a], $words[$w3], $k3);
    };
}

pub(super) use {four_steps, rounds};
