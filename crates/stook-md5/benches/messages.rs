//! MD5 with every kernel: streams of one length by their number, small files, one stream in pieces; the
//! `md-5` crate beside them.

use std::fmt;

use divan::Bencher;
use divan::counter::BytesCount;
use md5::Digest;
use stook_md5::{Feed, Kernel, Md5, md5_many, select, update_many};

/// A length with which streams do not all begin in the same set of the cache.
const STREAM_BYTES: usize = 16_000;

const COUNTS: [usize; 7] = [1, 2, 3, 8, 16, 32, 600];

fn main() {
    divan::main();
}

struct Case {
    kernel: Kernel,
    count: usize,
}

impl fmt::Display for Case {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.kernel, self.count)
    }
}

fn cases() -> Vec<Case> {
    let of = |kernel| COUNTS.map(|count| Case { kernel, count });
    Kernel::available().flat_map(of).collect()
}

fn use_kernel(kernel: Kernel) {
    select(kernel).expect("it is available");
}

fn streams(count: usize) -> Vec<Vec<u8>> {
    let stream = |number: usize| vec![number.to_le_bytes()[0]; STREAM_BYTES];
    (0..count).map(stream).collect()
}

/// 600 files of log-normal lengths with a median of 1,785 bytes and a mean of 7,165.
fn small_files() -> Vec<Vec<u8>> {
    let (median, mean) = (1_785_f64, 7_165_f64);
    let deviation = (2.0 * (mean / median).ln()).sqrt();
    let mut seed = 9_u64;
    let mut uniform = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        f64::from(u32::try_from(seed >> 32).unwrap_or(0)) / f64::from(u32::MAX)
    };
    let mut file = || {
        // The sum of twelve uniform numbers is near enough to a normal one.
        let normal = (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
        let len = (median.ln() + deviation * normal)
            .exp()
            .clamp(21.0, 1_258_291.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "clamped above"
        )]
        let len = len as usize;
        vec![len.to_le_bytes()[0]; len]
    };
    (0..600).map(|_| file()).collect()
}

fn slices(messages: &[Vec<u8>]) -> Vec<&[u8]> {
    messages.iter().map(Vec::as_slice).collect()
}

fn counter(messages: &[&[u8]]) -> BytesCount {
    BytesCount::new(messages.iter().map(|message| message.len()).sum::<usize>())
}

#[divan::bench(args = cases())]
fn many(bencher: Bencher<'_, '_>, case: &Case) {
    use_kernel(case.kernel);
    let messages = streams(case.count);
    let messages = slices(&messages);
    bencher
        .counter(counter(&messages))
        .bench_local(|| md5_many(&messages));
}

#[divan::bench(args = cases())]
fn many_in_pieces(bencher: Bencher<'_, '_>, case: &Case) {
    use_kernel(case.kernel);
    let pieces = streams(case.count);
    let pieces = slices(&pieces);
    let mut sums = vec![Md5::new(); case.count];
    bencher.counter(counter(&pieces)).bench_local(|| {
        let pairs = sums.iter_mut().zip(&pieces);
        let mut feeds: Vec<Feed<'_>> = pairs.map(|(md5, bytes)| Feed { md5, bytes }).collect();
        update_many(&mut feeds);
    });
}

#[divan::bench(args = Kernel::available())]
fn small_files_together(bencher: Bencher<'_, '_>, kernel: &Kernel) {
    use_kernel(*kernel);
    let files = small_files();
    let files = slices(&files);
    bencher
        .counter(counter(&files))
        .bench_local(|| md5_many(&files));
}

#[divan::bench(args = Kernel::available())]
fn one_stream(bencher: Bencher<'_, '_>, kernel: &Kernel) {
    use_kernel(*kernel);
    let piece = vec![1; 64 << 10];
    let mut md5 = Md5::new();
    bencher
        .counter(BytesCount::new(piece.len()))
        .bench_local(|| md5.update(&piece));
}

#[divan::bench]
fn crate_md5_one_stream(bencher: Bencher<'_, '_>) {
    let piece = vec![1; 64 << 10];
    let mut md5 = md5::Md5::new();
    bencher
        .counter(BytesCount::new(piece.len()))
        .bench_local(|| md5.update(&piece));
}

#[divan::bench]
fn crate_md5_small_files(bencher: Bencher<'_, '_>) {
    let files = small_files();
    let files = slices(&files);
    bencher
        .counter(counter(&files))
        .bench_local(|| files.iter().map(md5::Md5::digest).collect::<Vec<_>>());
}
