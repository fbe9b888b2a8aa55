//! The tool `single`: every phase by one thread, one operation after the other, each of them timed.
//!
//! It is no rival of the others but their yardstick: what one operation costs here, and what a program gets that waits for
//! each of them. It does what `tar` and `cp` do, without what only they need, such as owners.

mod op_timer;
mod pack;
mod tree;
mod unpack;

use std::fs::File;
use std::io;
use std::path::Path;

use stook_sys::{
    Context, Directory, SysError, ThreadCpu, close_file, create_new_file, open_file, read_up_to_at,
    thread_run_delay, write_all_at,
};

use super::options::Phase;
use super::target::ToolPlace;
use crate::Observer;
use crate::error::BenchError;
use crate::record::Sample;
use op_timer::{Op, OpTimer};

/// As much is read or written at a time.
const BLOCK: usize = 1 << 20;
/// The user is asked for an end after so many operations.
const ASK_EVERY: u32 = 64;

/// Does a phase; `packed` is the tar where it was made.
///
/// # Errors
/// The operation that failed, with its path; [`BenchError::Interrupted`].
pub(super) fn run(
    phase: Phase,
    place: &ToolPlace,
    packed: &Path,
    round: u32,
    observer: &dyn Observer,
) -> Result<Sample, BenchError> {
    let clock_read = op_timer::clock_read_cost();
    let before = ThreadCpu::now();
    let waited_before = thread_run_delay();
    let mut worker = Worker {
        timer: OpTimer::new(clock_read),
        observer,
        countdown: ASK_EVERY,
    };
    let (tree, copy) = (place.tree(), place.copy());
    match phase {
        Phase::Copy => worker.copy(packed, &place.packed_tar())?,
        Phase::Untar => unpack::unpack(&mut worker, &place.packed_tar(), &tree)?,
        Phase::Find => tree::find(&mut worker, &tree)?,
        Phase::Stat => tree::stat(&mut worker, &tree)?,
        Phase::Read => tree::read(&mut worker, &tree)?,
        Phase::Tar => pack::pack(&mut worker, &tree, &place.again_tar())?,
        Phase::CopyTree => tree::copy(&mut worker, &tree, &copy)?,
        Phase::Delete => tree::delete(&mut worker, &tree)?,
    }
    let measured = worker.timer.finish();
    let (user, system) = ThreadCpu::now().since(&before);
    let run_delay = thread_run_delay().zip(waited_before);
    let run_delay = run_delay.map(|(now, before)| now.saturating_sub(before));
    Ok(Sample {
        round,
        real_seconds: measured.real.as_secs_f64(),
        user_seconds: user.as_secs_f64(),
        system_seconds: system.as_secs_f64(),
        run_delay_seconds: run_delay.map(|delay| delay.as_secs_f64()),
        latencies: measured.latencies,
        proof: measured.proof,
        ..Sample::default()
    })
}

/// Does operations, times them, and asks whether the user wants an end.
struct Worker<'a> {
    timer: OpTimer,
    observer: &'a dyn Observer,
    countdown: u32,
}

impl Worker<'_> {
    /// Does an operation on what lies at this path below `root`.
    fn time<R>(
        &mut self,
        op: Op,
        what: (&'static str, &Path, &[u8]),
        operation: impl FnOnce() -> io::Result<R>,
    ) -> Result<R, BenchError> {
        self.countdown -= 1;
        if self.countdown == 0 {
            self.countdown = ASK_EVERY;
            if self.observer.is_stopped() {
                return Err(BenchError::Interrupted);
            }
        }
        let (verb, root, path) = what;
        let done = self.timer.time(op, operation);
        done.map_err(|source| failure(verb, root, path, source).into())
    }

    /// Copies one file, block by block.
    fn copy(&mut self, from: &Path, to: &Path) -> Result<(), BenchError> {
        let read = self.timer.time(Op::Open, || open_file(from))?;
        let written = self.timer.time(Op::Create, || create_new_file(to))?;
        let mut block = vec![0; BLOCK];
        let mut offset = 0;
        loop {
            let len = self.time(Op::Read, ("read", from, b""), || {
                read_up_to_at(&read, &mut block, offset)
            })?;
            if len == 0 {
                break;
            }
            self.time(Op::Write, ("write", to, b""), || {
                write_all_at(&written, &block[..len], offset)
            })?;
            offset += len as u64;
        }
        self.close(written, to, b"")
    }

    /// Closes a file: on a network file system this is where it is written.
    fn close(&mut self, file: File, root: &Path, path: &[u8]) -> Result<(), BenchError> {
        self.time(Op::Close, ("close", root, path), || close_file(file))
    }
}

fn failure(operation: &'static str, root: &Path, path: &[u8], source: io::Error) -> SysError {
    let full = if path.is_empty() {
        root.to_owned()
    } else {
        use std::os::unix::ffi::OsStrExt;
        root.join(std::ffi::OsStr::from_bytes(path))
    };
    let failed: io::Result<()> = Err(source);
    failed.context(operation, full).expect_err("it is one")
}

/// Opens the root of a tree.
fn open_root(worker: &mut Worker<'_>, tree: &Path) -> Result<Directory, BenchError> {
    Ok(worker.timer.time(Op::Open, || Directory::open(tree))?)
}

#[cfg(test)]
mod tests;
