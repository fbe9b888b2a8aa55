//! A slow file system between two temporary directories, or the reason why there is none.

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
use std::path::{Path, PathBuf};
use stook_testkit::TempDir;
use stook_testkit::slowfs::{Options, SlowFs, unavailable};

/// Unmounted before its directories are removed: fields are dropped in this order.
pub(crate) struct Slow {
    pub(crate) fs: SlowFs,
    pub(crate) source: TempDir,
    pub(crate) mountpoint: TempDir,
}

impl Slow {
    /// Returns the path of `name` as the mount shows it.
    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.mountpoint.join(name)
    }
}

/// Tells whether FUSE can be used here, and prints why not.
pub(crate) fn is_possible() -> bool {
    let reason = unavailable();
    if let Some(reason) = reason {
        stook_testkit::skip!("{reason}");
    }
    reason.is_none()
}

/// Mounts an empty directory; prints `skipped` and the reason where there is no FUSE.
pub(crate) fn slow(options: &Options) -> Option<Slow> {
    if !is_possible() {
        return None;
    }
    let (source, mountpoint) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let fs = SlowFs::mount(source.path(), mountpoint.path(), options).unwrap();
    Some(Slow {
        fs,
        source,
        mountpoint,
    })
}

/// Tells whether something, alive or dead, is mounted at `path`.
pub(crate) fn is_mounted(path: &Path) -> bool {
    let device = |path: &Path| {
        let flags = AtFlags::STATX_DONT_SYNC;
        let facts = statx(CWD, path, flags, StatxFlags::empty());
        facts.map(|facts| (facts.stx_dev_major, facts.stx_dev_minor))
    };
    device(path) != device(path.parent().unwrap())
}
