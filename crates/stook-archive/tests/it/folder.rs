//! What lies in an archive's folder, what its rows say, and operations on an archive without a source.

use std::ops::ControlFlow;
use std::path::Path;

use stook_archive::{
    AsOf, CheckOptions, CheckReport, Dialect, ExtractOptions, ExtractReport, ListOptions,
    WriteOptions,
};
use stook_index::Row;
use stook_tree::Pattern;

use crate::by_path::{check, extract, list};
use crate::recorder::Recorder;
use crate::scene::options;

/// Checks an archive; returns what was told beside the report.
pub(crate) fn check_all(archive: &Path) -> (CheckReport, Recorder<'static>) {
    let recorder = Recorder::new();
    let report = check(archive, &CheckOptions::default(), &recorder).unwrap();
    assert_eq!(report.damages, recorder.damage_texts().len() as u64);
    (report, recorder)
}

/// Checks an archive and its whole volumes; there must be no damage.
pub(crate) fn assert_clean(archive: &Path) -> CheckReport {
    let recorder = Recorder::new();
    let options = CheckOptions {
        whole_volumes: true,
        ..CheckOptions::default()
    };
    let report = check(archive, &options, &recorder).unwrap();
    assert_eq!(recorder.damage_texts(), [""; 0]);
    assert_eq!(report.damages, 0);
    report
}

pub(crate) fn extract_to(
    archive: &Path,
    into: &Path,
    options: &ExtractOptions,
) -> (ExtractReport, Recorder<'static>) {
    let recorder = Recorder::new();
    let report = extract(archive, into, options, &recorder).unwrap();
    assert_eq!(report.failed, recorder.failures().len() as u64);
    (report, recorder)
}

/// Returns every row of an archive, superseded ones included, in the order they were archived.
pub(crate) fn all_rows(archive: &Path) -> Vec<Row> {
    rows(archive, true)
}

/// Returns the newest row of every name that is not deleted.
pub(crate) fn newest_rows(archive: &Path) -> Vec<Row> {
    rows(archive, false)
}

fn rows(archive: &Path, all_versions: bool) -> Vec<Row> {
    let options = ListOptions {
        patterns: Vec::new(),
        as_of: AsOf::Now,
        all_versions,
    };
    let mut rows = Vec::new();
    let report = list(archive, &options, &Recorder::new(), |row| {
        rows.push(row.to_row());
        ControlFlow::Continue(())
    });
    assert_eq!(report.unwrap().members, rows.len() as u64);
    rows
}

/// Options that write as zstash does.
pub(crate) fn as_zstash() -> WriteOptions {
    WriteOptions {
        dialect: Dialect::Zstash,
        directories: false,
        xattrs: false,
        ..options()
    }
}

/// Options to extract only what matches one pattern.
pub(crate) fn only(pattern: &str) -> ExtractOptions {
    ExtractOptions {
        patterns: vec![Pattern::new(pattern.as_bytes())],
        ..ExtractOptions::default()
    }
}

/// Returns the names in a folder, sorted.
pub(crate) fn files_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Returns the bytes of every file in a folder, by name.
pub(crate) fn bytes_in(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let files = files_in(folder).into_iter();
    files
        .map(|name| {
            let bytes = std::fs::read(folder.join(&name)).unwrap();
            (name, bytes)
        })
        .collect()
}

/// Returns the bytes of every volume in a folder, by name.
pub(crate) fn volumes_in(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = bytes_in(folder);
    files.retain(|(name, _)| name.ends_with(".tar"));
    files
}

pub(crate) fn hex(md5: [u8; 16]) -> String {
    use std::fmt::Write;
    md5.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}
