//! Advice, keyed by the kind of what went wrong: the one place that knows which option or command helps.
//!
//! Libraries say what failed and why; none of their texts names an option.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use stook_archive::{
    ArchiveError, AsOf, BuildReport, Cause, CommitReport, IndexError, MissingName, Note,
    PlanFileError, StopReason, TransferError, UnlikelyDeletions,
};
use stook_bench::{BenchError, ProfileRemedy, Remedy};
use stook_export::{BadImage, ExportError};
use stook_mount::{CacheError, MountError};
use stook_store::{Advice, StoreCause, StoreError};
use stook_sys::{display_bytes, display_path, is_not_permitted};
use stook_tree::Reason;
use stook_zodb::ZodbError;

/// Advice after an interrupted removal.
pub(crate) const REMOVAL_GOES_ON: &str = "what is gone is gone; the same command goes on";

/// Advice after an interrupted copy.
pub(crate) const COPY_GOES_ON: &str = "the same command with --update goes on";

pub(crate) const REINDEX: &str = "`stook reindex` writes the index anew from the volumes";

/// What the same command does after an interruption, unless it says more.
pub(crate) const INTERRUPTED: &str =
    "the same command may be given again; what is done already is not done twice";

/// What to do where a process may open too few files.
pub(crate) const OPEN_FILES: &str =
    "the limit is the one of `ulimit -Hn`; the administrator can raise it";

/// Advice where a database has a transaction that is not perfect.
pub(crate) const ZODB_IMPERFECT: &str =
    "`stook zodb check` lists all damage; ZODB decides about the rest when it opens the database";

/// Returns advice about an error of a database.
pub(crate) fn of_zodb(error: &ZodbError) -> Option<&'static str> {
    Some(match error {
        ZodbError::Locked { .. } => "stop that process first; `--dry-run` needs no lock",
        ZodbError::Changed { .. } => "try again; it was packed, perhaps",
        _ => return None,
    })
}

/// Returns advice about a mount.
pub(crate) fn of_mount(error: &MountError) -> Option<String> {
    Some(match error {
        MountError::Stale { path } => {
            let path = display_path(path);
            format!("`fusermount3 -u {path}`, or as root `umount {path}`, frees it")
        }
        MountError::NobodyListens { .. } => {
            "only its user and root can talk to the server of a mount, and only if it is an archive"
                .into()
        }
        MountError::NameTaken => {
            "mount it without --all-versions; `stook list --all` lists them".into()
        }
        MountError::HidesArchive { .. } => "take another directory to mount on".into(),
        MountError::Sys(error) if error.source.to_string().contains("user_allow_other") => {
            "the administrator can allow it there; without --allow-other only you see the mount"
                .into()
        }
        MountError::Sys(error) if error.operation == "mount on" && error.is_not_found() => {
            "FUSE is needed: /dev/fuse, and for users the program fusermount3 of the package fuse3"
                .into()
        }
        _ => return None,
    })
}

/// Returns advice about an error that ended an export, or a native mount.
pub(crate) fn of_export(error: &ExportError) -> Option<String> {
    let text = match error {
        ExportError::Compressed { .. } => {
            "`stook mount` without --native shows such an archive; one created without --zstd can be exported"
        }
        ExportError::Missing { .. } => {
            "`stook pull` fetches them; `stook mount` without --native reads them from their store"
        }
        ExportError::VolumeSize { .. } => "`stook check` says what is wrong with it",
        ExportError::NoRanges { .. } => {
            "`stook pull` fetches the volumes into a folder, or --base names another place that has them"
        }
        ExportError::NoArray => "`--format json` refers to any files",
        ExportError::BadZarr { .. } => "`--format json` takes it as it is",
        ExportError::Image {
            why: BadImage::OtherState { .. },
            ..
        } => "`stook export erofs` writes it anew; `--as-of` mounts an earlier state",
        ExportError::Image { .. } => "without --image one is made",
        ExportError::Incomplete { .. } | ExportError::VolumeTooLong { .. } => {
            "without --native they can be read"
        }
        ExportError::NotRoot => "without --native every user can mount, where FUSE is installed",
        ExportError::NoErofs { .. } => {
            "it takes Linux 6.12 or newer with CONFIG_EROFS_FS, maybe `modprobe erofs`; without --native it takes FUSE only"
        }
        ExportError::NoPlainFiles { .. } => {
            "it takes Linux 6.12 or newer with CONFIG_EROFS_FS_BACKED_BY_FILE, and XDG_CACHE_HOME on a disk: neither tmpfs nor overlayfs will do; without --native it takes FUSE only"
        }
        _ => return None,
    };
    Some(text.to_owned())
}

