//! Streams that arrive in pieces.

use md5::Digest;
use md5::digest::common::hazmat::SerializableState;
use proptest::prelude::*;
use stook_md5::{Feed, Md5, STATE_BYTES, update_many};

use crate::each_kernel::{bytes, each_kernel, oracle};

/// Feeds the streams piece by piece, each round at once, and compares with the whole of each.
fn agrees(streams: &[Vec<Vec<u8>>]) {
    let expected: Vec<[u8; 16]> = streams
        .iter()
        .map(|pieces| oracle(&pieces.concat()))
        .collect();
    let rounds = streams.iter().map(Vec::len).max().unwrap_or(0);
    each_kernel(|kernel| {
        let mut sums = vec![Md5::new(); streams.len()];
        for round in 0..rounds {
            let with_piece = sums.iter_mut().zip(streams);
            let mut feeds: Vec<Feed<'_>> = with_piece
                .filter_map(|(md5, pieces)| {
                    let bytes = pieces.get(round)?;
                    Some(Feed { md5, bytes })
                })
                .collect();
            update_many(&mut feeds);
        }
        let digests: Vec<[u8; 16]> = sums.into_iter().map(Md5::finish).collect();
        assert_eq!(digests, expected, "{kernel}");
    });
}

#[test]
fn pieces_of_every_length_from_every_filling() {
    let all = bytes(3, 400);
    each_kernel(|kernel| {
        for first in 0..=65 {
            for second in [0, 1, 62, 63, 64, 65, 127, 128, 129, 200] {
                let mut md5 = Md5::new();
                md5.update(&all[..first]);
                md5.update(&all[first..first + second]);
                let expected = oracle(&all[..first + second]);
                assert_eq!(md5.finish(), expected, "{kernel}: {first} + {second}");
            }
        }
    });
}

#[test]
fn streams_join_and_leave() {
    let pieces = |n: usize| {
        (0..n % 5)
            .map(|round| bytes(n + round, n * round * 37))
            .collect()
    };
    let streams: Vec<Vec<Vec<u8>>> = (0..70).map(pieces).collect();
    agrees(&streams);
    agrees(&[]);
}

#[test]
fn a_state_goes_on_where_it_was_saved() {
    let all = bytes(5, 300);
    for at in 0..200 {
        let mut md5 = Md5::default();
        md5.update(&all[..at]);
        let state = md5.state();
        // Checkpoints hold states that the `md-5` crate has saved.
        let theirs = md5::Md5::new_with_prefix(&all[..at]);
        assert_eq!(state[..], theirs.serialize()[..], "{at}");
        let mut again = Md5::from_state(&state).unwrap();
        again.update(&all[at..]);
        assert_eq!(again.finish(), oracle(&all), "{at}");
    }
}

#[test]
fn what_is_no_state_is_refused() {
    let mut md5 = Md5::new();
    md5.update(b"abc");
    let state = md5.state();
    assert!(Md5::from_state(&state[1..]).is_none());
    assert!(Md5::from_state(&[]).is_none());
    let mut too_full = [0; STATE_BYTES];
    too_full[24] = 64;
    assert!(Md5::from_state(&too_full).is_none());
    let mut bytes_behind_the_end = state;
    bytes_behind_the_end[28] = 1;
    assert!(Md5::from_state(&bytes_behind_the_end).is_none());
}

proptest! {
    #[test]
    fn any_pieces_of_any_streams(
        streams in prop::collection::vec(
            prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..6),
            0..50,
        ),
    ) {
        agrees(&streams);
    }
}
