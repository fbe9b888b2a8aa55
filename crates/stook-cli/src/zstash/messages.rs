//! Every text that scripts look for in zstash's output, once each.

use stook_archive::VolumeId;

use super::argparse::display;

pub(crate) const HELP: &str = "For help, please see https://e3sm-project.github.io/zstash. Ask questions at https://github.com/E3SM-Project/zstash/discussions/categories/q-a.";
pub(crate) const INTERRUPTED: &str = "SIGINT or CTRL-C detected. Exiting.";
pub(crate) const UNRECOGNIZED: &str = "Unrecognized command";
pub(crate) const NOTHING_TO_UPDATE: &str = "Nothing to update";
pub(crate) const LIST: &str = "List of files to be updated";
pub(crate) const NO_INDEX: &str =
    "--hpss argument is required when local copy of database is unavailable";
pub(crate) const NOTHING_TO_EXTRACT: &str = "There was nothing to extract.";
pub(crate) const NOTHING_TO_LIST: &str = "There was nothing to ls.";
pub(crate) const TARS_AND_FILES: &str = "If --tars is used, <files> should not be listed.";
pub(crate) const NO_TARS_TABLE: &str = "\ntars table does not exist";
pub(crate) const PUT_UNAVAILABLE: &str = "put: HPSS is unavailable";
pub(crate) const GET_UNAVAILABLE: &str = "get: HPSS is unavailable";
pub(crate) const CHGRP_UNAVAILABLE: &str = "chgrp: HPSS is unavailable";
pub(crate) const KEEPING: &str = "put: Keeping tar files locally and removing write permissions";
pub(crate) const SOME_FAILED: &str = "Some files could not be archived";
pub(crate) const FILES_FAILED: &str = "Encountered an error for files:";
pub(crate) const TARS_FAILED: &str = "The following tar archives had errors:";
pub(crate) const BROKEN_LINK_CREATE: &str = "Archive creation failed due to broken symlink.";
pub(crate) const BROKEN_LINK_UPDATE: &str = "Archive update failed due to broken symlink.";
pub(crate) const GATHERING: &str = "Gathering list of files to archive";
pub(crate) const SIZES_UNKNOWN: &str = "Cannot access tar size information; assuming sizes match";

pub(crate) fn running(command: &str) -> String {
    format!("Running zstash {command}")
}

/// The settings of a run, each in a line of its own.
pub(crate) fn settings(path: &[u8], hpss: &str, maxsize: i128, keep: bool) -> [String; 4] {
    [
        format!("Local path : {}", display(path)),
        format!("HPSS path  : {hpss}"),
        format!("Max size  : {maxsize}"),
        format!("Keep local tar files  : {}", python_bool(keep)),
    ]
}

pub(crate) fn python_bool(value: bool) -> &'static str {
    if value { "True" } else { "False" }
}

pub(crate) fn not_a_directory(path: &[u8]) -> String {
    format!("Input path should be a directory: {}", display(path))
}

pub(crate) fn creating(volume: VolumeId) -> String {
    format!("Creating new tar archive {volume}")
}

pub(crate) fn archiving(path: &[u8]) -> String {
    format!("Archiving {}", display(path))
}

pub(crate) fn failed_to_archive(path: &[u8]) -> String {
    format!("Failed to archive {}", display(path))
}

pub(crate) fn closing(volume: &str) -> String {
    format!("Closing tar archive {volume}")
}

pub(crate) fn mode_of(path: &str, which: &str, mode: u32) -> String {
    format!(
        "{} {which} mode=b\"'{mode:o}'\"",
        super::argparse::repr(path.as_bytes())
    )
}

pub(crate) fn sending(path: &str) -> String {
    format!("Transferring file to HPSS: {path}")
}

pub(crate) fn fetching(path: &str) -> String {
    format!("Transferring file from HPSS: {path}")
}

pub(crate) fn complete(volume: VolumeId, size: u64, md5: &str) -> String {
    format!("tar name={volume}, tar size={size}, tar md5={md5}")
}

