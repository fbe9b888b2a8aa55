//! Doubles: programs that behave as the manuals of `hsi` and `globus` say, for machines that have neither.
//!
//! ```text
//!   FOLDER/hsi or globus   a link to the double, which finds its state beside the name it is called by
//!   FOLDER/trouble.json    what it should do wrong, and how slowly: [`Trouble`]
//!   FOLDER/state.json      what it holds, and what it has counted
//!   FOLDER/data/           the bytes
//!   FOLDER/log             one line for each command
//! ```
//! They are written from the manuals alone and share no code with the stores that are tested against them. What is
//! not in the grammar is refused, so that a careless caller fails here and not at a site.

pub mod globus;
pub mod hsi;
mod session;
mod trouble;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

pub use session::Counters;
pub use trouble::Trouble;

use crate::temporary::TempDir;

/// A double with a state of its own, as a test sees it.
#[derive(Debug)]
pub struct Double {
    folder: TempDir,
    name: &'static str,
}

impl Double {
    /// Returns a double of `hsi` that holds nothing.
    #[must_use]
    pub fn hsi() -> Self {
        Self::new("hsi")
    }

    /// Returns a double of `globus` with no endpoints.
    #[must_use]
    pub fn globus() -> Self {
        Self::new("globus")
    }

    fn new(name: &'static str) -> Self {
        let folder = TempDir::new().expect("a temporary folder can be made");
        let double = Self { folder, name };
        std::fs::create_dir(double.folder().join("data")).expect("the folder is new");
        std::os::unix::fs::symlink(built(name), double.program()).expect("the folder is new");
        double.set(&Trouble::default());
        double
    }

    /// Returns the program to start.
    #[must_use]
    pub fn program(&self) -> PathBuf {
        self.folder().join(self.name)
    }

    /// Returns the folder of its state.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Says what it should do wrong from now on; transfers are counted anew, and the login is a new one.
    pub fn set(&self, trouble: &Trouble) {
        trouble.write(self.folder());
        session::change_counters(self.folder(), |counters| {
            counters.transfers = 0;
            counters.login_operations = 0;
            counters.login_bytes = 0;
        });
    }

    /// Returns what it has counted.
    #[must_use]
    pub fn counters(&self) -> Counters {
        session::counters(self.folder())
    }

    /// Returns the commands that it was given, in order.
    #[must_use]
    pub fn log(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.folder().join("log")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }

    /// Returns how many of its commands begin with this.
    #[must_use]
    pub fn count(&self, begin: &str) -> usize {
        let log = self.log();
        log.iter().filter(|line| line.starts_with(begin)).count()
    }
}

/// Returns the folder of the state: that of the name the program was called by.
///
/// # Panics
/// If there is no double's state beside that name.
#[must_use]
pub fn state_folder(called_as: Option<&OsStr>) -> PathBuf {
    let called_as = Path::new(called_as.expect("a program is called by a name"));
    let folder = called_as.parent().unwrap_or(Path::new("."));
    assert!(
        folder.join("trouble.json").exists(),
        "a double is called by the link beside its state"
    );
    folder.to_owned()
}

/// Returns the built program; it is built once, as tests of other packages do not build it by themselves.
fn built(name: &str) -> PathBuf {
    static TARGET: OnceLock<PathBuf> = OnceLock::new();
    let target = TARGET.get_or_init(|| {
        let test = std::env::current_exe().expect("a test knows its program");
        let profile = test.ancestors().nth(2).expect("TARGET/PROFILE/deps/TEST");
        if let Some(cargo) = std::env::var_os("CARGO") {
            let mut build = Command::new(cargo);
            build.args([
                "build",
                "--quiet",
                "--offline",
                "-p",
                "stook-testkit",
                "--bins",
            ]);
            build.current_dir(env!("CARGO_MANIFEST_DIR"));
            build.env(
                "CARGO_TARGET_DIR",
                profile.parent().expect("TARGET/PROFILE"),
            );
            if profile.ends_with("release") {
                build.arg("--release");
            }
            let status = build.status().expect("cargo runs the tests");
            assert!(status.success(), "the doubles cannot be built");
        }
        profile.to_owned()
    });
    target.join(name)
}
