//! MD5 in ordinary registers: one stream, or two or three side by side.
//!
//! The fastest there is for one stream where a vector's rotation takes more than one instruction: the
//! chain through a step is four operations in the second and third round and five in the others, of a
//! cycle each.

use std::ops::Range;

use super::rounds::{four_steps, rounds};
use super::{Block, Chain, Family, Starts, State, Width, blocks_at};

pub(super) static FAMILY: Family = Family {
    single,
    widths: &[
        Width::new(2, 115, lanes::<2>),
        Width::new(3, 143, lanes::<3>),
    ],
};

/// Adds blocks to one stream.
pub(super) fn single(chain: &mut Chain, blocks: &[Block]) {
    let mut words = chain.map(|word| [word]);
    for block in blocks {
        compress(&mut words, [block]);
    }
    *chain = words.map(|[word]| word);
}

/// # Safety
/// As for [`super::Lanes`]; no instructions beyond the target's.
pub(super) unsafe fn lanes<const N: usize>(
    state: &mut State,
    starts: &Starts,
    numbers: Range<usize>,
) {
    let mut words = state
        .words
        .each_ref()
        .map(|all| std::array::from_fn(|lane| all[lane]));
    for number in numbers {
        // SAFETY: the caller's promise is the same.
        let blocks = unsafe { blocks_at::<N>(starts, number) };
        compress(&mut words, blocks);
    }
    for (all, words) in state.words.iter_mut().zip(words) {
        all[..N].copy_from_slice(&words);
    }
}

#[inline(always)]
fn compress<const N: usize>(state: &mut [[u32; N]; 4], blocks: [&Block; N]) {
    let [mut a, mut b, mut c, mut d] = *state;
    let rows = blocks.map(|block| block.as_chunks::<4>().0);
    let words: [[u32; N]; 16] =
        std::array::from_fn(|word| std::array::from_fn(|n| u32::from_le_bytes(rows[n][word])));
    rounds!(a, b, c, d, words);
    for (words, added) in state.iter_mut().zip([a, b, c, d]) {
        for (word, added) in words.iter_mut().zip(added) {
            *word = word.wrapping_add(added);
        }
    }
}

/// Returns `x`, of which the compiler knows nothing any more; it emits nothing.
///
/// It keeps the compiler from adding up a sum in another order than the written one, in which the words that
/// come last are added last.
#[inline(always)]
#[allow(asm_sub_register, reason = "the register is named in a comment only")]
fn in_order(x: u32) -> u32 {
    #[cfg(all(not(miri), any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        let same;
        // SAFETY: there is no instruction but a comment.
        unsafe {
            std::arch::asm!("/* {0} */", inout(reg) x => same, options(pure, nomem, nostack, preserves_flags));
        }
        same
    }
    #[cfg(not(all(not(miri), any(target_arch = "x86_64", target_arch = "aarch64"))))]
    x
}

/// `b + rotate(early + late)`.
#[inline(always)]
fn finish<const LEFT: u32>(b: u32, early: u32, late: u32) -> u32 {
    b.wrapping_add(in_order(early).wrapping_add(late).rotate_left(LEFT))
}

#[inline(always)]
fn f<const LEFT: u32, const RIGHT: u32, const N: usize>(
    a: &mut [u32; N],
    [b, c, d]: [[u32; N]; 3],
    word: [u32; N],
    sine: u32,
) {
    for n in 0..N {
        let early = a[n].wrapping_add(word[n]).wrapping_add(sine);
        a[n] = finish::<LEFT>(b[n], early, d[n] ^ (b[n] & (c[n] ^ d[n])));
    }
}

/// The halves of the choice share no bit, so they may be added: only one of them waits for `b`.
#[inline(always)]
fn g<const LEFT: u32, const RIGHT: u32, const N: usize>(
    a: &mut [u32; N],
    [b, c, d]: [[u32; N]; 3],
    word: [u32; N],
    sine: u32,
) {
    for n in 0..N {
        let early = a[n]
            .wrapping_add(word[n])
            .wrapping_add(sine)
            .wrapping_add(c[n] & !d[n]);
        a[n] = finish::<LEFT>(b[n], early, b[n] & d[n]);
    }
}

#[inline(always)]
fn h<const LEFT: u32, const RIGHT: u32, const N: usize>(
    a: &mut [u32; N],
    [b, c, d]: [[u32; N]; 3],
    word: [u32; N],
    sine: u32,
) {
    for n in 0..N {
        let early = a[n].wrapping_add(word[n]).wrapping_add(sine);
        a[n] = finish::<LEFT>(b[n], early, b[n] ^ (c[n] ^ d[n]));
    }
}

#[inline(always)]
fn i<const LEFT: u32, const RIGHT: u32, const N: usize>(
    a: &mut [u32; N],
    [b, c, d]: [[u32; N]; 3],
    word: [u32; N],
    sine: u32,
) {
    for n in 0..N {
        let early = a[n].wrapping_add(word[n]).wrapping_add(sine);
        a[n] = finish::<LEFT>(b[n], early, c[n] ^ (b[n] | !d[n]));
    }
}
