//! What the vector kernels have in common, as macros over their instructions.
//!
//! `vectors!` makes the function for several lanes, in `N` vectors side by side, whose steps do not depend
//! on each other. `choices!` makes the steps of the four rounds of instructions with two operands, and
//! `splits!` the end of a step.
//!
//! A sum is added up in a chosen order, the words that come last added last: `in_order` keeps the compiler
//! from the opposite, to which it likes to turn sums of three. It emits nothing.

/// Makes `lanes`, with the steps `f`, `g`, `h`, `i` and the function `load_quarter` in scope.
macro_rules! vectors {
    (
        $vector:ident of $lanes:literal lanes with $features:literal in $register:ident,
        $add:ident, $splat:ident, $load:ident, $store:ident
    ) => {
        /// Returns `x`, of which the compiler knows nothing any more.
        #[inline]
        #[target_feature(enable = $features)]
        #[allow(asm_sub_register, reason = "the register is named in a comment only")]
        fn in_order(x: $vector) -> $vector {
            #[cfg(not(miri))]
            {
                let same;
                // SAFETY: there is no instruction but a comment.
                unsafe {
                    std::arch::asm!("/* {0} */", inout($register) x => same, options(pure, nomem, nostack, preserves_flags));
                }
                same
            }
            #[cfg(miri)]
            x
        }

        /// `a + word + sine`.
        #[inline]
        #[target_feature(enable = $features)]
        fn begin(a: $vector, word: $vector, sine: u32) -> $vector {
            $add($add(a, $splat(sine as _)), word)
        }

        /// # Safety
        /// As for [`Lanes`](crate::kernel::Lanes); `LANES` is `N` times the lanes of a vector.
        #[target_feature(enable = $features)]
        pub(super) unsafe fn lanes<const N: usize, const LANES: usize>(
            state: &mut State,
            starts: &Starts,
            numbers: Range<usize>,
        ) {
            let [mut a, mut b, mut c, mut d] = state.words.each_ref().map(|all| load_state::<N>(all));
            for number in numbers {
                // SAFETY: the caller's promise is the same.
                let blocks = unsafe { blocks_at::<LANES>(starts, number) };
                let before = [a, b, c, d];
                let mut words = [[$splat(0); N]; 16];
                rounds!(a, b, c, d, words, quarter => {
                    for (n, blocks) in blocks.as_chunks::<$lanes>().0.iter().enumerate() {
                        let [w0, w1, w2, w3] = load_quarter(blocks, quarter);
                        words[4 * quarter][n] = w0;
                        words[4 * quarter + 1][n] = w1;
                        words[4 * quarter + 2][n] = w2;
                        words[4 * quarter + 3][n] = w3;
                    }
                });
                for (all, before) in [&mut a, &mut b, &mut c, &mut d].into_iter().zip(before) {
                    for (word, before) in all.iter_mut().zip(before) {
                        *word = $add(*word, before);
                    }
                }
            }
            for (all, vectors) in state.words.iter_mut().zip([a, b, c, d]) {
                store_state(all, vectors);
            }
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn load_state<const N: usize>(words: &[u32; MAX_LANES]) -> [$vector; N] {
            let words = words.as_chunks::<$lanes>().0;
            std::array::from_fn(|n| {
                let words = &words[n];
                // SAFETY: the reference is to as many bytes, and the load needs no alignment.
                unsafe { $load(words.as_ptr().cast()) }
            })
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn store_state<const N: usize>(words: &mut [u32; MAX_LANES], vectors: [$vector; N]) {
            for (words, vector) in words.as_chunks_mut::<$lanes>().0.iter_mut().zip(vectors) {
                // SAFETY: the reference is to as many bytes, and the store needs no alignment.
                unsafe { $store(words.as_mut_ptr().cast(), vector) }
            }
        }
    };
}

/// Makes the end of a step, and the rotation, for vectors of which one alone leaves instructions to spare.
macro_rules! splits {
    (
        $vector:ident with $features:literal,
        $add:ident, $sub:ident, $rotate:ident, $shift_left:ident, $shift_right:ident
    ) => {
        /// `b + rotate(early + late)`, or with `early - late`.
        ///
        /// Where one vector waits for its own results, the two parts of the rotation are added one by one, and
        /// the left part without waiting for the sum: its carries from below are cut off anyway. That takes a
        /// cycle off the way from `late` to the result, and two instructions more.
        #[inline]
        #[target_feature(enable = $features)]
        fn finish<const LEFT: i32, const RIGHT: i32, const SUBTRACT: bool, const N: usize>(
            b: $vector,
            early: $vector,
            late: $vector,
        ) -> $vector {
            let plus = |x, late| {
                if SUBTRACT {
                    $sub(x, late)
                } else {
                    $add(x, late)
                }
            };
            let early = in_order(early);
            let sum = plus(early, late);
            if N > 1 {
                return $add(b, $rotate::<LEFT, RIGHT>(sum));
            }
            let base = in_order($add(b, $shift_left::<LEFT>(early)));
            let high = in_order(plus(base, $shift_left::<LEFT>(late)));
            $add(high, $shift_right::<RIGHT>(sum))
        }
    };
}

/// Makes the steps of the rounds.
macro_rules! choices {
    ($vector:ident with $features:literal, $add:ident, $and:ident, $and_not:ident, $or:ident, $xor:ident, $shift_left:ident, $shift_right:ident) => {
        #[inline]
        #[target_feature(enable = $features)]
        fn rotate<const LEFT: i32, const RIGHT: i32>(x: $vector) -> $vector {
            $or($shift_left::<LEFT>(x), $shift_right::<RIGHT>(x))
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn f<const LEFT: i32, const RIGHT: i32, const N: usize>(
            a: &mut [$vector; N],
            [b, c, d]: [[$vector; N]; 3],
            word: [$vector; N],
            sine: u32,
        ) {
            for n in 0..N {
                let late = $xor(d[n], $and(b[n], $xor(c[n], d[n])));
                a[n] = finish::<LEFT, RIGHT, false, N>(b[n], begin(a[n], word[n], sine), late);
            }
        }

        /// The halves of the choice share no bit, so they may be added: only one of them waits for `b`.
        #[inline]
        #[target_feature(enable = $features)]
        fn g<const LEFT: i32, const RIGHT: i32, const N: usize>(
            a: &mut [$vector; N],
            [b, c, d]: [[$vector; N]; 3],
            word: [$vector; N],
            sine: u32,
        ) {
            for n in 0..N {
                let early = $add(begin(a[n], word[n], sine), $and_not(d[n], c[n]));
                a[n] = finish::<LEFT, RIGHT, false, N>(b[n], early, $and(b[n], d[n]));
            }
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn h<const LEFT: i32, const RIGHT: i32, const N: usize>(
            a: &mut [$vector; N],
            [b, c, d]: [[$vector; N]; 3],
            word: [$vector; N],
            sine: u32,
        ) {
            for n in 0..N {
                let late = $xor(b[n], $xor(c[n], d[n]));
                a[n] = finish::<LEFT, RIGHT, false, N>(b[n], begin(a[n], word[n], sine), late);
            }
        }

        /// `c ^ (b | !d)` is `!(c ^ (!b & d))`, and to add `!x` is to subtract `x` and one.
        #[inline]
        #[target_feature(enable = $features)]
        fn i<const LEFT: i32, const RIGHT: i32, const N: usize>(
            a: &mut [$vector; N],
            [b, c, d]: [[$vector; N]; 3],
            word: [$vector; N],
            sine: u32,
        ) {
            for n in 0..N {
                let late = $xor(c[n], $and_not(b[n], d[n]));
                a[n] = finish::<LEFT, RIGHT, true, N>(
                    b[n],
                    begin(a[n], word[n], sine.wrapping_sub(1)),
                    late,
                );
            }
        }
    };
}

pub(super) use {choices, splits, vectors};
