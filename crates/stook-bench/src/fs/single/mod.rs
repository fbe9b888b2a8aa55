//! The tool `single`: every phase by one thread, one operation after the other, each of them timed.
//!
//! It is no rival of the others but their yardstick: what one operation costs here, and what a program gets that waits for
//! each of them. It does what `tar` and `cp` do, without what only they need, such as owners.

mod op_timer;
mod pack;
mod tree;
mod unpack;

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use stook_sys::{
    Directory, SysError, ThreadCpu, Timestamp, close_file, create_new_file, open_file,
    read_up_to_at, set_mtime, thread_run_delay, write_all_at,
};

use super::phase::Phase;
use crate::Observer;
use crate::error::BenchError;
use crate::record::Sample;
use op_timer::{Op, OpTimer};

/// As much is read or written at a time.
const BLOCK: usize = 1 << 20;
/// The user is asked for an end after so many operations.
const ASK_EVERY: u32 = 64;

/// Does a phase in the folder of the tool; `packed` is the tar where it was made.
///
/// # Errors
/// The operation that failed, with its path; [`BenchError::Interrupted`].
pub(super) fn run(
    phase: Phase,
    folder: &Path,
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
    let (tree, tar) = (folder.join("tree"), folder.join("packed.tar"));
    match phase {
        Phase::Copy => worker.copy(packed, &tar)?,
        Phase::Untar => unpack::unpack(&mut worker, &tar, &tree)?,
        Phase::Find => tree::go_through(&mut worker, &tree, &mut |_, _| Ok(()))?,
        Phase::Stat => tree::stat(&mut worker, &tree)?,
        Phase::Read => tree::read(&mut worker, &tree)?,
        Phase::Tar => pack::pack(&mut worker, &tree, &folder.join("again.tar"))?,
        Phase::CopyTree => tree::copy(&mut worker, &tree, &folder.join("copy"))?,
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

/// What an operation is on: a tree or a file, and the path below it.
type Subject<'a> = (&'a Path, &'a [u8]);

impl Worker<'_> {
    /// Does an operation.
    fn time<R>(
        &mut self,
        op: Op,
        subject: Subject<'_>,
        operation: impl FnOnce() -> io::Result<R>,
    ) -> Result<R, BenchError> {
        self.countdown -= 1;
        if self.countdown == 0 {
            self.countdown = ASK_EVERY;
            if self.observer.is_stopped() {
                return Err(BenchError::Interrupted);
            }
        }
        let done = self.timer.time(op, operation);
        done.map_err(|source| failure(op.verb(), subject, source))
    }

    /// Opens a directory: the root of a tree, or what holds it.
    fn open_root(&mut self, path: &Path) -> Result<Directory, BenchError> {
        Ok(self.timer.time(Op::Open, || Directory::open(path))?)
    }

    /// Copies one file, block by block.
    fn copy(&mut self, from: &Path, to: &Path) -> Result<(), BenchError> {
        let read = self.timer.time(Op::Open, || open_file(from))?;
        let written = self.timer.time(Op::Create, || create_new_file(to))?;
        let mut block = vec![0; BLOCK];
        let mut offset = 0;
        loop {
            let len = self.time(Op::Read, (from, b""), || {
                read_up_to_at(&read, &mut block, offset)
            })?;
            if len == 0 {
                break;
            }
            self.time(Op::Write, (to, b""), || {
                write_all_at(&written, &block[..len], offset)
            })?;
            offset += len as u64;
        }
        self.close(written, (to, b""))
    }

    /// Gives a file that was written its time, and closes it.
    fn finish(
        &mut self,
        file: File,
        mtime: Timestamp,
        subject: Subject<'_>,
    ) -> Result<(), BenchError> {
        self.time(Op::SetTime, subject, || set_mtime(&file, mtime))?;
        self.close(file, subject)
    }

    /// Closes a file: on a network file system this is where it is written.
    fn close(&mut self, file: File, subject: Subject<'_>) -> Result<(), BenchError> {
        self.time(Op::Close, subject, || close_file(file))
    }
}

fn failure(operation: &'static str, (root, path): Subject<'_>, source: io::Error) -> BenchError {
    let path = match path {
        b"" => root.to_owned(),
        path => root.join(OsStr::from_bytes(path)),
    };
    BenchError::Sys(SysError {
        operation,
        path,
        source,
    })
}

#[cfg(test)]
mod tests;
