//! Messages that are there as a whole.

use proptest::prelude::*;
use stook_md5::{Md5, md5_many};

use crate::each_kernel::{bytes, each_kernel, oracle};

fn agrees(messages: &[Vec<u8>]) {
    let borrowed: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
    let expected: Vec<[u8; 16]> = borrowed.iter().map(|message| oracle(message)).collect();
    each_kernel(|kernel| assert_eq!(md5_many(&borrowed), expected, "{kernel}"));
}

#[test]
fn rfc_1321_test_suite() {
    let suite: [(&str, u128); 5] = [
        ("", 0xd41d8cd98f00b204e9800998ecf8427e),
        ("a", 0x0cc175b9c0f1b6a831c399e269772661),
        ("abc", 0x900150983cd24fb0d6963f7d28e17f72),
        ("message digest", 0xf96b697d7cb7938d525a2f31aaf161d0),
        (
            "12345678901234567890123456789012345678901234567890123456789012345678901234567890",
            0x57edf4a22be3c955ac49da2e2107b67a,
        ),
    ];
    let messages = suite.map(|(text, _)| text.as_bytes());
    let expected = suite.map(|(_, digest)| digest.to_be_bytes());
    each_kernel(|kernel| {
        assert_eq!(md5_many(&messages), expected, "{kernel}");
        for (message, digest) in messages.iter().zip(expected) {
            let mut md5 = Md5::new();
            md5.update(message);
            assert_eq!(md5.finish(), digest, "{kernel}");
        }
    });
}

#[test]
fn every_length_around_the_block_boundaries() {
    let messages: Vec<Vec<u8>> = (0..300).map(|len| bytes(len, len)).collect();
    agrees(&messages);
    for message in messages {
        agrees(&[message]);
    }
    agrees(&[]);
}

#[test]
fn every_number_of_lanes() {
    for count in 0..70 {
        let messages: Vec<Vec<u8>> = (0..count).map(|n| bytes(n, 200)).collect();
        agrees(&messages);
    }
}

#[test]
fn messages_of_very_different_lengths_share_the_lanes() {
    let long = |n: usize| if n.is_multiple_of(7) { 100_000 } else { 0 };
    let messages: Vec<Vec<u8>> = (0..100).map(|n| bytes(n, n * 11 + long(n))).collect();
    agrees(&messages);
}

#[test]
fn messages_need_no_alignment() {
    let all = bytes(1, 10_000);
    let messages: Vec<&[u8]> = (0..64).map(|n| &all[n..n * 97 + 130]).collect();
    let expected: Vec<[u8; 16]> = messages.iter().map(|message| oracle(message)).collect();
    each_kernel(|kernel| assert_eq!(md5_many(&messages), expected, "{kernel}"));
}

proptest! {
    #[test]
    fn any_messages(messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..700), 0..80)) {
        agrees(&messages);
    }
}
