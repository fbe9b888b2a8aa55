//! Archives that zstash 1.6.0 wrote: opened, listed, checked, extracted, and one of them mended.

use std::path::{Path, PathBuf};

use stook_archive::{ExtractOptions, Jobs, reindex};
use stook_testkit::{Compare, Snapshot, TempDir};

use crate::folder::{
    all_rows, assert_clean, bytes_in, check_all, extract_to, files_in, hex, newest_rows, only,
};
use crate::recorder::Recorder;

fn case_folder(case: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join("tests/fixtures/zstash").join(case)
}

/// A copy of one case: the fixtures themselves are never opened.
pub(crate) struct Case {
    case: &'static str,
    directory: TempDir,
}

impl Case {
    pub(crate) fn new(case: &'static str) -> Self {
        let directory = TempDir::new().unwrap();
        let (from, to) = (case_folder(case).join("archive"), directory.join("archive"));
        std::fs::create_dir(&to).unwrap();
        for name in files_in(&from) {
            let bytes = std::fs::read(from.join(&name)).unwrap();
            std::fs::write(to.join(&name), bytes).unwrap();
        }
        Self { case, directory }
    }

    pub(crate) fn archive(&self) -> PathBuf {
        self.directory.join("archive")
    }

    fn expected(&self) -> Snapshot {
        Snapshot::read_expected(&case_folder(self.case).join("expected.json")).unwrap()
    }

    fn extract(&self, name: &str) -> (Snapshot, Recorder<'static>) {
        let into = self.directory.join(name);
        let (_, told) = extract_to(&self.archive(), &into, &ExtractOptions::default());
        (Snapshot::take(&into).unwrap(), told)
    }

    /// Every row is what `zstash ls -l` printed, in the order of the volumes.
    fn assert_rows(&self) {
        let mut rows = all_rows(&self.archive());
        rows.sort_by_key(|row| (row.volume, row.offset));
        let mut text = "id\tname\tsize\tmtime\tmd5\ttar\toffset\n".to_owned();
        for row in &rows {
            let name = String::from_utf8(row.name.clone()).unwrap();
            let md5 = row.md5.map_or("None".to_owned(), hex);
            text += &format!(
                "{}\t{name}\t{}\t{}\t{md5}\t{}\t{}\t\n",
                row.id.0, row.size, row.mtime, row.volume, row.offset
            );
        }
        let printed = std::fs::read_to_string(case_folder(self.case).join("ls-l.txt")).unwrap();
        assert_eq!(text, printed);
    }

    /// The names that are listed.
    fn names(&self) -> Vec<Vec<u8>> {
        let rows = newest_rows(&self.archive());
        rows.into_iter().map(|row| row.name).collect()
    }

    /// Every name of the tree is listed once, and nothing but those and `others`.
    fn assert_names(&self, others: &[&str]) {
        let mut names = self.names();
        names.sort();
        let expected = self.expected();
        let mut wanted: Vec<Vec<u8>> = expected.entries().map(|(name, _)| name.to_vec()).collect();
        wanted.extend(others.iter().map(|name| name.as_bytes().to_vec()));
        wanted.sort();
        assert_eq!(names, wanted);
    }

    /// Extracts everything, without a failure, and compares with the tree as zstash saw it, and `others`.
    fn assert_extracts(&self, others: &[&str]) {
        let (mut extracted, told) = self.extract("extracted");
        assert_eq!(told.failure_texts(), [""; 0]);
        for name in others {
            assert!(extracted.get(name).is_some(), "{name}");
        }
        extracted.retain(|path, _| !others.iter().any(|name| name.as_bytes() == path));
        let differences = self.expected().difference(&extracted, &Compare::zstash());
        assert_eq!(differences, [""; 0]);
    }

    fn assert_nothing_changed(&self) {
        let original = bytes_in(&case_folder(self.case).join("archive"));
        assert!(bytes_in(&self.archive()) == original, "{}", self.case);
    }
}

