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

mod lines;
mod places;
mod recording;
mod rights;
mod script;
mod stacks;
mod syscalls;
mod threads;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use lines::{Line, LinesOptions, TimedFunction, profile_lines};
pub use places::Place;
pub use rights::{Tracer, find_program};
pub use stacks::{Function, Stacks};
pub use syscalls::{SystemCall, SystemCalls};
pub use threads::ThreadTimes;

use crate::Observer;
use crate::error::BenchError;
use crate::flame::{Palette, flame_graph};
use crate::job::{Job, Ran};
use recording::{Pace, Recording};
use rights::Rights;
use threads::Recorded;

/// With fewer samples the shares are hardly more than guesses.
const FEW_SAMPLES: u64 = 30;
/// From this share on the user is told of stacks that have lost their outer frames.
const MANY_CUT: f64 = 0.1;

/// What is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// Functions on a processor.
    OnCpu,
    /// Stacks that threads were blocked in.
    OffCpu,
    /// System calls, how many and how long.
    SystemCalls,
}

/// How the callers of a function are found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Unwind {
    /// By the frame pointers of programs that keep them: quick, and cut short in those that do not.
    #[default]
    FramePointers,
    /// By the tables for exceptions and debuggers, from a copy of the stack: complete, and much more to write.
    Dwarf,
}

/// What is made of the caches before each recorded run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheState {
    /// The kernel forgets all files.
    Cold,
    /// The command runs once, then the kernel forgets all files: only what the command keeps on disk is there.
    Warm,
    /// The command runs once.
    Hot,
}

/// What is looked at.
#[derive(Debug, Clone)]
pub enum Subject {
    /// A command, which is run.
    Command(Vec<OsString>),
    /// A process that runs already.
    Process {
        /// Its number.
        pid: u32,
        /// How long; up to its end if None.
        longest: Option<Duration>,
    },
}

/// What is wanted.
#[derive(Debug, Clone)]
pub struct ProfileOptions {
    /// What is looked at.
    pub subject: Subject,
    /// What is shown; all that can be if empty.
    pub views: Vec<View>,
    /// How the callers of a function are found.
    pub unwind: Unwind,
    /// What is made of the caches; nothing if None.
    pub cache: Option<CacheState>,
    /// A line for the shell that is run before each run, such as one that removes what the run before has made.
    pub before: Option<String>,
    /// The folder for the results, which must not be there.
    pub folder: PathBuf,
    /// Where programs are looked for, as in `PATH`.
    pub search_path: OsString,
}

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
    tracers: Vec<Tracer>,
    /// Whether perf may run before all others.
    may_hurry: bool,
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
    let recordings = ["perf.data", "perf.data.old", "calls.txt", "calls.status"];
    for name in recordings {
        stook_sys::remove_file(&options.folder.join(name))?;
    }
    done?;
    Ok(profile)
}

fn run(
    options: &ProfileOptions,
    means: &Means,
    observer: &dyn Observer,
    profile: &mut Profile,
) -> Result<(), BenchError> {
    if means.clock.is_some() || means.switches.is_some() {
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
            file: &options.folder.join("perf.data"),
        };
        observer.progress(
            &options
                .subject
                .doing("recording where threads run and block"),
        );
        let (ran, recorded) = recording.make(observer)?;
        profile.ended(options, "while it was recorded", ran, observer);
        profile.take(options, means, recorded, observer)?;
    }
    if !means.tracers.is_empty() && !profile.is_interrupted {
        options.prepare(observer)?;
        observer.progress(&options.subject.doing("counting system calls"));
        let file = options.folder.join("calls.txt");
        let (ran, calls) = syscalls::count(&options.subject, &means.tracers, &file, observer)?;
        profile.ended(
            options,
            "while its system calls were counted",
            ran,
            observer,
        );
        profile.lost += calls.lost;
        if calls.lost > 0 {
            observer.warning(&format!(
                "perf lost {} events: the counts are too small",
                calls.lost
            ));
        }
        let path = options.folder.join("syscalls.txt");
        stook_sys::write_file(&path, calls.table(usize::MAX).as_bytes())?;
        profile.files.push(path);
        profile.system_calls = Some(calls);
    }
    Ok(())
}

