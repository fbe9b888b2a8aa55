//! System calls with named errors: the one home of raw file access.
//!
//! What lies in a tree is reached relative to an open [`Directory`], so that no path is resolved twice, names
//! longer than `PATH_MAX` work, and a symbolic link swapped in on the way is not followed.
//! Functions relative to a directory return a bare [`std::io::Error`]: the caller knows the
//! whole path and adds it with [`Context`].

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests make their own files")
)]

#[expect(unsafe_code, reason = "rustix does not have mallopt")]
mod allocator;
#[expect(
    unsafe_code,
    reason = "only a bare descriptor tells how closing it went"
)]
mod calls;
#[expect(
    unsafe_code,
    reason = "rustix does not have wait4, which tells what a child took"
)]
mod child;
mod directory;
mod erofs;
mod error;
#[expect(
    unsafe_code,
    reason = "reading into memory that nobody has filled with zeros"
)]
mod file;
mod free_space;
mod fuse;
mod holders;
mod lock;
mod metadata;
mod mount;
mod mutex;
mod open_path;
#[expect(unsafe_code, reason = "the C library knows the users; rustix does not")]
mod owners;
#[expect(unsafe_code, reason = "rustix does not have sync_file_range")]
mod page_cache;
mod process;
#[expect(
    unsafe_code,
    reason = "rustix does not have the clocks of other processes"
)]
mod process_clock;
mod replace;
#[expect(unsafe_code, reason = "rustix has neither cachestat nor mincore")]
mod resident;
mod root;
mod run_delay;
mod stamp;
#[expect(
    unsafe_code,
    reason = "it looks before main, where only a constructor runs"
)]
mod standard;
mod temporary;
mod thread;
mod time;
mod transfer;
#[expect(unsafe_code, reason = "rustix does not have getrusage")]
mod usage;
mod xattr;

pub use allocator::give_back_large_blocks;
pub use calls::{CallCount, count_calls, counted_calls};
pub use child::{
    Child, Ended, Signal, start_and_ignore_signals, start_in_own_session, wait_readable,
};
pub use directory::{Directory, FoundName, Links, NODE_MODE, NameBuffer};
pub use erofs::{
    ErofsMount, erofs_heeds_access_lists, is_no_block_device, is_unknown_file_system,
    kernel_release,
};
pub use error::{
    Context, SysError, busy, cause, display_bytes, display_path, is_link_refused, is_mount_point,
    is_no_directory, is_not_permitted, is_unsupported, not_found,
};
pub use file::{
    Segment, absolute, append_at, append_some_at, append_to_file, create_directory,
    create_new_file, exchange, exists, look_at, memory_file, metadata, next_data_segment,
    open_file, open_read_write, private_directory, read_all, read_cached_at, read_text,
    read_up_to_at, remove_file, rename, rename_to_new, require_regular, set_mode, set_mtime,
    set_owner, sync_directory, write_all_at, write_file,
};
pub use free_space::{FreeSpace, free_space};
pub use fuse::{FuseMount, MountPoint, Unmount, is_busy, is_without_server};
pub use holders::{Holder, holders_of};
pub use lock::{LockError, WriterLock, has_locks, try_lock};
pub use metadata::{FileId, FileKind, Metadata};
pub use mount::{DeviceKind, Mount, mount_of, mount_of_device, names_of_mount_points};
pub use mutex::{into_inner, lock};
pub use open_path::OpenPath;
pub use owners::Owners;
pub use page_cache::{
    Forget, drop_cached, drop_caches, may_drop_caches, read_ahead, read_once, start_writeback,
};
pub use process::{
    available_cpus, effective_user, groups, host_name, is_root, memory_limit,
    monotonic_nanoseconds, most_open_files, peak_memory, raise_open_files, reset_peak_memory,
    utc_now,
};
pub use process_clock::ProcessClock;
pub use replace::{install, install_new, replace_file};
pub use resident::{
    ResidencyQuery, Storage, drop_pages, is_name_cached, page_bytes, resident_pages, storage,
};
pub use run_delay::thread_run_delay;
pub use stamp::Stamp;
pub use standard::{is_stdout_unwritable, leave_terminal, stdout_columns};
pub use temporary::{TemporaryNames, is_temporary_name};
pub use thread::{ThreadId, ThreadTimes, current_thread, is_ready, thread_times};
pub use time::Timestamp;
pub use transfer::{Refusal, close_file, copy_range, refusal, set_len, share_content};
pub use usage::ThreadCpu;
pub use xattr::{Xattr, get_xattrs, remove_xattr, set_xattr};