/// What holds for a case without any flaw.
fn assert_sound(case: &'static str) {
    let case = Case::new(case);
    case.assert_rows();
    case.assert_names(&[]);
    let report = assert_clean(&case.archive());
    assert_eq!(report.members, all_rows(&case.archive()).len() as u64);
    case.assert_extracts(&[]);
    case.assert_nothing_changed();
}

#[test]
fn fixture_basic() {
    assert_sound("basic");
}

#[test]
fn fixture_gnu_format() {
    assert_sound("gnu-format");
}

#[test]
fn fixture_no_tars_table() {
    assert_sound("no-tars-table");
}

#[test]
fn fixture_odd_names() {
    assert_sound("odd-names");
}

/// Eleven volumes, two updates; a file that was deleted is still in the archive.
#[test]
fn fixture_volumes() {
    let case = Case::new("volumes");
    case.assert_rows();
    case.assert_names(&["a/one.bin"]);
    let report = assert_clean(&case.archive());
    assert_eq!((report.volumes, report.volume_md5s), (11, 11));
    case.assert_extracts(&["a/one.bin"]);
    case.assert_nothing_changed();
}

/// The newer of two rows in `tars` has a wrong size, the older one is right: worth a note, no damage.
#[test]
fn fixture_duplicate_tars() {
    let case = Case::new("duplicate-tars");
    case.assert_rows();
    case.assert_names(&[]);
    let (report, told) = check_all(&case.archive());
    assert_eq!(told.damage_texts(), [""; 0]);
    assert_eq!(
        told.notes(),
        ["000000.tar has several rows in `tars`, and the newest one is wrong"]
    );
    assert_eq!(report.volume_md5s, 1);
    assert_clean(&case.archive());
    case.assert_extracts(&[]);
    case.assert_nothing_changed();
}

/// `hard.txt` is a hard link to `a.txt`, which got other content since: the old bytes come back.
#[test]
fn fixture_hard_links() {
    let case = Case::new("hard-links");
    case.assert_rows();
    case.assert_names(&[]);
    assert_clean(&case.archive());
    case.assert_extracts(&[]);
    let (extracted, _) = case.extract("again");
    let md5 = |path: &str| extracted.get(path).unwrap().md5.clone().unwrap();
    assert_eq!(md5("hard.txt"), "21fa708aef5bd5f3a7d1dd4cff5246b0");
    assert_eq!(md5("a.txt"), "284c814e4b96d23cc5ce0a09c8658968");
    let alone = case.directory.join("alone");
    let (report, told) = extract_to(&case.archive(), &alone, &only("hard.txt"));
    assert_eq!((report.written, told.failures().len()), (1, 0));
    assert_eq!(
        Snapshot::take(&alone)
            .unwrap()
            .get("hard.txt")
            .unwrap()
            .md5
            .as_deref(),
        Some("21fa708aef5bd5f3a7d1dd4cff5246b0")
    );
    case.assert_nothing_changed();
}

/// A file shrank while it was archived, and every offset after it is wrong.
#[test]
fn fixture_shifted_offsets() {
    let case = Case::new("shifted-offsets");
    case.assert_rows();
    let (_, told) = check_all(&case.archive());
    let damages = told.damage_texts();
    // Nine members lie before the file that shrank, 27 behind it.
    let damaged = |name: &str| {
        let quoted = format!("`{name}`: ");
        damages.iter().any(|damage| damage.contains(&quoted))
    };
    let (before, behind): (Vec<_>, Vec<_>) = all_rows(&case.archive())
        .into_iter()
        .partition(|row| row.offset < 18_432);
    assert_eq!((before.len(), behind.len()), (9, 27));
    for (rows, is_damaged) in [(before, false), (behind, true)] {
        for row in rows {
            let name = String::from_utf8(row.name).unwrap();
            assert_eq!(damaged(&name), is_damaged, "{name}: {damages:#?}");
        }
    }
    let (extracted, told) = case.extract("extracted");
    assert_eq!(told.failures().len(), 27, "{:#?}", told.failure_texts());
    assert!(extracted.get("a/two.bin").is_some() && extracted.get("dir-link").is_none());
    case.assert_nothing_changed();
}

