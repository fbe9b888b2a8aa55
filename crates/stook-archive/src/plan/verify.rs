//! Built volumes are what was built: their MD5s are taken again.
//!
//! Parts come from other machines, over file systems that lose bytes when a cable is pulled. What is committed damaged
//! is found only by the next check, when the tree may be gone.

use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex};

use stook_pool::Jobs;
use stook_sys::{Context, SysError, append_at, open_file, read_once};
use stook_timers::scope;

use crate::ArchiveError;
use crate::buffers::Buffers;
use crate::hasher::{Hashing, VolumeHasher, wait_for};
use crate::memory::worker_pool;
use crate::mutex::lock;
use crate::observer::{Observer, require_going_on};

/// Volumes read at a time: their MD5s fill the lanes of an AVX2 register.
const MOST_AT_A_TIME: usize = 8;

/// Bytes of a volume read at once: all that are read fit into what may wait for the hashing thread.
const SLICE_BYTES: usize = 1 << 20;

/// A volume, and the MD5 that it was built with.
pub(crate) struct VolumeToVerify<'a> {
    pub(crate) part: u32,
    pub(crate) path: &'a Path,
    pub(crate) len: u64,
    pub(crate) md5: [u8; 16],
}

/// Returns the parts whose volumes have another MD5, in order.
///
/// # Errors
/// `Sys` if one cannot be read; `Interrupted`; `NoThread`.
///
/// # Cost
/// Every byte of the volumes is read once, of up to eight at a time.
pub(crate) fn damaged_volumes(
    volumes: &[VolumeToVerify<'_>],
    jobs: Jobs,
    observer: &dyn Observer,
) -> Result<Vec<u32>, ArchiveError> {
    let _scope = scope!("verify volumes");
    let bytes = volumes.iter().map(|volume| volume.len).sum();
    observer.phase("verify", None, Some(bytes));
    let buffers = Arc::default();
    let hashing = Hashing::start(&buffers)?;
    damaged_of(volumes, &hashing, &buffers, jobs, observer)
}

fn damaged_of(
    volumes: &[VolumeToVerify<'_>],
    hashing: &Hashing,
    buffers: &Buffers,
    jobs: Jobs,
    observer: &dyn Observer,
) -> Result<Vec<u32>, ArchiveError> {
    let outcomes = Mutex::new(Vec::new());
    let is_interrupted = || observer.is_interrupted();
    worker_pool("verify", jobs)
        .at_most(MOST_AT_A_TIME)
        .until(&is_interrupted)
        .for_each(volumes.iter(), |volume| {
            // Begun here: the hashing thread goes through all streams that are open.
            let outcome = volume_md5(volume.path, hashing.begin(), buffers, observer);
            lock(&outcomes).push((volume, outcome));
        });
    require_going_on(observer)?;
    let mut damaged = Vec::new();
    for (volume, md5) in std::mem::take(&mut *lock(&outcomes)) {
        if md5? != Some(volume.md5) {
            damaged.push(volume.part);
        }
    }
    damaged.sort_unstable();
    Ok(damaged)
}

/// None if the observer asks to end.
fn volume_md5(
    path: &Path,
    hasher: VolumeHasher,
    buffers: &Buffers,
    observer: &dyn Observer,
) -> Result<Option<[u8; 16]>, SysError> {
    let file = open_file(path)?;
    read_once(&file);
    let mut offset = 0;
    while let Some(bytes) = next_slice(&file, offset, buffers).context("read", path)? {
        if observer.is_interrupted() {
            return Ok(None);
        }
        let len = bytes.len() as u64;
        offset += len;
        hasher.update(bytes);
        observer.advanced(0, len);
    }
    Ok(wait_for(hasher.finish()))
}

/// None at the end of the file.
fn next_slice(file: &File, offset: u64, buffers: &Buffers) -> std::io::Result<Option<Vec<u8>>> {
    let mut bytes = buffers.take(SLICE_BYTES);
    let count = append_at(file, &mut bytes, SLICE_BYTES, offset)?;
    Ok((count > 0).then_some(bytes))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use stook_testkit::TempDir;

    use super::*;
    use crate::Failure;

    /// Remembers how many streams were open at once.
    struct Watch<'a>(&'a Hashing, AtomicUsize);

    impl stook_pool::Observer for Watch<'_> {
        type Failure = Failure;

        fn advanced(&self, _entries: u64, _bytes: u64) {
            self.1.fetch_max(self.0.hashers(), Ordering::Relaxed);
        }
    }

    impl Observer for Watch<'_> {}

    #[test]
    fn no_stream_is_open_before_its_volume_is_read() {
        let folder = TempDir::new().unwrap();
        let paths: Vec<_> = (0..40)
            .map(|number| folder.path().join(format!("{number}")))
            .collect();
        let volumes: Vec<_> = (0..40)
            .zip(&paths)
            .map(|(part, path)| {
                std::fs::write(path, [7; 5000]).unwrap();
                let md5 = stook_md5::md5_many(&[&[7; 5000]])[0];
                let len = 5000;
                VolumeToVerify {
                    part,
                    path,
                    len,
                    md5,
                }
            })
            .collect();
        std::fs::write(&paths[13], [8; 5000]).unwrap();
        let buffers = Arc::default();
        let hashing = Hashing::start(&buffers).unwrap();
        let watch = Watch(&hashing, AtomicUsize::new(0));
        let damaged = damaged_of(&volumes, &hashing, &buffers, Jobs::Adaptive, &watch);
        assert_eq!(damaged.unwrap(), [13]);
        let most = watch.1.into_inner();
        assert!((1..=MOST_AT_A_TIME).contains(&most), "{most} streams");
    }
}
