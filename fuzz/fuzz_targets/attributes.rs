//! Decodes arbitrary bytes as a block of attributes, and as one of frames. What decodes can be read in any order, and
//! what is encoded again comes back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stook_index::{Attributes, AttributesBlock, AttributesEncoder, FramesBlock, VolumeId};

fuzz_target!(|bytes: &[u8]| {
    let first = u64::from(bytes.first().copied().unwrap_or(0)) << 9;
    let data = bytes.get(1..).unwrap_or_default().to_vec();
    if let Some(frames) = FramesBlock::decode(first, data.clone()) {
        assert!(frames.iter().is_sorted());
    }
    let Some(block) = AttributesBlock::decode(VolumeId::plain(0), first, data) else {
        return;
    };
    let members: Vec<Attributes<'_>> = block.iter().collect();
    assert_eq!(members.len(), block.len());
    let mut encoder = AttributesEncoder::default();
    for member in &members {
        assert_eq!(block.find(member.offset).as_ref(), Some(member));
        encoder.push(member);
    }
    let again = encoder.take().remove(0);
    let data = again.data().to_vec();
    let again = AttributesBlock::decode(VolumeId::plain(0), first, data).expect("it was encoded so");
    assert_eq!(again.iter().collect::<Vec<_>>(), members);
});