/// What a volume says after `reindex` of one that holds a file that shrank.
fn assert_mended(case: &Case) {
    case.assert_names_without_the_lost_file();
    let (_, told) = check_all(&case.archive());
    assert_eq!(
        told.damage_texts(),
        ["000000.tar at byte 16896: 17920 bytes belong to no member that the index knows"]
    );
    let (extracted, told) = case.extract("mended");
    assert_eq!(told.failure_texts(), [""; 0]);
    let mut expected = case.expected();
    expected.retain(|path, _| path != b"a/deep/er/three.bin");
    assert_eq!(expected.difference(&extracted, &Compare::zstash()), [""; 0]);
}

impl Case {
    fn assert_names_without_the_lost_file(&self) {
        let names = self.names();
        assert!(!names.contains(&b"a/deep/er/three.bin".to_vec()));
        assert_eq!(names.len(), self.expected().len() - 1);
    }
}

#[test]
fn fixture_shifted_offsets_is_mended_by_reindex() {
    let case = Case::new("shifted-offsets");
    let recorder = Recorder::default();
    let report = reindex(&case.archive(), Jobs::Fixed(2), &recorder).unwrap();
    assert_eq!((report.volumes, report.members), (1, 36));
    assert_eq!(report.damages, 1, "{:#?}", recorder.damage_texts());
    assert_mended(&case);
}

#[test]
fn fixture_shifted_offsets_is_rebuilt_without_an_index() {
    let case = Case::new("shifted-offsets");
    std::fs::remove_file(case.archive().join("index.db")).unwrap();
    let recorder = Recorder::default();
    let report = reindex(&case.archive(), Jobs::Fixed(2), &recorder).unwrap();
    assert_eq!((report.volumes, report.members), (1, 36));
    assert!(
        recorder
            .notes()
            .iter()
            .any(|note| note.starts_with("there is no index.db")),
        "{:?}",
        recorder.notes()
    );
    assert_mended(&case);
}

/// Rebuilt from the volumes alone, every sound case says what zstash's own index said.
#[test]
fn fixtures_are_rebuilt_without_an_index() {
    for name in [
        "basic",
        "duplicate-tars",
        "gnu-format",
        "hard-links",
        "no-tars-table",
        "odd-names",
        "volumes",
    ] {
        let case = Case::new(name);
        let facts = |case: &Case| {
            let mut rows = all_rows(&case.archive());
            rows.sort_by_key(|row| (row.volume, row.offset));
            rows.into_iter()
                .map(|row| (row.name, row.size, row.md5, row.volume, row.offset))
                .collect::<Vec<_>>()
        };
        let before = facts(&case);
        std::fs::remove_file(case.archive().join("index.db")).unwrap();
        let recorder = Recorder::default();
        reindex(&case.archive(), Jobs::Fixed(2), &recorder).unwrap();
        assert_eq!(recorder.damage_texts(), [""; 0], "{name}");
        assert!(facts(&case) == before, "{name}");
        assert_clean(&case.archive());
        // The headers of the GNU format have whole seconds, and only the old index had the rest.
        if name != "gnu-format" {
            let deleted: &[&str] = if name == "volumes" {
                &["a/one.bin"]
            } else {
                &[]
            };
            case.assert_extracts(deleted);
        }
    }
}

#[test]
fn every_fixture_has_its_test() {
    let text = include_str!("fixtures.rs");
    for case in files_in(&case_folder("")) {
        if case_folder(&case).is_dir() {
            let test = format!("fn fixture_{}()", case.replace('-', "_"));
            assert!(text.contains(&test), "{case}");
        }
    }
}
