//! Puts arbitrary bytes as PAX records in front of a sound header block, with the sums right.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stook_volume::{Dialect, Header, decode_bytes, encode};

/// Returns an extended header around the records, as a writer with right sums would.
fn extended(records: &[u8]) -> Vec<u8> {
    let mut block = vec![0; 512];
    block[..14].copy_from_slice(b"././@PaxHeader");
    block[124..136].copy_from_slice(format!("{:011o}\0", records.len()).as_bytes());
    block[148..156].fill(b' ');
    block[156] = b'x';
    block[257..265].copy_from_slice(b"ustar\x0000");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block.extend_from_slice(records);
    block.resize(block.len().next_multiple_of(512), 0);
    block
}

fuzz_target!(|bytes: &[u8]| {
    let split = bytes.len() * 3 / 4;
    let (records, data) = bytes.split_at(split);
    let header = Header {
        name: b"a".to_vec(),
        size: data.len() as u64,
        ..Header::default()
    };
    let mut member = Vec::new();
    encode(&header, Dialect::Zstash, &mut member).expect("the header is sound");
    let main = member.split_off(member.len() - 512);
    let mut volume = extended(records);
    volume.extend_from_slice(&main);
    volume.extend_from_slice(data);
    let _ = decode_bytes(&volume, 0);
});
