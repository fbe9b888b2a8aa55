//! The system calls of trees, counted and timed for those who ask: the table of `strace -c`, from inside.
//!
//! Each function is the one of [`rustix`] with the same name. Counting is off by default, and a call
//! then costs one relaxed load more; on, it costs two looks at the clock.

use std::os::fd::{AsFd, AsRawFd, IntoRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::buffer::Buffer;
use rustix::fs::{
    AtFlags, Dev, FileType, Gid, Mode, OFlags, RawDirEntry, RenameFlags, ResolveFlags, SeekFrom,
    StatFs, Statx, StatxFlags, Timestamps, Uid, XattrFlags,
};
use rustix::io::Result;
use rustix::path::Arg;

static IS_COUNTING: AtomicBool = AtomicBool::new(false);

#[derive(Debug)]
struct Counter {
    calls: AtomicU64,
    errors: AtomicU64,
    nanoseconds: AtomicU64,
}

/// What is known of one system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallCount {
    /// Its name.
    pub name: &'static str,
    /// How often it was made, failures included.
    pub calls: u64,
    /// How often it failed.
    pub errors: u64,
    /// How long all of them took, on all threads together.
    pub total: Duration,
}

/// Begins to count.
pub fn count_calls() {
    IS_COUNTING.store(true, Ordering::Relaxed);
}

/// Returns the system calls on trees since [`count_calls`], those without calls left out.
pub fn counted_calls() -> Vec<CallCount> {
    let of_call = |call: &Call| {
        let counter = &COUNTERS[*call as usize];
        CallCount {
            name: call.name(),
            calls: counter.calls.load(Ordering::Relaxed),
            errors: counter.errors.load(Ordering::Relaxed),
            total: Duration::from_nanos(counter.nanoseconds.load(Ordering::Relaxed)),
        }
    };
    let counts = Call::ALL.iter().map(of_call);
    counts.filter(|count| count.calls > 0).collect()
}

fn counted<T>(call: Call, make: impl FnOnce() -> Result<T>) -> Result<T> {
    if !IS_COUNTING.load(Ordering::Relaxed) {
        return make();
    }
    let begun = Instant::now();
    let result = make();
    let nanoseconds = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let counter = &COUNTERS[call as usize];
    counter.calls.fetch_add(1, Ordering::Relaxed);
    counter
        .nanoseconds
        .fetch_add(nanoseconds, Ordering::Relaxed);
    if result.is_err() {
        counter.errors.fetch_add(1, Ordering::Relaxed);
    }
    result
}

macro_rules! calls {
    (
        written_out { $($own:ident $own_name:literal;)* }
        $($call:ident $name:literal: $module:ident::$function:ident($($argument:ident: $type:ty),*) -> $result:ty;)*
    ) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        enum Call {
            $($own,)*
            $($call),*
        }

        impl Call {
            const ALL: &[Self] = &[$(Self::$own,)* $(Self::$call),*];

            fn name(self) -> &'static str {
                match self {
                    $(Self::$own => $own_name,)*
                    $(Self::$call => $name),*
                }
            }
        }

        $(pub(crate) fn $function($($argument: $type),*) -> Result<$result> {
            counted(Call::$call, || rustix::$module::$function($($argument),*))
        })*
    };
}

static COUNTERS: [Counter; Call::ALL.len()] = [const {
    Counter {
        calls: AtomicU64::new(0),
        errors: AtomicU64::new(0),
        nanoseconds: AtomicU64::new(0),
    }
}; Call::ALL.len()];

