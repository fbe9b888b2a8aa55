//! Where a command, or a process, spends its time: on a processor, blocked, and in system calls.
//!
//! | view | recorded by | in the same run as |
//! |---|---|---|
//! | on the CPU | `perf record`, samples of a clock | off the CPU |
//! | off the CPU | `perf record`, switches with their stacks | on the CPU |
//! | system calls | `perf trace -s`, else `strace` | nothing: counting calls slows them down |
//!
//! So the command is run once or twice. All figures are sums over the threads of the command and its children. How
//! stacks are read: `script`; how switches become time: `threads`.

mod attach;
mod lines;
mod options;
mod places;
mod recording;
mod rights;
mod script;
mod stacks;
mod syscalls;
mod threads;
mod warnings;

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

pub use lines::{Line, LinesOptions, TimedFunction, profile_lines};
pub use options::{CacheState, ProfileOptions, Subject, Unwind, View};
pub use places::Place;
pub use rights::find_program;
pub use stacks::{Function, Stacks};
pub use syscalls::{COUNTED_BY, SystemCall, SystemCalls};
pub use threads::ThreadTimes;

use crate::Observer;
use crate::error::BenchError;
use crate::flame::{Palette, flame_graph};
use crate::job::{Job, Ran};
use recording::{Pace, Recording};
use rights::Rights;
use threads::Recorded;
use warnings::Asked;

/// The recordings, in the folder for the results while they are made.
const RECORDING: &str = "perf.data";
const CALLS: &str = "calls.txt";
/// What was found.
#[derive(Debug, Default)]
pub struct Profile {
    /// Functions on a processor.
    pub on_cpu: Option<Stacks>,
    /// Stacks that threads were blocked in, and the places.
    pub off_cpu: Option<(Stacks, Vec<Place>)>,
    /// Where the time of all threads went, if switches could be followed.
    pub times: Option<ThreadTimes>,
    /// The system calls.
    pub system_calls: Option<SystemCalls>,
    /// Records that perf lost.
    pub lost: u64,
    /// What was written.
    pub files: Vec<PathBuf>,
    /// Views that could not be made, though they were not asked for one by one.
    pub missing: Vec<BenchError>,
    /// How the command failed, if it did: the profile is of what ran.
    pub failure: Option<BenchError>,
    /// Whether the user ended it: the profile is of what ran.
    pub is_interrupted: bool,
}

/// What can be recorded.
#[derive(Debug, Default)]
struct Means {
    clock: Option<&'static str>,
    switches: Option<&'static str>,
    counts_calls: bool,
    /// Whether perf may run before all others.
    may_hurry: bool,
    /// Whether what runs in the kernel is sampled as well.
    has_kernel: bool,
}

/// Runs a command, or watches a process, and shows where its time goes.
///
/// # Errors
/// [`BenchError::Missing`] if a view that was asked for takes a program or a right that is not there;
/// [`BenchError::Refused`] if there is no such command or process, or the folder is there already;
/// [`BenchError::Command`] if nothing could be recorded. A command that fails is told in [`Profile::failure`].
pub fn profile(options: &ProfileOptions, observer: &dyn Observer) -> Result<Profile, BenchError> {
    options.subject.require(&options.search_path)?;
    let mut profile = Profile::default();
    let means = means(options, &mut profile.missing)?;
    make_folder(&options.folder)?;
    let done = run(options, &means, observer, &mut profile);
    clean(&options.folder, done.is_err())?;
    done?;
    Ok(profile)
}

fn make_folder(folder: &Path) -> Result<(), BenchError> {
    if stook_sys::exists(folder)?.is_some() {
        return Err(BenchError::Refused {
            what: format!("`{}` is there already", stook_sys::display_path(folder)),
            hint: Some("`--out` names a new folder".to_owned()),
        });
    }
    Ok(stook_sys::create_directory(folder)?)
}

/// Removes recordings that have been read, and the folder if nothing came of it.
fn clean(folder: &Path, is_failed: bool) -> Result<(), BenchError> {
    for name in [RECORDING, "perf.data.old", CALLS, "calls.status"] {
        stook_sys::remove_file(&folder.join(name))?;
    }
    let parent = folder
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    if let (true, Some(name)) = (is_failed, folder.file_name()) {
        let parent = stook_sys::Directory::open(parent.unwrap_or(Path::new(".")))?;
        // What is not empty stays.
        let _ = parent.remove_directory(name.as_bytes());
    }
    Ok(())
}

fn run(
    options: &ProfileOptions,
    means: &Means,
    observer: &dyn Observer,
    profile: &mut Profile,
) -> Result<(), BenchError> {
    if means.clock.is_some() || means.switches.is_some() {
        profile.record(options, means, observer)?;
    }
    if !means.counts_calls || profile.is_interrupted {
        return Ok(());
    }
    match profile.count_calls(options, observer) {
        // What is there already is worth showing.
        Err(error) if profile.times.is_some() => {
            profile.is_interrupted |= matches!(error, BenchError::Interrupted);
            profile.failure.get_or_insert(error);
            Ok(())
        }
        counted => counted,
    }
}

