//! Operations on the archive at a path, which is opened for each of them.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;

use stook_archive::{
    Archive, ArchiveError, AsOf, AttributesReport, CheckOptions, CheckReport, DiffOptions,
    DiffReport, ExtractOptions, ExtractReport, Jobs, ListOptions, ListReport, Observer,
    OpenOptions, RowRef, Run, RunCounts, Silent, When, WriteOptions, WriteReport,
};

pub(crate) fn open(archive: &Path) -> Result<Archive, ArchiveError> {
    Archive::open(archive, &OpenOptions::default())
}

pub(crate) fn update(
    source: &Path,
    archive: &Path,
    options: &WriteOptions,
    observer: &dyn Observer,
) -> Result<WriteReport, ArchiveError> {
    stook_archive::update(source, &mut open(archive)?, options, observer)
}

pub(crate) fn fill_attributes(
    archive: &Path,
    jobs: Jobs,
    observer: &dyn Observer,
) -> Result<AttributesReport, ArchiveError> {
    stook_archive::fill_attributes(&mut open(archive)?, jobs, observer)
}

pub(crate) fn check(
    archive: &Path,
    options: &CheckOptions,
    observer: &dyn Observer,
) -> Result<CheckReport, ArchiveError> {
    stook_archive::check(&mut open(archive)?, options, observer)
}

pub(crate) fn extract(
    archive: &Path,
    into: &Path,
    options: &ExtractOptions,
    observer: &dyn Observer,
) -> Result<ExtractReport, ArchiveError> {
    stook_archive::extract(&mut open(archive)?, into, options, observer)
}

pub(crate) fn diff(
    source: &Path,
    archive: &Path,
    options: &DiffOptions,
    observer: &dyn Observer,
) -> Result<DiffReport, ArchiveError> {
    stook_archive::diff(source, &mut open(archive)?, options, observer)
}

pub(crate) fn cat(
    archive: &Path,
    name: &[u8],
    as_of: AsOf,
    output: &mut dyn Write,
) -> Result<(), ArchiveError> {
    stook_archive::cat(&open(archive)?, name, as_of, output, &Silent)
}

pub(crate) fn list(
    archive: &Path,
    options: &ListOptions,
    observer: &dyn Observer,
    visit: impl FnMut(RowRef<'_>) -> ControlFlow<()>,
) -> Result<ListReport, ArchiveError> {
    stook_archive::list(&mut open(archive)?, options, observer, visit)
}

pub(crate) fn runs(archive: &Path) -> Result<Vec<Run>, ArchiveError> {
    open(archive)?.runs()
}

pub(crate) fn run_counts(
    archive: &Path,
    observer: &dyn Observer,
) -> Result<(Vec<RunCounts>, u64), ArchiveError> {
    open(archive)?.run_counts(observer)
}

pub(crate) fn state_at(archive: &Path, when: When) -> Result<AsOf, ArchiveError> {
    open(archive)?.state_at(when)
}
