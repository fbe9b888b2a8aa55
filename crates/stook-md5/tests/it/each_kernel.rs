//! Runs a check with one kernel after the other.

use std::sync::{Mutex, PoisonError};

use md5::Digest;
use stook_md5::{Kernel, select};

/// The kernel is one for all of the process, and tests run side by side.
static SELECTION: Mutex<()> = Mutex::new(());

/// Calls the check with each kernel selected that is available and not excluded by `STOOK_MD5_KERNEL`.
pub(crate) fn each_kernel(mut check: impl FnMut(Kernel)) {
    let _alone = SELECTION.lock().unwrap_or_else(PoisonError::into_inner);
    for kernel in kernels() {
        match select(kernel) {
            Ok(()) => check(kernel),
            Err(unsupported) => stook_testkit::skip!("{unsupported}"),
        }
    }
}

fn kernels() -> Vec<Kernel> {
    match std::env::var("STOOK_MD5_KERNEL") {
        Ok(name) => vec![name.parse().unwrap()],
        Err(_) => Kernel::available().collect(),
    }
}

/// Bytes that do not repeat with the block.
pub(crate) fn bytes(seed: usize, len: usize) -> Vec<u8> {
    (0..=250).cycle().skip(seed % 251).take(len).collect()
}

pub(crate) fn oracle(bytes: &[u8]) -> [u8; 16] {
    md5::Md5::digest(bytes).into()
}
