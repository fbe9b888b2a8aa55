//! What is in the files: text of made-up words, or noise.
//!
//! Words are as frequent as in a language, so text shrinks to about a third as real text does; noise does not shrink.
//! No two files share content, so neither does a whole set shrink more than its files. A file consists of
//! pieces of 64 KiB, each from the file's key and its own number.

use crate::random::Random;

/// Bytes of a piece.
pub(super) const PIECE: usize = 64 << 10;

/// Bytes of a word with what stands behind it, at most.
const SLOT: usize = 16;

/// Bits of the number of a slot.
const SLOT_BITS: u32 = 12;

/// How many slots there are.
const SLOTS: usize = 1 << SLOT_BITS;

/// The language is the same in all sets.
const LANGUAGE: u64 = 0x7374_6f6f_6b21;

/// Makes content.
#[derive(Debug)]
pub(super) struct Content {
    /// Words, as often as they are likely.
    slots: Vec<([u8; SLOT], usize)>,
}

/// Memory for a piece, with space for the end of its last word.
#[derive(Debug)]
pub(super) struct Piece(Vec<u8>);

impl Default for Piece {
    fn default() -> Self {
        Self(vec![0; PIECE + SLOT])
    }
}

impl Content {
    pub(super) fn new() -> Self {
        let mut random = Random::new(LANGUAGE);
        let words: Vec<String> = (0..1 << 10).map(|_| word(&mut random)).collect();
        let slots = (0..SLOTS).map(|slot| {
            // Ten octaves of ranks, each as likely as the others: the distribution of Zipf.
            let octave = slot * 10 / SLOTS;
            let rank = (1 << octave) + slot % (1 << octave);
            let behind = ["\n", ", ", ". "];
            let behind = behind.get(random.index(14)).unwrap_or(&" ");
            let text = [&words[rank], *behind].concat();
            let mut bytes = [b' '; SLOT];
            bytes[..text.len()].copy_from_slice(text.as_bytes());
            (bytes, text.len())
        });
        Self {
            slots: slots.collect(),
        }
    }

    /// Returns the first `length` bytes of a piece, at most [`PIECE`].
    pub(super) fn piece<'a>(
        &self,
        is_text: bool,
        key: u64,
        number: u64,
        length: usize,
        piece: &'a mut Piece,
    ) -> &'a [u8] {
        let random = Random::new(Random::new(key).bits() ^ number);
        let length = length.min(PIECE);
        if is_text {
            self.fill_with_text(random, length, &mut piece.0);
        } else {
            fill_with_noise(random, &mut piece.0[..length]);
        }
        &piece.0[..length]
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "the number of a slot is small"
    )]
    fn fill_with_text(&self, mut random: Random, length: usize, into: &mut [u8]) {
        let mut at = 0;
        while at < length {
            let mut bits = random.bits();
            for _ in 0..u64::BITS / SLOT_BITS {
                let (text, text_length) = &self.slots[bits as usize % SLOTS];
                if at >= length {
                    return;
                }
                // All of the slot, as that is one move; the next word goes over what is not of this one.
                into[at..at + SLOT].copy_from_slice(text);
                at += text_length;
                bits >>= SLOT_BITS;
            }
        }
    }
}

fn fill_with_noise(mut random: Random, into: &mut [u8]) {
    for chunk in into.chunks_mut(8) {
        chunk.copy_from_slice(&random.bits().to_le_bytes()[..chunk.len()]);
    }
}

/// A word of one to five syllables.
fn word(random: &mut Random) -> String {
    let consonants = b"bcdfghklmnprstvz";
    let vowels = b"aeiou";
    let syllables = 1 + random.index(3) + random.index(3);
    let mut word = String::new();
    for _ in 0..syllables {
        word.push(char::from(consonants[random.index(consonants.len())]));
        word.push(char::from(vowels[random.index(vowels.len())]));
        if random.index(3) == 0 && word.len() < SLOT - 5 {
            word.push(char::from(consonants[random.index(consonants.len())]));
        }
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shorter_piece_is_the_beginning_of_a_longer_one() {
        let content = Content::new();
        let made = |is_text, length| {
            let mut piece = Piece::default();
            content.piece(is_text, 7, 1, length, &mut piece).to_vec()
        };
        for is_text in [true, false] {
            let whole = made(is_text, PIECE);
            assert_eq!(whole.len(), PIECE);
            for length in [0, 1, 7, 21, 4095, PIECE - 1] {
                assert_eq!(made(is_text, length), whole[..length]);
            }
        }
    }

    #[test]
    fn text_is_lines_of_words_and_noise_has_every_byte() {
        let content = Content::new();
        let mut piece = Piece::default();
        let text = content.piece(true, 7, 0, PIECE, &mut piece).to_vec();
        let text = String::from_utf8(text).unwrap();
        let lines = text.lines().count();
        assert!((500..2000).contains(&lines), "{lines}");
        assert!(
            text.bytes()
                .all(|byte| byte.is_ascii_lowercase() || b" ,.\n".contains(&byte))
        );
        let noise = content.piece(false, 7, 0, PIECE, &mut piece);
        let mut counts = [0; 256];
        for byte in noise {
            counts[usize::from(*byte)] += 1;
        }
        assert!(
            counts.iter().all(|count| (150..370).contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    fn every_word_fits_into_its_slot() {
        let content = Content::new();
        assert!(
            content
                .slots
                .iter()
                .all(|(_, length)| (3..=SLOT).contains(length))
        );
    }
}
