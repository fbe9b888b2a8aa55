//! What an observer receives about volumes and members, in which order, and what it can decide.

use std::ops::ControlFlow;
use std::sync::Mutex;

use stook_archive::{
    Archive, BaseObserver, Dialect, ExtractOptions, Failure, Jobs, MemberDone, MemberEnd, Observer,
    OpenOptions, RowRef, Silent, Volume, VolumeId, WriteOptions, create, extract_selected,
    verify_selected,
};
use stook_testkit::{Tree, tree};

use crate::folder::files_in;
use crate::scene::{Scene, options};

/// Records every event.
#[derive(Default)]
struct Told {
    lines: Mutex<Vec<String>>,
    refused: Option<VolumeId>,
}

impl Told {
    fn add(&self, line: String) {
        self.lines.lock().unwrap().push(line);
    }

    fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }
}

impl BaseObserver for Told {
    type Failure = Failure;
}

impl Observer for Told {
    fn volume_is_next(&self, volume: VolumeId) {
        self.add(format!("next {volume}"));
    }

    fn archived(&self, volume: VolumeId, path: &[u8]) {
        self.add(format!("{volume} {}", String::from_utf8_lossy(path)));
    }

    fn volume_is_ready(&self, volume: &Volume) -> ControlFlow<()> {
        self.add(format!("ready {}", volume.id));
        if self.refused == Some(volume.id) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn member(&self, member: &MemberDone<'_>) {
        let end = match member.end {
            MemberEnd::Extracted => "extracted",
            MemberEnd::Unchanged => "unchanged",
            MemberEnd::Verified => "verified",
            MemberEnd::Failed(_) => "failed",
        };
        let name = String::from_utf8_lossy(&member.row.name);
        let link = if member.is_hard_link { " link" } else { "" };
        self.add(format!("{name} {end}{link}"));
    }
}

fn large() -> Tree {
    let mut tree = tree! {};
    for number in 0..40 {
        let content = stook_testkit::Random::new(number).bytes(5000);
        tree.insert(
            format!("f{number:02}"),
            stook_testkit::file(content).mtime(1_600_000_000, 0),
        );
    }
    tree
}

fn in_small_volumes() -> WriteOptions {
    WriteOptions {
        dialect: Dialect::Zstash,
        xattrs: false,
        volume_bytes: Some(20_000),
        ..options()
    }
}

#[test]
fn volumes_come_in_order_and_so_do_their_members() {
    let scene = Scene::new(&large());
    let told = Told::default();
    let written = scene.create_with(&in_small_volumes(), &told);
    let lines = told.lines();
    let only = |prefix: &str| -> Vec<String> {
        let with_prefix = lines.iter().filter_map(|line| line.strip_prefix(prefix));
        with_prefix.map(ToOwned::to_owned).collect()
    };
    let volumes: Vec<String> = (0..written.volumes)
        .map(|id| VolumeId::plain(id).to_string())
        .collect();
    assert!(volumes.len() > 8, "{volumes:?}");
    assert_eq!(only("ready "), volumes);
    assert_eq!(only("next "), volumes);
    let mut members = Vec::new();
    for volume in &volumes {
        members.extend(only(&format!("{volume} ")));
    }
    let names: Vec<String> = (0..40).map(|number| format!("f{number:02}")).collect();
    assert_eq!(members, names);
    // Nothing comes of a volume once it is ready.
    for volume in &volumes {
        let ready = lines.iter().position(|it| *it == format!("ready {volume}"));
        let last = lines.iter().rposition(|it| it.starts_with(volume));
        assert!(last < ready, "{volume}");
    }
}

#[test]
fn a_refused_volume_leaves_nothing() {
    let scene = Scene::new(&large());
    let told = Told {
        refused: Some(VolumeId::plain(2)),
        ..Told::default()
    };
    let options = in_small_volumes();
    let refused = create(scene.source(), &scene.archive(), &options, &told).unwrap_err();
    assert_eq!(refused.to_string(), "000002.tar was kept out of the index");
    assert_eq!(
        files_in(&scene.archive()),
        ["000000.tar", "000001.tar", "index.db"]
    );
    // The next run goes on behind what is there.
    scene.create_with(&options, &Silent);
    scene.assert_extracts_to_source();
}

#[test]
fn records_may_be_wrong_on_purpose() {
    let scene = Scene::new(&tree! { "f" => file(b"f") });
    let options = WriteOptions {
        record_errors: vec![1000, 0],
        ..options()
    };
    scene.create_with(&options, &Silent);
    let archive = Archive::open(&scene.archive(), &OpenOptions::default()).unwrap();
    let records = archive.volume_records().unwrap().unwrap();
    let sizes: Vec<u64> = records.iter().map(|(_, volume)| volume.size).collect();
    assert_eq!(sizes, [11_240, 10_240]);
}

#[test]
fn an_archive_may_have_no_records_of_volumes() {
    let scene = Scene::new(&tree! { "f" => file(b"f") });
    let options = WriteOptions {
        records_volumes: false,
        ..options()
    };
    scene.create_with(&options, &Silent);
    let archive = Archive::open(&scene.archive(), &OpenOptions::default()).unwrap();
    assert_eq!(archive.volume_records().unwrap(), None);
    scene.assert_extracts_to_source();
}

#[test]
fn times_may_differ_a_little() {
    let scene = Scene::archived(&tree! { "f" => file(b"f").mtime(1_000, 0) });
    let tolerant = WriteOptions {
        time_tolerance: 1_000_000,
        ..options()
    };
    let members = |mtime: (i64, u32), options: &WriteOptions| {
        scene.lay(&tree! { "f" => file(b"f").mtime(mtime.0, mtime.1) });
        scene.update_with(options, &Silent).members
    };
    assert_eq!(members((1_001, 0), &tolerant), 0);
    assert_eq!(members((999, 0), &tolerant), 0);
    assert_eq!(members((1_001, 1_000), &tolerant), 1);
    assert_eq!(members((1_001, 2_000), &options()), 1);
}

#[test]
fn chosen_members_are_verified_and_extracted() {
    let scene = Scene::archived(&tree! {
        "a" => file(b"a"),
        "hard" => hardlink("a"),
        "other" => file(b"other"),
        "soft" => symlink("a"),
    });
    scene.lay(&tree! { "other" => file(b"newer") });
    scene.update();
    let mut archive = Archive::open(&scene.archive(), &OpenOptions::default()).unwrap();
    let wanted = |row: &RowRef<'_>| row.name != b"soft";
    let selection = archive.select_newest(&wanted, &Silent).unwrap();
    assert_eq!(selection.len(), 3);
    let sorted = |told: Told| {
        let mut lines = told.lines();
        lines.sort();
        lines
    };
    let told = Told::default();
    verify_selected(&mut archive, &selection, Jobs::Adaptive, &told).unwrap();
    assert_eq!(
        sorted(told),
        ["a verified", "hard verified link", "other verified"]
    );
    let extract = |expected: [&str; 3]| {
        let told = Told::default();
        let (into, options) = (scene.beside("into"), ExtractOptions::default());
        let mut archive = Archive::open(&scene.archive(), &OpenOptions::default()).unwrap();
        extract_selected(&mut archive, &into, &selection, &options, &told).unwrap();
        assert_eq!(sorted(told), expected);
    };
    extract(["a extracted", "hard extracted link", "other extracted"]);
    extract(["a unchanged", "hard unchanged link", "other unchanged"]);
    assert_eq!(files_in(&scene.beside("into")), ["a", "hard", "other"]);
}