/// Returns advice about an error that ended an operation on an archive.
pub(crate) fn of_archive(error: &ArchiveError) -> Option<String> {
    Some(match error {
        ArchiveError::Index(error) => return of_index(error).map(ToOwned::to_owned),
        ArchiveError::Exists { path } => {
            let path = display_path(path);
            format!("`stook update SOURCE {path}` adds what has changed")
        }
        ArchiveError::NoIndex { path } => {
            let path = display_path(path);
            format!("`stook reindex {path}` rebuilds it from the volumes")
        }
        ArchiveError::OtherFiles { .. } => {
            "`--allow-other-files` creates the archive all the same, and leaves them alone".into()
        }
        ArchiveError::IntoArchive { .. } | ArchiveError::IntoOtherArchive { .. } => {
            "`--into` takes a folder that is not there yet, or any that is no archive".into()
        }
        ArchiveError::CompressedForZstash { .. } => {
            "`stook list`, `stook extract` and the other commands of stook read it".into()
        }
        ArchiveError::OtherCompression { .. } => {
            "without `--zstd` the run goes on as the archive was created".into()
        }
        ArchiveError::NameTaken { .. } => "move it away, then try again".into(),
        ArchiveError::NoSuchMember { archive, .. } => {
            format!("`stook list {}` shows what is there", display_path(archive))
        }
        ArchiveError::Store(error) => return of_store(error),
        ArchiveError::BeingWritten { .. } => {
            "try again when the writer has ended; if it was killed, its next run there removes the journal".into()
        }
        ArchiveError::NotFetched { .. } => "the same without `--offline` fetches it".into(),
        ArchiveError::NotAnArchive { path } if display_path(path).contains("://") => {
            "an archive is `index.db` and volumes in one place; check the URL".into()
        }
        ArchiveError::NotAnArchive { path } => {
            format!("`stook create SOURCE {}` makes one", display_path(path))
        }
        ArchiveError::NotInState { missing, .. } => of_missing(missing),
        ArchiveError::UnlikelyDeletions { archive, unlikely } => of_deletions(archive, unlikely),
        ArchiveError::NoMatch { pattern, .. } if is_bare_name(pattern) => format!(
            "a pattern is compared with whole paths; `*/{}` finds that name in any directory",
            display_bytes(pattern)
        ),
        ArchiveError::CannotRecord { .. } => {
            "`--no-record` removes without that; the next update finds these names deleted then"
                .into()
        }
        ArchiveError::NoSuchRun { archive, .. } => {
            format!(
                "`stook list --runs {}` shows the runs",
                display_path(archive)
            )
        }
        ArchiveError::Sys(error) if error.is_no_space() => {
            "the archive is valid; make room and run the same command again, it goes on from there"
                .into()
        }
        ArchiveError::NoThread(_) => {
            "raise the limit of processes, `ulimit -u`, or that of the control group, `pids.max`"
                .into()
        }
        ArchiveError::Interrupted => INTERRUPTED.into(),
        ArchiveError::Transfer(error) => return of_transfer(error),
        other => return of_plan(other),
    })
}