calls! {
    written_out {
        Close "close";
        Getdents64 "getdents64";
        Pread "pread64";
        Flistxattr "flistxattr";
        Fgetxattr "fgetxattr";
        Llistxattr "llistxattr";
        Listxattrat "listxattrat";
        Lgetxattr "lgetxattr";
    }
    Openat "openat": fs::openat(at: impl AsFd, path: impl Arg, flags: OFlags, mode: Mode) -> OwnedFd;
    Openat2 "openat2": fs::openat2(at: impl AsFd, path: impl Arg, flags: OFlags, mode: Mode, resolve: ResolveFlags) -> OwnedFd;
    Statx "statx": fs::statx(at: impl AsFd, path: impl Arg, flags: AtFlags, mask: StatxFlags) -> Statx;
    Unlinkat "unlinkat": fs::unlinkat(at: impl AsFd, path: impl Arg, flags: AtFlags) -> ();
    Mkdirat "mkdirat": fs::mkdirat(at: impl AsFd, path: impl Arg, mode: Mode) -> ();
    Mknodat "mknodat": fs::mknodat(at: impl AsFd, path: impl Arg, kind: FileType, mode: Mode, device: Dev) -> ();
    Symlinkat "symlinkat": fs::symlinkat(target: impl Arg, at: impl AsFd, path: impl Arg) -> ();
    Linkat "linkat": fs::linkat(at: impl AsFd, path: impl Arg, new_at: impl AsFd, new_path: impl Arg, flags: AtFlags) -> ();
    Renameat "renameat": fs::renameat(at: impl AsFd, path: impl Arg, new_at: impl AsFd, new_path: impl Arg) -> ();
    RenameatWith "renameat2": fs::renameat_with(at: impl AsFd, path: impl Arg, new_at: impl AsFd, new_path: impl Arg, flags: RenameFlags) -> ();
    Readlinkat "readlinkat": fs::readlinkat(at: impl AsFd, path: impl Arg, reuse: Vec<u8>) -> std::ffi::CString;
    Utimensat "utimensat": fs::utimensat(at: impl AsFd, path: impl Arg, times: &Timestamps, flags: AtFlags) -> ();
    Futimens "utimensat": fs::futimens(fd: impl AsFd, times: &Timestamps) -> ();
    Chownat "fchownat": fs::chownat(at: impl AsFd, path: impl Arg, owner: Option<Uid>, group: Option<Gid>, flags: AtFlags) -> ();
    Fchown "fchown": fs::fchown(fd: impl AsFd, owner: Option<Uid>, group: Option<Gid>) -> ();
    Chmod "chmod": fs::chmod(path: impl Arg, mode: Mode) -> ();
    Fchmod "fchmod": fs::fchmod(fd: impl AsFd, mode: Mode) -> ();
    Ftruncate "ftruncate": fs::ftruncate(fd: impl AsFd, len: u64) -> ();
    Seek "lseek": fs::seek(fd: impl AsFd, to: SeekFrom) -> u64;
    Clone "ioctl(FICLONE)": fs::ioctl_ficlone(to: impl AsFd, from: impl AsFd) -> ();
    CopyRange "copy_file_range": fs::copy_file_range(from: impl AsFd, from_offset: Option<&mut u64>, to: impl AsFd, to_offset: Option<&mut u64>, len: usize) -> usize;
    Fsetxattr "fsetxattr": fs::fsetxattr(fd: impl AsFd, name: impl Arg, value: &[u8], flags: XattrFlags) -> ();
    Lsetxattr "lsetxattr": fs::lsetxattr(path: impl Arg, name: impl Arg, value: &[u8], flags: XattrFlags) -> ();
    Fremovexattr "fremovexattr": fs::fremovexattr(fd: impl AsFd, name: impl Arg) -> ();
    Lremovexattr "lremovexattr": fs::lremovexattr(path: impl Arg, name: impl Arg) -> ();
    Syncfs "syncfs": fs::syncfs(fd: impl AsFd) -> ();
    Fstatfs "fstatfs": fs::fstatfs(fd: impl AsFd) -> StatFs;
    Pwrite "pwrite64": io::pwrite(fd: impl AsFd, buffer: &[u8], offset: u64) -> usize;
}

pub(crate) fn close(fd: OwnedFd) -> Result<()> {
    let fd = fd.into_raw_fd();
    counted(Call::Close, || {
        // SAFETY: `into_raw_fd` gave the descriptor away, so nobody else has it, and it is not used again: Linux closes
        // it whatever it answers.
        unsafe { rustix::io::try_close(fd) }
    })
}

/// The next name of a directory: one getdents64 if all that were read are used up.
pub(crate) fn next_name<'d, Fd: AsFd>(
    names: &'d mut rustix::fs::RawDir<'_, Fd>,
) -> Option<Result<RawDirEntry<'d>>> {
    if !names.is_buffer_empty() {
        return names.next();
    }
    counted(Call::Getdents64, || names.next().transpose()).transpose()
}

pub(crate) fn pread<B: Buffer<u8>>(fd: impl AsFd, buffer: B, offset: u64) -> Result<B::Output> {
    counted(Call::Pread, || rustix::io::pread(fd, buffer, offset))
}

pub(crate) fn flistxattr(fd: impl AsFd, list: &mut [u8]) -> Result<usize> {
    counted(Call::Flistxattr, || rustix::fs::flistxattr(fd, list))
}

pub(crate) fn fgetxattr(fd: impl AsFd, name: impl Arg, value: &mut [u8]) -> Result<usize> {
    counted(Call::Fgetxattr, || rustix::fs::fgetxattr(fd, name, value))
}

pub(crate) fn llistxattr(path: &[u8], list: &mut [u8]) -> Result<usize> {
    counted(Call::Llistxattr, || rustix::fs::llistxattr(path, list))
}

/// Lists the attributes of an entry of a directory, not following a link; `NOSYS` before Linux 6.13.
pub(crate) fn listxattrat(at: impl AsFd, name: &[u8], list: &mut [u8]) -> Result<usize> {
    /// The number on both architectures that are built and tested; others take the way by `/proc`.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    const NUMBER: libc::c_long = 465;
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    const NUMBER: libc::c_long = -1;
    let at = at.as_fd().as_raw_fd();
    counted(Call::Listxattrat, || {
        name.into_with_c_str(|name| {
            // SAFETY: the name ends in a NUL, and the kernel writes no more bytes than the length that is passed;
            // both live until the call returns. The descriptor is borrowed.
            let len = unsafe {
                libc::syscall(
                    NUMBER,
                    at,
                    name.as_ptr(),
                    libc::AT_SYMLINK_NOFOLLOW,
                    list.as_mut_ptr(),
                    list.len(),
                )
            };
            usize::try_from(len).map_err(|_negative| {
                let error = std::io::Error::last_os_error();
                rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO)
            })
        })
    })
}

pub(crate) fn lgetxattr(path: &[u8], name: impl Arg, value: &mut [u8]) -> Result<usize> {
    counted(Call::Lgetxattr, || rustix::fs::lgetxattr(path, name, value))
}
