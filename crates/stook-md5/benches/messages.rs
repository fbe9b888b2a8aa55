//! MD5 of 600 messages of the mean length of a small file, in lanes and one by one.

use divan::Bencher;
use divan::counter::BytesCount;
use md5::{Digest, Md5};

const COUNT: usize = 600;
const LEN: usize = 7_165;

fn main() {
    divan::main();
}

fn messages() -> Vec<Vec<u8>> {
    (0..COUNT)
        .map(|number| vec![number.to_le_bytes()[0]; LEN / 2 + number * LEN / COUNT])
        .collect()
}

#[divan::bench]
fn lanes(bencher: Bencher<'_, '_>) {
    let messages = messages();
    let borrowed: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
    let bytes: usize = borrowed.iter().map(|message| message.len()).sum();
    bencher
        .counter(BytesCount::new(bytes))
        .bench_local(|| stook_md5::md5_many(&borrowed));
}

#[divan::bench]
fn one_by_one(bencher: Bencher<'_, '_>) {
    let messages = messages();
    let bytes: usize = messages.iter().map(Vec::len).sum();
    bencher
        .counter(BytesCount::new(bytes))
        .bench_local(|| messages.iter().map(Md5::digest).collect::<Vec<_>>());
}
