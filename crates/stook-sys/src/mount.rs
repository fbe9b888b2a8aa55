//! What a directory lies on: the file system, and what it is mounted from.
//!
//! The mount is found by its number, which the kernel reports for every open file: comparing paths goes wrong where one
//! mount hides another, comparing device numbers with btrfs, which makes up its own.

use std::collections::HashSet;
use std::ffi::OsString;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use crate::{Directory, SysError, exists, read_text};

/// A mounted file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// The type, such as `ext4`, `nfs4`, `fuse.sshfs`.
    pub kind: String,
    /// Where it is mounted.
    pub point: PathBuf,
    /// What is mounted: a device, `server:/export`, or a word.
    pub source: String,
    /// Options of the mount, then those of the file system that the mount does not have.
    pub options: Vec<String>,
    /// Major and minor number of the device; the major is 0 where there is none.
    pub device: (u32, u32),
}

/// What a file system lies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceKind {
    /// No device of this machine: memory, a network, another process.
    None,
    /// A disk that turns.
    Rotating,
    /// A disk without moving parts, or one that says so.
    SolidState,
    /// A file that looks like a disk.
    Loop,
    /// A disk that another system gives to this one; on what it lies is not known.
    Virtual,
    /// A device of which nothing is known.
    Unknown,
}

/// Returns the mount that a directory lies in; None if `/proc` does not say.
///
/// # Errors
/// The operation "open", if it cannot be opened.
///
/// # Source
/// `proc(5)`: `/proc/pid/fdinfo` and `/proc/pid/mountinfo`.
pub fn mount_of(directory: &Path) -> Result<Option<Mount>, SysError> {
    let open = Directory::open(directory)?;
    let info = format!("/proc/self/fdinfo/{}", open.as_fd().as_raw_fd());
    let (Ok(info), Ok(mounts)) = (read(&info), read("/proc/self/mountinfo")) else {
        return Ok(None);
    };
    let number = info.lines().find_map(|line| line.strip_prefix("mnt_id:"));
    Ok(number.and_then(|number| {
        mounts
            .lines()
            .find_map(|line| mount_in(line, number.trim()))
    }))
}

/// Returns the mount of a file system with this device number; None if there is none, or `/proc` does not say. The file system
/// itself is not asked.
///
/// # Source
/// `proc(5)`: `/proc/pid/mountinfo`.
pub fn mount_of_device(device: (u32, u32)) -> Option<Mount> {
    let mounts = read("/proc/self/mountinfo").ok()?;
    let mut mounts = mounts.lines().filter_map(|line| {
        let (number, _) = line.split_once(' ')?;
        mount_in(line, number)
    });
    mounts.find(|mount| mount.device == device)
}

/// Returns the last component of every mount point: no other name can be one. `None` if `/proc` does not say.
///
/// # Source
/// `proc(5)`: `/proc/pid/mountinfo`.
pub fn names_of_mount_points() -> Option<HashSet<Vec<u8>>> {
    let mounts = read("/proc/self/mountinfo").ok()?;
    let points = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    Some(points.map(last_component).collect())
}

fn last_component(point: &str) -> Vec<u8> {
    unescaped(point.rsplit('/').next().unwrap_or(point))
}

fn read(path: &str) -> Result<String, SysError> {
    read_text(Path::new(path))
}

/// `36 35 98:0 /root /mount/point rw,noatime master:1 - ext4 /dev/sda1 rw,errors=continue`
fn mount_in(line: &str, number: &str) -> Option<Mount> {
    let (place, file_system) = line.split_once(" - ")?;
    let mut place = place.split(' ');
    if place.next() != Some(number) {
        return None;
    }
    let (major, minor) = place.nth(1)?.split_once(':')?;
    let point = unescaped(place.nth(1)?);
    let mut options = options(place.next()?);
    let mut file_system = file_system.split(' ');
    let (kind, source) = (file_system.next()?, file_system.next()?);
    for option in self::options(file_system.next().unwrap_or("")) {
        if !options.contains(&option) {
            options.push(option);
        }
    }
    Some(Mount {
        kind: kind.to_owned(),
        point: PathBuf::from(OsString::from_vec(point)),
        source: String::from_utf8_lossy(&unescaped(source)).into_owned(),
        options,
        device: (major.parse().ok()?, minor.parse().ok()?),
    })
}