/// Returns advice about what keeps an archive and its store from agreeing.
fn of_transfer(error: &TransferError) -> Option<String> {
    Some(match error {
        TransferError::HoldsArchive { store } => {
            format!("`stook pull ARCHIVE --store {store} --index`, then `stook update` adds to it")
        }
        TransferError::Diverged { store } | TransferError::HoldsOther { store, .. } => format!(
            "if another machine updates this archive, go on from its state: `stook pull NEW_FOLDER --store {store} --index`, then \
             `stook update SOURCE NEW_FOLDER`"
        ),
        TransferError::Gone { .. } => "is it mounted, and the right place? `--change-store` sends everything again, if all volumes are here".into(),
        TransferError::LocalDamage { .. } => "`stook check --volumes` finds what is wrong with it".into(),
        TransferError::OtherStore { .. } => {
            "`--change-store` moves the archive, if all volumes are here".into()
        }
        TransferError::NoStore => "`--store URL` names one".into(),
        TransferError::SmallSpool { .. } => {
            "raise `--spool-size`; an archive with a smaller `--volume-size` needs less".into()
        }
        TransferError::Missing { .. } => "`stook pull` fetches volumes from the old store".into(),
        _ => return None,
    })
}

/// Returns advice about a store that failed.
pub(crate) fn of_store(error: &StoreError) -> Option<String> {
    Some(match (&error.cause, error.advice()) {
        (
            StoreCause::Login {
                command: Some(command),
            },
            _,
        ) => format!("`{command}` logs in; then the same command goes on"),
        (StoreCause::Login { command: None }, _) if error.store.starts_with("s3:") => {
            "`AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY` say who you are, with `AWS_SESSION_TOKEN` for a while; `STOOK_INSTANCE_CREDENTIALS=1` asks the machine".into()
        }
        (StoreCause::NotLetIn { command, .. }, _) => {
            format!("`{command}` must work without a question first")
        }
        (StoreCause::NoRanges, _) => {
            "`stook pull FOLDER --store URL` fetches it into a folder".into()
        }
        (StoreCause::NoProgram(_), _) => {
            "install it, or say where it is: docs/stores.md names the variables".into()
        }
        (_, Advice::Retry) => "try again later; what has arrived by then is not sent again".into(),
        _ => return None,
    })
}

/// Returns advice about an error of a plan, its parts or its commit.
fn of_plan(error: &ArchiveError) -> Option<String> {
    Some(match error {
        ArchiveError::Planned { path } => format!(
            "`stook commit {}` takes its parts into the archive; with `--abandon` it gives them up",
            display_path(path)
        ),
        ArchiveError::NoPlan { path } => {
            format!("`stook plan SOURCE {}` makes one", display_path(path))
        }
        ArchiveError::PlanOutdated { path } => give_up(&display_path(path)),
        ArchiveError::BadPlanFile { path, source } => of_plan_file(path, source),
        ArchiveError::ForeignInPlan { .. } => {
            "move that away, then try again; a plan needs the directory for itself".into()
        }
        ArchiveError::OtherPlan { .. } => "move it away, then build the part again".into(),
        ArchiveError::OtherPart { part, .. } => {
            format!("rename it to `built-{part:06}`, or move it away and build the part again")
        }
        ArchiveError::NotBuilt {
            archive,
            parts,
            are_retries,
        } => of_not_built(archive, parts, *are_retries),
        ArchiveError::BadBuilt { parts } => format!(
            "`stook build {} SOURCE` builds it again",
            display_path(&parts.first()?.part)
        ),
        ArchiveError::Sys(error) if error.source.kind() == io::ErrorKind::CrossesDevices => {
            "a folder that parts are built in must be on the file system of the archive".into()
        }
        ArchiveError::OtherLinks { .. } => {
            "`--follow-symlinks` is given to both `stook plan` and `stook build`, or to none".into()
        }
        _ => return None,
    })
}

fn give_up(archive: &str) -> String {
    format!("`stook commit {archive} --abandon` gives the plan up; then plan again")
}

/// Giving up a plan, which takes all that was built, is the last advice: the file may be the wrong one, or sound.
fn of_plan_file(file: &Path, error: &PlanFileError) -> String {
    let plan = file.parent().filter(|plan| plan.ends_with("stook.plan"));
    let name = file.file_name().unwrap_or_default().as_bytes();
    match (error, plan.and_then(Path::parent)) {
        (PlanFileError::Version { .. }, _) => "use the stook that made the plan".to_owned(),
        (error, Some(archive)) if error.is_unread() => {
            let (plan, archive) = (
                display_path(archive.join("stook.plan")),
                display_path(archive),
            );
            format!(
                "try again when it can be read; if it never can, move `{plan}` away, and `stook update SOURCE {archive}` goes on without the plan"
            )
        }
        (PlanFileError::NoPart, _) => NO_PART.to_owned(),
        (PlanFileError::Foreign, None) if !name.starts_with(b"part-") => NO_PART.to_owned(),
        (_, Some(archive)) => give_up(&display_path(archive)),
        (_, None) => {
            "the part in the `stook.plan` of its archive may be sound: copy it again".to_owned()
        }
    }
}