/// Finds out what can be recorded. What was asked for must be possible, else it is enough if anything is.
fn means(options: &ProfileOptions, missing: &mut Vec<BenchError>) -> Result<Means, BenchError> {
    let rights = Rights::look(&options.search_path);
    let mut means = Means {
        may_hurry: rights.may_hurry(),
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
            View::SystemCalls => rights.tracers().map(|tracers| means.tracers = tracers),
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

fn make_folder(folder: &Path) -> Result<(), BenchError> {
    if stook_sys::exists(folder)?.is_some() {
        return Err(BenchError::Refused {
            what: format!("`{}` is there already", stook_sys::display_path(folder)),
            hint: Some("`--out` names a new folder".to_owned()),
        });
    }
    Ok(stook_sys::create_directory(folder)?)
}

impl Subject {
    fn longest(&self) -> Option<Duration> {
        match self {
            Self::Command(_) => None,
            Self::Process { longest, .. } => *longest,
        }
    }

    /// Returns it in the words of the user.
    pub fn text(&self) -> String {
        match self {
            Self::Command(command) => Job::new(command.iter().cloned()).text(),
            Self::Process { pid, .. } => format!("process {pid}"),
        }
    }

    fn doing(&self, what: &str) -> String {
        match self {
            Self::Command(_) => format!("running `{}`, {what}", self.text()),
            Self::Process { pid, .. } => format!("watching process {pid}, {what}"),
        }
    }

    fn require(&self, search_path: &std::ffi::OsStr) -> Result<(), BenchError> {
        match self {
            Self::Process { pid, .. } => {
                let place = format!("/proc/{pid}/task");
                match stook_sys::exists(Path::new(&place))? {
                    Some(_) if *pid > 0 => Ok(()),
                    _ => Err(BenchError::Refused {
                        what: format!("there is no process {pid}"),
                        hint: None,
                    }),
                }
            }
            Self::Command(command) => {
                let program = command.first().map(OsString::as_os_str).unwrap_or_default();
                find_program(program, search_path)
                    .map(drop)
                    .ok_or_else(|| rights::no_program(program))
            }
        }
    }
}

impl ProfileOptions {
    /// Runs what is to be run before, and brings the caches into the state that was asked for.
    fn prepare(&self, observer: &dyn Observer) -> Result<(), BenchError> {
        if let (Some(cache), Subject::Command(command)) = (self.cache, &self.subject) {
            self.fill(cache, command, observer)?;
        }
        self.clear(observer)?;
        match self.cache {
            Some(CacheState::Cold | CacheState::Warm) => crate::page_state::drop_all(),
            Some(CacheState::Hot) | None => Ok(()),
        }
    }

    fn clear(&self, observer: &dyn Observer) -> Result<(), BenchError> {
        if let Some(line) = &self.before {
            Job::shell(line).succeed("before a run", observer)?;
        }
        Ok(())
    }

    fn fill(
        &self,
        cache: CacheState,
        command: &[OsString],
        observer: &dyn Observer,
    ) -> Result<(), BenchError> {
        if cache != CacheState::Cold {
            self.clear(observer)?;
            observer.progress(&self.subject.doing("so that caches are filled"));
            Job::new(command.iter().cloned())
                .succeed("in the run that fills the caches", observer)?;
        }
        Ok(())
    }
}

impl Profile {
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
        warn(options, means, &recorded, observer);
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

/// Tells what makes the figures doubtful.
fn warn(options: &ProfileOptions, means: &Means, recorded: &Recorded, observer: &dyn Observer) {
    let Recorded {
        on_cpu,
        off_cpu,
        times,
        ..
    } = recorded;
    if recorded.lost > 0 {
        observer.warning(&format!(
            "perf lost {} of {} records: the figures are too small{}",
            recorded.lost,
            recorded.records + recorded.lost,
            match options.unwind {
                Unwind::Dwarf => "; without `--dwarf` it loses fewer",
                Unwind::FramePointers => "",
            }
        ));
    }
    if means.clock.is_some() && on_cpu.count() < FEW_SAMPLES {
        let samples = match on_cpu.count() {
            0 => "no sample".to_owned(),
            1 => "1 sample".to_owned(),
            count => format!("{count} samples"),
        };
        let mut text = format!(
            "{samples} on the CPU, of {:.1} ms there",
            times.on_cpu * 1e3
        );
        text.push_str("; one is taken each millisecond, so a longer run tells more");
        observer.warning(&text);
    }
    if means.switches.is_some() && off_cpu.count() == 0 {
        observer.warning("nothing was blocked, so there is no picture of it");
    }
    let cut = on_cpu.cut_seconds() + off_cpu.cut_seconds();
    let cut = cut / (on_cpu.seconds() + off_cpu.seconds());
    if cut > MANY_CUT && options.unwind == Unwind::FramePointers {
        observer.warning(&format!(
            "{:.0} % of the time is in stacks that are cut short: built without frame pointers; `--dwarf` shows them whole",
            cut * 100.0
        ));
    }
}
