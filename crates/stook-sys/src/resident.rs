//! What the kernel holds of a file in memory: its pages, and its name. Asking changes neither.
//!
//! Pages are asked for with `cachestat(2)`; before Linux 6.5, and where files lie in two layers, with `mincore(2)`. The
//! kernel answers both only for files that the user owns or may write to: the first refuses others, and the second calls
//! all of their pages resident, so it is not even asked.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, accessat, openat2, statfs};
use rustix::io::Errno;

use crate::metadata;

/// Since Linux 6.5; a system call as new as this has one number on all machines but Alpha.
const CACHESTAT: libc::c_long = 451;

/// How pages are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResidencyQuery {
    /// `cachestat(2)`.
    Cachestat,
    /// `mincore(2)`, through a mapping.
    Mincore,
}

/// Where the pages of a file come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    /// A disk or a server; memory holds copies, which can be dropped.
    Disk,
    /// One directory over another: the pages belong to the file below.
    Overlay,
    /// A process that serves a mount through FUSE.
    Fuse,
    /// Nowhere: tmpfs and its like live in memory only.
    Memory,
    /// The kernel, which makes them up when they are read: `/proc` and its like.
    Kernel,
}

/// Returns where the pages of a file come from; the file is not opened.
///
/// # Errors
/// As `statfs`.
///
/// # Source
/// `statfs(2)` and `linux/magic.h` for the numbers.
pub fn storage(path: &Path) -> io::Result<Storage> {
    Ok(match statfs(path)?.f_type {
        0x794c_7630 => Storage::Overlay,
        0x6573_5546 => Storage::Fuse,
        // tmpfs, ramfs, hugetlbfs.
        0x0102_1994 | 0x8584_58f6 | 0x9584_58f6 => Storage::Memory,
        // proc, sysfs, cgroup2, debugfs, tracefs.
        0x9fa0 | 0x6265_6572 | 0x6367_7270 | 0x6462_6720 | 0x7472_6163 => Storage::Kernel,
        _ => Storage::Disk,
    })
}

/// Returns how many bytes a page has.
pub fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

/// Returns how many pages of a file are in memory; None if the kernel hides it from this user.
///
/// # Errors
/// As `cachestat`, and as `mmap` and `mincore`. [`io::ErrorKind::Unsupported`] on a kernel without `cachestat`.
///
/// # Cost
/// The first goes through the pages that are in memory, the second through all, with a byte of memory for each.
pub fn resident_pages(file: &File, query: ResidencyQuery) -> io::Result<Option<u64>> {
    match query {
        ResidencyQuery::Cachestat => cachestat(file),
        ResidencyQuery::Mincore if is_reported(file)? => mincore(file).map(Some),
        ResidencyQuery::Mincore => Ok(None),
    }
}

#[repr(C)]
struct Range {
    offset: u64,
    length: u64,
}

/// `struct cachestat`: pages in memory, dirty, being written, evicted, evicted lately.
type Counts = [u64; 5];

fn cachestat(file: &File) -> io::Result<Option<u64>> {
    // Length 0 means up to the end.
    let range = Range {
        offset: 0,
        length: 0,
    };
    let mut counts: Counts = [0; 5];
    // SAFETY: both places are ours, and as large as the call takes them; the descriptor is open for as long as `file` is
    // borrowed.
    let result = unsafe {
        libc::syscall(
            CACHESTAT,
            file.as_raw_fd(),
            &raw const range,
            &raw mut counts,
            0_u32,
        )
    };
    if result == 0 {
        return Ok(Some(counts[0]));
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EPERM) => Ok(None),
        _ => Err(error),
    }
}

/// The rule by which the kernel answers `mincore` truthfully.
fn is_reported(file: &File) -> io::Result<bool> {
    if crate::is_root() || metadata(file)?.uid == crate::effective_user() {
        return Ok(true);
    }
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let may_write = accessat(CWD, path, rustix::fs::Access::WRITE_OK, AtFlags::EACCESS);
    Ok(may_write.is_ok())
}

