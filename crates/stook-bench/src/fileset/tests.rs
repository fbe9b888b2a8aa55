//! File sets as they are found on the disk.

use stook_testkit::{Compare, Snapshot, TempDir};

use super::*;
use crate::testing::Quiet;

fn options(name: &str, files: u64) -> FilesetOptions {
    FilesetOptions {
        spec: Spec::named(name).unwrap(),
        files,
        seed: 7,
        jobs: Jobs::Fixed(2),
    }
}

#[test]
fn the_same_seed_gives_the_same_tree_whatever_the_workers() {
    let folder = TempDir::new().unwrap();
    for name in Spec::NAMES {
        let made = [1, 7].map(|jobs| {
            let path = folder.join(format!("{name}{jobs}"));
            let options = FilesetOptions {
                jobs: Jobs::Fixed(jobs),
                ..options(name, 1500)
            };
            let properties = make(&path, &options, &Quiet::default()).unwrap();
            (properties, Snapshot::take(&path).unwrap())
        });
        assert_eq!(made[0].0, made[1].0);
        let difference = made[0].1.difference(&made[1].1, &Compare::everything());
        assert_eq!(difference, [""; 0], "{name}");
    }
}