fn options(text: &str) -> Vec<String> {
    let options = text.split(',').filter(|option| !option.is_empty());
    options.map(ToOwned::to_owned).collect()
}

/// Blanks, tabs, line breaks and backslashes stand there as `\040` and so on.
fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    while let Some((&first, rest)) = bytes.split_first() {
        let digits = rest
            .get(..3)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        let code = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(code) if first == b'\\' => {
                plain.push(code);
                bytes = &rest[3..];
            }
            _ => {
                plain.push(first);
                bytes = rest;
            }
        }
    }
    plain
}

impl Mount {
    /// Returns what the file system lies on, as far as `/sys` says.
    pub fn device_kind(&self) -> DeviceKind {
        let (major, minor) = self.device;
        if major == 0 && !self.source.starts_with("/dev/") {
            return DeviceKind::None;
        }
        let device = format!("/sys/dev/block/{major}:{minor}");
        let is_there =
            |name: &str| matches!(exists(Path::new(&format!("{device}/{name}"))), Ok(Some(_)));
        if is_there("loop") {
            return DeviceKind::Loop;
        }
        let event = read(&format!("{device}/uevent")).unwrap_or_default();
        let name = event.lines().find_map(|line| line.strip_prefix("DEVNAME="));
        if name.is_some_and(|name| name.starts_with("vd") || name.starts_with("xvd")) {
            return DeviceKind::Virtual;
        }
        // A partition's queue is that of the disk above it.
        let queues = ["queue/rotational", "../queue/rotational"];
        let told = queues
            .iter()
            .find_map(|name| read(&format!("{device}/{name}")).ok());
        match told.as_deref().map(str::trim) {
            Some("0") => DeviceKind::SolidState,
            Some("1") => DeviceKind::Rotating,
            _ => DeviceKind::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_taken_apart() {
        let line = r"36 35 98:1 / /mnt/a\040b\134 rw,noatime master:1 - fuse.sshfs user@host:/x\040y rw,user_id=0";
        let mount = mount_in(line, "36").unwrap();
        assert_eq!(mount.point, Path::new(r"/mnt/a b\"));
        assert_eq!(
            (mount.kind.as_str(), mount.source.as_str()),
            ("fuse.sshfs", "user@host:/x y")
        );
        assert_eq!(mount.options, ["rw", "noatime", "user_id=0"]);
        assert_eq!(mount.device, (98, 1));
        assert_eq!(mount_in(line, "3"), None);
        let bare = "1 0 0:5 / / rw - tmpfs tmpfs rw,size=1k";
        assert_eq!(mount_in(bare, "1").unwrap().options, ["rw", "size=1k"]);
        for cut in [
            "",
            "36",
            "36 35 98:1 / /mnt",
            "36 35 98 / /mnt rw - ext4 /dev/a rw",
        ] {
            assert_eq!(mount_in(cut, "36"), None, "{cut}");
        }
    }

    #[test]
    fn the_names_of_mount_points_are_their_last_components() {
        assert_eq!(last_component(r"/mnt/a\040b/c\134d"), br"c\d");
        assert_eq!(last_component("/"), b"");
        assert!(names_of_mount_points().unwrap().contains(&b"proc"[..]));
    }

    #[test]
    fn the_mount_of_a_directory_is_found() {
        let proc = mount_of(Path::new("/proc/self")).unwrap().unwrap();
        assert_eq!(
            (proc.kind.as_str(), proc.point.as_path()),
            ("proc", Path::new("/proc"))
        );
        assert_eq!(proc.device_kind(), DeviceKind::None);
        let folder = tempfile::tempdir().unwrap();
        assert!(mount_of(folder.path()).unwrap().is_some());
        assert!(mount_of(&folder.path().join("none")).is_err());
    }
}