const NO_PART: &str = "`stook build` takes a file `part-…` of a plan";

fn of_not_built(archive: &Path, parts: &[PathBuf], are_retries: bool) -> String {
    let first = display_path(parts.first().map_or(Path::new("PART"), PathBuf::as_path));
    if are_retries {
        let archive = display_path(archive);
        return format!(
            "`stook build {first} SOURCE` tries again what failed, in vain if it changed after it was planned; `stook commit {archive} --record-failures` leaves it to the next update, `--abandon` gives the plan up"
        );
    }
    format!(
        "`stook build {first} SOURCE` builds it; `--built-in` names the folder if it was built in another one, `--abandon` gives the plan up"
    )
}

/// Returns advice about a part of which members failed.
pub(crate) fn of_built(report: &BuildReport) -> Option<&'static str> {
    (report.failed > 0).then_some(
        "the same command builds the part again, in vain for files that changed after they were planned; `stook commit` puts what failed into another part, or leaves it to the next update with `--record-failures`; `--abandon` gives the plan up",
    )
}

/// Returns advice about parts that a commit has left.
pub(crate) fn of_committed(report: &CommitReport) -> Option<&'static str> {
    let has_retries = report.remaining.iter().any(|part| part.is_retry);
    match (report.remaining.is_empty(), has_retries) {
        (true, _) => None,
        (false, true) => Some(
            "build what is left, then commit again; files that changed after they were planned fail again: `--record-failures` leaves what failed to the next update, `--abandon` gives the rest of the plan up",
        ),
        (false, false) => Some("build what is left, then commit again"),
    }
}

fn is_bare_name(pattern: &[u8]) -> bool {
    !pattern.is_empty() && !pattern.iter().any(|byte| b"*/".contains(byte))
}

fn of_index(error: &IndexError) -> Option<&'static str> {
    Some(match error {
        IndexError::NotFound { .. } => {
            "an archive is a folder with `index.db` and volumes in it; check the path"
        }
        IndexError::Exists { .. } => "use `stook update` to add to an archive",
        IndexError::Foreign { .. } | IndexError::ForeignJournal { .. } => {
            "move it away, then try again"
        }
        IndexError::Newer { .. } => "use a newer stook for this archive",
        IndexError::Busy { .. } => "wait until the other program has ended, then try again",
        IndexError::Changed { .. } => {
            "wait until no other program writes to the archive, then try again"
        }
        IndexError::ReadOnly { .. } => {
            "check the permissions of the file and of its folder, and whether the disk is mounted read-only"
        }
        IndexError::VolumeExists { .. } => {
            "another program may be writing to the archive at the same time"
        }
        IndexError::BadStaging { .. } => "the interrupted volume is written again from its start",
        error if error.is_waiting_for_rollback() => {
            "an interrupted write must be undone first: run any command once with write access to the archive"
        }
        error if error.is_no_space() => "free some space, then try again",
        error if error.is_damage() => REINDEX,
        _ => return None,
    })
}

fn of_missing(missing: &MissingName) -> String {
    let absence = &missing.absence;
    let state = match absence.found_in {
        None => {
            return "no run ended while it was there; `stook list --all` shows its versions".into();
        }
        Some((AsOf::Now, _)) => "the newest state, without `--as-of`,".to_owned(),
        Some((AsOf::Run(run), _)) => format!("`--as-of {run}`"),
    };
    match (absence.found_in, &absence.deleted_by) {
        (Some((_, found)), _) if absence.names > 1 => format!("{state} has {found} of them"),
        (_, Some(_)) => format!("{state} brings it back"),
        (_, None) => format!("{state} has it"),
    }
}

