//! How long the catalogue of an archive takes to load, and what it costs: `cargo run --release --example catalogue -- [PATH]`.
//!
//! Without the path of an archive, or at the path of an empty folder, an index of 1,290,284 members is made for it, as the
//! standard file set has them.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a measurement for people, which fails loudly"
)]

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use stook_archive::{Archive, Catalogue, CatalogueOptions, EntryId, Jobs, OpenOptions, Silent};
use stook_testkit::TempDir;

#[path = "../tests/it/generated.rs"]
mod generated;

const MEMBERS: u64 = 1_290_284;
const ROUNDS: usize = 9;

fn main() {
    let folder = TempDir::new().unwrap();
    let archive = std::env::args_os().nth(1);
    let archive = archive.map_or_else(|| folder.path().to_owned(), PathBuf::from);
    if !archive.join("index.db").exists() {
        generated::write_index(&archive, MEMBERS);
    }
    for jobs in [Jobs::Adaptive, Jobs::Fixed(1)] {
        measure_loads(&archive, jobs);
    }
    stook_timers::enable();
    let catalogue = load(&archive, Jobs::Adaptive);
    println!("{}", stook_timers::snapshot().tree());
    print_size(&catalogue);
    measure_queries(&catalogue);
}

fn load(archive: &Path, jobs: Jobs) -> Catalogue {
    let mut archive = Archive::open(archive, &OpenOptions::default()).unwrap();
    let options = CatalogueOptions {
        jobs,
        ..CatalogueOptions::default()
    };
    archive.catalogue(&options, &Silent).unwrap()
}

fn measure_loads(archive: &Path, jobs: Jobs) {
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let begin = Instant::now();
            let catalogue = load(archive, jobs);
            let time = begin.elapsed();
            drop(catalogue);
            time
        })
        .collect();
    times.sort_unstable();
    let (median, least) = (times[ROUNDS / 2], times[0]);
    println!("load, {jobs:?}: median {median:.3?}, least {least:.3?} of {ROUNDS}");
}

fn print_size(catalogue: &Catalogue) {
    let (all, names) = (catalogue.heap_bytes(), catalogue.name_bytes());
    #[expect(clippy::cast_precision_loss, reason = "printed with one digit")]
    let share = |bytes: usize| bytes as f64 / catalogue.len() as f64;
    println!(
        "{} entries, {:.1} bytes each, and {:.1} of names",
        catalogue.len(),
        share(all - names),
        share(names)
    );
}

fn measure_queries(catalogue: &Catalogue) {
    let entries = || (0..u32::MAX).map_while(|number| catalogue.entry(number));
    let timed = |what: &str, query: &dyn Fn(EntryId) -> u64| {
        let begin = Instant::now();
        let sum = entries().map(query).fold(0, u64::wrapping_add);
        black_box(sum);
        let each = begin.elapsed() / u32::try_from(catalogue.len()).unwrap();
        println!("{what}: {each:?} an entry");
    };
    timed("stat", &|entry| catalogue.stat(entry).size);
    timed("path", &|entry| catalogue.path(entry).len() as u64);
    timed("path and find", &|entry| {
        catalogue
            .find(&catalogue.path(entry))
            .map_or(0, |entry| entry.number().into())
    });
    timed("children", &|entry| catalogue.children(entry).len() as u64);
}
