//! The phases and the tools: which command does which work, and what it makes.
//!
//! A place in a command is a name in the tool's folder below a target; `{stook}` is the program, `{set}` and `{set.tar}` are
//! the packed file set.

use std::path::{Path, PathBuf};

use crate::job::Job;
use crate::template::Places;

/// One kind of work on a target, in the order in which they are done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// The packed set comes to the target: one large file.
    Copy,
    /// It is unpacked there.
    Untar,
    /// All names of the tree are found.
    Find,
    /// Size and time of every entry are looked at.
    Stat,
    /// Every file is read.
    Read,
    /// The tree is packed.
    Tar,
    /// The tree is copied within the target.
    CopyTree,
    /// The tree is removed; its copy is not, so that this is as many files as in all other phases.
    Delete,
}

/// What does the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tool {
    /// `cp`, `tar`, `find`, `xargs`, `cat` and `rm`.
    System,
    /// The stook program.
    Stook,
    /// One thread of this process, one operation after the other, each of them timed.
    Single,
}

/// How a phase is done with the programs of the system, and with stook. The superuser's tar would change owner and mode of
/// every file besides, which the other tools do not.
const COMMANDS: [(Phase, &str, &str); 8] = [
    (
        Phase::Copy,
        "cp {set.tar} {packed.tar}",
        "copy {set} {packed}",
    ),
    (
        Phase::Untar,
        "tar -xf {packed.tar} -C {tree} --no-same-owner --no-same-permissions",
        "extract {packed} --into {tree}",
    ),
    (Phase::Find, "find {tree}", "walk {tree}"),
    (
        Phase::Stat,
        r"find {tree} -printf %s\t%T@\t%p\n",
        "walk {tree} --format {size}\t{mtime}\t{path}",
    ),
    (Phase::Read, "", "check {packed}"),
    (
        Phase::Tar,
        "tar -cf {again.tar} -C {tree} .",
        "create {tree} {again}",
    ),
    (Phase::CopyTree, "cp -a {tree} {copy}", "copy {tree} {copy}"),
    (Phase::Delete, "rm -rf {tree}", "remove {tree}"),
];

/// What phases make and work on, in the folder of a tool.
const IN_FOLDER: [&str; 6] = ["packed", "packed.tar", "tree", "copy", "again", "again.tar"];

/// Reading with the programs of the system: the only line that needs a shell.
const READ: &str = "find {tree} -type f -print0 | xargs -0 cat > /dev/null";

impl Phase {
    /// All phases.
    pub const ALL: [Self; 8] = [
        Self::Copy,
        Self::Untar,
        Self::Find,
        Self::Stat,
        Self::Read,
        Self::Tar,
        Self::CopyTree,
        Self::Delete,
    ];

    /// Returns its name, as in options, labels and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Copy => "copy",
            Self::Untar => "untar",
            Self::Find => "find",
            Self::Stat => "stat",
            Self::Read => "read",
            Self::Tar => "tar",
            Self::CopyTree => "copy-tree",
            Self::Delete => "delete",
        }
    }

    /// Returns the phases that make what this one works on.
    pub(super) fn needs(self, tool: Tool) -> &'static [Self] {
        match (self, tool) {
            (Self::Copy, _) => &[],
            // What the archive holds is read in place.
            (Self::Untar, _) | (Self::Read, Tool::Stook) => &[Self::Copy],
            _ => &[Self::Copy, Self::Untar],
        }
    }

    /// Returns the name of what it makes in the tool's folder; None if it makes nothing.
    pub(super) fn product(self, tool: Tool) -> Option<&'static str> {
        match (self, tool) {
            (Self::Copy, Tool::Stook) => Some("packed"),
            (Self::Copy, _) => Some("packed.tar"),
            (Self::Untar, _) => Some("tree"),
            (Self::Tar, Tool::Stook) => Some("again"),
            (Self::Tar, _) => Some("again.tar"),
            (Self::CopyTree, _) => Some("copy"),
            _ => None,
        }
    }
}

impl Tool {
    /// All tools.
    pub const ALL: [Self; 3] = [Self::System, Self::Stook, Self::Single];

    /// Returns its name, as in options, labels and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Stook => "stook",
            Self::Single => "single",
        }
    }
}

/// Where commands find what they work on.
#[derive(Debug, Clone)]
pub(super) struct Commands {
    stook: PathBuf,
    /// The folder with the packed set.
    work: PathBuf,
}

impl Commands {
    pub(super) fn new(stook: &Path, work: &Path) -> Self {
        Self {
            stook: stook.to_owned(),
            work: work.to_owned(),
        }
    }

    /// Returns the command that does a phase in a folder; None for [`Tool::Single`], which has none.
    pub(super) fn job(&self, tool: Tool, phase: Phase, folder: &Path) -> Option<Job> {
        let (_, system, stook) = COMMANDS.iter().find(|(known, ..)| *known == phase)?;
        match tool {
            Tool::System if phase == Phase::Read => Some(plain(self.places(folder).shell(READ))),
            Tool::System => Some(plain(self.places(folder).words(system))),
            Tool::Stook => Some(self.stook(stook, folder)),
            Tool::Single => None,
        }
    }

    /// Returns the command that packs the file set for a tool.
    pub(super) fn pack(&self, tool: Tool) -> Job {
        match tool {
            Tool::Stook => self.stook("create {tree} {set}", &self.work),
            _ => plain(
                self.places(&self.work)
                    .words("tar -cf {set.tar} -C {tree} ."),
            ),
        }
    }

    fn stook(&self, line: &str, folder: &Path) -> Job {
        self.places(folder)
            .words(&format!("{{stook}} --quiet {line}"))
    }

    fn places(&self, folder: &Path) -> Places {
        let places = Places::default()
            .with("stook", &self.stook)
            .with("set", self.work.join("set"))
            .with("set.tar", self.work.join("set.tar"));
        IN_FOLDER
            .iter()
            .fold(places, |places, name| places.with(name, folder.join(name)))
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_the_system_do_the_work_that_was_asked_for_and_no_more() {
        let commands = Commands::new(Path::new("/bin/stook"), Path::new("/made"));
        let of = |phase| commands.job(Tool::System, phase, Path::new("/t")).unwrap();
        for phase in Phase::ALL {
            let environment = of(phase).environment;
            for variable in [("LC_ALL", "C"), ("TAR_OPTIONS", "")] {
                let variable = (variable.0.into(), variable.1.into());
                assert!(environment.contains(&variable), "{phase:?}");
            }
        }
        // The superuser's tar would else change owner and mode of each.
        let untar = "tar -xf /t/packed.tar -C /t/tree --no-same-owner --no-same-permissions";
        assert_eq!(of(Phase::Untar).text(), untar);
        let ours = commands.job(Tool::Stook, Phase::Copy, Path::new("/t"));
        assert_eq!(
            ours.unwrap().text(),
            "/bin/stook --quiet copy /made/set /t/packed"
        );
    }
}
