//! Takes arbitrary bytes as a database and as a saved index: all operations end, and agree on what is perfect.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use stook_zodb::{DataFile, References, ScanEnd, Start, analyze, check, decode_index, encode_index, is_sane, scan};

fuzz_target!(|bytes: &[u8]| {
    let path = Path::new("none/Data.fs");
    if let Ok(saved) = decode_index(bytes, path) {
        let mut again = Vec::new();
        encode_index(&saved.index, saved.position, &mut again).expect("memory takes all");
        let twice = decode_index(&again, path).expect("what was encoded is an index");
        assert!(twice.index.iter().eq(saved.index.iter()));
    }
    let mut database = b"FS30".to_vec();
    database.extend_from_slice(bytes);
    let file = stook_sys::memory_file().expect("there is memory");
    stook_sys::write_all_at(&file, &database, 0).expect("there is memory");
    let data = DataFile::of(file, path).expect("it begins as a database does");
    let found = scan(&data, Start::default(), None, &()).expect("memory can be read");
    assert!(found.position <= data.size());
    assert!(found.index.iter().all(|(_, position)| position < found.position));
    is_sane(&data, &found.index, found.position).expect("memory can be read");
    let mut damages = 0_u64;
    check(&data, &(), &mut |_| damages += 1).expect("memory can be read");
    assert!(damages > 0 || found.end == ScanEnd::EndOfFile);
    analyze(&data, &()).expect("memory can be read");
    References::read(&data, &()).expect("memory can be read").unreachable();
});
