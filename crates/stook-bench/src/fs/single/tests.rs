use super::*;
use crate::testing::Quiet;
use std::path::PathBuf;
use stook_testkit::{Compare, Snapshot, TempDir, Tree, dir, file, symlink};

/// Files of no, one, and several blocks, a link, names that need an extended header.
fn tree() -> Tree {
    let long = format!("{}.nc", "n".repeat(180));
    let mut tree = Tree::new();
    tree.insert("d", dir());
    tree.insert("d/empty", file(""));
    tree.insert(format!("d/{long}"), file("long"));
    tree.insert("d/e/blocks", file(vec![b'x'; BLOCK]));
    tree.insert("d/e/more", file(vec![b'y'; 2 * BLOCK + 7]));
    tree.insert("link", symlink("d/empty"));
    for number in 0..300 {
        tree.insert(
            format!("m{}/f{number}", number % 7),
            file(vec![b'z'; number * 5]),
        );
    }
    tree
}

/// A folder with the tree, packed by GNU tar, and the folder of the tool.
struct Scene {
    folder: TempDir,
    own: PathBuf,
}

impl Scene {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        tree().write(&folder.join("src")).unwrap();
        let arguments = ["--format=posix", "-cf", "set.tar", "-C", "src", "."];
        let tar = std::process::Command::new("tar")
            .args(arguments)
            .current_dir(folder.path())
            .status();
        assert!(tar.unwrap().success());
        let own = folder.join("single");
        std::fs::create_dir_all(own.join("tree")).unwrap();
        Self { folder, own }
    }

    fn run(&self, phase: Phase) -> Sample {
        let packed = self.folder.join("set.tar");
        run(phase, &self.own, &packed, 1, &Quiet::default()).unwrap()
    }

    fn differs(&self, other: &Path) -> Vec<String> {
        let source = Snapshot::take(&self.folder.join("src")).unwrap();
        source.difference(&Snapshot::take(other).unwrap(), &Compare::everything())
    }
}

#[test]
fn every_phase_does_its_work_and_times_it() {
    let scene = Scene::new();
    let count = |sample: &Sample, op: &str| sample.proof["operations"][op].as_u64().unwrap();
    for phase in Phase::ALL {
        let sample = scene.run(phase);
        let overhead = sample.proof["overhead_share"].as_f64().unwrap();
        assert!(
            sample.real_seconds > 0.0 && !sample.latencies.is_empty(),
            "{phase:?}"
        );
        // So few files are over before the price can be kept below a hundredth; see `op_timer`.
        assert!(overhead < 0.1, "{phase:?}: {overhead}");
        match phase {
            Phase::Copy => assert!(count(&sample, "write") >= 3),
            Phase::Untar => {
                assert_eq!(scene.differs(&scene.own.join("tree")), [""; 0]);
                assert_eq!(
                    (
                        count(&sample, "create"),
                        count(&sample, "mkdir"),
                        count(&sample, "link")
                    ),
                    (304, 9, 1)
                );
            }
            Phase::Find => assert_eq!(count(&sample, "list"), 10),
            Phase::Stat => assert_eq!(count(&sample, "stat"), 304 + 1 + 10),
            // Those of whole blocks take one look more, to find their end.
            Phase::Read => assert_eq!(count(&sample, "read"), 304 + 1 + 2),
            Phase::Tar => assert_eq!(count(&sample, "open"), 304 + 10 + 1),
            Phase::CopyTree => assert_eq!(scene.differs(&scene.own.join("copy")), [""; 0]),
            Phase::Delete => {
                assert_eq!(
                    (count(&sample, "unlink"), count(&sample, "rmdir")),
                    (305, 10)
                );
                assert!(!scene.own.join("tree").exists());
            }
        }
    }
}

#[test]
fn what_it_packs_tar_unpacks() {
    let scene = Scene::new();
    scene.run(Phase::Copy);
    scene.run(Phase::Untar);
    scene.run(Phase::Tar);
    let out = scene.folder.join("out");
    std::fs::create_dir(&out).unwrap();
    let tar = std::process::Command::new("tar")
        .arg("-xf")
        .arg(scene.own.join("again.tar"))
        .arg("-C")
        .arg(&out)
        .output();
    let stderr = tar.unwrap().stderr;
    assert!(stderr.is_empty(), "{}", String::from_utf8_lossy(&stderr));
    // The root itself is not packed.
    let times = std::fs::File::open(&out).unwrap();
    let modified = std::fs::metadata(scene.folder.join("src"))
        .unwrap()
        .modified()
        .unwrap();
    times.set_modified(modified).unwrap();
    assert_eq!(scene.differs(&out), [""; 0]);
}

#[test]
fn a_failure_names_the_file_and_an_end_is_heard() {
    let scene = Scene::new();
    let at = |phase, observer: &Quiet| {
        run(phase, &scene.own, Path::new("none"), 1, observer).unwrap_err()
    };
    let missing = at(Phase::Copy, &Quiet::default()).to_string();
    assert_eq!(missing, "cannot open `none`: no such file or directory");
    scene.run(Phase::Copy);
    std::fs::write(scene.own.join("packed.tar"), vec![7; 5000]).unwrap();
    let garbage = at(Phase::Untar, &Quiet::default()).to_string();
    assert!(
        garbage.starts_with("cannot read `") && garbage.contains("packed.tar`: "),
        "{garbage}"
    );
    stook_testkit::remove_tree(&scene.own.join("tree")).unwrap();
    tree().write(&scene.own.join("tree")).unwrap();
    assert!(matches!(
        at(Phase::Read, &Quiet::stopped()),
        BenchError::Interrupted
    ));
}
