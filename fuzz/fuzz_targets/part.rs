//! The reader of a part of a plan takes any bytes: it ends with a number of members or an error, and takes no more memory
//! than a block. Checksums are made right, so that what is behind them is reached, too.

#![no_main]

use libfuzzer_sys::fuzz_target;

/// Length and checksum of a block, before its kind.
const START: usize = 8;

fuzz_target!(|bytes: &[u8]| {
    let _ = stook_archive::check_part(bytes);
    let _ = stook_archive::check_part(&with_right_checksums(bytes)[..]);
});

/// Takes the bytes as kind and payload of blocks, one after the other: a byte of length before each.
fn with_right_checksums(mut bytes: &[u8]) -> Vec<u8> {
    let mut part = b"stookplan\x05V".to_vec();
    let mut number = 0_u64;
    while let Some((&len, rest)) = bytes.split_first() {
        let (block, rest) = rest.split_at(rest.len().min(usize::from(len) + 1));
        let Some((&kind, payload)) = block.split_first() else {
            break;
        };
        put_block(&mut part, number, kind, payload);
        (bytes, number) = (rest, number + 1);
    }
    put_block(&mut part, number, b'E', &[]);
    part
}

fn put_block(part: &mut Vec<u8>, number: u64, kind: u8, payload: &[u8]) {
    let crc = stook_volume::crc32(&[&number.to_le_bytes(), &[kind], payload]);
    let mut start = Vec::with_capacity(START);
    start.extend(u32::try_from(payload.len()).unwrap_or(0).to_le_bytes());
    start.extend(crc.to_le_bytes());
    part.extend(start);
    part.push(kind);
    part.extend_from_slice(payload);
}
