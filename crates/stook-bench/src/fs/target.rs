//! Targets: whether they can be used, what is known of them, and the folders that the bench makes below them.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use stook_sys::{Context, DeviceKind, FileId, FileKind, display_path, look_at, mount_of};

use super::options::FsOptions;
use super::phase::Phase;
use crate::error::BenchError;
use crate::fileset::Properties;
use crate::remedy::Remedy;
use crate::space::Need;

/// A file takes at least this much of a disk, and so does a directory.
const LEAST_ON_DISK: u64 = 4096;
/// A packed file takes this much besides its content: two headers and padding, and its row in the index.
const PACKED_EXTRA: u64 = 2048;
/// Files that a tool makes besides those of the trees.
const FEW_FILES: u64 = 16;

/// A directory on a file system that is measured.
#[derive(Debug)]
pub(super) struct Target {
    /// As the user wrote it.
    pub(super) label: String,
    /// As the user wrote it, too.
    pub(super) path: PathBuf,
    /// What is known of its file system.
    pub(super) facts: BTreeMap<String, String>,
}

/// Looks at all targets before anything is made.
///
/// # Errors
/// [`BenchError::Refused`] for the first one that cannot be used, [`BenchError::Usage`] for one given twice.
pub(super) fn look_at_all(
    options: &FsOptions,
    set: &Properties,
) -> Result<Vec<Target>, BenchError> {
    let mut seen: Vec<(FileId, &Path)> = Vec::new();
    let mut targets = Vec::new();
    for path in &options.targets {
        let identity = directory(path)?;
        if let Some((_, other)) = seen.iter().find(|(other, _)| *other == identity) {
            let (one, other) = (display_path(path), display_path(other));
            return Err(BenchError::usage(format!(
                "the targets `{other}` and `{one}` are the same directory"
            )));
        }
        seen.push((identity, path));
        targets.push(Target {
            label: display_path(path),
            path: path.clone(),
            facts: facts(path)?,
        });
    }
    directory(&options.work)?;
    let need = need_of_target(options, set);
    let places = options.targets.iter().map(|path| (path.as_path(), need));
    check_space(places.chain([(options.work.as_path(), need_of_work(set))]))?;
    Ok(targets)
}

/// Returns what tells a directory from all others.
fn directory(path: &Path) -> Result<FileId, BenchError> {
    let metadata = look_at(path)?;
    if metadata.kind != FileKind::Directory {
        let refused: io::Result<()> = Err(io::ErrorKind::NotADirectory.into());
        refused.context("use", path)?;
    }
    Ok(metadata.identity())
}

/// Names of servers, users and directories stay out: results are shown to others.
fn facts(path: &Path) -> Result<BTreeMap<String, String>, BenchError> {
    let mut facts = BTreeMap::new();
    if let Some(mount) = mount_of(path)? {
        let device = match mount.device_kind() {
            DeviceKind::None if mount.kind == "tmpfs" => "memory",
            DeviceKind::None if mount.kind.starts_with("fuse") => "another process (FUSE)",
            DeviceKind::None => "no device of this machine",
            DeviceKind::Rotating => "rotating disk",
            DeviceKind::SolidState => "solid-state disk",
            DeviceKind::Virtual => "virtual disk",
            DeviceKind::Loop => "file (loop device)",
            DeviceKind::Unknown => "unknown device",
        };
        let shown = mount.options.into_iter().filter(|option| is_shown(option));
        let options = shown.collect::<Vec<String>>().join(",");
        for (name, fact) in [
            ("type", mount.kind),
            ("device", device.to_owned()),
            ("options", options),
        ] {
            facts.insert(name.to_owned(), fact);
        }
    }
    Ok(facts)
}

/// Mount options whose value is a word that says how, and not who or where.
const WORDS: &str = "cache compress compress-force data discard errors huge local_lock lookupcache mode proto sec security sync";

/// Numbers and known words; any other value may be the name of a user, a domain or a server.
fn is_shown(option: &str) -> bool {
    let Some((name, value)) = option.split_once('=') else {
        return !option.contains(['/', '@', ':']);
    };
    let is_number = value.starts_with(|first: char| first.is_ascii_digit())
        && value
            .chars()
            .all(|each| each.is_ascii_alphanumeric() || each == '.')
        && !name.ends_with("addr");
    is_number || (WORDS.split(' ').any(|word| word == name) && !value.contains(['/', '@']))
}

fn tree(set: &Properties) -> Need {
    let entries = set.files + set.directories + 1;
    Need {
        bytes: set.bytes + entries * LEAST_ON_DISK,
        inodes: entries,
    }
}

fn packed(set: &Properties) -> Need {
    let entries = set.files + set.directories + 1;
    Need {
        bytes: set.bytes + entries * PACKED_EXTRA,
        inodes: FEW_FILES,
    }
}

/// The most that lies on a target at a time.
fn need_of_target(options: &FsOptions, set: &Properties) -> Need {
    let need = options.tools.iter().map(|tool| {
        let steps = options.steps(*tool);
        let number =
            |made: &[Phase]| made.iter().filter(|phase| steps.contains(phase)).count() as u64;
        let trees = tree(set).times(number(&[Phase::Untar, Phase::CopyTree]));
        trees.and(packed(set).times(number(&[Phase::Copy, Phase::Tar])))
    });
    need.fold(Need::default(), Need::and)
}

fn need_of_work(set: &Properties) -> Need {
    tree(set).and(packed(set).times(2))
}

/// Directories on one file system share its free space.
fn check_space<'p>(places: impl Iterator<Item = (&'p Path, Need)>) -> Result<(), BenchError> {
    let mut systems: BTreeMap<(u32, u32), Need> = BTreeMap::new();
    for (path, need) in places {
        let sum = systems.entry(look_at(path)?.filesystem).or_default();
        *sum = sum.and(need);
        sum.require(path, Remedy::MeasureLess)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::is_shown;

    #[test]
    fn options_with_names_of_users_and_servers_are_not_shown() {
        let shown = "rw noatime size=24684084k vers=4.2 rsize=1048576 proto=tcp sec=krb5p compress=zstd:3 \
                     data=ordered user_id=0";
        for shown in shown.split(' ') {
            assert!(is_shown(shown), "{shown}");
        }
        let hidden = "username=jane domain=SITE name=admin addr=10.0.0.1 clientaddr=10.0.0.2 subvol=/home \
                      mon_addr=10.0.0.1:6789 credentials=/etc/cifs/key fsname=srv01 password=7secret- \
                      snapdirname=.snap";
        for hidden in hidden.split(' ') {
            assert!(!is_shown(hidden), "{hidden}");
        }
    }
}
