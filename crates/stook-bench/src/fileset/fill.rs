//! Making what is planned: a task for each directory, and for each range of files in it.
//!
//! ```text
//!   a directory: open below the root ──> make its directories ──> a task for each of them
//!                                                             └──> a task for each 512 of its files
//!   last of its files made: its own time
//! ```
//! Its directories are there before its files are begun, and nothing is made in it afterwards: so its time stays.
//! Nothing but the root is held open for what waits.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use stook_pool::{Tasks, WorkerPool, advance};
use stook_sys::{Context, Directory, SysError, into_inner, lock};
use stook_timers::scope;

use crate::Observer;
use crate::error::BenchError;
use crate::fileset::content::{Content, PIECE, Piece};
use crate::fileset::plan::{File, Place, Plan, ROOT, file_name};
use crate::fileset::{FilesetOptions, Filling};

/// Files that one worker makes before it looks for other work.
const RANGE: u64 = 512;

const FILE_MODE: u32 = 0o644;
pub(super) const DIRECTORY_MODE: u32 = 0o755;

/// Makes everything below an open and empty directory.
///
/// # Errors
/// The first failure, with the path; [`BenchError::Interrupted`] if the observer wants an end. Either way a part is
/// there.
///
/// # Cost
/// For each file: openat, pwrite64 for each 64 KiB, utimensat, close. For each directory: mkdirat, openat2, fchmod,
/// utimensat, close, and one statx for each 512 files.
pub(super) fn fill(
    plan: &Plan<'_>,
    root: &Directory,
    shown_root: &Path,
    options: &FilesetOptions,
    observer: &dyn Observer,
) -> Result<(), BenchError> {
    let filler = Filler {
        plan,
        root,
        shown_root,
        content: Content::new(),
        filling: options.filling,
        observer,
        failed: Mutex::default(),
        is_over: AtomicBool::new(false),
    };
    let pool = WorkerPool::new("fileset", options.jobs);
    pool.recursive([Task::Directory(ROOT)], |task, tasks| {
        filler.work(task, tasks);
    });
    into_inner(filler.failed).map_or(Ok(()), Err)
}

enum Task {
    Directory(Place),
    Files(Arc<Opened>, Range<u64>),
}

/// A directory while its files are made.
struct Opened {
    number: u64,
    directory: Directory,
    /// Ranges of its files that are not done.
    ranges: AtomicU64,
}

struct Filler<'a> {
    plan: &'a Plan<'a>,
    root: &'a Directory,
    shown_root: &'a Path,
    content: Content,
    filling: Filling,
    observer: &'a dyn Observer,
    /// The first failure.
    failed: Mutex<Option<BenchError>>,
    is_over: AtomicBool,
}

