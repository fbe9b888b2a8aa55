//! `walk`: every entry of a tree as one line, from all workers at once.
//!
//! A worker fills a buffer with whole lines and writes it when it is large; only the write takes the
//! lock of stdout. So lines are whole, and in no order.

use std::io::{self, IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use stook_archive::{Failure, Observer};
use stook_sys::{Directory, FileKind, Metadata};
use stook_timers::scope;
use stook_tree::{Detail, Filter, Listing, Visitor, WalkError, WalkOptions, walk};

use crate::args::WalkArgs;
use crate::exit::{CliError, Ending};
use crate::format::{Format, time_text};
use crate::options;
use crate::output::JsonPath;
use crate::progress::Reporter;

/// A buffer is written once it holds this much.
const PIECE: usize = 128 << 10;

/// How an entry is printed.
enum Style {
    Text { format: Format, end: u8 },
    Json,
}

struct Printer<'a> {
    style: &'a Style,
    filter: &'a Filter,
    reporter: &'a Reporter,
    /// The tree as it was typed: in front of every path.
    root: &'a [u8],
    failed: AtomicU64,
    /// Buffers that no worker has in hand; some hold lines.
    buffers: Mutex<Vec<Vec<u8>>>,
    /// Why stdout could not be written.
    unwritable: Mutex<Option<io::Error>>,
    is_unwritable: AtomicBool,
}

/// Prints the tree.
pub(crate) fn print(
    args: &WalkArgs,
    is_json: bool,
    reporter: &Reporter,
) -> Result<Ending, CliError> {
    let style = style(args, is_json)?;
    let filter = options::filter(&args.filter);
    let root = Directory::open(&args.tree)?;
    // On one terminal the bar and the lines would write over each other.
    if !io::stdout().is_terminal() {
        reporter.phase("walk", None, None);
    }
    let printer = Printer {
        style: &style,
        filter: &filter,
        reporter,
        root: args.tree.as_os_str().as_bytes(),
        failed: AtomicU64::new(0),
        buffers: Mutex::default(),
        unwritable: Mutex::default(),
        is_unwritable: AtomicBool::new(false),
    };
    let walk_options = WalkOptions {
        jobs: options::jobs(args.jobs),
        detail: style.detail(),
        sorted: false,
        unreadable: true,
        ..WalkOptions::default()
    };
    walk(&root, &walk_options, &printer);
    printer.finish()?;
    Ok(if reporter.is_interrupted() {
        crate::output::error("interrupted", None);
        Ending::Interrupted
    } else if printer.failed.into_inner() > 0 {
        Ending::SomeFailed
    } else {
        Ending::Done
    })
}

fn style(args: &WalkArgs, is_json: bool) -> Result<Style, CliError> {
    if is_json {
        return Ok(Style::Json);
    }
    let format = Format::parse(args.format.as_bytes()).map_err(|why| CliError::Option {
        option: "--format",
        value: stook_sys::display_path(&args.format),
        why,
    })?;
    let end = if args.null { 0 } else { b'\n' };
    Ok(Style::Text { format, end })
}

impl Style {
    fn detail(&self) -> Detail {
        match self {
            Self::Text { format, .. } if !format.needs_facts() => Detail::Kinds,
            _ => Detail::Facts,
        }
    }

    fn push(&self, path: &[u8], metadata: &Metadata, out: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Self::Text { format, end } => {
                format.push(path, metadata, out);
                out.push(*end);
            }
            Self::Json => {
                serde_json::to_writer(&mut *out, &JsonEntry::new(path, metadata))?;
                out.push(b'\n');
            }
        }
        Ok(())
    }
}

impl Visitor for Printer<'_> {
    fn prunes(&self, path: &[u8]) -> bool {
        self.filter.prunes(path)
    }

    fn directory(&self, listing: Listing) {
        let mut buffer = lock(&self.buffers).pop().unwrap_or_default();
        if let Err(error) = self.print(&listing, &mut buffer) {
            self.is_unwritable.store(true, Ordering::Relaxed);
            lock(&self.unwritable).get_or_insert(error);
        }
        lock(&self.buffers).push(buffer);
        self.reporter.advanced(listing.entries.len() as u64 + 1, 0);
    }

    fn failed(&self, error: WalkError) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        self.reporter.failed(&Failure {
            operation: error.operation,
            path: self.full_path(&error.path),
            cause: stook_sys::cause(&error.source),
        });
    }

    fn is_stopped(&self) -> bool {
        self.is_unwritable.load(Ordering::Relaxed) || self.reporter.is_interrupted()
    }
}

impl Printer<'_> {
    fn print(&self, listing: &Listing, buffer: &mut Vec<u8>) -> io::Result<()> {
        let _scope = scope!("print");
        let mut path = self.full_path(&listing.path);
        if self.filter.selects(&listing.path) {
            self.style.push(&path, &listing.metadata, buffer)?;
        }
        if path.last() != Some(&b'/') {
            path.push(b'/');
        }
        let directory_len = path.len();
        // Patterns are about the path below the root.
        let below = directory_len - listing.path.len() - usize::from(!listing.path.is_empty());
        for entry in &listing.entries {
            path.truncate(directory_len);
            path.extend_from_slice(listing.name(entry));
            if self.filter.selects(&path[below..]) {
                self.style.push(&path, &entry.metadata(), buffer)?;
            }
            if buffer.len() >= PIECE {
                write(buffer)?;
            }
        }
        // Directories without files add up, too.
        if buffer.len() >= PIECE {
            write(buffer)?;
        }
        Ok(())
    }

    /// The root is printed as it was typed, and what is below with a slash in between.
    fn full_path(&self, path: &[u8]) -> Vec<u8> {
        let mut full = Vec::with_capacity(self.root.len() + path.len() + 64);
        full.extend_from_slice(self.root);
        if !path.is_empty() {
            if full.last() != Some(&b'/') {
                full.push(b'/');
            }
            full.extend_from_slice(path);
        }
        full
    }

    /// Writes what is left, and returns why something was not written.
    fn finish(&self) -> Result<(), CliError> {
        if let Some(error) = lock(&self.unwritable).take() {
            return Err(error.into());
        }
        for buffer in lock(&self.buffers).iter_mut() {
            write(buffer)?;
        }
        Ok(io::stdout().flush()?)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn write(buffer: &mut Vec<u8>) -> io::Result<()> {
    let _scope = scope!("write");
    let written = io::stdout().lock().write_all(buffer);
    buffer.clear();
    written
}

/// One line of `--json`.
#[derive(Serialize)]
struct JsonEntry {
    #[serde(rename = "type")]
    line: &'static str,
    #[serde(flatten)]
    path: JsonPath,
    kind: &'static str,
    size: u64,
    mtime: String,
    inode: u64,
    mode: String,
    links: u32,
}

impl JsonEntry {
    fn new(path: &[u8], metadata: &Metadata) -> Self {
        Self {
            line: "entry",
            path: JsonPath::new(path),
            kind: word(metadata.kind),
            size: metadata.size,
            mtime: time_text(metadata.mtime),
            inode: metadata.inode,
            mode: format!("{:o}", metadata.mode),
            links: metadata.links,
        }
    }
}

fn word(kind: FileKind) -> &'static str {
    match kind {
        FileKind::File => "file",
        FileKind::Directory => "directory",
        FileKind::Symlink => "symlink",
        FileKind::Fifo => "fifo",
        FileKind::Socket => "socket",
        FileKind::CharDevice => "char-device",
        FileKind::BlockDevice => "block-device",
    }
}