pub(crate) fn adding(volume: VolumeId) -> String {
    format!("Adding {volume} to the database.")
}

pub(crate) fn already_there(volume: VolumeId) -> String {
    format!("Database corruption detected! {volume} is already in the database.")
}

pub(crate) fn updating_record(volume: VolumeId) -> String {
    format!("Updating existing tar {volume} to proceed.")
}

pub(crate) fn adding_record(volume: VolumeId) -> String {
    format!("Adding a new entry for {volume}.")
}

pub(crate) fn simulating(what: &str, volume: VolumeId) -> String {
    format!("TESTING/DEBUGGING ONLY: Simulating {what} for {volume}.")
}

pub(crate) fn exists(path: &str) -> String {
    format!("{path} exists. Checking expected size matches actual size.")
}

pub(crate) fn single_entry(volume: VolumeId) -> String {
    format!("{volume}: Found a single database entry.")
}

pub(crate) fn no_entries(volume: VolumeId) -> String {
    format!("No database entries found for {volume}")
}

pub(crate) fn several_entries(volume: VolumeId, sizes: &[u64]) -> String {
    let count = sizes.len();
    format!(
        "Database corruption detected! Found {count} database entries for {volume}, with sizes {sizes:?}"
    )
}

pub(crate) fn newest_matches(volume: VolumeId, size: u64) -> String {
    format!(
        "{volume}: The most recent database entry has the same size as the actual file size: {size}."
    )
}

pub(crate) fn other_matches(volume: VolumeId, size: u64) -> String {
    format!(
        "{volume}: A database entry matches the actual file size, {size}, but it is not the most recent entry."
    )
}

pub(crate) fn none_matches(volume: VolumeId, size: u64) -> String {
    format!("{volume}: No database entry matches the actual file size: {size}.")
}

pub(crate) fn size_passed(volume: VolumeId, size: u64) -> String {
    format!("{volume}: Size check passed ({size} bytes)")
}

pub(crate) fn size_mismatch(volume: VolumeId, expected: u64, actual: u64) -> String {
    let difference = i128::from(actual) - i128::from(expected);
    format!(
        "{volume}: Size mismatch! Expected={expected} != {actual}=actual. Difference={difference}."
    )
}

pub(crate) fn wrong_size(path: &str) -> String {
    format!("{path} size does not match expected size.")
}

pub(crate) fn retrying(left: i128) -> String {
    format!("Retrying HPSS get: {left} tries remaining.")
}

pub(crate) fn opening(path: &str) -> String {
    format!("Opening tar archive {path}")
}

pub(crate) fn doing(verb: &str, path: &[u8]) -> String {
    format!("{verb} {}", display(path))
}

pub(crate) fn not_extracting(path: &[u8]) -> String {
    format!(
        "Not extracting {}, because it already exists on disk with the same size and modification date.",
        display(path)
    )
}

pub(crate) fn no_matches(pattern: &[u8]) -> String {
    format!("No matches for {}", display(pattern))
}

pub(crate) fn md5_mismatch(path: &[u8]) -> String {
    format!("md5 mismatch for: {}", display(path))
}

pub(crate) fn md5_of(which: &str, md5: &str) -> String {
    format!("md5 of {which}{md5}")
}

pub(crate) fn valid_md5(md5: &str, path: &[u8]) -> String {
    format!("Valid md5: {md5} {}", display(path))
}

/// Worded so that no script takes it for a failure of the volume: zstash does not verify hard links.
pub(crate) fn hard_link_mismatch(path: &[u8], volume: VolumeId) -> String {
    format!(
        "the content of the hard link {} in {volume} does not have the md5 on record",
        display(path)
    )
}

pub(crate) fn retrieving(path: &[u8]) -> String {
    format!("Retrieving {}", display(path))
}

pub(crate) fn failed_in(path: &[u8], volume: VolumeId) -> String {
    format!("{} in {volume}", display(path))
}

pub(crate) fn no_failures(doing: &str) -> String {
    format!(
        "No failures detected when {doing} the files. If you have a log file, run \"grep -i Exception <log-file>\" to double check."
    )
}