fn of_deletions(archive: &Path, unlikely: &UnlikelyDeletions) -> String {
    let (tree, archive) = (display_path(&unlikely.tree), display_path(archive));
    let first = match unlikely.reason {
        StopReason::Refused => format!("`stook diff {tree} {archive}` names them;"),
        _ => format!("is `{tree}` the right directory, mounted and complete?"),
    };
    format!(
        "{first} `--deletions record` records them as deleted; `--deletions keep` keeps them in the newest state"
    )
}

/// Returns advice about a file that failed.
pub(crate) fn of_failure(cause: &Cause) -> Option<&'static str> {
    Some(match cause {
        Cause::TooManyHoles { .. } => "`--max-hole SIZE` raises the limit",
        Cause::OldMd5Kept(cause) => return of_failure(cause),
        Cause::DeviceRefused => "`--same-permissions` creates devices, given by the superuser",
        Cause::NotOverwritten => "without `--no-overwrite` it is replaced",
        _ => return None,
    })
}

/// Returns advice about a fact that is not an error.
pub(crate) fn of_note(note: &Note) -> Option<&'static str> {
    Some(match note {
        Note::NotIndexed(_) => "`stook reindex` adds it",
        Note::CapabilitiesLeftOut(_) => {
            "`--same-permissions` restores them, given by the superuser"
        }
        Note::NotVerified(_) => "`stook check` reads every member",
        Note::BuiltLost { .. } => "the next `stook update` archives them",
        Note::NamesScanned(_) => "the next `stook update` adds an index of names",
        Note::MetadataChanged(_) => "`--metadata` archives them again",
        Note::WouldStop(_) => "`stook update --deletions` says what is meant",
        Note::NotRecordedOfOtherTree => {
            "if it is that tree, in another place now, `--record` keeps an update from finding these names deleted"
        }
        Note::NotRecordedInForeignArchive => {
            "`--record` records it: then an update does not find these names deleted"
        }
        _ => return None,
    })
}

/// Returns advice about a directory that cannot be a cache.
pub(crate) fn of_cache(error: &CacheError) -> Option<String> {
    Some(match error {
        CacheError::Mode { path, .. } => format!("`chmod 700 {}`", display_path(path)),
        CacheError::TooSmall { .. } => "`--cache-size` sets it".to_owned(),
        CacheError::Form { .. } | CacheError::Owner { .. } | CacheError::NoLocks { .. } => {
            "`--cache` takes another directory; one that is not there yet is created".to_owned()
        }
        _ => return None,
    })
}

/// Returns advice about an error that ended a bench or a profile.
pub(crate) fn of_bench(error: &BenchError) -> Option<String> {
    Some(match error {
        BenchError::Newer { .. } => "use the version of stook that wrote it, or a newer one".into(),
        BenchError::NoToolCommand { tool, operation } => {
            format!("`--tool '{tool}:{operation}=COMMAND'` gives it one")
        }
        BenchError::Store(error) => return of_store(error),
        error => of_remedy(error.remedy()?),
    })
}

/// Returns how the user gets what would help a bench.
pub(crate) fn of_remedy(remedy: &Remedy) -> String {
    let text = match remedy {
        Remedy::InstallOrLeaveOut(name) => {
            return format!("install `{name}`, or choose other tools with --tools");
        }
        Remedy::InstallOrGiveCommand(name) => {
            return format!("install it, or say how to call it: `--tool {name}=COMMAND`");
        }
        Remedy::Profile(remedy) => return of_profile(remedy),
        Remedy::WatchMountOrProcess => {
            "--watch takes the root of a FUSE mount, or the number of a process"
        }
        Remedy::WatchProcess => "give --watch the number of one of them",
        Remedy::NameOtherInputs => "name other files with --files, or run as root",
        Remedy::NameInputs => "name files with --files",
        Remedy::KeepInputsIdle => {
            "no other program may use these files or drop caches meanwhile; --files can name others"
        }
        Remedy::KeepInputsAsTheyAre => {
            "each run must find the same: a command that writes what it reads cannot be measured so"
        }
        Remedy::DropOutput => "if it does, send its output to /dev/null",
        Remedy::DropCachesAsRoot => "only root may drop them, and not in every container",
        Remedy::NameEmptyDirectory => "a file set needs a new or empty directory",
        Remedy::NameOtherWorkDirectory => "`--work DIR` names another place",
        Remedy::NameOtherFile => "name another file, or remove it first",
        Remedy::MeasureLess => {
            "fewer files (--files), fewer tools (--tools), or fewer phases (--phases) need less"
        }
        Remedy::MakeFewerFiles => "ask for fewer files, or free some space",
        Remedy::AskForRounds => "`--rounds` with 1 or a larger number",
        Remedy::MeasureMoreFiles => "`--files` with a larger number",
        Remedy::MeasureMoreRounds => {
            "`--rounds` with a larger number, on a machine that does nothing else"
        }
        Remedy::DropCaches => "`--cold` drops the caches before each run",
        Remedy::CopyFirst => "a copy that nobody else writes to can be measured",
        Remedy::CopyIndex => {
            "copy its index.db to a directory elsewhere, and name that with --archive: nothing else of it is read"
        }
        Remedy::KeepSource => "what is archived must stay as it is",
    };
    text.to_owned()
}