fn mincore(file: &File) -> io::Result<u64> {
    let size = metadata(file)?.size;
    let length = usize::try_from(size).map_err(io::Error::other)?;
    if length == 0 {
        return Ok(0);
    }
    let pages = length.div_ceil(rustix::param::page_size());
    let mut seen = vec![0_u8; pages];
    // SAFETY: a new mapping at a place that the kernel chooses; nothing reads through it.
    let address = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            length,
            libc::PROT_READ,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        )
    };
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the mapping begins at the address and has this length; `seen` has a byte for each of its pages.
    let asked = unsafe { libc::mincore(address, length, seen.as_mut_ptr()) };
    let error = io::Error::last_os_error();
    // SAFETY: the mapping is ours, whole, and not used again.
    unsafe { libc::munmap(address, length) };
    if asked != 0 {
        return Err(error);
    }
    Ok(seen.iter().filter(|&&page| page & 1 == 1).count() as u64)
}

/// Returns true if the kernel has a name and all that are above it in memory, and so its inode: whether the path
/// resolves without a look at the disk. False, too, on file systems that ask their server each time.
///
/// # Errors
/// As `openat2`; so on Linux before 5.12. A name that is not there is not in memory.
pub fn is_name_cached(path: &Path) -> io::Result<bool> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::CACHED) {
        Ok(_) => Ok(true),
        Err(Errno::AGAIN | Errno::NOENT) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Writes what is to be written of a file, and asks the kernel to forget its pages. Those that a process has mapped stay.
///
/// # Errors
/// As `fdatasync` and `posix_fadvise`.
pub fn drop_pages(file: impl AsFd) -> io::Result<()> {
    match rustix::fs::fdatasync(&file) {
        // What cannot be written has nothing to write.
        Ok(()) | Err(Errno::INVAL | Errno::ROFS) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(rustix::fs::fadvise(
        &file,
        0,
        None,
        rustix::fs::Advice::DontNeed,
    )?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open_file;

    const PAGES: usize = 40;

    fn made(folder: &tempfile::TempDir) -> File {
        let path = folder.path().join("f");
        std::fs::write(&path, vec![7; PAGES * rustix::param::page_size()]).unwrap();
        open_file(&path).unwrap()
    }

    #[test]
    fn both_ways_of_asking_find_what_is_there_and_what_was_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let file = made(&folder);
        if storage(folder.path()).unwrap() != Storage::Disk {
            stook_testkit::skip!("the temporary folder is in memory");
            return;
        }
        for query in [ResidencyQuery::Cachestat, ResidencyQuery::Mincore] {
            if matches!(resident_pages(&file, query), Err(error) if error.kind() == io::ErrorKind::Unsupported)
            {
                stook_testkit::skip!("no {query:?} here");
                continue;
            }
            std::fs::read(folder.path().join("f")).unwrap();
            assert_eq!(resident_pages(&file, query).unwrap(), Some(PAGES as u64));
            drop_pages(&file).unwrap();
            assert_eq!(resident_pages(&file, query).unwrap(), Some(0));
        }
    }

    #[test]
    fn a_name_that_was_used_is_cached_and_one_that_is_not_there_is_not() {
        let folder = tempfile::tempdir().unwrap();
        drop(made(&folder));
        assert!(is_name_cached(&folder.path().join("f")).unwrap());
        assert!(!is_name_cached(&folder.path().join("none")).unwrap());
    }

    #[test]
    fn the_kernels_own_files_and_those_in_memory_are_told_apart() {
        assert_eq!(
            storage(Path::new("/proc/self/status")).unwrap(),
            Storage::Kernel
        );
        // A file in memory without a name, by the name that `/proc` gives it.
        let file = crate::memory_file().unwrap();
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        assert_eq!(storage(Path::new(&path)).unwrap(), Storage::Memory);
    }
}
