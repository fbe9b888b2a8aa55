//! Feeds streams in pieces cut by arbitrary bytes, with every kernel, and compares with the `md-5` crate.
#![no_main]

use libfuzzer_sys::fuzz_target;
use md5::Digest;
use stook_md5::{Feed, Kernel, Md5, md5_many, select, update_many};

/// Which stream gets how many bytes, round by round: two bytes of the input make one piece.
fn rounds<'a>(bytes: &'a [u8], streams: usize) -> Vec<Vec<(usize, &'a [u8])>> {
    let mut rounds = vec![Vec::new()];
    for cut in bytes.as_chunks::<2>().0 {
        let (stream, scale) = (usize::from(cut[0]) % streams, usize::from(cut[0] >> 6));
        // Up to some blocks, and around their ends; the longest are longer than any other.
        let len = (usize::from(cut[1]) << (2 * scale)).min(bytes.len());
        let last: &mut Vec<(usize, &[u8])> =
            rounds.last_mut().expect("there is one from the start");
        if last.iter().any(|(other, _)| *other == stream) {
            rounds.push(vec![(stream, &bytes[..len])]);
        } else {
            last.push((stream, &bytes[bytes.len() - len..]));
        }
    }
    rounds
}

fuzz_target!(|bytes: &[u8]| {
    let Some((first, bytes)) = bytes.split_first() else {
        return;
    };
    let streams = 1 + usize::from(*first) % 70;
    let rounds = rounds(bytes, streams);
    let mut whole = vec![Vec::new(); streams];
    for (stream, piece) in rounds.iter().flatten() {
        whole[*stream].extend_from_slice(piece);
    }
    let expected: Vec<[u8; 16]> = whole
        .iter()
        .map(|stream| md5::Md5::digest(stream).into())
        .collect();
    let messages: Vec<&[u8]> = whole.iter().map(Vec::as_slice).collect();
    for kernel in Kernel::available() {
        select(kernel).expect("it is available");
        let mut sums = vec![Md5::new(); streams];
        for round in &rounds {
            let mut pieces = vec![&[][..]; streams];
            for (stream, piece) in round {
                pieces[*stream] = piece;
            }
            let pairs = sums.iter_mut().zip(pieces);
            let mut feeds: Vec<Feed<'_>> = pairs.map(|(md5, bytes)| Feed { md5, bytes }).collect();
            update_many(&mut feeds);
        }
        let digests: Vec<[u8; 16]> = sums.into_iter().map(Md5::finish).collect();
        assert_eq!(digests, expected, "{kernel}");
        assert_eq!(md5_many(&messages), expected, "{kernel}");
    }
});
