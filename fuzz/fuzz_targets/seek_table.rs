//! Reads arbitrary bytes as a compressed volume: its seek table, its frames without it, and the content of each frame. What
//! is read takes no more memory than its length bounds.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stook_volume::{FrameDecoder, MAX_FRAME, read_seek_table, scan_frames};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(entries) = read_seek_table(bytes, bytes.len() as u64) {
        let stored: u64 = entries.iter().map(|entry| u64::from(entry.stored)).sum();
        assert!(stored < bytes.len() as u64);
        assert!(entries.iter().all(|entry| entry.len as usize <= MAX_FRAME));
    }
    let mut decoder = FrameDecoder::new().expect("there is memory");
    let scanned = scan_frames(bytes, |at, entry| {
        let start = usize::try_from(at).expect("it is in memory");
        let frame = &bytes[start..start + entry.stored as usize];
        let _ = decoder.decode(frame, &mut vec![0; entry.len as usize]);
    });
    scanned.expect("memory can be read");
});
