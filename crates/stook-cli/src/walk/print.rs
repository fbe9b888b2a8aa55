//! Every entry as one line, from all workers at once.
//!
//! A worker fills a buffer with whole lines and writes it when it is large; only the write takes the
//! lock of stdout. So lines are whole, and in no order.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use stook_sys::Metadata;
use stook_timers::scope;
use stook_tree::{Detail, Listing};

use super::{InTurns, Sink, Walker};
use crate::args::WalkArgs;
use crate::exit::{CliError, Ending};
use crate::format::Format;
use crate::mutex::lock;
use crate::output::Stdout;
use crate::report::{Entry, Line, Summary, Walked};

/// A buffer is written once it holds this much.
const PIECE: usize = 128 << 10;

/// How an entry is printed.
enum Style {
    Text { format: Format, end: u8 },
    Json,
}

struct Printer {
    style: Style,
    buffers: InTurns<Vec<u8>>,
    /// Entries that were printed.
    entries: AtomicU64,
    /// Why stdout could not be written.
    unwritable: Mutex<Option<io::Error>>,
    is_unwritable: AtomicBool,
}

/// Prints the tree.
pub(super) fn run(walker: &Walker<'_>, args: &WalkArgs, is_json: bool) -> Result<Ending, CliError> {
    let printer = Printer {
        style: style(args, is_json)?,
        buffers: InTurns::default(),
        entries: AtomicU64::new(0),
        unwritable: Mutex::default(),
        is_unwritable: AtomicBool::new(false),
    };
    let detail = if walker.selection.needs_facts() {
        Detail::Facts
    } else {
        printer.style.detail()
    };
    walker.walk(args, detail, &printer)?;
    let entries = printer.finish()?;
    let ending = walker.ending();
    if ending != Ending::Interrupted {
        let failed = walker.failed();
        let walked = Summary::Walked(Walked { entries, failed });
        walker.reporter.summary_line(walked)?;
    }
    Ok(ending)
}

fn style(args: &WalkArgs, is_json: bool) -> Result<Style, CliError> {
    if is_json {
        return Ok(Style::Json);
    }
    let format = args.format.as_deref().unwrap_or(OsStr::new("{path}"));
    let format = Format::parse(format.as_bytes()).map_err(|why| CliError::Option {
        option: "--format",
        value: stook_sys::display_path(format),
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
                serde_json::to_writer(&mut *out, &Line::Entry(Entry::new(path, metadata)))?;
                out.push(b'\n');
            }
        }
        Ok(())
    }
}

impl Sink for Printer {
    fn take(&self, listing: &Listing, walker: &Walker<'_>) {
        let printed = self
            .buffers
            .with(|buffer| self.print(listing, walker, buffer));
        if let Err(error) = printed {
            self.is_unwritable.store(true, Ordering::Relaxed);
            lock(&self.unwritable).get_or_insert(error);
        }
    }

    fn is_closed(&self) -> bool {
        self.is_unwritable.load(Ordering::Relaxed)
    }
}

impl Printer {
    fn print(
        &self,
        listing: &Listing,
        walker: &Walker<'_>,
        buffer: &mut Vec<u8>,
    ) -> io::Result<()> {
        let _scope = scope!("print");
        let mut path = walker.full_path(&listing.path);
        let mut entries = 0;
        if walker.selection.selects(&listing.path, &listing.metadata) {
            entries += 1;
            self.style.push(&path, &listing.metadata, buffer)?;
        }
        if path.last() != Some(&b'/') {
            path.push(b'/');
        }
        let directory_len = path.len();
        for entry in &listing.entries {
            let metadata = entry.metadata();
            if walker.selection.admits(&metadata) {
                entries += 1;
                path.truncate(directory_len);
                path.extend_from_slice(listing.name(entry));
                self.style.push(&path, &metadata, buffer)?;
            }
            if buffer.len() >= PIECE {
                write(buffer)?;
            }
        }
        self.entries.fetch_add(entries, Ordering::Relaxed);
        // Directories without files add up, too.
        if buffer.len() >= PIECE {
            write(buffer)?;
        }
        Ok(())
    }

    /// Writes what is left; returns how many entries were printed, or why something was not written.
    fn finish(self) -> Result<u64, CliError> {
        if let Some(error) = lock(&self.unwritable).take() {
            return Err(error.into());
        }
        for mut buffer in self.buffers.into_all() {
            write(&mut buffer)?;
        }
        io::stdout().flush()?;
        Ok(self.entries.into_inner())
    }
}

fn write(buffer: &mut Vec<u8>) -> io::Result<()> {
    let _scope = scope!("write");
    let written = Stdout::lock().write_all(buffer);
    buffer.clear();
    written
}
