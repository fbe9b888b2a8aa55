//! Integration tests of the test kit: the oracle against golden zstash volumes, the programs, the slow file system.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests read files plainly, say what they skip, and may panic outside test functions too"
)]

mod doubles;
mod oracle;
mod programs;
mod slow;
mod slow_link;
mod slowfs;
mod slowfs_program;
mod slowfs_time;