fn of_profile(remedy: &ProfileRemedy) -> String {
    let text = match remedy {
        ProfileRemedy::TimeOneOf(names) => return format!("it has {}", listed(names)),
        ProfileRemedy::InstallPerf => {
            "install `linux-perf` (Debian), `linux-tools-generic` (Ubuntu) or `perf` (Fedora, RHEL, SUSE)"
        }
        ProfileRemedy::AllowPerf => "`sysctl kernel.perf_event_paranoid=1`, or run it as root",
        ProfileRemedy::BuildKernelWithPerf => "it takes a kernel with CONFIG_PERF_EVENTS",
        ProfileRemedy::InstallStrace => "install `strace`",
        ProfileRemedy::InstallLineProfiler => "`pip install line_profiler`, for the same Python",
        ProfileRemedy::RecordLonger => {
            "give it more time with `--for`, and sample it with `--on-cpu`"
        }
        ProfileRemedy::BeSuperuser => "processes of other users take the rights of the superuser",
        ProfileRemedy::NameNewFolder => "`--out` names a new folder",
        ProfileRemedy::NamePythonProgram => {
            "`--lines` takes `python3 SCRIPT`, `python3 -m MODULE` or `python3 -c CODE`"
        }
        ProfileRemedy::EndWithCleanup => "a program that ends with `os._exit` cannot be timed",
        ProfileRemedy::SampleCompiled => "`--on-cpu` shows what compiled functions do",
        ProfileRemedy::UseMainModule => "functions of the program itself are in `__main__`",
        ProfileRemedy::CallInSameProcess => "calls in other processes are not seen",
        ProfileRemedy::CleanBeforeRuns => "`--before` clears away what that has left",
        ProfileRemedy::UnwindWithDwarf => "`--dwarf` shows them whole",
        ProfileRemedy::UnwindByFramePointers => "without `--dwarf` it loses fewer",
        ProfileRemedy::NameCompiledCode => {
            "its compiler can write them to `/tmp/perf-PID.map`, such as `node --perf-basic-prof`, `java -XX:+DumpPerfMapAtExit`, `DOTNET_PerfMapEnabled=1`"
        }
        ProfileRemedy::ShowPythonFrames => {
            "`python3 -X perf` (3.12 or later) shows them, and `--lines` the lines of one"
        }
    };
    text.to_owned()
}

/// The first of some names.
fn listed(names: &[String]) -> String {
    const MOST: usize = 12;
    let quoted = names.iter().take(MOST).map(|name| format!("`{name}`"));
    let more = if names.len() > MOST { ", and more" } else { "" };
    quoted.collect::<Vec<String>>().join(", ") + more
}

/// Returns advice about why an operation failed on something in a tree, or on a tree.
pub(crate) fn of_tree(operation: &str, error: &io::Error) -> Option<&'static str> {
    Some(match Reason::of(error) {
        Some(Reason::IsArchive | Reason::IsPartOfArchive) => "`--with-archives` removes it, too",
        Some(Reason::IsRoot) => "`--no-preserve-root` removes it all the same",
        Some(Reason::IsMountPoint) => "`--keep-root` empties it",
        Some(Reason::Exists) => "`--update` copies what differs",
        None if operation == "remove" && is_not_permitted(error) => {
            "`lsattr` tells whether it is immutable; in a sticky directory only its owner may"
        }
        None if operation == "remove" && error.kind() == io::ErrorKind::ResourceBusy => {
            "it is in use, or something is mounted there"
        }
        _ => return None,
    })
}

