//! How long the index of an archive takes to answer: `cargo run --release --example load -- PATH`, the path of an `index.db`.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a measurement for people, which fails loudly"
)]

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use stook_index::{AsOf, Deleted, Index, NameTable, Selection};
use stook_pool::Jobs;

const ROUNDS: usize = 9;

fn main() {
    let path = std::env::args_os().nth(1).expect("the path of an index.db");
    let path = PathBuf::from(path);
    let index = Index::open_read(&path).unwrap();
    let rows = index.row_count().unwrap();
    println!("{rows} rows");
    let names = names(&index, rows);
    for jobs in [Jobs::Adaptive, Jobs::Fixed(1)] {
        measure(&format!("name table, {jobs:?}"), || {
            NameTable::load(&index, None, jobs).unwrap().len()
        });
    }
    measure("selection of all", || {
        let all = Selection::of(&index, AsOf::Now, Deleted::Hide, &|_| true).unwrap();
        usize::try_from(all.len()).unwrap()
    });
    measure("attributes, decoded one after the other", || decode(&index));
    let find = |name: &[u8]| {
        // As a command does, which opens the index for one name.
        let index = Index::open_read(&path).unwrap();
        usize::from(index.find(name, AsOf::Now).unwrap().row.is_some())
    };
    let mut next = names.iter().cycle();
    measure("a name that is there", || find(next.next().unwrap()));
    measure("a name that is not", || find(b"no/such/name"));
}

fn measure(what: &str, mut work: impl FnMut() -> usize) {
    let mut found = 0;
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let begin = Instant::now();
            found = work();
            begin.elapsed()
        })
        .collect();
    times.sort_unstable();
    let (median, least) = (times[ROUNDS / 2], times[0]);
    println!("{what}: median {median:.3?}, least {least:.3?} of {ROUNDS}; {found}");
}

/// Names spread over the index.
fn names(index: &Index, rows: u64) -> Vec<Vec<u8>> {
    let (mut names, mut number) = (Vec::new(), 0);
    index
        .rows(|row| {
            if number % (rows / ROUNDS as u64).max(1) == 0 {
                names.push(row.name.to_vec());
            }
            number += 1;
            ControlFlow::Continue(())
        })
        .unwrap();
    names
}

fn decode(index: &Index) -> usize {
    let (mut members, mut bytes) = (0, 0);
    index
        .attributes(|block| {
            for member in block.decode().iter().flatten() {
                members += 1;
                bytes += member.target.len();
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    members + bytes
}