impl Filler<'_> {
    fn work(&self, task: Task, tasks: &Tasks<Task>) {
        if self.is_over.load(Ordering::Relaxed) {
            return;
        }
        let done = match task {
            Task::Directory(place) => self.make_directory(place, tasks),
            Task::Files(opened, files) => self.make_files(&opened, files),
        };
        if let Err(error) = done {
            self.is_over.store(true, Ordering::Relaxed);
            lock(&self.failed).get_or_insert(error);
        }
    }

    /// Makes the directories in a directory that is there, and hands on what else is to be done in it.
    fn make_directory(&self, place: Place, tasks: &Tasks<Task>) -> Result<(), BenchError> {
        let _scope = scope!("directory");
        let directory = self.open(place)?;
        let below: Vec<Place> = self.plan.directories_in(place).collect();
        for inner in &below {
            let name = self.plan.name(*inner);
            directory
                .create_directory(name.as_bytes(), DIRECTORY_MODE)
                .context("create", self.path(place.number).join(&name))?;
        }
        let files = self.plan.files_in(place);
        let ranges = (files.end - files.start).div_ceil(RANGE);
        let opened = Arc::new(Opened {
            number: place.number,
            directory,
            ranges: AtomicU64::new(ranges),
        });
        if ranges == 0 {
            self.complete(&opened)?;
        }
        // The last one is taken first: so the files of this directory, and then the others in their order.
        tasks.extend(below.into_iter().rev().map(Task::Directory));
        tasks.extend((0..ranges).rev().map(|range| {
            let start = files.start + range * RANGE;
            Task::Files(Arc::clone(&opened), start..files.end.min(start + RANGE))
        }));
        Ok(())
    }

    /// Opens a directory that is there, and gives it its mode: the system takes bits from the one it was made with, or
    /// adds some.
    fn open(&self, place: Place) -> Result<Directory, SysError> {
        let path = self.plan.path(place.number);
        let opened = self.root.open_beneath(path.as_bytes());
        let directory = opened.context("open", self.path(place.number))?;
        if place != ROOT {
            let set = directory.set_own_mode(DIRECTORY_MODE);
            set.context("set the mode of", self.path(place.number))?;
        }
        Ok(directory)
    }

    fn complete(&self, opened: &Opened) -> Result<(), SysError> {
        let mtime = self.plan.directory_mtime(opened.number);
        let set = opened.directory.set_own_mtime(mtime);
        set.context("set the time of", self.path(opened.number))
    }

    fn make_files(&self, opened: &Opened, files: Range<u64>) -> Result<(), BenchError> {
        let _scope = scope!("files");
        let mut piece = Piece::default();
        let mut mode = Mode::Unknown;
        let (mut made, mut bytes) = (0, 0);
        for number in files {
            if self.observer.is_stopped() {
                return Err(BenchError::Interrupted);
            }
            let file = self.plan.file(number);
            let name = file_name(number, &file);
            self.make_file(opened, &name, &file, &mut mode, &mut piece)
                .map_err(|(operation, source)| SysError {
                    operation,
                    path: self.path(opened.number).join(&name),
                    source,
                })?;
            made += 1;
            bytes += file.size;
        }
        advance(made);
        self.observer.advanced(made, bytes);
        if opened.ranges.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.complete(opened)?;
        }
        Ok(())
    }

    /// Makes a file; a failure comes with the operation.
    fn make_file(
        &self,
        opened: &Opened,
        name: &str,
        file: &File,
        mode: &mut Mode,
        piece: &mut Piece,
    ) -> Result<(), (&'static str, std::io::Error)> {
        let during = |operation| move |error| (operation, error);
        let made = opened
            .directory
            .create_file(name.as_bytes(), FILE_MODE)
            .map_err(during("create"))?;
        mode.apply(&made).map_err(during("set the mode of"))?;
        match self.filling {
            Filling::Hole => stook_sys::set_len(&made, file.size),
            Filling::Content => self.write(&made, file, piece),
        }
        .map_err(during("write"))?;
        stook_sys::set_mtime(&made, file.mtime).map_err(during("set the time of"))?;
        stook_sys::close_file(made).map_err(during("close"))
    }

    fn write(&self, made: &std::fs::File, file: &File, piece: &mut Piece) -> std::io::Result<()> {
        for number in 0..file.size.div_ceil(PIECE as u64) {
            let start = number * PIECE as u64;
            let length = usize::try_from(file.size - start).unwrap_or(PIECE);
            let bytes = self
                .content
                .piece(file.is_text, file.key, number, length, piece);
            stook_sys::write_all_at(made, bytes, start)?;
        }
        Ok(())
    }

    fn path(&self, number: u64) -> PathBuf {
        match number {
            0 => self.shown_root.to_owned(),
            _ => self.shown_root.join(self.plan.path(number)),
        }
    }
}

/// Whether new files of a directory have the right mode: the mask of the process and the lists of the directory change
/// that of every file alike, so the first one tells.
enum Mode {
    Unknown,
    Right,
    Wrong,
}

impl Mode {
    fn apply(&mut self, file: &std::fs::File) -> std::io::Result<()> {
        if matches!(self, Self::Unknown) {
            let is_right = stook_sys::metadata(file)?.mode == FILE_MODE;
            *self = if is_right { Self::Right } else { Self::Wrong };
        }
        match self {
            Self::Wrong => stook_sys::set_mode(file, FILE_MODE),
            _ => Ok(()),
        }
    }
}
