//! Writing to the disk ahead of a sync.

use std::fs::File;
use std::os::fd::AsRawFd;

/// Asks the kernel to begin writing a stretch of a file to the disk, and does not wait for it.
///
/// A hint: file systems that do not know it ignore it, and nothing is promised. It keeps the disk busy
/// while a volume is being made, so that the sync at its end has little left to do.
pub fn start_writeback(file: &File, offset: u64, len: u64) {
    let (Ok(offset), Ok(len)) = (i64::try_from(offset), i64::try_from(len)) else {
        return;
    };
    // SAFETY: the descriptor is open for as long as `file` is borrowed; no memory is handed over.
    let _ = unsafe {
        libc::sync_file_range(file.as_raw_fd(), offset, len, libc::SYNC_FILE_RANGE_WRITE)
    };
}
