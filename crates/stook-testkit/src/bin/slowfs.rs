//! `slowfs SOURCE MOUNTPOINT [--latency 1ms] ...` shows a directory as a slow file system until it is unmounted.
//!
//! The command line over [`stook_testkit::slowfs`], for benches and for trying a program by hand. It ends when the mount
//! does, on SIGINT and SIGTERM, and when the process that started it dies; in each case the mount is gone.
#![expect(
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "this is a program, and it must not lean on the code under test"
)]

use rustix::process::{Signal, set_parent_process_death_signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::pipe;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::num::NonZeroUsize;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;
use stook_testkit::slowfs::{
    Op, Options, SlowFs, Unmounter, allow_many_directories, parse_duration, parse_latencies,
};

const USAGE: &str = "usage: slowfs SOURCE MOUNTPOINT [--latency TIME] [--op KIND=TIME,...] [--queue N] \
                     [--ttl TIME] [--readers N] [--counts FILE]";

const DETAILS: &str = "\
Shows the directory SOURCE at the directory MOUNTPOINT, with every request answered
after a while. Prints `slowfs: mounted` when it is ready, and serves until it is
unmounted, gets SIGINT, SIGHUP or SIGTERM, or the process that started it dies.

  --latency TIME    time that each request takes [default: 0]
  --op KIND=TIME    time of one kind of request; several with commas
  --queue N         requests served at a time, the others wait [default: any number]
  --ttl TIME        how long the kernel may cache names and attributes [default: 1s]
  --readers N       threads that take requests [default: 2]
  --counts FILE     at the end, write how many requests of each kind came, as JSON
  --help            print this

TIME is a number with `ns`, `us`, `ms` or `s`. `release` and `releasedir`, for which
no program waits, take no time unless set with --op.";

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--help") {
        let kinds: Vec<&str> = Op::ALL.iter().map(|op| op.name()).collect();
        let text = format!("{USAGE}\n\n{DETAILS}\n\nKinds: {}.\n", kinds.join(", "));
        // A reader that has gone away has read enough.
        let _ = io::stdout().write_all(text.as_bytes());
        return ExitCode::SUCCESS;
    }
    let task = match Task::read(arguments) {
        Ok(task) => task,
        Err(message) => {
            eprintln!("error: {message}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match task.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What the command line says.
struct Task {
    source: PathBuf,
    mountpoint: PathBuf,
    options: Options,
    counts: Option<PathBuf>,
}

impl Task {
    fn read(arguments: Vec<OsString>) -> Result<Self, String> {
        let mut paths = Vec::new();
        let (mut latency, mut ops, mut queue) = (Duration::ZERO, Vec::new(), None);
        let (mut ttl, mut readers, mut counts) = (None, None, None);
        let mut rest = arguments.into_iter();
        while let Some(argument) = rest.next() {
            if !argument.as_encoded_bytes().starts_with(b"-") {
                paths.push(PathBuf::from(argument));
                continue;
            }
            let name = argument.to_string_lossy();
            let mut value = || rest.next().ok_or_else(|| format!("{name} needs a value"));
            match &*name {
                "--latency" => latency = parse_duration(&text(&value()?)?)?,
                "--op" => ops.extend(parse_latencies(&text(&value()?)?)?),
                "--queue" => queue = Some(count(&value()?)?),
                "--ttl" => ttl = Some(parse_duration(&text(&value()?)?)?),
                "--readers" => readers = Some(count(&value()?)?),
                "--counts" => counts = Some(PathBuf::from(value()?)),
                _ => return Err(format!("there is no option `{name}`")),
            }
        }
        let Ok([source, mountpoint]) = <[PathBuf; 2]>::try_from(paths) else {
            return Err("a source and a mount point are needed, and nothing else".to_owned());
        };
        let mut options = Options::new(latency);
        for (op, latency) in ops {
            options = options.op(op, latency);
        }
        options = queue.map_or(options.clone(), |slots| options.queue(slots));
        options = ttl.map_or(options.clone(), |ttl| options.ttl(ttl));
        options = readers.map_or(options.clone(), |readers| options.readers(readers));
        Ok(Self {
            source,
            mountpoint,
            options,
            counts,
        })
    }

    fn run(self) -> io::Result<()> {
        set_parent_process_death_signal(Some(Signal::TERM))?;
        allow_many_directories();
        let signals = signals()?;
        let slow = SlowFs::mount(&self.source, &self.mountpoint, &self.options)?;
        let unmounter = slow.unmounter();
        thread::spawn(move || unmount_on_signal(signals, &unmounter));
        // The parent may have closed the pipe.
        let _ = io::stdout().write_all(b"slowfs: mounted\n");
        let statistics = slow.wait()?;
        match self.counts {
            Some(file) => std::fs::write(file, statistics.to_json() + "\n"),
            None => Ok(()),
        }
    }
}

fn text(value: &OsStr) -> Result<String, String> {
    let text = value.to_str().map(ToOwned::to_owned);
    text.ok_or_else(|| format!("`{}` is no text", value.display()))
}

fn count(value: &OsStr) -> Result<NonZeroUsize, String> {
    let number = text(value)?.parse();
    number.map_err(|error| format!("`{}` is no count: {error}", value.display()))
}

/// A pipe that a byte comes through for each signal that asks for the end.
fn signals() -> io::Result<UnixStream> {
    let (receiver, sender) = UnixStream::pair()?;
    for signal in [SIGINT, SIGHUP, SIGTERM] {
        pipe::register(signal, sender.try_clone()?)?;
    }
    Ok(receiver)
}

fn unmount_on_signal(mut signals: UnixStream, unmounter: &Unmounter) {
    while signals.read_exact(&mut [0]).is_ok() {
        if let Err(error) = unmounter.unmount() {
            eprintln!("error: {error}");
        }
    }
}
