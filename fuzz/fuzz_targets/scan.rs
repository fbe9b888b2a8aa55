//! Scans arbitrary bytes as a volume. Events must follow each other without gap or overlap.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stook_volume::{Depth, Event, Scanner};

fuzz_target!(|bytes: &[u8]| {
    for depth in [Depth::Headers, Depth::Contents] {
        let mut at = 0;
        for event in Scanner::new(bytes, 0).with_depth(depth) {
            match event.expect("bytes in memory can be read") {
                Event::Member(member) => {
                    assert!(member.offset == at && member.end > at);
                    assert!(member.data_offset + member.data_len <= bytes.len() as u64);
                    at = member.end;
                }
                Event::Damage { offset, len, .. } => {
                    assert!(offset + len <= bytes.len() as u64);
                    at = offset + len;
                }
                Event::End { offset } => assert!(offset <= bytes.len() as u64),
            }
        }
    }
});
