//! How long planning takes, and how much memory, for more members than fit into memory.
//!
//! Measurements, run by hand: `STOOK_PLAN_MEMBERS=20000000 cargo test --release -p stook-archive measure:: -- --ignored --nocapture`

use std::time::Instant;

use stook_sys::{FileKind, Links, Metadata, Owners, Timestamp, peak_memory, reset_peak_memory};
use stook_testkit::{Random, TempDir};
use stook_tree::Listing;
use stook_volume::Dialect;

use super::directory::PlanDirectory;
use super::member::{Group, LinkNames, Member};
use super::part::{PartHeader, PlanId};
use super::parts_writer::{PartNumbers, PartsWriter};
use super::sorted::{Sorter, held_bytes};

const FILES_OF_A_DIRECTORY: u64 = 50;

/// As `PlanOptions::default` has it.
const MEMORY_BYTES: usize = 128 << 20;

/// What a walk hands over of one directory.
fn directory(number: u64) -> Group {
    let path = format!("simulation/output/{:03}/{number:09}", number % 997).into_bytes();
    let own = Metadata {
        mode: 0o755,
        links: 2,
        mtime: Timestamp {
            seconds: 1_600_000_000,
            nanoseconds: 5,
        },
        inode: number << 16,
        filesystem: (8, 1),
        ..Metadata::of_kind(FileKind::Directory)
    };
    let mut listing = Listing::new(path.clone(), own);
    for file in 0..FILES_OF_A_DIRECTORY {
        let metadata = Metadata {
            mode: 0o644,
            links: 1,
            size: 1_785 + file * 200,
            blocks: 16,
            inode: (number << 16) + file + 1,
            ..own
        };
        let metadata = Metadata {
            kind: FileKind::File,
            ..metadata
        };
        listing.push(format!("variable-{file:04}.nc").as_bytes(), &metadata);
    }
    Group {
        path,
        own: Some(own),
        listing: Some(listing),
    }
}

fn header() -> PartHeader {
    PartHeader {
        plan: PlanId { run: 1, made: 2 },
        number: 0,
        dialect: Dialect::Stook,
        links: Links::Refuse,
        xattrs: true,
        takes_md5: true,
        read_only: true,
        is_retry: false,
        zstd: None,
        limit: super::DEFAULT_VOLUME_BYTES,
        filesystem: (8, 1),
    }
}

#[test]
#[ignore = "a measurement: it takes gigabytes of disk"]
fn members_that_do_not_fit_into_memory() {
    let wanted =
        std::env::var("STOOK_PLAN_MEMBERS").map_or(2_000_000, |text| text.parse().unwrap());
    let place = TempDir::new().unwrap();
    let archive = place.join("arc");
    stook_sys::create_directory(&archive).unwrap();
    let plan = PlanDirectory::of(&archive);
    plan.make(Vec::new()).unwrap();
    let directories = wanted / (FILES_OF_A_DIRECTORY + 1);
    let mut random = Random::new(1);
    let mut numbers: Vec<u64> = (0..directories).collect();
    // As workers finish them, in no order.
    numbers.sort_by_cached_key(|_| random.bits());
    reset_peak_memory();
    let before = peak_memory().unwrap();
    let started = Instant::now();
    let sorter = Sorter::new(&plan, MEMORY_BYTES);
    let (mut groups, mut bytes) = (Vec::new(), 0);
    for number in numbers {
        let group = directory(number);
        bytes += held_bytes(&group);
        groups.push(group);
        if sorter.is_too_much(bytes) {
            bytes = 0;
            sorter.write(std::mem::take(&mut groups));
        }
    }
    let mut merge = sorter.finish(&mut groups).unwrap().unwrap();
    let sorted = started.elapsed();
    let owners = Owners::default();
    let mut parts = PartsWriter::new(&plan, header(), PartNumbers::from(0), &owners);
    let names = LinkNames::new();
    let mut members: u64 = 0;
    while let Some(piece) = merge.next_piece(&names).unwrap() {
        let piece = std::sync::Arc::new(piece);
        for entry in piece.group.entries() {
            parts.add(&Member::of_part(piece.clone(), entry)).unwrap();
            members += 1;
        }
    }
    let parts = parts.finish().unwrap();
    let peak = peak_memory().unwrap() - before;
    println!(
        "{members} members, {} parts: sorted after {sorted:.1?}, written after {:.1?}, {} MiB more memory than before",
        parts.len(),
        started.elapsed(),
        peak >> 20
    );
    assert_eq!(members, directories * (FILES_OF_A_DIRECTORY + 1));
    assert_eq!(parts.iter().map(|part| part.members).sum::<u64>(), members);
    assert!(peak < 500 << 20, "{peak}");
}