/// Finds out what can be recorded. What was asked for must be possible, else it is enough if anything is.
fn means(options: &ProfileOptions, missing: &mut Vec<BenchError>) -> Result<Means, BenchError> {
    let rights = Rights::look(&options.search_path);
    let mut means = Means {
        may_hurry: rights.may_hurry(),
        has_kernel: rights.may_sample_kernel(),
        ..Means::default()
    };
    let is_any = options.views.is_empty();
    for view in [View::OnCpu, View::OffCpu, View::SystemCalls] {
        if !is_any && !options.views.contains(&view) {
            continue;
        }
        let found = match view {
            View::OnCpu => rights.clock().map(|event| means.clock = Some(event)),
            View::OffCpu => rights.switches().map(|event| means.switches = Some(event)),
            View::SystemCalls => rights.require_strace().map(|()| means.counts_calls = true),
        };
        match found {
            Err(error) if is_any => missing.push(error),
            other => other?,
        }
    }
    if missing.len() == 3 {
        return Err(missing.remove(0));
    }
    Ok(means)
}

impl Profile {
    /// Records where threads run and block.
    fn record(
        &mut self,
        options: &ProfileOptions,
        means: &Means,
        observer: &dyn Observer,
    ) -> Result<(), BenchError> {
        options.prepare(observer)?;
        let recording = Recording {
            subject: &options.subject,
            clock: means.clock,
            switches: means.switches,
            unwind: options.unwind,
            pace: match means.may_hurry {
                true => Pace::RealTime,
                false => Pace::Ordinary,
            },
            file: &options.folder.join(RECORDING),
        };
        observer.progress(
            &options
                .subject
                .doing("recording where threads run and block"),
        );
        let made = match recording.make(observer) {
            // Where a control group gives no time to those that go before others, perf ends before anything ran.
            Err(_) if means.may_hurry && !observer.is_stopped() => {
                // The disk may be full of the first recording; and if something did run, that is cleared away.
                stook_sys::remove_file(recording.file)?;
                options.prepare(observer)?;
                Recording {
                    pace: Pace::Ordinary,
                    ..recording
                }
                .make(observer)
            }
            made => made,
        };
        let (ran, recorded) = made?;
        self.ended(options, "while it was recorded", ran, observer);
        self.take(options, means, recorded, observer)
    }

    fn count_calls(
        &mut self,
        options: &ProfileOptions,
        observer: &dyn Observer,
    ) -> Result<(), BenchError> {
        options.prepare(observer)?;
        observer.progress(&options.subject.doing("counting system calls"));
        let file = options.folder.join(CALLS);
        let (ran, calls) = syscalls::count(&options.subject, &file, observer)?;
        self.ended(
            options,
            "while its system calls were counted",
            ran,
            observer,
        );
        let path = options.folder.join("syscalls.txt");
        stook_sys::write_file(&path, calls.table(usize::MAX).as_bytes())?;
        self.files.push(path);
        self.system_calls = Some(calls);
        Ok(())
    }

    fn ended(
        &mut self,
        options: &ProfileOptions,
        when: &str,
        mut ran: Ran,
        observer: &dyn Observer,
    ) {
        self.is_interrupted |= observer.is_stopped();
        let Subject::Command(command) = &options.subject else {
            return;
        };
        if !ran.status.success() && !self.is_interrupted {
            let words = |line: &&str| !line.starts_with("[ perf record:");
            let lines: Vec<&str> = ran.stderr.lines().filter(words).collect();
            ran.stderr = lines.join("\n");
            let failed = Job::new(command.iter().cloned()).failed(when, &ran);
            if self.times.is_some() && self.failure.is_none() && options.before.is_none() {
                observer.warning(
                    "it did not fail in the run before; `--before` clears away what that has left",
                );
            }
            self.failure.get_or_insert(failed);
        }
    }

    /// Writes what was recorded and keeps the figures.
    fn take(
        &mut self,
        options: &ProfileOptions,
        means: &Means,
        recorded: Recorded,
        observer: &dyn Observer,
    ) -> Result<(), BenchError> {
        let asked = Asked {
            is_sampled: means.clock.is_some(),
            has_kernel: means.has_kernel,
            unwind: options.unwind,
        };
        for warning in asked.of(&recorded) {
            observer.warning(&warning);
        }
        self.lost += recorded.lost;
        self.times = Some(recorded.times);
        if means.clock.is_some() {
            self.write(
                options,
                "on-cpu",
                "on the CPU",
                Palette::Hot,
                &recorded.on_cpu,
            )?;
            self.on_cpu = Some(recorded.on_cpu);
        }
        if means.switches.is_some() {
            self.write(
                options,
                "off-cpu",
                "off the CPU",
                Palette::Io,
                &recorded.off_cpu,
            )?;
            self.off_cpu = Some((recorded.off_cpu, recorded.places));
        }
        Ok(())
    }

    fn write(
        &mut self,
        options: &ProfileOptions,
        name: &str,
        what: &str,
        palette: Palette,
        stacks: &Stacks,
    ) -> Result<(), BenchError> {
        let folded = stacks.folded();
        if folded.is_empty() {
            return Ok(());
        }
        let title = format!(
            "{}, {what}: {:.3} s of threads",
            options.subject.text(),
            stacks.seconds()
        );
        let drawing = flame_graph(&folded, &title, "microseconds", palette)?;
        for (ending, bytes) in [("svg", drawing.as_slice()), ("folded", folded.as_bytes())] {
            let path = options.folder.join(format!("{name}.{ending}"));
            stook_sys::write_file(&path, bytes)?;
            self.files.push(path);
        }
        Ok(())
    }
}
