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
mod programs;
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
pub use programs::find_program;
pub use stacks::{Function, Stacks};
pub use syscalls::{COUNTED_BY, SystemCall, SystemCalls};
pub use threads::ThreadTimes;

use crate::Observer;
use crate::error::BenchError;
use crate::flame::{Palette, flame_graph};
use crate::job::{Job, Ran};
use crate::remedy::{ProfileRemedy, Remedy};
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
/// [`BenchError::Command`] if nothing could be recorded. The failure of a command is in [`Profile::failure`].
pub fn profile(options: &ProfileOptions, observer: &dyn Observer) -> Result<Profile, BenchError> {
    options.subject.require(&options.search_path)?;
    let mut profile = Profile::default();
    let mut profiler = Profiler {
        means: means(options, &mut profile.missing)?,
        options,
        observer,
        profile,
    };
    make_folder(&options.folder)?;
    let done = profiler.run();
    clean(&options.folder, done.is_err())?;
    done.map(|()| profiler.profile)
}

fn make_folder(folder: &Path) -> Result<(), BenchError> {
    if stook_sys::exists(folder)?.is_some() {
        let what = format!("`{}` is there already", stook_sys::display_path(folder));
        return Err(BenchError::refused_with(
            Remedy::Profile(ProfileRemedy::NameNewFolder),
            what,
        ));
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

/// Finds out what can be recorded. What was asked for must be possible, else it is enough if anything is.
fn means(options: &ProfileOptions, missing: &mut Vec<BenchError>) -> Result<Means, BenchError> {
    let rights = Rights::here(&options.search_path);
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
    match missing.len() {
        3 => Err(missing.remove(0)),
        _ => Ok(means),
    }
}

/// A profile in the making.
struct Profiler<'a> {
    options: &'a ProfileOptions,
    means: Means,
    observer: &'a dyn Observer,
    profile: Profile,
}

impl Profiler<'_> {
    fn run(&mut self) -> Result<(), BenchError> {
        if self.means.clock.is_some() || self.means.switches.is_some() {
            self.record()?;
        }
        if !self.means.counts_calls || self.profile.is_interrupted {
            return Ok(());
        }
        match self.count_calls() {
            // What is there already is worth showing.
            Err(error) if self.profile.times.is_some() => {
                self.profile.is_interrupted |= matches!(error, BenchError::Interrupted);
                self.profile.failure.get_or_insert(error);
                Ok(())
            }
            counted => counted,
        }
    }

    /// Records where threads run and block.
    fn record(&mut self) -> Result<(), BenchError> {
        let (options, observer) = (self.options, self.observer);
        let file = options.folder.join(RECORDING);
        let make = |pace| {
            options.prepare(observer)?;
            let doing = options
                .subject
                .doing("recording where threads run and block");
            observer.progress(&doing);
            let recording = Recording {
                subject: &options.subject,
                clock: self.means.clock,
                switches: self.means.switches,
                unwind: options.unwind,
                pace,
                file: &file,
            };
            recording.make(observer)
        };
        let made = match self.means.may_hurry {
            true => make(Pace::RealTime).or_else(|error| {
                if observer.is_stopped() {
                    return Err(error);
                }
                // Where a control group gives no time to those that go before others, perf ends before anything ran.
                // The disk may be full of the first recording; and if something did run, that is cleared away.
                stook_sys::remove_file(&file)?;
                make(Pace::Ordinary)
            }),
            false => make(Pace::Ordinary),
        };
        let (ran, recorded) = made?;
        self.ended("while it was recorded", ran);
        self.keep(recorded)
    }

    fn count_calls(&mut self) -> Result<(), BenchError> {
        let (options, observer) = (self.options, self.observer);
        options.prepare(observer)?;
        observer.progress(&options.subject.doing("counting system calls"));
        let file = options.folder.join(CALLS);
        let (ran, calls) = syscalls::count(&options.subject, &file, observer)?;
        self.ended("while its system calls were counted", ran);
        self.write("syscalls.txt", calls.table(usize::MAX).as_bytes())?;
        self.profile.system_calls = Some(calls);
        Ok(())
    }

    /// Keeps how the command failed, if it did.
    fn ended(&mut self, when: &str, mut ran: Ran) {
        let profile = &mut self.profile;
        profile.is_interrupted |= self.observer.is_stopped();
        let Subject::Command(command) = &self.options.subject else {
            return;
        };
        if ran.status.success() || profile.is_interrupted {
            return;
        }
        let lines = ran.stderr.lines();
        let lines = lines.filter(|line| !line.starts_with("[ perf record:"));
        ran.stderr = lines.collect::<Vec<&str>>().join("\n");
        let did_not_fail_before = profile.times.is_some() && profile.failure.is_none();
        if did_not_fail_before && self.options.before.is_none() {
            let what = "it did not fail in the run before, which may have left something behind";
            self.observer
                .warning_with(what, &Remedy::Profile(ProfileRemedy::CleanBeforeRuns));
        }
        let failed = Job::new(command.iter().cloned()).failed(when, &ran);
        profile.failure.get_or_insert(failed);
    }

    /// Writes what was recorded and keeps the figures.
    fn keep(&mut self, recorded: Recorded) -> Result<(), BenchError> {
        let asked = Asked {
            is_sampled: self.means.clock.is_some(),
            has_kernel: self.means.has_kernel,
            unwind: self.options.unwind,
        };
        for warning in asked.of(&recorded) {
            match &warning.remedy {
                Some(remedy) => self.observer.warning_with(&warning.text, remedy),
                None => self.observer.warning(&warning.text),
            }
        }
        self.profile.lost += recorded.lost;
        self.profile.times = Some(recorded.times);
        if self.means.clock.is_some() {
            self.draw("on-cpu", "on the CPU", Palette::Hot, &recorded.on_cpu)?;
            self.profile.on_cpu = Some(recorded.on_cpu);
        }
        if self.means.switches.is_some() {
            self.draw("off-cpu", "off the CPU", Palette::Io, &recorded.off_cpu)?;
            self.profile.off_cpu = Some((recorded.off_cpu, recorded.places));
        }
        Ok(())
    }

    fn draw(
        &mut self,
        name: &str,
        what: &str,
        palette: Palette,
        stacks: &Stacks,
    ) -> Result<(), BenchError> {
        let folded = stacks.folded();
        if folded.is_empty() {
            return Ok(());
        }
        let (subject, seconds) = (self.options.subject.text(), stacks.seconds());
        let title = format!("{subject}, {what}: {seconds:.3} s of threads");
        let drawing = flame_graph(&folded, &title, "microseconds", palette)?;
        self.write(&format!("{name}.svg"), &drawing)?;
        self.write(&format!("{name}.folded"), folded.as_bytes())
    }

    fn write(&mut self, name: &str, bytes: &[u8]) -> Result<(), BenchError> {
        let path = self.options.folder.join(name);
        stook_sys::write_file(&path, bytes)?;
        self.profile.files.push(path);
        Ok(())
    }
}
