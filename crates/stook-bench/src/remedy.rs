//! What would help where a bench cannot be made, or its figures are doubtful.

/// What would help. Which option or program that takes, the front door knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remedy {
    /// The root of a FUSE mount, or a process, can be watched.
    WatchMountOrProcess,
    /// One of several processes must be named.
    WatchProcess,
    /// Other files can be named as what is read, or the superuser may drop these.
    NameOtherInputs,
    /// Files that are read can be named.
    NameInputs,
    /// No other program may use what is read, or other files can be named.
    KeepInputsIdle,
    /// A command must read the same each time.
    KeepInputsAsTheyAre,
    /// Output that differs can be thrown away by the command itself.
    DropOutput,
    /// Only the superuser may drop caches.
    DropCachesAsRoot,
    /// A program must be installed, or the tools that take it left out.
    InstallOrLeaveOut(&'static str),
    /// A tool must be installed, or its command given.
    InstallOrGiveCommand(String),
    /// A new or empty directory must be named.
    NameEmptyDirectory,
    /// Another directory to work in can be named.
    NameOtherWorkDirectory,
    /// What is in the place of a page must be removed, or another file be named.
    NameOtherFile,
    /// Fewer files, tools or phases need less space.
    MeasureLess,
    /// Fewer files need less space.
    MakeFewerFiles,
    /// One round or more must be asked for.
    AskForRounds,
    /// More files take longer, so that figures mean something.
    MeasureMoreFiles,
    /// More rounds show how far apart they are.
    MeasureMoreRounds,
    /// The caches can be dropped before each run.
    DropCaches,
    /// A copy that nobody else writes to can be measured.
    CopyFirst,
    /// A copy of the archive's index can be named instead.
    CopyIndex,
    /// What is archived must not change by it.
    KeepSource,
    /// What helps a profile.
    Profile(ProfileRemedy),
}

/// What would help a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProfileRemedy {
    /// `perf` must be installed.
    InstallPerf,
    /// The kernel must allow `perf` to record.
    AllowPerf,
    /// The kernel must be built with `perf`.
    BuildKernelWithPerf,
    /// `strace` must be installed.
    InstallStrace,
    /// `line_profiler` must be installed for the Python of the program.
    InstallLineProfiler,
    /// A process must be recorded for longer, on processors too.
    RecordLonger,
    /// Processes of other users take the rights of the superuser.
    BeSuperuser,
    /// A folder that is not there must be named.
    NameNewFolder,
    /// What Python runs must be named.
    NamePythonProgram,
    /// The program must not end by itself without its cleanup.
    EndWithCleanup,
    /// One of these functions can be timed.
    TimeOneOf(Vec<String>),
    /// Compiled functions can be sampled.
    SampleCompiled,
    /// Functions of the program itself are in its main module.
    UseMainModule,
    /// Only calls in the process itself are seen.
    CallInSameProcess,
    /// What the run before has left must be removed before the next.
    CleanBeforeRuns,
    /// Stacks can be unwound by debug information.
    UnwindWithDwarf,
    /// Less is lost of stacks that are unwound by frame pointers.
    UnwindByFramePointers,
    /// The compiler can write down the names of what it compiles at run time.
    NameCompiledCode,
    /// Python can be made to show its functions to `perf`.
    ShowPythonFrames,
}
