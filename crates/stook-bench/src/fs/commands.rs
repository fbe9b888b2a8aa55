//! The commands of the tools `system` and `stook`, phase by phase.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::options::{FsOptions, Phase, Tool};
use super::packed::Packed;
use super::target::ToolPlace;
use crate::Observer;
use crate::error::BenchError;
use crate::job::{Job, Output};

/// The programs of the system.
const SYSTEM: [&str; 7] = ["cat", "cp", "find", "rm", "sh", "tar", "xargs"];

/// What `find` prints for each entry, and `stook walk` too.
const FIND_FORMAT: &str = "%s %T@ %p\\n";
const WALK_FORMAT: &str = "{size} {mtime} {path}";

/// Returns what each program that is needed says of its version.
///
/// # Errors
/// [`BenchError::Missing`] for one that is not there.
pub(super) fn programs(
    options: &FsOptions,
    observer: &dyn Observer,
) -> Result<BTreeMap<String, String>, BenchError> {
    let mut programs = BTreeMap::new();
    let mut ask = |name: &str, program: &OsStr| {
        programs.insert(name.to_owned(), version(name, program, observer)?);
        Ok::<(), BenchError>(())
    };
    if options.tools.contains(&Tool::System) {
        SYSTEM
            .iter()
            .try_for_each(|name| ask(name, name.as_ref()))?;
    } else if options.tools.contains(&Tool::Single) {
        // It unpacks what this packs.
        ask("tar", "tar".as_ref())?;
    }
    if options.tools.contains(&Tool::Stook) {
        ask("stook", options.stook.as_os_str())?;
    }
    Ok(programs)
}

/// Programs that do not know the option say nothing of use, and are there all the same.
fn version(name: &str, program: &OsStr, observer: &dyn Observer) -> Result<String, BenchError> {
    let job = Job {
        output: Output::Kept,
        ..Job::new([program, OsStr::new("--version")])
    };
    match job.run(observer) {
        Ok(ran) if ran.status.success() => {
            let text = String::from_utf8_lossy(&ran.stdout).into_owned();
            Ok(text.lines().next().unwrap_or_default().to_owned())
        }
        Ok(_) => Ok("unknown".to_owned()),
        Err(BenchError::Start { source, .. }) => Err(BenchError::Missing {
            what: format!("cannot run `{name}`: {}", stook_sys::cause(&source)),
            hint: format!("install `{name}`, or choose other tools with --tools"),
        }),
        Err(error) => Err(error),
    }
}

/// Returns the command that packs a tree as a plain tar.
pub(super) fn pack_tar(tree: &Path, tar: &Path) -> Job {
    plain(Job::new([
        OsStr::new("tar"),
        OsStr::new("-cf"),
        tar.as_os_str(),
        OsStr::new("-C"),
        tree.as_os_str(),
        OsStr::new("."),
    ]))
}

/// The command as it is for everyone: without the user's options for tar, nor a language that is not installed, of which
/// some shells complain.
fn plain(job: Job) -> Job {
    let variables = [("LC_ALL", "C"), ("TAR_OPTIONS", "")];
    Job {
        environment: variables
            .map(|(name, value)| (name.into(), value.into()))
            .into(),
        ..job
    }
}

/// Returns the command that packs a tree as an archive.
pub(super) fn pack_archive(stook: &Path, tree: &Path, archive: &Path) -> Job {
    stook_job(
        stook,
        &[OsStr::new("create"), tree.as_os_str(), archive.as_os_str()],
    )
}

/// Returns the command of a phase; None for [`Tool::Single`], which has none.
pub(super) fn job(
    tool: Tool,
    phase: Phase,
    place: &ToolPlace,
    packed: &Packed,
    stook: &Path,
) -> Option<Job> {
    match tool {
        Tool::System => Some(plain(system(phase, place, packed))),
        Tool::Stook => Some(ours(phase, place, packed, stook)),
        Tool::Single => None,
    }
}