/// Returns advice where a pattern of `remove` matches nothing; `unread` directories could not be read.
pub(crate) fn of_no_match(unread: u64) -> String {
    if unread > 0 {
        let directories = crate::number::count(unread, "directory", "directories");
        return format!("nothing was removed; {directories} could not be read");
    }
    "nothing was removed; a pattern is compared with paths below the tree: `*/NAME` finds a name in any directory of it"
        .to_owned()
}

#[cfg(test)]
mod tests {
    use stook_archive::{Absence, RunId};

    use super::*;

    fn missing(names: u64, is_deleted: bool, found_in: Option<(AsOf, u64)>) -> String {
        let run = stook_archive::Run {
            id: RunId(3),
            command: "update".to_owned(),
            started: stook_archive::Mtime(0),
            finished: None,
            first_file: stook_archive::RowId(1),
            last_file: None,
            failed: 0,
        };
        of_missing(&MissingName {
            name: b"a/b".to_vec(),
            as_of: AsOf::Now,
            absence: Absence {
                names,
                deleted_by: is_deleted.then_some(run),
                found_in,
            },
        })
    }

    #[test]
    fn a_name_that_is_missing_is_shown_where_it_is() {
        let after = |run| AsOf::Run(RunId(run));
        for (hint, expected) in [
            (
                missing(1, true, Some((after(2), 1))),
                "`--as-of 2` brings it back",
            ),
            (
                missing(12, true, Some((after(4), 7))),
                "`--as-of 4` has 7 of them",
            ),
            (missing(1, false, Some((after(4), 1))), "`--as-of 4` has it"),
            (
                missing(1, false, Some((AsOf::Now, 1))),
                "the newest state, without `--as-of`, has it",
            ),
            (
                missing(1, true, None),
                "no run ended while it was there; `stook list --all` shows its versions",
            ),
        ] {
            assert_eq!(hint, expected);
        }
    }

    /// Every remedy, and what its text names.
    fn remedies() -> Vec<(Remedy, &'static str)> {
        let name = || "rival".to_owned();
        vec![
            (Remedy::WatchMountOrProcess, "--watch takes the root of"),
            (Remedy::WatchProcess, "--watch the number"),
            (Remedy::NameOtherInputs, "other files with --files"),
            (Remedy::NameInputs, "files with --files"),
            (Remedy::KeepInputsIdle, "--files can name others"),
            (Remedy::KeepInputsAsTheyAre, "writes what it reads"),
            (Remedy::DropOutput, "/dev/null"),
            (Remedy::DropCachesAsRoot, "only root"),
            (
                Remedy::InstallOrLeaveOut("tar"),
                "`tar`, or choose other tools with --tools",
            ),
            (
                Remedy::InstallOrGiveCommand(name()),
                "`--tool rival=COMMAND`",
            ),
            (Remedy::NameEmptyDirectory, "new or empty directory"),
            (Remedy::NameOtherWorkDirectory, "`--work DIR`"),
            (Remedy::NameOtherFile, "another file"),
            (
                Remedy::MeasureLess,
                "--files), fewer tools (--tools), or fewer phases (--phases)",
            ),
            (Remedy::MakeFewerFiles, "fewer files"),
            (Remedy::AskForRounds, "`--rounds` with 1"),
            (Remedy::MeasureMoreFiles, "`--files` with a larger number"),
            (Remedy::MeasureMoreRounds, "`--rounds` with a larger number"),
            (Remedy::DropCaches, "`--cold`"),
            (Remedy::CopyFirst, "a copy"),
            (Remedy::CopyIndex, "name that with --archive"),
            (Remedy::KeepSource, "must stay as it is"),
        ]
    }

