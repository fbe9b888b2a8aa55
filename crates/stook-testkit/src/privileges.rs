//! Work done without privileges, for tests of what root may read and others may not.

use rustix::process::{Gid, Uid, geteuid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use std::io;
use std::panic::resume_unwind;
use std::thread;

/// Number of `nobody` and `nogroup` on Debian; nothing in a test belongs to it.
const NOBODY: u32 = 65_534;

/// Calls `work` on a thread without privileges, and returns what it returns.
///
/// On Linux the user belongs to the thread, and threads that `work` starts inherit it; the rest of the process
/// keeps its own. For an ordinary user the thread is like any other.
///
/// # Errors
/// When root may not change its user here, as in some containers; `work` is not called then.
pub fn without_privileges<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    let dropped = || -> io::Result<T> {
        if geteuid().is_root() {
            let (user, group) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
            set_thread_groups(&[])?;
            set_thread_res_gid(group, group, group)?;
            set_thread_res_uid(user, user, user)?;
        }
        Ok(work())
    };
    thread::scope(|scope| {
        scope
            .spawn(dropped)
            .join()
            .unwrap_or_else(|panic| resume_unwind(panic))
    })
}

#[cfg(test)]
mod tests {
    use super::without_privileges;
    use rustix::process::geteuid;
    use std::thread;

    #[test]
    fn the_thread_and_its_children_have_no_privileges_and_the_process_keeps_its_own() {
        let before = geteuid();
        let seen = without_privileges(|| {
            let below = thread::spawn(|| geteuid().is_root()).join().unwrap();
            [geteuid().is_root(), below]
        });
        match seen {
            Ok(seen) => assert_eq!(seen, [false, false]),
            Err(error) => crate::skip!("the user cannot be changed here: {error}"),
        }
        assert_eq!(geteuid(), before);
    }
}
