//! One flipped bit anywhere in a volume: `check` sees it, and `extract` is right or says what is not.

use std::os::unix::fs::FileExt;

use stook_archive::{AsOf, Dialect};
use stook_testkit::{Directories, Fact};

use crate::recorder::Recorder;
use crate::scene::all_facts;
use crate::specimen::{Specimen, one_of_each};

/// Every byte that is not zero, their neighbours, and one in thirteen of the zeros.
fn sampled(bytes: &[u8]) -> impl Iterator<Item = usize> {
    let is_zero = |at: usize| bytes.get(at).is_none_or(|&byte| byte == 0);
    (0..bytes.len()).filter(move |&at| {
        let is_inside_zeros = is_zero(at) && is_zero(at + 1) && is_zero(at.saturating_sub(1));
        !is_inside_zeros || at % 13 == 0
    })
}

/// Flips one bit of each of these bytes, and another one in the next.
fn flip_bytes(
    specimen: &Specimen,
    places: impl Iterator<Item = usize>,
    mut see: impl FnMut(usize),
) {
    for at in places {
        let byte = specimen.bytes[at];
        let offset = at as u64;
        let flipped = byte ^ (1 << (at % 8));
        specimen.file.write_all_at(&[flipped], offset).unwrap();
        see(at);
        specimen.file.write_all_at(&[byte], offset).unwrap();
    }
    assert_eq!(specimen.damages(), [""; 0]);
}

fn expect_all_flips_seen(dialect: Dialect) {
    let specimen = Specimen::new(&one_of_each(dialect), dialect);
    let mut undetected = Vec::new();
    flip_bytes(&specimen, sampled(&specimen.bytes), |at| {
        if specimen.damages().is_empty() {
            undetected.push(at);
        }
    });
    assert_eq!(
        undetected,
        [0_usize; 0],
        "of {} bytes",
        specimen.bytes.len()
    );
}

#[test]
fn check_sees_a_flipped_bit_in_any_byte_of_a_volume_of_stook() {
    expect_all_flips_seen(Dialect::Stook);
}

#[test]
fn check_sees_a_flipped_bit_in_any_byte_of_a_volume_in_zstashs_dialect() {
    expect_all_flips_seen(Dialect::Zstash);
}

#[test]
fn what_is_extracted_in_spite_of_a_flipped_bit_is_right() {
    let specimen = Specimen::new(&one_of_each(Dialect::Stook), Dialect::Stook);
    let before = specimen.scene.snapshot();
    let places = (0..specimen.bytes.len()).step_by(101);
    flip_bytes(&specimen, places, |at| {
        let recorder = Recorder::new();
        let extracted = specimen.scene.extract_with(AsOf::Now, &recorder);
        let failures = recorder.failures();
        let mut expected = before.clone();
        expected.retain(|path, _| failures.iter().all(|failure| failure.path != path));
        let links = failures.is_empty();
        let compare = if links {
            all_facts()
        } else {
            all_facts().without(Fact::Links)
        };
        let compare = if expected.get("dir").is_some() {
            compare
        } else {
            compare.directories(Directories::Empty)
        };
        assert_eq!(
            expected.difference(&extracted, &compare),
            [""; 0],
            "byte {at}"
        );
    });
}