    fn remedies_of_profiles() -> Vec<(ProfileRemedy, &'static str)> {
        let names = || vec!["main".to_owned(), "Cart.total".to_owned()];
        vec![
            (ProfileRemedy::InstallPerf, "`linux-perf`"),
            (ProfileRemedy::AllowPerf, "kernel.perf_event_paranoid=1"),
            (ProfileRemedy::BuildKernelWithPerf, "CONFIG_PERF_EVENTS"),
            (ProfileRemedy::InstallStrace, "`strace`"),
            (
                ProfileRemedy::InstallLineProfiler,
                "`pip install line_profiler`",
            ),
            (
                ProfileRemedy::RecordLonger,
                "`--for`, and sample it with `--on-cpu`",
            ),
            (ProfileRemedy::BeSuperuser, "superuser"),
            (ProfileRemedy::NameNewFolder, "`--out`"),
            (
                ProfileRemedy::NamePythonProgram,
                "`--lines` takes `python3 SCRIPT`",
            ),
            (ProfileRemedy::EndWithCleanup, "`os._exit`"),
            (
                ProfileRemedy::TimeOneOf(names()),
                "it has `main`, `Cart.total`",
            ),
            (ProfileRemedy::SampleCompiled, "`--on-cpu`"),
            (ProfileRemedy::UseMainModule, "`__main__`"),
            (ProfileRemedy::CallInSameProcess, "other processes"),
            (ProfileRemedy::CleanBeforeRuns, "`--before`"),
            (ProfileRemedy::UnwindWithDwarf, "`--dwarf`"),
            (ProfileRemedy::UnwindByFramePointers, "without `--dwarf`"),
            (ProfileRemedy::NameCompiledCode, "/tmp/perf-PID.map"),
            (ProfileRemedy::ShowPythonFrames, "`python3 -X perf`"),
        ]
    }

    #[test]
    fn every_remedy_of_a_bench_has_a_text() {
        let of_profiles = remedies_of_profiles().into_iter();
        let of_profiles = of_profiles.map(|(remedy, text)| (Remedy::Profile(remedy), text));
        let all: Vec<_> = remedies().into_iter().chain(of_profiles).collect();
        for (remedy, text) in &all {
            let hint = of_remedy(remedy);
            assert!(hint.contains(text), "{remedy:?}: {hint}");
        }
        // One that is new must be added above.
        let types = include_str!("../../stook-bench/src/remedy.rs").lines();
        let is_variant = |line: &&str| line.starts_with("    ") && line.ends_with(',');
        let wrapped = 1;
        assert_eq!(all.len() + wrapped, types.filter(is_variant).count());
    }

    #[test]
    fn an_error_during_a_run_keeps_its_hint() {
        let source = BenchError::Missing {
            what: "no `rival`".to_owned(),
            remedy: Remedy::InstallOrLeaveOut("rival"),
        };
        let error = BenchError::During {
            when: "in round 2".to_owned(),
            source: Box::new(source),
        };
        assert!(of_bench(&error).unwrap().contains("install `rival`"));
    }

    #[test]
    fn damage_of_an_index_is_mended_by_a_rebuild() {
        let path = || PathBuf::from("arc/index.db");
        let no_column = IndexError::NotAnIndex {
            path: path(),
            missing: stook_archive::Missing::Table("files"),
        };
        for error in [IndexError::NotSqlite { path: path() }, no_column] {
            assert_eq!(of_index(&error), Some(REINDEX), "{error}");
        }
        let foreign = IndexError::ForeignJournal { path: path() };
        assert_eq!(of_index(&foreign), Some("move it away, then try again"));
        assert!(of_index(&IndexError::Busy { path: path() }).is_some());
        assert!(of_index(&IndexError::Changed { path: path() }).is_some());
        assert!(of_index(&IndexError::Interrupted { path: path() }).is_none());
    }

    #[test]
    fn only_a_bare_name_is_told_of_whole_paths() {
        let hint = |pattern: &[u8]| {
            of_archive(&ArchiveError::NoMatch {
                pattern: pattern.to_vec(),
                archive: PathBuf::from("arc"),
            })
        };
        assert!(hint(b"data.nc").unwrap().contains("`*/data.nc`"));
        assert!(hint(b"*/data.nc").is_none() && hint(b"").is_none());
    }
}
