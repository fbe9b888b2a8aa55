//! D10, D12, D13: wrong sizes, forbidden files, and names that a shell would act on.

use std::fs;
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;

use stook_archive::{AsOf, CheckOptions, ExtractOptions, Jobs, WriteOptions};
use stook_testkit::{Tree, tree};

use crate::by_path::check;
use crate::folder::{all_rows, as_zstash, extract_to, files_in};
use crate::recorder::Recorder;
use crate::scene::{Scene, as_ordinary_user, content, names, options};

/// Runs `work`; a hang is a failure, not a test that never ends.
fn within_a_minute<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = channel();
    std::thread::spawn(move || sender.send(work()));
    receiver
        .recv_timeout(Duration::from_secs(60))
        .expect("it hangs, or it panicked")
}

#[test]
fn d10_a_volume_of_a_wrong_size_ends_with_a_report_and_no_hang() {
    for dialect in [options(), as_zstash()] {
        let scene = Scene::new(&Tree::basic());
        let write = WriteOptions {
            volume_bytes: Some(30 << 10),
            ..dialect
        };
        scene.create_with(&write, &Recorder::new());
        let damaged = scene.archive().join("000002.tar");
        let bytes = fs::read(&damaged).unwrap();
        for len in [0, 600, bytes.len() - 10_240, bytes.len() + 512] {
            let mut wrong = bytes.clone();
            wrong.resize(len, 0);
            fs::remove_file(&damaged).unwrap();
            fs::write(&damaged, wrong).unwrap();
            for jobs in [1, 2, 16] {
                let (archive, into) = (scene.archive(), scene.beside("into"));
                let (checked, damages) = within_a_minute(move || check_with(&archive, jobs));
                assert!(checked > 0);
                let wanted = format!(
                    "000002.tar: the volume has {len} bytes, the index says {}",
                    bytes.len()
                );
                assert!(damages.contains(&wanted), "{damages:#?}");
                assert!(
                    damages
                        .iter()
                        .all(|damage| damage.starts_with("000002.tar"))
                );
                let archive = scene.archive();
                let failures = within_a_minute(move || extract_with(&archive, &into, jobs));
                let lost = all_rows(&scene.archive())
                    .iter()
                    .filter(|row| row.volume.0 == 2)
                    .count();
                assert!(failures <= lost, "{failures} of {lost}");
                assert!(failures > 0 || len >= bytes.len() - 10_240);
                stook_testkit::remove_tree(&scene.beside("into")).unwrap();
            }
        }
    }
}

fn check_with(archive: &Path, jobs: usize) -> (u64, Vec<String>) {
    let recorder = Recorder::new();
    let options = CheckOptions {
        jobs: Jobs::Fixed(jobs),
        ..CheckOptions::default()
    };
    let report = check(archive, &options, &recorder).unwrap();
    assert_eq!(report.damages, recorder.damage_texts().len() as u64);
    (report.members, recorder.damage_texts())
}

fn extract_with(archive: &Path, into: &Path, jobs: usize) -> usize {
    let options = ExtractOptions {
        jobs: Jobs::Fixed(jobs),
        ..ExtractOptions::default()
    };
    let (report, recorder) = extract_to(archive, into, &options);
    assert_eq!(report.failed, recorder.failures().len() as u64);
    recorder.failures().len()
}

#[test]
fn d12_what_cannot_be_read_is_named_and_does_not_count_as_deleted() {
    as_ordinary_user(
        "defects::access::d12_what_cannot_be_read_is_named_and_does_not_count_as_deleted",
        || {
            for dialect in [options(), as_zstash()] {
                let scene = Scene::new(&tree! {
                    "closed/inside" => file(b"inside"),
                    "closed/sub/deeper" => file(b"deeper"),
                    "open" => file(b"open"),
                });
                scene.create_with(&dialect, &Recorder::new());
                set_mode(&scene.path("closed"), 0o000);
                let recorder = Recorder::new();
                let report = scene.update_with(&dialect, &recorder);
                set_mode(&scene.path("closed"), 0o755);
                assert_eq!((report.failed, report.deleted), (1, 0));
                assert_eq!(
                    recorder.failure_texts(),
                    ["cannot open `closed`: permission denied"]
                );
                let found = names(&scene.archive(), AsOf::Now, false);
                assert!(found.contains(&"closed/sub/deeper".to_owned()), "{found:?}");
                assert_eq!(
                    scene
                        .diff()
                        .iter()
                        .filter(|line| line.starts_with("deleted"))
                        .count(),
                    0
                );
            }
        },
    );
}

/// One unreadable file is all that is new: no empty volume, and later updates go on.
#[test]
fn d12_one_unreadable_file_does_not_block_the_archive() {
    as_ordinary_user(
        "defects::access::d12_one_unreadable_file_does_not_block_the_archive",
        || {
            for dialect in [options(), as_zstash()] {
                let scene = Scene::new(&tree! {
                    "good" => file(b"good"),
                    "secret" => file(b"secret").mode(0o000),
                });
                for round in 0..3 {
                    let recorder = Recorder::new();
                    let report = match round {
                        0 => scene.create_with(&dialect, &recorder),
                        _ => scene.update_with(&dialect, &recorder),
                    };
                    assert_eq!(report.failed, 1);
                    assert_eq!(
                        recorder.failure_texts(),
                        ["cannot open `secret`: permission denied"]
                    );
                    assert_eq!(scene.archive_files(), ["000000.tar", "index.db"]);
                }
                scene.lay(&tree! { "new" => file(b"new") });
                let report = scene.update_with(&dialect, &Recorder::new());
                assert_eq!((report.members, report.failed), (1, 1));
                set_mode(&scene.path("secret"), 0o600);
                let report = scene.update_with(&dialect, &Recorder::new());
                assert_eq!((report.members, report.failed), (1, 0));
                assert_eq!(content(&scene, "secret"), b"secret");
                assert_eq!(
                    scene.archive_files(),
                    ["000000.tar", "000001.tar", "000002.tar", "index.db"]
                );
                scene.assert_clean();
            }
        },
    );
}

fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn d13_names_are_never_given_to_a_shell_and_links_keep_their_times() {
    let names = [
        "x$(touch PWNED)",
        "`touch PWNED`",
        "; touch PWNED;",
        "a name with spaces",
        "'quoted\" \\ name",
        "-t 200001010000",
        "new\nline",
    ];
    let mut tree = Tree::new();
    for (number, name) in names.iter().enumerate() {
        let seconds = 1_400_000_000 + i64::try_from(number).unwrap();
        tree.insert(
            name,
            stook_testkit::symlink("nowhere").mtime(seconds, 123_456_789),
        );
        tree.insert(format!("dir/{name}/f"), stook_testkit::file(name));
    }
    let here = files_in(Path::new("."));
    for dialect in [options(), as_zstash()] {
        let scene = Scene::new(&tree);
        scene.create_with(&dialect, &Recorder::new());
        let extracted = scene.extract(AsOf::Now);
        for (number, name) in names.iter().enumerate() {
            let facts = extracted.get(name).unwrap();
            let expected = (1_400_000_000 + number as i128) * 1_000_000_000 + 123_456_789;
            assert!(
                (facts.mtime_ns - expected).abs() < 1000,
                "{name}: {}",
                facts.mtime_ns
            );
            assert_eq!(facts.target.as_deref(), Some(&b"nowhere"[..]));
        }
        assert_eq!(extracted.len(), 3 * names.len() + 1);
        assert!(extracted.get("PWNED").is_none());
    }
    assert_eq!(files_in(Path::new(".")), here);
}
