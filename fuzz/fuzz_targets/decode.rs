//! Decodes arbitrary bytes as one member. What decodes and can be written again must come back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stook_volume::{Decoded, Dialect, decode, decode_bytes, encode};

fuzz_target!(|bytes: &[u8]| {
    let whole = decode_bytes(bytes, 0);
    if let (Ok(Decoded::Member(a)), Ok(Some(b))) = (&whole, decode(bytes, 0)) {
        assert_eq!(a, &b);
    }
    let Ok(Decoded::Member(member)) = whole else {
        return;
    };
    let mut again = Vec::new();
    if encode(&member.header, Dialect::Stook, &mut again).is_ok() {
        match decode_bytes(&again, 0) {
            Ok(Decoded::Member(found)) => assert_eq!(found.header, member.header),
            other => panic!("{other:?}"),
        }
    }
});