fn system(phase: Phase, place: &ToolPlace, packed: &Packed) -> Job {
    let (tree, copy, tar) = (place.tree(), place.copy(), place.packed_tar());
    let word = OsStr::new;
    match phase {
        Phase::Copy => Job::new([word("cp"), packed.tar.as_os_str(), tar.as_os_str()]),
        Phase::Untar => Job::new([
            word("tar"),
            word("-xf"),
            tar.as_os_str(),
            word("-C"),
            tree.as_os_str(),
            // The superuser's tar changes owner and mode of every file besides, which the other tools do not.
            word("--no-same-owner"),
            word("--no-same-permissions"),
        ]),
        Phase::Find => Job::new([word("find"), tree.as_os_str()]),
        Phase::Stat => Job::new([
            word("find"),
            tree.as_os_str(),
            word("-printf"),
            word(FIND_FORMAT),
        ]),
        Phase::Read => {
            let line = "find \"$1\" -type f -print0 | xargs -0 cat > /dev/null";
            Job::new([
                word("sh"),
                word("-c"),
                word(line),
                word("sh"),
                tree.as_os_str(),
            ])
        }
        Phase::Tar => pack_tar(&tree, &place.again_tar()),
        Phase::CopyTree => Job::new([word("cp"), word("-a"), tree.as_os_str(), copy.as_os_str()]),
        Phase::Delete => Job::new([word("rm"), word("-rf"), tree.as_os_str()]),
    }
}

fn ours(phase: Phase, place: &ToolPlace, packed: &Packed, stook: &Path) -> Job {
    let (tree, copy, archive) = (place.tree(), place.copy(), place.packed_archive());
    let word = OsStr::new;
    match phase {
        Phase::Copy => stook_job(
            stook,
            &[
                word("copy"),
                packed.archive.as_os_str(),
                archive.as_os_str(),
            ],
        ),
        Phase::Untar => stook_job(
            stook,
            &[
                word("extract"),
                archive.as_os_str(),
                word("--into"),
                tree.as_os_str(),
            ],
        ),
        Phase::Find => stook_job(stook, &[word("walk"), tree.as_os_str()]),
        Phase::Stat => stook_job(
            stook,
            &[
                word("walk"),
                tree.as_os_str(),
                word("--format"),
                word(WALK_FORMAT),
            ],
        ),
        Phase::Read => stook_job(stook, &[word("check"), archive.as_os_str()]),
        Phase::Tar => pack_archive(stook, &tree, &place.again_archive()),
        Phase::CopyTree => stook_job(stook, &[word("copy"), tree.as_os_str(), copy.as_os_str()]),
        Phase::Delete => stook_job(stook, &[word("remove"), tree.as_os_str()]),
    }
}

fn stook_job(stook: &Path, words: &[&OsStr]) -> Job {
    let quiet: [OsString; 2] = [stook.into(), "--quiet".into()];
    Job::new(quiet.into_iter().chain(words.iter().map(OsString::from)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::ScratchDirectory;
    use stook_testkit::TempDir;

    #[test]
    fn programs_of_the_system_do_the_work_that_was_asked_for_and_no_more() {
        let folder = TempDir::new().unwrap();
        let work = ScratchDirectory::make(folder.path()).unwrap();
        let place = ToolPlace::make(&work, Tool::System).unwrap();
        let packed = Packed::at(work.path());
        let of = |phase| job(Tool::System, phase, &place, &packed, Path::new("stook")).unwrap();
        for phase in Phase::ALL {
            let environment = of(phase).environment;
            let is_set =
                |name: &str, value: &str| environment.contains(&(name.into(), value.into()));
            assert!(
                is_set("LC_ALL", "C") && is_set("TAR_OPTIONS", ""),
                "{phase:?}"
            );
        }
        // The superuser's tar would else change owner and mode of each.
        let untar = of(Phase::Untar).text();
        assert!(
            untar.ends_with("--no-same-owner --no-same-permissions"),
            "{untar}"
        );
    }
}
